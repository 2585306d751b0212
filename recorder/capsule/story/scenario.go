package story

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"time"

	"tapedeck/protocol"
)

// WriteScenario writes a session's runs as a scenario: what each run:start is
// answered with, pauses included, and the moves of the client. Texts come whole,
// to be edited, and are cut anew when they are played, at the pace of the
// recording. Faults, ids and what other windows did are left out; events of types
// that a scenario has no word for are raw.
func WriteScenario(w io.Writer, about string, sessions []Session) error {
	out := &scenarioWriter{live: map[string]*live{}}
	for i := range sessions {
		if err := tell(&sessions[i], out); err != nil {
			return err
		}
		out.live = map[string]*live{}
	}
	return out.write(w, about, sessions)
}

// step is a step of a run.
type step struct {
	kind   string // the key
	id     string // recorded, to find it again
	name   string
	role   string
	text   strings.Builder
	value  json.RawMessage // a result, a payload, todos, an event
	at     time.Duration
	ended  time.Duration
	took   time.Duration
	status string
	open   bool
	steps  []*step
}

// live is a run id that is being told: into a run of the scenario.
type live struct {
	into   *scenarioRun
	inside []*step // the subagents at work, the latest last
}

// scenarioRun is what answers a run:start: a run, and what went on after its
// pauses.
type scenarioRun struct {
	thread string
	steps  []*step
	paused bool
	latest time.Duration
	began  time.Duration
}

// move is a move of the client.
type move struct {
	when    string
	after   time.Duration
	start   *protocol.Command
	resume  json.RawMessage
	cancel  bool
	declare []protocol.ClientTool
}

// scenarioWriter gathers a scenario. It holds the text of the runs in memory.
type scenarioWriter struct {
	runs   []*scenarioRun
	moves  []move
	live   map[string]*live
	tools  map[string]string // client tools and their kinds
	deltas int
	units  int
	spent  time.Duration
	first  time.Duration // from RUN_STARTED to the first delta, of the first run that has one
	ends   protocol.EventType
}

func (w *scenarioWriter) command(at time.Duration, c *protocol.Command) error {
	m := move{when: w.when()}
	for _, t := range c.ClientTools {
		if w.tools == nil {
			w.tools = map[string]string{}
		}
		w.tools[t.Name] = t.Kind
		t.Arguments, t.Result = bytes.Clone(t.Arguments), bytes.Clone(t.Result)
		m.declare = append(m.declare, t)
	}
	switch c.Name {
	case protocol.RunStart:
		kept := *c
		kept.Attachments = bytes.Clone(c.Attachments)
		m.start = &kept
	case protocol.RunResume:
		m.resume = validOr(c.Answer, "null")
	case protocol.RunCancel:
		l := w.live[c.RunID]
		if l == nil {
			return nil
		}
		m.when, m.cancel, m.after = string(protocol.RunStarted), true, at-l.into.began
	default:
		return nil
	}
	w.moves = append(w.moves, m)
	w.ends = ""
	return nil
}

// when is what the next move waits for: the event that ended the latest run.
func (w *scenarioWriter) when() string { return string(w.ends) }

func (w *scenarioWriter) event(e *event) error {
	l := w.live[e.run]
	if l == nil {
		l = &live{into: w.goOn(e)}
		w.live[e.run] = l
	}
	r := l.into
	if gap := e.at - r.latest; gap > 3*time.Second && len(r.steps) > 0 && !r.paused {
		r.steps = append(r.steps, &step{kind: "wait", took: gap})
	}
	r.latest, r.paused = e.at, r.paused && e.Type != protocol.RunStarted
	switch e.Type {
	case protocol.RunStarted:
	case protocol.RunPaused:
		r.paused = true
	case protocol.RunFinished, protocol.RunCancelled, protocol.RunError:
		w.ends = e.Type
		if e.Type == protocol.RunError {
			r.steps = append(r.steps, &step{kind: "error", name: e.Code, status: e.Message})
		}
	default:
		w.step(l, e)
	}
	return nil
}

