package tape

import (
	"context"
	"encoding/json"
	"fmt"

	"slices"
	"sync"

	"tapedeck/player"
	"tapedeck/player/engine"
	"tapedeck/player/scenario"
	"tapedeck/player/script"
	"tapedeck/protocol"
)

// Source answers commands from a tape. It is a player.Source, Greeter and
// Answerer. Use New.
type Source struct {
	tape    *recording
	kids    map[string]*thread // those of background tasks
	options Options

	mu       sync.Mutex            // protects following; taken last
	next     int                   // the thread that the next unknown one is taken for
	children map[string]child      // by live thread
	bindings map[string][]*binding // by live thread
	served   map[string]int        // answers over HTTP, by what was asked
	misses   int
}

// child is a live thread of a background task.
type child struct {
	binding *binding
	thread  *thread
}

// live is a live thread. The player calls for a thread under its lock, which
// protects it.
type live struct {
	id      string
	thread  *thread // the recorded one that it follows
	binding *binding
	opened  int            // starts that were answered
	next    int            // the place in order
	played  map[*start]int // how often
	pinned  bool           // the thread has been answered from
}

// New reads a tape. What it says of damage and loss is in Remarks.
func New(ctx context.Context, r Reader, o Options) (*Source, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("configure tape: %w", err)
	}
	o = o.withDefaults()
	rec, err := load(ctx, r, o.Session, o.Limit)
	if err != nil {
		return nil, fmt.Errorf("load tape: %w", err)
	}
	s := &Source{tape: rec, options: o, kids: map[string]*thread{}, children: map[string]child{},
		bindings: map[string][]*binding{}, served: map[string]int{}}
	for _, t := range rec.threads {
		if t.child {
			s.kids[t.id] = t
		}
	}
	for _, remark := range rec.remarks {
		o.Logger.Warn("not all can be played", "why", remark)
	}
	return s, nil
}

// Summary is what there is to play.
type Summary struct {
	Threads   int // without those of background tasks
	Starts    int // run:starts that can be answered
	Exchanges int // answers over HTTP
}

// Summary returns what there is to play.
func (s *Source) Summary() Summary {
	sum := Summary{Exchanges: len(s.tape.exchanges)}
	for _, t := range s.tape.threads {
		if !t.child {
			sum.Threads++
			sum.Starts += len(t.starts)
		}
	}
	return sum
}

// Remarks returns what of the tape cannot be played, and why.
func (s *Source) Remarks() []string { return slices.Clone(s.tape.remarks) }

// Misses returns how often something was asked that the tape does not have.
func (s *Source) Misses() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.misses
}

func (s *Source) missed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.misses++
}

// Hello returns what the recorded gateway announced, nil if it kept silent. A
// tape without sockets says nothing of it, and gets the player's own version.
func (s *Source) Hello() json.RawMessage {
	if !s.tape.greeted {
		return json.RawMessage(fmt.Sprintf(`{"protocol":{"major":%d,"minor":%d},"minClientMajor":%d}`, protocol.Major, protocol.Minor, protocol.Major))
	}
	return json.RawMessage(s.tape.hello)
}

// Refuse returns the n-th refusal of a CONNECT that came before the first one
// was accepted.
func (s *Source) Refuse(n int) *engine.Refusal {
	if !s.tape.accepted || n >= len(s.tape.refusals) {
		return nil
	}
	return &s.tape.refusals[n]
}

// Thread begins a thread as the recorded one began: that of the same id, that of
// the task that a subagent was said to be, else the next one in order.
func (s *Source) Thread(id string) player.Setting {
	t, b := s.follow(id)
	l := &live{id: id, thread: t, binding: b, played: map[*start]int{}}
	if b == nil {
		l.binding = s.newBinding(id, 0)
	}
	if t == nil {
		return player.Setting{State: l}
	}
	l.binding.set(t.id, id)
	setting := player.Setting{Unknown: t.unknown, Replay: t.replay, Seam: t.seam, State: l}
	if t.past != nil {
		setting.Past = l.binding.remember(t.past)
	}
	setting.Prelude = s.script(l.binding, t.root).Cues
	return setting
}

