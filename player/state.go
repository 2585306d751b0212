package player

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"

	"tapedeck/player/scenario"
	"tapedeck/protocol"
)

// state is what the control API tells of the gateway.
type state struct {
	Speed   json.RawMessage `json:"speed"` // "max" or a number
	Held    bool            `json:"held"`
	Seed    uint64          `json:"seed"`
	Sockets []string        `json:"sockets"`
	Threads []threadState   `json:"threads"`
}

// threadState is what it tells of a thread.
type threadState struct {
	ID       string   `json:"id"`
	Messages int      `json:"messages"`
	Windows  int      `json:"windows"`
	Run      string   `json:"run,omitempty"` // in flight
	Sequence int64    `json:"sequence,omitempty"`
	Waiting  []string `json:"waiting,omitempty"` // decisions
}

func (g *Gateway) state() state {
	speed, held, _ := g.stage.pace()
	st := state{Speed: json.RawMessage(`"max"`), Held: held, Seed: g.Seed(), Sockets: []string{}, Threads: []threadState{}}
	if !math.IsInf(speed, 1) {
		st.Speed = fmt.Append(nil, speed)
	}
	var threads []*thread
	g.mu.Lock()
	for s := range g.guests {
		st.Sockets = append(st.Sockets, s.ID())
	}
	for _, t := range g.threads {
		threads = append(threads, t)
	}
	g.mu.Unlock()
	for _, t := range threads {
		st.Threads = append(st.Threads, t.state())
	}
	slices.Sort(st.Sockets)
	slices.SortFunc(st.Threads, func(a, b threadState) int { return strings.Compare(a.ID, b.ID) })
	return st
}

// Seed is what ids and paces depend on where no other scenario is chosen: the
// configured one, mixed into the scenario's.
func (g *Gateway) Seed() uint64 {
	if synthetic, ok := g.source.(*scenarios); ok {
		return synthetic.byDefault().Seed ^ g.config.Seed
	}
	return g.config.Seed
}

func (t *thread) state() threadState {
	t.lock()
	defer t.unlock()
	st := threadState{ID: t.id, Messages: len(t.past.messages), Windows: len(t.sockets)}
	if t.run != nil {
		st.Run, st.Sequence = t.run.id, t.run.sequence
	}
	if t.pause != nil {
		for _, d := range t.pause.open {
			st.Waiting = append(st.Waiting, d.id)
		}
	}
	return st
}

// verdict says whether a client did what a scenario expects of it.
type verdict struct {
	OK       bool     `json:"ok"`
	Problems []string `json:"problems"`
}

// controlVerify compares the journal of a thread with what the client of a
// scenario is expected to do.
func (g *Gateway) controlVerify(r *http.Request, _ []byte) (any, error) {
	synthetic, ok := g.source.(*scenarios)
	if !ok {
		return nil, fmt.Errorf("this player serves no scenarios, and knows nothing to expect")
	}
	thread := r.URL.Query().Get("thread")
	if thread == "" {
		return nil, fmt.Errorf("name the thread: verify?thread=ID, and scenario=NAME if its id does not")
	}
	expected, err := synthetic.ofThread(thread)
	if name := r.URL.Query().Get("scenario"); name != "" {
		expected, err = synthetic.find(name)
	}
	if err != nil {
		return nil, err
	}
	return g.verify(expected, thread), nil
}

// verify compares what was sent about a thread with what a scenario expects.
func (g *Gateway) verify(expected *scenario.Scenario, thread string) verdict {
	var want []string
	for _, move := range expected.Client {
		if name := move.Command(); name != "" && move.Thread == "" {
			want = append(want, deed(name, move.Refused))
		}
	}
	var got []string
	for _, e := range g.journal.read(func(e journalEntry) bool { return e.Thread == thread }) {
		code := ""
		if e.Refused != nil {
			code = string(e.Refused.Code)
		}
		got = append(got, deed(e.Name, code))
	}
	return compareDeeds(want, got)
}

func deed(name protocol.Name, code string) string {
	if code == "" {
		return string(name)
	}
	return string(name) + " refused by " + code
}

// compareDeeds holds two lists of commands against each other. A client may ask
// for the history oftener than it must.
func compareDeeds(want, got []string) verdict {
	v := verdict{Problems: []string{}}
	at := 0
	for i, did := range got {
		switch {
		case at < len(want) && did == want[at]:
			at++
		case did == string(protocol.ThreadMessages):
		case at < len(want):
			v.Problems = append(v.Problems, fmt.Sprintf("command %d is %s, expected was %s", i+1, did, want[at]))
		default:
			v.Problems = append(v.Problems, fmt.Sprintf("command %d, %s, was not expected", i+1, did))
		}
	}
	for _, missing := range want[at:] {
		v.Problems = append(v.Problems, missing+" was expected and never came")
	}
	v.OK = len(v.Problems) == 0
	return v
}