// goOn returns the run that an event belongs to whose run id is new.
func (w *scenarioWriter) goOn(e *event) *scenarioRun {
	for i := len(w.runs) - 1; i >= 0; i-- {
		if r := w.runs[i]; r.thread == e.thread {
			if r.paused {
				return r
			}
			break
		}
	}
	r := &scenarioRun{thread: e.thread, began: e.at, latest: e.at}
	w.runs = append(w.runs, r)
	return r
}

// step takes an event that is part of a step.
func (w *scenarioWriter) step(l *live, e *event) {
	id := cmp.Or(e.MessageID, e.ToolCallID)
	switch e.Type {
	case protocol.TextMessageStart:
		l.add(&step{kind: "text", id: id, role: e.Role, at: e.at, open: true})
	case protocol.ReasoningStart:
		l.add(&step{kind: "reasoning", id: id, at: e.at, open: true})
	case protocol.ToolCallStart:
		l.add(&step{kind: "tool", id: id, name: e.ToolCallName, at: e.at, open: true})
	case protocol.TextMessageContent, protocol.ReasoningContent, protocol.ToolCallArgs:
		w.delta(l, e, id)
	case protocol.TextMessageEnd, protocol.ReasoningEnd, protocol.ToolCallEnd:
		if s := l.find(id); s != nil {
			s.open, s.ended = false, e.at
		}
	case protocol.ToolCallResult:
		if s := l.find(e.ToolCallID); s != nil && s.value == nil {
			s.value, s.took = validOr(e.Body, `""`), e.at-max(s.ended, s.at)
		}
	case protocol.Interrupt:
		w.interrupt(l, e)
	case protocol.TodosSnapshot:
		l.add(&step{kind: "todos", value: validOr(e.Body, "[]")})
	case protocol.SubagentStarted:
		if s := l.find(e.ToolCallID); s != nil {
			s.kind, s.name = "subagent", e.SubagentName
			l.inside = append(l.inside, s)
		}
	case protocol.SubagentFinished:
		if i := slices.IndexFunc(l.inside, func(s *step) bool { return s.id == e.ToolCallID }); i >= 0 {
			l.inside[i].status = e.Status
			l.inside = slices.Delete(l.inside, i, i+1)
		}
	default:
		l.add(&step{kind: "raw", value: validOr(e.Raw, "null")})
	}
}

// add puts a step where it belongs: into the subagent that is at work.
func (l *live) add(s *step) {
	if n := len(l.inside); n > 0 {
		l.inside[n-1].steps = append(l.inside[n-1].steps, s)
		return
	}
	l.into.steps = append(l.into.steps, s)
}

// find returns the latest step of an id.
func (l *live) find(id string) *step {
	var in func(steps []*step) *step
	in = func(steps []*step) *step {
		for i := len(steps) - 1; i >= 0; i-- {
			if steps[i].id == id && id != "" {
				return steps[i]
			}
			if s := in(steps[i].steps); s != nil {
				return s
			}
		}
		return nil
	}
	return in(l.into.steps)
}

func (w *scenarioWriter) delta(l *live, e *event, id string) {
	s := l.find(id)
	if s == nil {
		return
	}
	s.text.WriteString(e.Delta)
	if w.first == 0 {
		w.first = e.at - l.into.began
	}
	w.deltas++
	w.units += len([]rune(e.Delta))
	w.spent += min(max(e.at-max(s.ended, s.at), 0), time.Second)
	s.ended = e.at
}

// interrupt takes a decision. One that asks a client's tool is its call, that
// came before it.
func (w *scenarioWriter) interrupt(l *live, e *event) {
	var asks struct {
		ClientTool string          `json:"clientTool"`
		Arguments  json.RawMessage `json:"arguments"`
	}
	if json.Unmarshal(e.Body, &asks) == nil && asks.ClientTool != "" {
		for i := len(l.into.steps) - 1; i >= 0; i-- {
			if s := l.into.steps[i]; s.kind == "tool" && s.name == asks.ClientTool && s.value == nil {
				s.kind, s.status = "clientTool", protocol.Blocking
				return
			}
		}
	}
	l.into.steps = append(l.into.steps, &step{kind: "interrupt", value: validOr(e.Body, "{}")})
}
