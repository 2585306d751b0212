package conversation

import (
	"slices"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

// decision is what a run waits on.
type decision struct {
	id    string
	run   *run
	at    capture.Address // of its INTERRUPT
	state decisionState
	// answer is the command that answered it first and was not refused.
	answer *command
	tool   string // the client tool that is called, "" if none is
	call   *clientTool
	callID string // the tool call, if the payload names it
	result capture.Address
	// settled is set once the run went on after the answer.
	settled bool
}

// decisionState is how a decision stands.
type decisionState uint8

const (
	open decisionState = iota
	answered
	closed // its run ended without an answer, or it was settled elsewhere
)

const maxDecisions = 1 << 12 // of a thread

// interrupted takes INTERRUPT.
func (s *State) interrupted(r *run, e *protocol.Event) {
	g := &r.segment
	if g.interrupts++; g.interrupts == 1 {
		g.interrupt = s.turn.m.Address
	}
	if e.InterruptID == "" {
		return
	}
	t := r.thread
	if old := t.decisions[e.InterruptID]; old != nil {
		if old.state != open || old.at.Compare(g.interrupt) >= 0 {
			s.report("interrupt-id-reused", protocol.Error, old.at, "interrupt %s was asked before, at #%s", short(old.id), old.at)
		}
		// One that is still open is asked again by a segment that goes on.
		if old.state == open {
			old.run.dropDecision(old)
			old.run = r
			s.awaits(r, old)
			return
		}
	}
	d := &decision{id: e.InterruptID, run: r, at: s.turn.m.Address}
	s.forgetDecisions(t)
	t.decisions[d.id] = d
	t.order = append(t.order, d)
	s.awaits(r, d)
	s.clientToolCall(r, d, e)
}

// awaits makes a run wait on a decision.
func (s *State) awaits(r *run, d *decision) {
	if r.waiting() == nil {
		r.waitsSince = s.now
	}
	r.decisions = append(r.decisions, d)
	s.waitsOn(r)
}

func (r *run) dropDecision(d *decision) {
	if i := slices.Index(r.decisions, d); i >= 0 {
		r.decisions = slices.Delete(r.decisions, i, i+1)
	}
}

// forgetDecisions makes room in a thread.
func (s *State) forgetDecisions(t *thread) {
	if len(t.order) < maxDecisions {
		return
	}
	for _, d := range t.order[:maxDecisions/2] {
		delete(t.decisions, d.id)
		d.run.dropDecision(d)
	}
	t.order = append([]*decision(nil), t.order[maxDecisions/2:]...)
	t.known = false
}

// waiting returns the first decision that the run waits on, nil if there is
// none.
func (r *run) waiting() *decision {
	for _, d := range r.decisions {
		if d.state == open {
			return d
		}
	}
	return nil
}

// answeredSome reports whether a decision of the run's latest pause was answered,
// so that it may go on.
func (r *run) answeredSome() bool {
	for _, d := range r.decisions {
		if d.state == answered && !d.settled {
			return true
		}
	}
	return false
}

// waitsOn brings the summary up to date with what is waited on.
func (s *State) waitsOn(r *run) {
	d := r.waiting()
	waiting := ""
	if d != nil {
		waiting = d.id
	} else if r.waitsSince >= 0 {
		r.Human += s.now - r.waitsSince
		r.waitsSince = -1
	}
	if r.Waiting != waiting {
		r.Waiting = waiting
		s.touch(r)
	}
	if r.endType != protocol.RunFinished || r.segment.paused.IsZero() {
		return
	}
	if d != nil {
		s.setStatus(r, Paused)
	} else {
		s.setStatus(r, Finished)
	}
}

// paused takes RUN_PAUSED.
func (s *State) paused(r *run) {
	g := &r.segment
	if !g.paused.IsZero() {
		return
	}
	g.paused, g.pausedAt = s.turn.m.Address, s.now
	switch {
	case g.interrupts == 0 && (r.tears > 0 || len(r.decisions) > 0 || r.before != nil && r.before.waiting() != nil):
		s.skip("paused-without-interrupt", "the decision may have been asked for before")
	case g.interrupts == 0:
		s.report("paused-without-interrupt", protocol.Warning, r.startAt, "RUN_PAUSED, and no INTERRUPT in the segment says what is waited on")
	case !g.between.IsZero():
		s.blame(s.finding("interrupt-not-paused", protocol.Warning, g.between, g.interrupt),
			"%s stands between INTERRUPT and RUN_PAUSED", short(string(g.kind)))
	}
	g.between = capture.Address{}
	s.setStatus(r, Paused)
}

// closeDecisions ends what a run waited on without an answer.
func (s *State) closeDecisions(r *run) {
	for _, d := range r.decisions {
		if d.state == open {
			d.state = closed
		}
	}
	s.waitsOn(r)
}

// resume takes run:resume.
func (s *State) resume(c *command) {
	if c.ThreadID == "" {
		return
	}
	t := s.threadOf(c.ThreadID)
	c.socket.place(t.ID).started = true
	d := t.decisions[c.InterruptID]
	if d != nil {
		s.turn.run = d.run
		s.link(c, d.run)
		s.answerFits(d, c)
	}
	if c.withheld {
		return
	}
	if len(t.resumes) >= maxWaiting {
		t.resumes = slices.Delete(t.resumes, 0, 1)
	}
	t.resumes = append(t.resumes, c)
	c.decision = d
	switch {
	case d == nil && (!t.known || s.lossy || c.InterruptID == ""):
		s.skip("resume-unknown", "the decision may have been asked for where this tool did not look")
	case d == nil:
		s.doubts(c, unknownDecision)
	case d.state == answered:
		s.doubts(c, answeredBefore)
	case d.state == closed:
		s.doubts(c, unknownDecision)
	default:
		s.answerWith(d, c)
	}
}

func (s *State) answerWith(d *decision, c *command) {
	d.state, d.answer = answered, c
	s.waitsOn(d.run)
}

// reopen takes an answer back that the gateway refused.
func (s *State) reopen(d *decision, c *command) {
	if d == nil || d.answer != c {
		return
	}
	d.state, d.answer = open, nil
	for _, other := range d.run.thread.resumes {
		if other.decision == d && other.fate != refused && other != c {
			other.doubt = noDoubt
			s.answerWith(d, other)
			return
		}
	}
	if d.run.waitsSince < 0 {
		d.run.waitsSince = c.time // up to then it is counted
	}
	s.waitsOn(d.run)
}

// resumed takes note that a run goes on after its pause, as itself or as another
// run. What nobody refused until now was accepted.
func (s *State) resumed(before, r *run) {
	t := r.thread
	for _, c := range t.resumes {
		if c.fate == refused {
			continue
		}
		if c.run != r {
			s.alsoLink(c, r)
		}
		r.asked = c.time
		r.declare(c.tools)
		if c.doubt == noDoubt {
			c.fate = accepted
			passed(t.resumes, c)
		}
	}
	t.resumes = nil
	if before == nil {
		return
	}
	if before != r {
		s.continues(before, r)
	}
	for _, d := range before.decisions {
		d.settled = d.settled || d.state == answered
	}
}

// continues takes note that a run goes on as another run.
func (s *State) continues(before, r *run) {
	r.before, r.cause, r.Continues = before, before.cause, before.ID
	if g := &before.segment; !g.paused.IsZero() && before.end.IsZero() {
		if g.holes {
			s.turn.told = true
			s.skip("paused-not-finished", "a part of the segment was not seen")
		}
		s.report("paused-not-finished", protocol.Error, g.paused,
			"run %s goes on as %s, and the RUN_FINISHED that follows RUN_PAUSED, at #%s, never came", short(before.ID), short(r.ID), g.paused)
		before.end, before.endType = s.turn.m.Address, protocol.RunFinished
	}
	if before.waiting() == nil {
		s.setStatus(before, Finished)
	}
}

// alsoLink posts a command to a second run: an answer belongs to the run that
// asked and to the one that goes on.
func (s *State) alsoLink(c *command, r *run) {
	if c.run == nil {
		s.link(c, r)
		return
	}
	s.postConnection(r, c.socket.conn)
	for _, at := range c.frames {
		s.post(r, at)
	}
}

// doubts takes note of an answer that the gateway should refuse.
func (s *State) doubts(c *command, why doubt) {
	c.doubt = why
	s.doubted = append(s.doubted, c)
}

// passed takes note that the gateway, which takes a socket's commands in their
// order, came to one: it has taken those before it.
func passed(commands []*command, taken *command) {
	for _, c := range commands {
		if c.socket == taken.socket && c.at.Compare(taken.at) < 0 {
			c.passed = true
		}
	}
}

// overdue says what the gateway should have refused and did not.
func (s *State) overdue() {
	for len(s.doubted) > 0 && s.now-s.doubted[0].time > patience {
		s.verdict(s.doubted[0])
		s.doubted[0] = nil
		s.doubted = s.doubted[1:]
	}
}

// verdict judges an answer to which no refusal came in time.
func (s *State) verdict(c *command) {
	rule, other, what := "resume-unknown", capture.Address{}, "which nobody asked for"
	if c.doubt == answeredBefore {
		rule, what = "resume-twice", "which was answered before"
		if a := c.decision.answer; a != nil {
			other = a.at
			what += ", at #" + other.String()
		}
	}
	switch {
	case c.doubt == noDoubt || c.fate == refused:
		return
	case c.unsure:
		s.skip(rule, "it is not sure which command an error was for")
		return
	case !c.passed && c.fate != accepted && (c.socket.gone && c.socket.goneAt-c.time <= patience || s.now-c.time <= patience):
		s.skip(rule, "the socket ended before the gateway could answer")
		return
	case s.lossy:
		s.skip(rule, "frames were lost")
		return
	}
	f := protocol.Finding{Rule: rule, Severity: protocol.Error, At: c.at, Other: other, Connection: c.socket.conn.position, Thread: c.ThreadID}
	if c.run != nil {
		f.Run = c.run.ID
	}
	s.blame(f, "run:resume answers %s, %s, and the gateway did not answer UNKNOWN_RUN", short(c.InterruptID), what)
}
