package tape

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"tapedeck/player/script"
	"tapedeck/protocol"
)

const (
	// reaction is how much sooner than the recorded one a run:cancel may come,
	// and still be taken for it: what had been sent then is sent at once.
	reaction = 3 * time.Second
	// rejoin is how long a run whose socket was cut waits for a client at most.
	rejoin = 30 * time.Second
)

// script makes what the stage plays out of a recorded segment.
func (s *Source) script(b *binding, g *segment) script.Script {
	c := &composer{source: s, binding: b, last: g.at, cancelAt: -1}
	out := script.Script{SameRun: g.sameRun}
	out.Cues = make([]script.Cue, 0, len(g.items))
	for i := range g.items {
		item := &g.items[i]
		if w, ok := item.act.(*wait); ok && w.command == protocol.ThreadMessages {
			c.last = item.at // how long the client was away is the client's
		}
		at := c.time(item.at)
		if item.act == any(g.cancel) {
			c.cancelAt = at
		}
		if act := c.act(g, item); act != nil {
			out.Cues = append(out.Cues, script.Cue{At: at, Act: act, Lane: c.lane(act)})
		}
	}
	if c.cancelAt >= 0 {
		out.OnCancel = script.Cancel{Recorded: true, Since: c.cancelAt - reaction}
	}
	return out
}

// composer walks the items of a segment.
type composer struct {
	source   *Source
	binding  *binding
	at, last time.Duration
	cancelAt time.Duration
	working  []string // the subagents that have started and not finished
}

// time is when an item is due. Times that run back stand still, and the longest
// gap bounds those that jump.
func (c *composer) time(at time.Duration) time.Duration {
	c.at += min(max(at-c.last, 0), c.source.options.LongestGap)
	c.last = at
	return c.at
}

// act makes the act of an item, nil if it is not played.
func (c *composer) act(g *segment, i *item) script.Act {
	drops := c.source.options.WithDrops
	switch act := i.act.(type) {
	case *envelope:
		return c.binding.event(act, act.stray)
	case *message:
		return c.binding.send(act)
	case *snapshot:
		return c.binding.remember(act)
	case forget:
		return script.Forget{}
	case *opening:
		return c.open(act)
	case *cut:
		if drops {
			return script.Cut{Politely: act.politely}
		}
	case *wait:
		switch {
		case act.void || act.command == protocol.ThreadMessages && !drops:
		case act.command == protocol.ThreadMessages:
			return script.Await{Command: act.command, Within: rejoin}
		default:
			return script.Await{Command: act.command}
		}
	}
	return nil
}

// lane is the subagent that an event belongs to, as far as that is plain: where
// several are at work at once, only their ends are known to be theirs.
func (c *composer) lane(act script.Act) string {
	e, ok := act.(script.Event)
	if !ok {
		return ""
	}
	lane := ""
	if len(c.working) == 1 {
		lane = c.working[0]
	}
	switch e.Type {
	case protocol.SubagentStarted:
		c.working = append(c.working, e.ID)
	case protocol.SubagentFinished:
		lane = e.ID
		c.working = slices.DeleteFunc(c.working, func(id string) bool { return id == e.ID })
	case protocol.ToolCallResult:
		if slices.Contains(c.working, e.ID) {
			lane = ""
		}
	case protocol.RunFinished, protocol.RunPaused, protocol.RunCancelled, protocol.RunError:
		lane = ""
	}
	return strings.ReplaceAll(lane, "/", "_")
}

// event makes an event of an envelope, its ids live.
func (b *binding) event(e *envelope, stray bool) script.Event {
	in := b.splice(inEnvelope, e.payload)
	return script.Event{
		Type: e.typ, ID: b.of(e.id), JSON: in.event.of(in.payload), Delta: in.delta.of(in.payload),
		Recorded: &script.Recorded{Envelope: in.payload, Sequence: e.sequence, Stray: stray, Repeat: e.repeat},
	}
}

func (b *binding) send(m *message) script.Send {
	out := script.Send{Name: m.name, Attachments: m.attachments, Payload: json.RawMessage("null")}
	in := free
	if protocol.Name(m.name) == protocol.TaskStatus {
		in = inStatus
	}
	for i, arg := range m.args {
		live := json.RawMessage(b.splice(in, arg).payload)
		if i == 0 {
			out.Payload = live
		}
		if len(m.attachments) > 0 {
			out.Args = append(out.Args, live)
		}
	}
	return out
}

func (b *binding) remember(s *snapshot) script.Remember {
	r := script.Remember{Messages: make([]json.RawMessage, 0, len(s.messages))}
	for _, m := range s.messages {
		r.Messages = append(r.Messages, b.splice(inMessage, m).payload)
	}
	if s.todos != nil {
		r.Todos = b.splice(free, s.todos).payload
	}
	if s.task != nil {
		r.Task = b.splice(inTask, s.task).payload
	}
	return r
}

// open makes a run that no client asked for.
func (c *composer) open(o *opening) script.Open {
	b, g := c.binding, o.segment
	run := b.of(g.run)
	if o.decision != nil {
		run = b.of("a run before the tape, " + g.asked[0])
	}
	out := script.Open{Run: run, Script: c.source.script(b, g), Truncated: o.truncated}
	if o.message != nil {
		out.Message = b.splice(inMessage, o.message).payload
	}
	for _, e := range o.streamed {
		out.Streamed = append(out.Streamed, b.event(e, e.stray))
	}
	if o.decision != nil {
		out.Streamed = b.waiting(o.decision, g.asked[0])
	}
	out.Next = c.source.segments(b, nil, g, b.of(g.thread.id))
	return out
}

// waiting are the events by which a run came to wait for a decision that only a
// history tells of.
func (b *binding) waiting(pending []byte, id string) []script.Event {
	asked := b.splice(inDecision, pending).payload
	if asked[0] != '{' {
		return nil
	}
	asked = append([]byte(`{"type":"INTERRUPT",`), asked[1:]...)
	return []script.Event{
		{Type: protocol.Interrupt, ID: b.of(id), JSON: asked},
		{Type: protocol.RunPaused, JSON: json.RawMessage(`{"type":"RUN_PAUSED"}`)},
		{Type: protocol.RunFinished, JSON: json.RawMessage(`{"type":"RUN_FINISHED"}`)},
	}
}