// follow chooses the recorded thread of a live one, and the binding that they
// share with others, if they do.
func (s *Source) follow(id string) (*thread, *binding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, ok := s.children[id]; ok {
		return c.thread, c.binding
	}
	var roots, unknown []*thread
	for _, t := range s.tape.threads {
		switch {
		case t.id == id:
			return t, nil
		case t.unknown:
			unknown = append(unknown, t)
		case !t.child:
			roots = append(roots, t)
		}
	}
	if len(roots) == 0 {
		roots = unknown
	}
	if len(roots) == 0 {
		return nil, nil
	}
	s.next++
	return roots[(s.next-1)%len(roots)], nil
}

// newBinding makes the map of a live thread. The live ids of the threads that
// its subagents are said to have are noted, so that a client may open them.
func (s *Source) newBinding(id string, generation int) *binding {
	b := newBinding(s.options.Seed, id, generation)
	b.bound = func(recorded, liveID string) {
		t := s.kids[recorded]
		if t == nil {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.children[liveID] = child{b, t}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if generation == 0 {
		s.bindings[id] = nil // the player has forgotten the thread, and begins it anew
	}
	s.bindings[id] = append(s.bindings[id], b)
	return b
}

// Begin answers a run:start with the recorded run that fits it.
func (s *Source) Begin(c player.Start) (player.Segments, error) {
	l, ok := c.State.(*live)
	if !ok {
		return nil, &player.Refusal{Code: protocol.InvalidCommand, Message: "this thread is not the tape's"}
	}
	found, reason := s.choose(l, &c.Command)
	if found == nil {
		s.missed()
		if s.options.OnMiss == MissScenario {
			l.opened++
			return s.fallback(c), nil
		}
		return nil, &player.Refusal{Code: protocol.InvalidCommand, Message: reason}
	}
	b := s.answer(l, found, &c)
	s.options.Logger.Info("run answered", "thread", c.ThreadID, "run", c.Run, "recorded", found.at, "how", reason)
	if found.refused != nil {
		return nil, &player.Refusal{Code: found.refused.Code, Message: found.refused.Message}
	}
	return s.segments(b, found, found.first, c.ThreadID), nil
}

// answer takes note that a live thread goes on with a recorded run, and returns
// the map of its ids. A run that is played again gets other ids.
func (s *Source) answer(l *live, found *start, c *player.Start) *binding {
	b := l.binding
	if n := l.played[found]; n > 0 {
		b = s.newBinding(l.id, n)
	}
	if !l.pinned {
		l.thread, l.pinned = found.thread, true
	}
	l.opened++
	l.played[found]++
	if found.thread == l.thread {
		l.next = found.index + 1
	}
	b.set(found.command.ThreadID, c.ThreadID)
	b.set(found.command.MessageID, c.MessageID)
	return b
}

// fallback plays the scenario that Options name for a miss.
func (s *Source) fallback(c player.Start) player.Segments {
	found := s.options.Fallback
	return func(t player.Turn) (script.Script, error) {
		segment, problem := found.Segment(scenario.Input{
			Seed: found.Seed ^ s.options.Seed, Thread: c.ThreadID, Run: t.Run, Message: c.MessageID,
			Opening: c.Opening, Text: c.Input, Opened: c.Opened, Tools: t.Tools, Pauses: t.Pauses,
		})
		if problem != nil {
			return script.Script{}, &player.Refusal{Code: protocol.ErrorCode(problem.Code), Message: problem.Message}
		}
		return segment, nil
	}
}

var (
	_ player.Source   = (*Source)(nil)
	_ player.Greeter  = (*Source)(nil)
	_ player.Answerer = (*Source)(nil)
)
