package player

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"tapedeck/player/engine"
	"tapedeck/player/scenario"
	"tapedeck/player/script"
	"tapedeck/protocol"
)

// Source answers commands with scripts. Its methods are called by several
// goroutines at once.
type Source interface {
	// Thread says how a thread begins. It is called once for each.
	Thread(id string) Setting
	// Begin answers a run:start with what will play the run, or with a *Refusal.
	Begin(s Start) (Segments, error)
}

// Segments returns a run's next segment, and Turn is where the run stands then.
type (
	Segments = script.Segments
	Turn     = script.Turn
)

// Greeter is a Source that also says how the gateway meets a socket.
type Greeter interface {
	// Hello is the payload of protocol:hello, nil for none.
	Hello() json.RawMessage
	// Refuse returns what the n-th CONNECT, counted from 0, is refused with,
	// nil to accept it. Once one was accepted, no other is asked about.
	Refuse(n int) *engine.Refusal
}

// Answerer is a Source that also has the gateway's answers over HTTP.
type Answerer interface {
	// Answer returns what answers a request. Nil leaves the request to the
	// gateway's own /health and /protocol.
	Answer(r *http.Request) http.Handler
}

// Setting is how a thread begins, and how the gateway behaves in it.
type Setting struct {
	Unknown bool      // there is no such thread
	History []Message // what was said before
	Replay  int       // envelopes in a replay, 0 for the gateway's own limit
	Seam    string    // "overlap" or "hole": damage where replay and live stream meet
	// Past is a history in the words of a recording, in place of History.
	Past script.Remember
	// Prelude plays when the first client joins: what went on without one. It
	// has no events outside the runs that it opens.
	Prelude []script.Cue
	// State is the source's own: each Start of the thread carries it.
	State any
}

// Start is a run:start that was accepted as valid.
type Start struct {
	protocol.Command
	// Run is the id that its run will have, and Opened how many runs the thread
	// had opened before, whatever became of them.
	Run    string
	Opened int
	// Earlier are the inputs that opened the earlier runs of the thread, as far
	// as they are still part of it.
	Earlier []string
	// Opening is the message that opened the run.
	Opening json.RawMessage
	// State is that of the thread's Setting.
	State any
}

// Refusal is an error that is answered to a client.
type Refusal struct {
	Code    protocol.ErrorCode `json:"code"`
	Message string             `json:"message"`
}

// Error returns the code and the message.
func (r *Refusal) Error() string { return string(r.Code) + ": " + r.Message }

// prefix chooses a scenario at the beginning of a thread's id or of an input.
const prefix = "scenario:"

// scenarios is the Source of synthetic runs.
type scenarios struct {
	seed    uint64
	choices *choices // of the control API

	mu        sync.RWMutex // guards what follows
	otherwise *scenario.Scenario
	own       map[string]*scenario.Scenario
}

// replace puts s in place of the scenario of its name.
func (s *scenarios) replace(changed *scenario.Scenario) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.own[changed.Name] = changed
	if s.otherwise.Name == changed.Name {
		s.otherwise = changed
	}
}

// byDefault is the scenario of whoever asks for none.
func (s *scenarios) byDefault() *scenario.Scenario {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.otherwise
}

// find returns the scenario of a name.
func (s *scenarios) find(name string) (*scenario.Scenario, error) {
	s.mu.RLock()
	own := s.own[name]
	s.mu.RUnlock()
	if own != nil {
		return own, nil
	}
	return scenario.Builtin(name)
}

// named returns the name behind the prefix: what follows up to a space, a
// colon or the end, and what is left of the text.
func named(text string) (name, rest string) {
	behind, ok := strings.CutPrefix(text, prefix)
	if !ok {
		return "", text
	}
	end := strings.IndexFunc(behind, func(r rune) bool { return r == ':' || r == '/' || r == ' ' || r == '\n' || r == '\t' })
	if end < 0 {
		return behind, ""
	}
	return behind[:end], strings.TrimLeft(behind[end:], ":/ \n\t")
}

// ofThread returns the scenario of a thread as such.
func (s *scenarios) ofThread(id string) (*scenario.Scenario, error) {
	if made := s.choices.of(id); made.name != "" {
		return s.find(made.name)
	}
	if name, _ := named(id); name != "" {
		return s.find(name)
	}
	return s.byDefault(), nil
}

// Thread begins a thread as its scenario says. One whose scenario is unknown
// begins empty: its first run:start says what is wrong.
func (s *scenarios) Thread(id string) Setting {
	found, err := s.ofThread(id)
	if err != nil {
		return Setting{}
	}
	g := found.Gateway
	return Setting{Unknown: g.Unknown, Replay: g.Replay, Seam: g.Seam, History: pastMessages(g.History)}
}

// Begin answers with the next run of the scenario that the input names, or that
// an earlier input of the thread named, or else with that of the thread.
func (s *scenarios) Begin(start Start) (Segments, error) {
	found, err := s.ofThread(start.ThreadID)
	if err != nil {
		return nil, &Refusal{protocol.InvalidCommand, err.Error()}
	}
	ordinal := 0
	since := min(s.choices.of(start.ThreadID).since, len(start.Earlier))
	for _, text := range start.Earlier[since:] {
		if name, _ := named(text); name != "" && name != found.Name {
			// An unknown one was refused when it came.
			if other, err := s.find(name); err == nil {
				found, ordinal = other, 0
			}
		}
		ordinal++
	}
	name, text := named(start.Input)
	if name != "" && name != found.Name {
		if found, err = s.find(name); err != nil {
			return nil, &Refusal{protocol.InvalidCommand, err.Error()}
		}
		ordinal = 0
	}
	if next := s.choices.take(); next != "" {
		if found, err = s.find(next); err != nil {
			return nil, &Refusal{protocol.InvalidCommand, err.Error()}
		}
		ordinal = 0
	}
	return func(t Turn) (script.Script, error) {
		segment, problem := found.Segment(scenario.Input{
			Seed: found.Seed ^ s.seed, Thread: start.ThreadID, Run: t.Run, Message: start.MessageID,
			Opening: start.Opening, Text: text, Opened: start.Opened, Ordinal: ordinal, Tools: t.Tools, Pauses: t.Pauses,
		})
		if problem != nil {
			return script.Script{}, &Refusal{cmp.Or(protocol.ErrorCode(problem.Code), protocol.InvalidCommand), problem.Message}
		}
		return segment, nil
	}, nil
}

// pastMessages are messages that a thread begins with: questions and answers in
// turn.
func pastMessages(n int) []Message {
	messages := make([]Message, 0, n)
	for i := range n {
		m := Message{ID: "past-" + strconv.Itoa(i+1), Role: "user", Content: quote("Question " + strconv.Itoa(i/2+1) + "?")}
		if i%2 == 1 {
			m.Role, m.Content = "assistant", quote("Answer "+strconv.Itoa(i/2+1)+".")
		}
		m.CreatedAt = time.Date(2026, 1, 1, 0, 0, i, 0, time.UTC).Format("2006-01-02T15:04:05.000Z")
		messages = append(messages, m)
	}
	return messages
}
