package tape

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/wire"
)

// read reads an envelope; nil if it is no object. It is valid until the next
// call.
func (l *loader) read(payload []byte) *protocol.Envelope {
	m := protocol.Message{Name: protocol.RunEvent, Payload: payload, Direction: capture.FromGateway}
	l.findings = l.validator.Validate(&m, l.findings[:0])
	return m.Envelope
}

func (l *loader) keepEnvelope(e *protocol.Envelope, payload []byte) *envelope {
	return &envelope{
		payload: l.keep(payload), typ: e.Event.Type, sequence: e.Sequence,
		id: cmp.Or(e.Event.ToolCallID, e.Event.MessageID, e.Event.InterruptID),
	}
}

// envelope takes an envelope that a socket was sent.
func (l *loader) envelope(s *socket, p *wire.Packet, payload []byte) {
	e := l.read(payload)
	if e == nil {
		l.message(s, p, payload)
		return
	}
	r, stray := l.runOf(s, e)
	if r == nil {
		l.message(s, p, payload)
		return
	}
	if s.heardBefore(r, payload, e.Sequence) {
		return
	}
	env := l.keepEnvelope(e, payload)
	env.stray = stray
	if n := len(r.stream); n > 0 && bytes.Equal(r.stream[n-1].payload, payload) {
		env.repeat = true
	}
	r.segment.add(l.now, env)
	r.note(env)
	s.cursors[r].next = len(r.stream)
	if !stray && !env.repeat {
		l.progress(r, env, e)
	}
	s.latest = r.thread
}

// runOf says which run an envelope belongs to, and whether it is astray there.
func (l *loader) runOf(s *socket, e *protocol.Envelope) (r *run, stray bool) {
	t := l.known[e.ThreadID]
	if r = l.runs[e.RunID]; r != nil {
		if stray = r.thread.id != e.ThreadID; !stray {
			l.resumed(r)
		}
		return r, stray
	}
	if t == nil && s.latest != nil {
		if r = l.inFlight(s.latest); r != nil {
			return r, true
		}
	}
	if t == nil {
		if e.ThreadID == "" {
			return nil, false
		}
		t = l.thread(e.ThreadID)
	}
	s.rooms[t] = true
	if r = l.inFlight(t); r != nil && e.Event.Type != protocol.RunStarted && !l.awaited(t) {
		return r, true
	}
	if e.RunID == "" {
		return r, true
	}
	return l.opener(t, e), false
}

func (l *loader) inFlight(t *thread) *run {
	if g := t.now(); g.run != "" && !g.over {
		return l.runs[g.run]
	}
	return nil
}

// awaited reports whether a command waits for a run in a thread.
func (l *loader) awaited(t *thread) bool {
	return slices.ContainsFunc(l.asked, func(c *command) bool {
		return !c.settled && c.thread == t && (c.Name == protocol.RunStart || c.Name == protocol.RunResume)
	})
}

// opener makes the run of an envelope that is the first of its id: what a
// run:start or a run:resume waits for, or a run that nobody here asked for.
func (l *loader) opener(t *thread, e *protocol.Envelope) *run {
	var message struct {
		ID string `json:"id"`
	}
	if e.Event.Type == protocol.RunStarted {
		// A message of another shape names no command.
		_ = json.Unmarshal(e.Event.Body, &message)
	}
	var best *command
	for _, c := range l.asked {
		switch {
		case best != nil || c.settled || c.thread != t || c.Name != protocol.RunStart && c.Name != protocol.RunResume:
		case message.ID != "" && (c.Name != protocol.RunStart || c.MessageID != message.ID):
		default:
			best = c
		}
	}
	if best == nil {
		return l.open(t, e, &opening{})
	}
	g := &segment{thread: t, at: best.at, run: l.name(e.RunID)}
	if best.Name == protocol.RunResume {
		return l.goOn(t, g, e)
	}
	if before := t.now(); before.run != "" {
		before.lost()
	}
	best.settled, best.start.first, t.current = true, g, g
	return l.newRun(g)
}

func (l *loader) name(id string) string { return string(l.keep([]byte(id))) }

func (l *loader) newRun(g *segment) *run {
	r := &run{id: g.run, thread: g.thread, segment: g}
	l.runs[r.id] = r
	return r
}

// goOn makes g the segment that a pause led to. If nothing paused, it is a run
// that nobody asked for.
func (l *loader) goOn(t *thread, g *segment, e *protocol.Envelope) *run {
	before := t.now()
	if before == t.root || !before.paused || before.next != nil {
		return l.open(t, e, &opening{})
	}
	l.follow(before, g)
	return l.newRun(g)
}

