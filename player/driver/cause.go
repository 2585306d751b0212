package driver

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/wire"
)

// sent takes an event that the client sent.
func (l *loader) sent(s *socket, p *wire.Packet) {
	m := &move{kind: send, window: s.window, at: l.now, name: p.Name, ask: p.ID != ""}
	for _, arg := range p.Args {
		m.args = append(m.args, l.keep(arg))
	}
	if m.ask {
		s.asked[p.Address] = m
	}
	l.about(s, m)
	if !s.spoken {
		l.first(s, m)
	}
	if m.thread != "" && !slices.Contains(s.threads, m.thread) {
		s.threads = append(s.threads, m.thread)
	}
	if k, ok := l.stands(m.thread); ok {
		m.cause.marks = append(m.cause.marks, k)
	}
	l.caused(s, m)
}

// stands returns where a thread stands: false if nothing has come of it, or
// nothing more since a connection broke off, which may lose its last words the
// next time.
func (l *loader) stands(thread string) (mark, bool) {
	t := l.recorded.threads[thread]
	if t == nil {
		return mark{}, false
	}
	k, ok := t.mark()
	return k, ok && k.address != l.broke[thread]
}

// first gives the connect of a socket the cause of its first message, as far as
// it lay before the connect.
func (l *loader) first(s *socket, m *move) {
	s.spoken = true
	if p, ok := s.before[m.thread]; ok {
		s.connect.cause.marks = p.marks
		s.connect.think = max(0, s.connect.at.when-max(p.last, s.parted))
	}
	s.before = nil
}

// caused takes note of what a socket was told before a move, and of how long the
// client then thought.
func (l *loader) caused(s *socket, m *move) {
	since := max(s.moved.when, l.moved[m.thread].when, s.greeted.when)
	for _, k := range m.cause.marks {
		since = max(since, k.when)
	}
	if len(s.answers) > 0 {
		m.cause.answers, s.answers = s.answers, nil
		since = max(since, s.answered.when)
	}
	if s.errors > 0 {
		m.cause.errors = s.errors
		since = max(since, s.failed.when)
	}
	if s.said != nil {
		s.said.errors = s.errors
	}
	if m.kind == send {
		s.said = m
	}
	if m.cause.statuses > 0 {
		since = max(since, s.informed.when)
	}
	m.think = max(0, m.at.when-since)
	s.moved = l.now
	if m.thread != "" {
		l.moved[m.thread] = l.now
	}
	l.moves = append(l.moves, m)
}

// about finds the thread that a message is about, and the ids in it that the
// gateway chose.
func (l *loader) about(s *socket, m *move) {
	var payload []byte
	if len(m.args) > 0 {
		payload = m.args[0]
	}
	c, ok := protocol.ReadCommand(&protocol.Message{Name: protocol.Name(m.name), Payload: payload, Direction: capture.FromClient})
	if !ok {
		var any struct {
			ThreadID string `json:"threadId"`
		}
		// What has no such field is about the thread that was spoken of last.
		_ = json.Unmarshal(payload, &any)
		m.thread = cmp.Or(any.ThreadID, s.latest())
		return
	}
	m.thread = c.ThreadID
	if g := l.recorded.runs[c.RunID]; g != nil {
		m.thread = g.thread.id
		m.refs = append(m.refs, ref{field: "runId", id: c.RunID, class: aRun, thread: m.thread, segment: g.index})
	} else if c.RunID != "" {
		l.remark("%s at #%s names the run %q, which the recording does not have: that is sent as it was", m.name, m.at.address, c.RunID)
	}
	if m.thread == "" {
		m.thread = s.latest()
	}
	if c.Name == protocol.RunStart && c.MessageID != "" {
		l.chosen[c.MessageID] = true
	}
	if !l.refer(m, "interruptId", c.InterruptID, aDecision) && c.InterruptID != "" {
		l.remark("%s at #%s names the decision %q, which the recording does not have: that is sent as it was", m.name, m.at.address, c.InterruptID)
	}
	if !l.refer(m, "toolCallId", c.ToolCallID, aSubagent) {
		l.refer(m, "toolCallId", c.ToolCallID, aCall)
	}
	if !l.chosen[c.ForkFromMessageID] {
		l.refer(m, "forkFromMessageId", c.ForkFromMessageID, aMessage)
	}
	if t := l.recorded.threads[c.ThreadID]; t != nil && t.parent != "" {
		l.born(m, t)
	}
}

