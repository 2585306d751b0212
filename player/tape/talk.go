package tape

import (
	"bytes"
	"encoding/json"
	"slices"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/wire"
)

// maxAsked is how many commands may wait for their answers; the oldest are given
// up first.
const maxAsked = 1000

// command takes a command of a client.
func (l *loader) command(s *socket, p *wire.Packet) {
	m := protocol.Message{Name: protocol.Name(p.Name), Direction: capture.FromClient}
	if len(p.Args) > 0 {
		m.Payload = p.Args[0]
	}
	read, ok := protocol.ReadCommand(&m)
	if !ok {
		return
	}
	read.Answer, read.Attachments = l.keep(read.Answer), l.keep(read.Attachments)
	for i := range read.ClientTools {
		read.ClientTools[i].Arguments, read.ClientTools[i].Result = nil, nil
	}
	c := &command{Command: read, socket: s, at: l.now}
	l.place(s, c)
	if c.thread != nil {
		s.latest = c.thread
	}
	if p.ID != "" {
		s.byPlace[p.Address] = c
	}
	l.asked = append(slices.DeleteFunc(l.asked, func(c *command) bool { return c.settled }), c)
	if len(l.asked) > maxAsked {
		l.asked = slices.Delete(l.asked, 0, maxAsked/2)
	}
}

// place puts a command where it belongs in its thread.
func (l *loader) place(s *socket, c *command) {
	switch c.Name {
	case protocol.RunStart, protocol.RunResume, protocol.ThreadMessages:
		if c.ThreadID == "" {
			return
		}
		c.thread = l.thread(c.ThreadID)
	default:
		if c.run = l.runs[c.RunID]; c.run == nil {
			return
		}
		c.thread = c.run.thread
	}
	switch c.Name {
	case protocol.RunStart:
		c.start = &start{thread: c.thread, at: l.at, command: c.Command, busy: c.thread.busy()}
		c.thread.starts = append(c.thread.starts, c.start)
		s.rooms[c.thread] = true
	case protocol.ThreadMessages:
		g := c.thread.now()
		if n := len(g.items); n > 0 {
			if _, ok := g.items[n-1].act.(*cut); ok {
				g.add(c.at, &wait{command: c.Name, at: c.at})
			}
		}
	case protocol.RunCancel, protocol.RunDetach:
		c.wait = &wait{command: c.Name, at: c.at}
		g := c.run.segment
		g.add(c.at, c.wait)
		if c.Name == protocol.RunCancel && g.cancel == nil {
			g.cancel = c.wait
		}
	}
}

// busy reports whether a run is in flight, or a decision open.
func (t *thread) busy() bool {
	if n := len(t.starts); n > 0 && t.starts[n-1].first == nil && t.starts[n-1].refused == nil {
		return true
	}
	g := t.now()
	return g != t.root && (!g.over || g.paused) || g == t.root && slices.ContainsFunc(g.items, func(i item) bool {
		o, ok := i.act.(*opening)
		return ok && (!o.segment.over || o.segment.paused)
	})
}

// answered takes the acknowledgement of a command.
func (l *loader) answered(s *socket, c *command, payload []byte) {
	if c.Name == protocol.ThreadMessages {
		c.settled = true
		if c.thread != nil {
			l.history(s, c.thread, payload)
		}
		return
	}
	h, ok := protocol.ReadHistory(payload) // {ok, error} is the same in all answers
	switch {
	case !ok:
	case h.OK:
		c.settled = c.Name != protocol.RunStart && c.Name != protocol.RunResume
	default:
		s.swallow, s.swallows = h.Error, true
		l.refuse(c, h.Error)
	}
}

// failed takes a protocol:error: for the oldest command of the socket that may
// be refused so.
func (l *loader) failed(s *socket, p *wire.Packet, f protocol.Failure) {
	if s.swallows && s.swallow == f {
		s.swallows = false
		return
	}
	for _, c := range l.asked {
		if c.socket == s && !c.settled && mayRefuse(f.Code, c.Name) {
			l.refuse(c, f)
			return
		}
	}
	// Nobody asked for it: it is a message like others.
	if s.latest != nil && !l.second(s, s.latest, p) {
		s.latest.now().add(l.now, &message{name: p.Name, args: l.keepAll(p.Args)})
	}
}

func mayRefuse(code protocol.ErrorCode, name protocol.Name) bool {
	switch code {
	case protocol.DuplicateMessage, protocol.ForkPointNotFound:
		return name == protocol.RunStart
	case protocol.UnknownRun:
		return name != protocol.RunStart && name != protocol.ThreadMessages
	case protocol.ConversationNotFound:
		return name != protocol.RunCancel && name != protocol.RunDetach
	}
	return true
}

// refuse takes note that a command was refused.
func (l *loader) refuse(c *command, f protocol.Failure) {
	c.settled = true
	if c.start != nil {
		c.start.refused = &f
	}
	if c.wait != nil {
		c.wait.void = true
		if c.run.segment.cancel == c.wait {
			c.run.segment.cancel = nil
		}
		if f.Code == protocol.UnknownRun {
			c.run.segment.lost()
		}
	}
	if c.Name == protocol.ThreadMessages && c.thread != nil && f.Code == protocol.ConversationNotFound {
		c.thread.noSuch()
	}
}