// follow links a segment to the pause before it, and settles the answers.
func (l *loader) follow(before, g *segment) {
	before.next, g.answers, before.thread.current = g, map[string][]byte{}, g
	for _, c := range l.asked {
		if !c.settled && c.thread == g.thread && c.Name == protocol.RunResume {
			c.settled = true
			g.answers[c.InterruptID] = c.Answer
			g.at = max(g.at, c.at)
		}
	}
}

// resumed makes a new segment of a run that goes on under its own id.
func (l *loader) resumed(r *run) {
	before := r.segment
	if !before.paused || !before.over || before.next != nil || before != r.thread.now() || !l.awaited(r.thread) {
		return
	}
	g := &segment{thread: r.thread, run: r.id, at: before.at, sameRun: true}
	l.follow(before, g)
	r.segment = g
}

// open puts a run that nobody here asked for into its thread.
func (l *loader) open(t *thread, e *protocol.Envelope, o *opening) *run {
	o.segment = &segment{thread: t, at: l.now, run: l.name(e.RunID)}
	if e.Event.Type == protocol.RunStarted {
		o.message = l.keep(e.Event.Body)
	}
	in := t.now()
	in.add(l.now, o)
	if in == t.root || in.over && !in.paused {
		// From here on it is the thread's run. What is not its own still goes to
		// the segment that it stands in, by the items' times.
		t.current = o.segment
	}
	return l.newRun(o.segment)
}

// progress takes note of what an envelope says about its run.
func (l *loader) progress(r *run, env *envelope, e *protocol.Envelope) {
	g := r.segment
	switch env.typ {
	case protocol.Interrupt:
		g.asked = append(g.asked, env.id)
	case protocol.RunPaused:
		g.paused = true
	case protocol.SubagentStarted:
		if e.Event.ChildThreadID != "" {
			l.kids[e.Event.ChildThreadID] = true
		}
	case protocol.SubagentFinished:
		l.settle(r, protocol.RunDetach)
	case protocol.RunFinished, protocol.RunCancelled, protocol.RunError:
		g.over = true
		g.paused = g.paused && env.typ == protocol.RunFinished
		g.checkpoint, g.seen = len(g.items), nil
		l.settle(r, protocol.RunCancel)
		l.settle(r, protocol.RunDetach)
	}
}

// settle takes the commands about a run for obeyed.
func (l *loader) settle(r *run, name protocol.Name) {
	for _, c := range l.asked {
		if c.run == r && c.Name == name {
			c.settled = true
		}
	}
}

// note adds an envelope to the stream that all sockets in the room hear.
func (r *run) note(env *envelope) {
	if r.last != nil {
		r.last[env.sequence] = len(r.stream)
	}
	r.stream = append(r.stream, env)
}

// find returns where in the stream an envelope is, byte for byte; -1 if nowhere.
func (r *run) find(payload []byte, sequence int64) int {
	if r.last == nil {
		r.last = make(map[int64]int, len(r.stream))
		for i, env := range r.stream {
			r.last[env.sequence] = i
		}
	}
	if at, ok := r.last[sequence]; ok && bytes.Equal(r.stream[at].payload, payload) {
		return at
	}
	return -1
}

// heardBefore reports whether what a socket is sent was sent to another before:
// the socket then stands behind it. Damage where its replay met the stream is
// noted, and is no part of the stream.
func (s *socket) heardBefore(r *run, payload []byte, sequence int64) bool {
	c := s.cursors[r]
	if c == nil {
		c = &cursor{}
		if len(r.stream) > 0 {
			if c.next = r.find(payload, sequence); c.next < 0 {
				c.next = len(r.stream)
			}
		}
		s.cursors[r] = c
	}
	if joined := c.joined; joined {
		c.joined = false
		if c.next > 0 && bytes.Equal(r.stream[c.next-1].payload, payload) {
			r.thread.seam = "overlap"
			c.joined = true // the seam may be longer than one envelope
			return true
		}
		if c.next > 0 && sequence > r.stream[c.next-1].sequence+1 && (c.next < len(r.stream) || sequence == r.stream[c.next-1].sequence+2) {
			r.thread.seam = "hole"
		}
	}
	if c.next < len(r.stream) {
		if bytes.Equal(r.stream[c.next].payload, payload) {
			c.next++
			return true
		}
		if at := r.find(payload, sequence); at >= c.next {
			c.next = at + 1
			return true
		}
	}
	return false
}