func (w *window) latest() string {
	if len(w.threads) == 0 {
		return ""
	}
	return w.threads[len(w.threads)-1]
}

// refer adds a reference to an id of the thread, the latest if there are more.
func (l *loader) refer(m *move, field, id string, c class) bool {
	t := l.recorded.threads[m.thread]
	if id == "" || t == nil {
		return false
	}
	for i := len(t.segments) - 1; i >= 0; i-- {
		g := t.segments[i]
		if n := slices.Index(g.ids[c], id); n >= 0 {
			r := ref{field: field, id: id, class: c, thread: t.id, segment: i, n: n}
			if c == aDecision {
				r.payload = g.asked[n]
			}
			m.refs = append(m.refs, r)
			return true
		}
	}
	return false
}

// born adds a reference to the thread of a subagent.
func (l *loader) born(m *move, child *thread) {
	about := m.thread
	m.thread = child.parent
	l.refer(m, "threadId", child.id, aChild)
	m.thread = about
}

// closed takes the end of a connection.
func (l *loader) closed(f *capture.Frame) {
	delete(l.connections, f.Connection)
	ending, err := capture.Detail[capture.Ending](f)
	const abnormal = 1006
	for _, s := range slices.Clone(l.open) {
		if s.connection != f.Connection {
			continue
		}
		how := leave
		switch {
		case err != nil:
		case s.bye:
			how = ended
		case ending.Code == abnormal:
			how = drop
		case ending.By == capture.FromGateway:
			how = ended
		}
		l.end(s, how)
	}
}

// end ends a socket, by one of the moves that do.
func (l *loader) end(s *socket, how kind) {
	l.open = slices.DeleteFunc(l.open, func(x *socket) bool { return x == s })
	delete(l.sockets, socketKey{s.connection, s.namespace})
	if s.refused && how == ended {
		how = leave // that is how a refusal ends
	}
	l.parted = l.now.when
	m := &move{kind: how, window: s.window, at: l.now}
	if how == leave {
		m.cause.statuses = s.statuses
	}
	for _, id := range s.threads {
		k, ok := l.stands(id)
		if ok {
			m.cause.marks = append(m.cause.marks, k)
		}
		if ok && how == drop {
			l.broke[id] = k.address
		}
	}
	l.caused(s, m)
}

// finish ends what the tape left open, and tells the clients of the session
// apart.
func (l *loader) finish(thread string) {
	for len(l.open) > 0 {
		l.end(l.open[0], leave)
	}
	l.divide()
	if thread != "" {
		l.parties = slices.DeleteFunc(l.parties, func(p *party) bool { return !slices.Contains(p.threads, thread) })
	}
	if len(l.parties) > 0 {
		l.parties[0].gap = 0
	}
}

// divide tells parties apart: windows that spoke of the same thread, or of a
// thread and of that of one of its subagents, are one client's.
func (l *loader) divide() {
	of := make([]int, len(l.windows)) // the window that each one goes with
	for i := range of {
		of[i] = i
	}
	var root func(int) int
	root = func(i int) int {
		if of[i] != i {
			of[i] = root(of[i])
		}
		return of[i]
	}
	spoke := map[string]int{}
	for i, w := range l.windows {
		for _, id := range w.threads {
			id = l.rootThread(id)
			if first, ok := spoke[id]; ok {
				of[root(i)] = root(first)
			} else {
				spoke[id] = i
			}
		}
	}
	parties := map[int]*party{}
	var began time.Duration
	for _, m := range l.moves {
		i := root(m.window.index)
		p := parties[i]
		if p == nil {
			p = &party{gap: max(0, m.at.when-began)}
			began = m.at.when
			parties[i] = p
			l.parties = append(l.parties, p)
		}
		m.index = len(p.moves)
		p.moves = append(p.moves, m)
		if m.thread != "" && !slices.Contains(p.threads, m.thread) {
			p.threads = append(p.threads, m.thread)
		}
	}
}

// rootThread returns the thread of which a subagent's subagent began.
func (l *loader) rootThread(id string) string {
	const deepest = 100
	for range deepest {
		t := l.recorded.threads[id]
		if t == nil || t.parent == "" {
			break
		}
		id = t.parent
	}
	return id
}
