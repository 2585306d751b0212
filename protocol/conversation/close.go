package conversation

import (
	"cmp"
	"slices"
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

// ignoredCancel judges how a run ended that was cancelled. A cancel that comes
// too late is nobody's fault, so there must be a sign that the gateway had it in
// time: it said ok, it began something new, or it went on for a second.
func (s *State) ignoredCancel(r *run, e *protocol.Event) {
	c := r.cancel
	r.cancel = nil
	if c == nil || c.unsure || e.Type == protocol.RunError {
		return
	}
	c.fate = accepted
	if e.Type == protocol.RunCancelled {
		return
	}
	const rule = "run-cancel-ignored"
	switch {
	case !c.okAt.IsZero():
		s.report(rule, protocol.Warning, c.at, "run:cancel of #%s was acknowledged at #%s, and the run finished", c.at, c.okAt)
	case r.newWork:
		s.report(rule, protocol.Warning, c.at, "run:cancel came at #%s, the run began something new after it and finished", c.at)
	case s.now-c.time >= time.Second:
		s.report(rule, protocol.Warning, c.at, "run:cancel came at #%s, and the run finished %s later", c.at, brief(s.now-c.time))
	default:
		s.skip(rule, "the cancel may have come too late")
	}
}

// closeBooks says what can only be said when the recording stops.
func (s *State) closeBooks() {
	s.greeted()
	for _, c := range s.doubted {
		s.verdict(c)
	}
	s.doubted = nil
	for _, c := range s.sortedConnections() {
		if c.ending == nil {
			s.stillAsked(c)
		}
	}
	for _, r := range s.sortedRuns() {
		s.turn = turn{run: r, thread: r.Thread}
		s.unfinished(r)
		s.unansweredDecisions(r)
	}
	s.turn = turn{}
}

func (s *State) sortedConnections() []*connection {
	list := make([]*connection, 0, len(s.connections))
	for _, c := range s.connections {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b *connection) int { return cmp.Compare(a.position, b.position) })
	return list
}

func (s *State) sortedRuns() []*run {
	list := make([]*run, 0, len(s.runs))
	for _, r := range s.runs {
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b *run) int { return cmp.Compare(a.First, b.First) })
	return list
}

// stillAsked reports the questions of a connection that is open when the
// recording stops.
func (s *State) stillAsked(c *connection) {
	for _, k := range c.sockets {
		for _, q := range k.commands {
			if q.Name != protocol.ThreadMessages || !q.wantsAck || q.acked || q.lost {
				continue
			}
			if s.now-q.time <= patience {
				s.skip("ack-missing", "the recording stopped before the gateway could answer")
				continue
			}
			s.blame(protocol.Finding{Rule: "ack-missing", Severity: protocol.Warning, At: q.at, Connection: c.position, Thread: q.ThreadID},
				"thread:messages was not answered in %s", brief(s.now-q.time))
		}
	}
}

// unfinished judges a run that has no end.
func (s *State) unfinished(r *run) {
	if !r.end.IsZero() || r.explained {
		return
	}
	if r.Status == Running || r.Status == Paused {
		s.setStatus(r, Truncated)
	}
	if r.forgotten || r.topAt.IsZero() {
		return
	}
	if r.cut {
		s.skip("run-unfinished", "frames were lost after the run's latest envelope")
		return
	}
	ending := s.endingOf(r)
	severity, why := protocol.Note, "the recording stopped first"
	var other capture.Address
	if ending != nil {
		other = capture.Address{Position: r.lastLeft.conn.endAt}
		switch ending.By {
		case capture.FromGateway:
			severity, why = protocol.Error, "the gateway's side ended the connection"
		case capture.FromClient:
			why = "the client left first"
		default:
			why = "the proxy ended the connection"
		}
	}
	if !r.segment.paused.IsZero() {
		s.leftPaused(r, ending, other, why)
		return
	}
	f := s.finding("run-unfinished", severity, r.topAt, other)
	f.Sequence = r.top
	s.blame(f, "no end came after sequence %d: %s", r.top, why)
}

// leftPaused judges a run that paused and never said RUN_FINISHED.
func (s *State) leftPaused(r *run, ending *capture.Ending, other capture.Address, why string) {
	const rule = "paused-not-finished"
	switch {
	case ending == nil && s.now-r.segment.pausedAt <= patience:
		s.skip(rule, "the recording stopped right after RUN_PAUSED")
		return
	case ending != nil && ending.By != capture.FromGateway:
		s.skip(rule, "the client left right after RUN_PAUSED")
		return
	}
	f := s.finding(rule, protocol.Error, r.segment.paused, other)
	f.Sequence = r.top
	s.blame(f, "no RUN_FINISHED came after RUN_PAUSED: %s", why)
}

// endingOf returns how the last connection ended that got the run's envelopes,
// nil if one is still open.
func (s *State) endingOf(r *run) *capture.Ending {
	if r.watchers > 0 || r.lastLeft == nil || r.lastLeft.conn.ending == nil {
		return nil
	}
	return r.lastLeft.conn.ending
}

// unansweredDecisions notes what was still waited on.
func (s *State) unansweredDecisions(r *run) {
	if r.waitsSince >= 0 && r.waiting() != nil {
		r.Human += s.now - r.waitsSince
		r.waitsSince = -1
		s.touch(r)
	}
	for _, d := range r.decisions {
		if d.state != open {
			continue
		}
		f := s.finding("interrupt-unanswered", protocol.Note, d.at, capture.Address{})
		s.blame(f, "decision %s was still waited on when the recording stopped", short(d.id))
	}
}