func (t *thread) noSuch() {
	if t.past == nil && t.current == nil && len(t.root.items) == 0 {
		t.unknown = true
	}
}

// lost takes note that the gateway does not know a run any more that it never
// ended. It was forgotten behind the last that came of it.
func (g *segment) lost() {
	if g.over {
		return
	}
	g.over = true
	at := len(g.items)
	for at > 0 {
		if _, ok := g.items[at-1].act.(*envelope); ok {
			break
		}
		at--
	}
	when := g.at
	if at > 0 {
		when = g.items[at-1].at
	}
	g.items = slices.Insert(g.items, at, item{when, forget{}})
	g.checkpoint, g.seen = at+1, nil
}

// history takes an answer to thread:messages.
func (l *loader) history(s *socket, t *thread, payload []byte) {
	h, ok := protocol.ReadHistory(payload)
	if !ok {
		return
	}
	if !h.OK {
		if h.Error.Code == protocol.ConversationNotFound {
			t.noSuch()
		}
		return
	}
	s.rooms[t] = true
	seen := &snapshot{messages: [][]byte{}, todos: h.Todos, task: h.Task}
	for _, m := range h.Messages {
		seen.messages = append(seen.messages, m.Raw)
	}
	untouched := t.current == nil && len(t.root.items) == 0
	if g := t.now(); !h.Replaying && g != t.root && g.run != "" {
		g.lost()
	}
	if untouched {
		t.root.at = l.now // what was going on then goes on when a client has asked
	}
	if untouched && t.past == nil {
		t.past = l.keepSnapshot(seen)
	} else {
		t.now().remember(l, seen, t.past)
	}
	if h.Truncated {
		t.replay = max(t.replay, len(h.Envelopes))
	}
	if h.Replaying {
		l.replayed(s, t, h, untouched)
		return
	}
	if untouched && h.PendingInterrupt != nil {
		l.openDecision(t, h.PendingInterrupt)
	}
}

// remember puts a history where it first was as a client saw it: behind the
// last thing that may have changed it.
func (g *segment) remember(l *loader, seen, past *snapshot) {
	before := g.seen
	if before == nil && g.checkpoint == 0 && g == g.thread.root {
		before = past
	}
	if before != nil && before.same(seen) {
		return
	}
	at, when := len(g.items), l.now
	if g.seen == nil {
		at, when = g.checkpoint, g.at
		if at > 0 {
			when = g.items[at-1].at
		}
	}
	g.seen = l.keepSnapshot(seen)
	g.items = slices.Insert(g.items, at, item{when, g.seen})
}

func (l *loader) keepSnapshot(s *snapshot) *snapshot {
	return &snapshot{l.keepAll(s.messages), l.keep(s.todos), l.keep(s.task)}
}

func (s *snapshot) same(other *snapshot) bool {
	return slices.EqualFunc(s.messages, other.messages, bytes.Equal) && bytes.Equal(s.todos, other.todos) && bytes.Equal(s.task, other.task)
}

// replayed takes the replay of an answer. What nobody was told before it came
// while nobody listened.
func (l *loader) replayed(s *socket, t *thread, h protocol.History, untouched bool) {
	var opened *opening
	for _, raw := range h.Envelopes {
		e := l.read(raw)
		if e == nil || e.RunID == "" {
			continue
		}
		r := l.runs[e.RunID]
		if r == nil && untouched {
			opened = &opening{truncated: h.Truncated}
			r = l.open(t, e, opened)
		}
		if r == nil {
			r = l.opener(t, e)
		}
		env := l.keepEnvelope(e, raw)
		env.stray = t.id != e.ThreadID
		if opened != nil && r.segment == opened.segment {
			opened.streamed = append(opened.streamed, env)
			r.stream = append(r.stream, env)
			l.progress(r, env, e)
		} else {
			l.missed(r, env, e)
		}
		s.cursors[r] = &cursor{next: r.find(env.payload, env.sequence) + 1, joined: true}
	}
}

// missed adds an envelope that only a replay tells of: behind what came last.
func (l *loader) missed(r *run, env *envelope, e *protocol.Envelope) {
	if r.find(env.payload, env.sequence) >= 0 {
		return
	}
	if n := len(r.stream); n > 0 && env.sequence <= r.stream[n-1].sequence {
		return // it has lost its place
	}
	g := r.segment
	at := len(g.items)
	for at > 0 { // before the command that the replay answers
		if w, ok := g.items[at-1].act.(*wait); !ok || w.command != protocol.ThreadMessages {
			break
		}
		at--
	}
	when := l.now
	if at > 0 {
		when = g.items[at-1].at
	}
	g.items = slices.Insert(g.items, at, item{when, env})
	r.note(env)
	l.progress(r, env, e)
}

// openDecision is a thread that waited for a decision before it was looked at.
func (l *loader) openDecision(t *thread, pending []byte) {
	var d struct {
		InterruptID string `json:"interruptId"`
	}
	if json.Unmarshal(pending, &d) != nil || d.InterruptID == "" {
		return
	}
	g := &segment{thread: t, at: l.now, asked: []string{d.InterruptID}, paused: true, over: true}
	t.root.add(l.now, &opening{segment: g, decision: l.keep(pending)})
	t.current = g
}
