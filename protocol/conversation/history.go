package conversation

import (
	"encoding/json"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

// history takes the answer to thread:messages.
func (s *State) history(k *socket, c *command, m *protocol.Message) {
	h, ok := protocol.ReadHistory(m.Payload)
	if !ok || !h.OK || c.ThreadID == "" {
		c.fate = refused
		return
	}
	c.fate = accepted
	t := s.threadOf(c.ThreadID)
	s.turn.thread = t.ID
	if h.Task != nil && !t.Task {
		t.Task = true
		s.touchThread(t)
	}
	before := t.latest
	replayed := s.replay(k, c, m, &h)
	s.pendingDecision(t, c, m, &h)
	s.compare(t, &h)
	for _, message := range h.Messages {
		t.know(message.ID, m.Address)
	}
	if c.history != nil {
		c.history.answered = m.Address
		c.history.waiting = c.history.waiting || h.PendingInterrupt != nil
	}
	if h.PendingInterrupt == nil && !h.Replaying {
		t.known = t.known || len(t.order) == 0
	}
	if before != nil && !h.Replaying && !replayed {
		s.endedUnseen(before, c, &h)
	}
}

// replay takes the envelopes of a replay. It reports whether there were any.
func (s *State) replay(k *socket, c *command, m *protocol.Message, h *protocol.History) bool {
	if len(h.Envelopes) == 0 {
		return false
	}
	whole := s.turn
	bounds := make(map[*run]*span)
	var order []*run
	for i, raw := range h.Envelopes {
		message := *m
		message.Name, message.Answer, message.Answers, message.AckID = protocol.RunEvent, false, capture.Address{}, ""
		message.Payload, message.Extra, message.Envelope = raw, nil, &s.scratch
		s.turn = turn{m: &message, socket: k, flags: whole.flags, thread: c.ThreadID, replayed: true}
		if r := s.replayedEnvelope(&message, h.EnvelopesAt+"/"+itoa(int64(i)), bounds, h.Truncated); r != nil && bounds[r].count == 1 {
			order = append(order, r)
		}
	}
	s.turn = whole
	for _, r := range order {
		s.seam(k, r, bounds[r], m)
	}
	if len(order) == 1 {
		s.turn.run = order[0]
	}
	return true
}

// span is what a replay held of one run.
type span struct {
	count       int
	first, last int64
}

// replayedEnvelope takes one envelope of a replay, and returns its run.
func (s *State) replayedEnvelope(m *protocol.Message, pointer string, bounds map[*run]*span, truncated bool) *run {
	findings := s.validator.Validate(m, nil)
	e := m.Envelope
	if e == nil || e.RunID == "" || e.ThreadID == "" || e.Sequence < 1 {
		s.judgedInReplay(findings, pointer)
		return nil
	}
	t := &s.turn
	r := s.runOf(e)
	s.reach(r.thread)
	t.run, t.thread, t.seq = r, r.Thread, e.Sequence
	b := bounds[r]
	if b == nil {
		b = &span{first: e.Sequence}
		bounds[r] = b
		s.replayBegins(r, e, pointer, truncated)
	}
	b.count++
	switch {
	case b.count > 1 && e.Sequence <= b.last:
		s.reportAt("sequence-not-increasing", protocol.Error, pointer, capture.Address{}, "in the replay, sequence %d comes after %d", e.Sequence, b.last)
	case b.count > 1 && e.Sequence > b.last+1:
		s.reportAt("sequence-gap", protocol.Warning, pointer, capture.Address{}, "in the replay, %s", missing(b.last+1, e.Sequence-1))
	}
	b.last = max(b.last, e.Sequence)
	known := r.seen.get(e.Sequence)
	what := s.hash(&e.Event)
	switch {
	case known != nil:
		if known.what != what {
			s.replayDiffers(r, known, pointer)
		}
		return r
	case r.mayKnow(e.Sequence):
		s.skip("replay-differs", "what was delivered live is forgotten")
		return r
	}
	s.judgedInReplay(forgive(findings, e), pointer)
	late := e.Sequence <= r.top
	r.seen.put(delivery{e.Sequence, what, t.m.Address, false})
	s.advance(r, e.Sequence, t.m.Address)
	if !late {
		s.apply(r, e)
	}
	return r
}

// judgedInReplay adds what the validator says about an envelope of a replay that
// did not pass live.
func (s *State) judgedInReplay(findings []protocol.Finding, pointer string) {
	for i := range findings {
		findings[i].Pointer = pointer + findings[i].Pointer
	}
	s.place(findings)
	s.step.Findings = append(s.step.Findings, findings...)
}

// replayBegins judges where a replay of a run begins.
func (s *State) replayBegins(r *run, e *protocol.Envelope, pointer string, truncated bool) {
	const rule = "replay-undeclared-cut"
	switch {
	case e.Sequence == 1 || truncated:
	case len(r.decisions) > 0 || !r.segment.paused.IsZero():
		s.skip(rule, "the run has paused before, and a gateway may keep a segment only")
	default:
		s.reportAt(rule, protocol.Error, pointer, r.startAt, "the replay of run %s begins with sequence %d and does not say that it is truncated",
			short(r.ID), e.Sequence)
	}
}

func (s *State) replayDiffers(r *run, known *delivery, pointer string) {
	if r.differs {
		s.turn.told = true
		return
	}
	r.differs = true
	s.reportAt("replay-differs", protocol.Error, pointer, known.at, "sequence %d says something else than live, at #%s", s.turn.seq, known.at)
}

// seam brings a socket to the end of a replay, and looks at what it got live in
// the meantime.
func (s *State) seam(k *socket, r *run, b *span, m *protocol.Message) {
	cur := s.cursorOf(k, r)
	if cur == nil {
		cur = k.newCursor(r)
	}
	s.turn.run, s.turn.seq = r, b.last
	s.postConnection(r, k.conn)
	cur.posted = true
	if c := k.asked(m.Answers); c != nil {
		for _, at := range c.frames {
			s.post(r, at)
		}
	}
	s.postMessage(r, k, m)
	if cur.live > b.last && cur.first > b.last+1 {
		s.report("replay-seam", protocol.Error, cur.lastAt, "the replay ends with sequence %d, and the room had begun with %d: %s",
			b.last, cur.first, missing(b.last+1, cur.first-1))
	}
	if b.last >= cur.last {
		cur.last, cur.lastAt = b.last, m.Address
		cur.seam, cur.seamAt, cur.told = b.last, m.Address, false
	}
	s.turn.run, s.turn.seq = nil, 0
}

// pendingDecision takes the decision that a history says is waited on.
func (s *State) pendingDecision(t *thread, c *command, m *protocol.Message, h *protocol.History) {
	if h.PendingInterrupt == nil {
		return
	}
	var p struct {
		InterruptID string `json:"interruptId"`
		ID          string `json:"id"`
	}
	if json.Unmarshal(h.PendingInterrupt, &p) != nil {
		return
	}
	if p.InterruptID == "" {
		p.InterruptID = p.ID
	}
	d := t.decisions[p.InterruptID]
	if d == nil {
		t.known = false
		return
	}
	for _, at := range c.frames {
		s.post(d.run, at)
	}
	s.postConnection(d.run, c.socket.conn)
	s.postMessage(d.run, c.socket, m)
	s.turn.run = d.run
	if d.state == answered && d.settled && d.answer != nil {
		s.reportAt("interrupt-reopened", protocol.Warning, "/pendingInterrupt", d.answer.at,
			"the history asks for decision %s, which was answered at #%s and from which the run went on", short(d.id), d.answer.at)
	}
}

// compare holds the history's messages against what was streamed.
func (s *State) compare(t *thread, h *protocol.History) {
	r := t.latest
	for n := 0; r != nil && n < maxChain; n++ {
		for i := range h.Messages {
			s.compareMessage(r, &h.Messages[i], i)
		}
		r = r.before
	}
}

func (s *State) compareMessage(r *run, m *protocol.HistoryMessage, i int) {
	it := r.find(text, m.ID)
	if m.ID == "" || it == nil {
		return
	}
	const rule = "history-text-differs"
	var content string
	switch {
	case it.open || it.torn() || it.sum.lost || it.told || r.end.IsZero():
		s.skip(rule, "the streamed text was not seen whole")
		return
	case json.Unmarshal(m.Content, &content) != nil:
		s.skip(rule, "the history's content is no plain text")
		return
	}
	var stored digest
	stored.add(content)
	if stored.lost || stored.hash == it.sum.hash {
		return
	}
	whole := s.turn.run
	s.turn.run = r
	s.reportAt(rule, protocol.Warning, "/messages/"+itoa(int64(i))+"/content", it.start,
		"message %s is not what its deltas joined to, from #%s on", short(m.ID), it.start)
	s.turn.run = whole
}

// endedUnseen settles a run of which a history shows that it is in flight no
// more: its end passed while nobody watched. Where the history has what was
// streamed, the run went on and nothing is wrong.
func (s *State) endedUnseen(r *run, c *command, h *protocol.History) {
	if r.over() || r.watchers > 0 || r.latest > c.time || r.lastLeft == nil {
		return
	}
	r.gone = true
	if r.explained = r.tears > 0 || r.answeredIn(h); r.explained {
		s.skip("run-unfinished", "the run ended while no socket watched it")
	}
}

// answeredIn reports whether a history has something of what the run answered.
func (r *run) answeredIn(h *protocol.History) bool {
	asked := false
	for i := range h.Messages {
		m := &h.Messages[i]
		if r.find(text, m.ID) != nil || asked && m.Role != "user" {
			return true
		}
		asked = asked || r.cause != nil && m.ID != "" && m.ID == r.cause.MessageID
	}
	return false
}
