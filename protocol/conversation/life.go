package conversation

import (
	"strconv"
	"strings"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// known reports whether an event's type is one of the page's.
func known(t protocol.EventType) bool {
	switch t {
	case protocol.RunStarted, protocol.RunFinished, protocol.RunCancelled, protocol.RunError,
		protocol.TextMessageStart, protocol.TextMessageContent, protocol.TextMessageEnd,
		protocol.ToolCallStart, protocol.ToolCallArgs, protocol.ToolCallEnd, protocol.ToolCallResult,
		protocol.Interrupt, protocol.RunPaused,
		protocol.ReasoningStart, protocol.ReasoningContent, protocol.ReasoningEnd,
		protocol.TodosSnapshot, protocol.SubagentStarted, protocol.SubagentFinished:
		return true
	}
	return false
}

func ends(t protocol.EventType) bool {
	return t == protocol.RunFinished || t == protocol.RunCancelled || t == protocol.RunError
}

// apply takes an event into its run. It is called once for each event, however
// many sockets got it.
func (s *State) apply(r *run, envelope *protocol.Envelope) {
	e := &envelope.Event
	if r.gone || r.Status == Truncated {
		r.gone = false
		if r.end.IsZero() {
			s.setStatus(r, Running)
		}
	}
	if late := s.turn.seq > 0 && s.turn.seq < r.top; late {
		s.turn.told = true // where it would have stood among the others is past
	} else if !r.end.IsZero() && !s.afterEnd(r, e) {
		return
	} else {
		s.between(r, e)
	}
	switch e.Type {
	case protocol.RunStarted:
		s.started(r, e)
	case protocol.RunFinished, protocol.RunCancelled, protocol.RunError:
		s.finished(r, e)
	case protocol.TextMessageStart:
		s.opened(r, text, "text-pair", e.MessageID)
	case protocol.TextMessageContent:
		s.firstToken(r)
		s.content(r, text, "text-pair", e)
	case protocol.TextMessageEnd:
		s.closed(r, text, "text-pair", e.MessageID)
	case protocol.ReasoningStart:
		s.opened(r, reasoning, "reasoning-pair", e.MessageID)
	case protocol.ReasoningContent:
		s.firstToken(r)
		s.content(r, reasoning, "reasoning-pair", e)
	case protocol.ReasoningEnd:
		s.closed(r, reasoning, "reasoning-pair", e.MessageID)
	case protocol.ToolCallStart:
		if it := s.opened(r, toolCall, "tool-pair", e.ToolCallID); it != nil {
			it.name = e.ToolCallName
		}
	case protocol.ToolCallArgs:
		s.firstToken(r)
		s.args(r, e)
	case protocol.ToolCallEnd:
		s.argsEnd(r, e)
	case protocol.ToolCallResult:
		s.toolResult(r, e)
	case protocol.Interrupt:
		s.interrupted(r, e)
	case protocol.RunPaused:
		s.paused(r)
	case protocol.SubagentStarted:
		s.subagentStarted(r, e)
	case protocol.SubagentFinished:
		s.subagentFinished(r, e)
	}
}

// afterEnd judges an event that comes after its run's end. It reports whether
// the event goes into the run all the same.
func (s *State) afterEnd(r *run, e *protocol.Event) bool {
	finished := r.endType == protocol.RunFinished
	paused := finished && !r.segment.paused.IsZero()
	switch {
	case paused && (!ends(e.Type) || r.answeredSome()):
		s.goesOn(r)
		return true
	case finished && r.tears > 0:
		s.skip("event-after-end", "the run may have paused where it was not seen")
		s.goesOn(r)
		return true
	case paused && e.Type != protocol.RunFinished:
		// A cancel or a failure while a decision is waited for.
		s.closeDecisions(r)
		r.end, r.endType = s.turn.m.Address, e.Type
		s.setStatus(r, statusOf(e.Type))
		return false
	case ends(e.Type):
		s.report("run-end-twice", protocol.Error, r.end, "%s, and the run ended with %s at #%s", e.Type, r.endType, r.end)
		return false
	case r.detached:
		return true
	}
	s.report("event-after-end", protocol.Error, r.end, "%s after the run ended with %s, at #%s", short(string(e.Type)), r.endType, r.end)
	return true
}

func statusOf(end protocol.EventType) Status {
	switch end {
	case protocol.RunCancelled:
		return Cancelled
	case protocol.RunError:
		return Failed
	}
	return Finished
}

// goesOn begins another segment of a run whose pause is over.
func (s *State) goesOn(r *run) {
	r.end, r.endType = capture.Address{}, ""
	r.segment = segment{}
	s.resumed(r, r)
	s.setStatus(r, Running)
}

// started takes RUN_STARTED.
func (s *State) started(r *run, e *protocol.Event) {
	if !r.startAt.IsZero() {
		return // the validator, or the sequence, says so
	}
	r.startAt = s.turn.m.Address
	if !s.turn.replayed || r.Envelopes == 0 {
		r.Started = s.now
	}
	r.asked = s.now
	after := r.after
	r.after = nil
	if after != nil {
		s.twoRuns(r, after)
	}
	s.began(r, after, e)
}

// between takes note of an event that stands where none should: between
// INTERRUPT and RUN_PAUSED, or between that and RUN_FINISHED.
func (s *State) between(r *run, e *protocol.Event) {
	g := &r.segment
	if g.interrupts == 0 && g.paused.IsZero() || ends(e.Type) || !known(e.Type) {
		return
	}
	if g.paused.IsZero() && (e.Type == protocol.Interrupt || e.Type == protocol.RunPaused) {
		return
	}
	if !g.paused.IsZero() && r.answeredSome() && g.holes {
		s.skip("paused-not-finished", "a part of the segment was not seen")
		s.goesOn(r)
		return
	}
	if !g.paused.IsZero() && r.answeredSome() {
		s.report("paused-not-finished", protocol.Error, g.paused, "the run goes on, and the RUN_FINISHED that follows RUN_PAUSED, at #%s, never came", g.paused)
		s.goesOn(r)
		return
	}
	if g.between.IsZero() {
		g.between, g.kind = s.turn.m.Address, e.Type
	}
}

// twoRuns reports a run that begins while another one of its thread is in
// flight before the eyes of the same socket.
func (s *State) twoRuns(r, other *run) {
	if other.over() || other.Status != Running || !other.segment.paused.IsZero() || other.tears > 0 || r.tears > 0 {
		return
	}
	if s.turn.socket.cursors[other] == nil || s.turn.replayed {
		s.skip("thread-two-runs", "the other run may have ended elsewhere")
		return
	}
	s.report("thread-two-runs", protocol.Warning, other.topAt, "run %s begins while run %s of the same thread goes on, at #%s",
		short(r.ID), short(other.ID), other.topAt)
}

// finished takes the end of a run.
func (s *State) finished(r *run, e *protocol.Event) {
	r.end, r.endType = s.turn.m.Address, e.Type
	g := &r.segment
	pause := e.Type == protocol.RunFinished && !g.paused.IsZero()
	switch {
	case pause:
		if !g.between.IsZero() {
			s.blame(s.finding("paused-not-finished", protocol.Warning, g.between, g.paused),
				"%s stands between RUN_PAUSED and RUN_FINISHED", short(string(g.kind)))
		}
	case e.Type == protocol.RunFinished && g.interrupts > 0:
		if g.holes {
			s.skip("interrupt-not-paused", "a part of the segment was not seen")
		} else {
			s.report("interrupt-not-paused", protocol.Error, g.interrupt, "the run finished without the RUN_PAUSED that follows INTERRUPT, at #%s", g.interrupt)
		}
	case e.Type != protocol.RunFinished:
		s.closeDecisions(r)
	}
	if !pause {
		s.ignoredCancel(r, e)
		s.leftOpen(r, e)
	}
	switch waiting := r.waiting(); {
	case e.Type == protocol.RunFinished && waiting != nil:
		s.setStatus(r, Paused)
	default:
		s.setStatus(r, statusOf(e.Type))
	}
	r.after = nil
	s.remember(r)
}

// leftOpen reports what a run left open at its end.
func (s *State) leftOpen(r *run, e *protocol.Event) {
	open := r.openItems()
	for _, it := range open {
		if _, lone := it.joiner.end(); !lone.IsZero() && !it.torn() {
			s.loneHalf(lone)
		}
	}
	if len(open) == 0 {
		return
	}
	severity := protocol.Warning
	if e.Type != protocol.RunFinished {
		severity = protocol.Note
	}
	var names []string
	for _, it := range open[:min(len(open), namedItems)] {
		names = append(names, kindNames[it.kind]+" "+short(it.id)+" of #"+it.start.String())
	}
	if more := len(open) - len(names); more > 0 {
		names = append(names, strconv.Itoa(more)+" more")
	}
	s.report("run-open-items", severity, open[0].start, "%s, and these are still open: %s", e.Type, strings.Join(names, ", "))
}

// finding names a place that is not this turn's.
func (s *State) finding(rule string, severity protocol.Severity, at, other capture.Address) protocol.Finding {
	f := protocol.Finding{Rule: rule, Severity: severity, At: at, Other: other, Thread: s.turn.thread}
	if s.turn.m != nil {
		f.Connection = s.turn.m.Connection
	}
	if s.turn.run != nil {
		f.Run = s.turn.run.ID
	}
	return f
}

// remember keeps the details of a run that has ended, as long as there is room:
// a replay or a history may yet repeat it.
func (s *State) remember(r *run) {
	if r.kept {
		return
	}
	r.kept = true
	s.detailed = append(s.detailed, r)
	r.cost = len(r.seen.slots) + dearItems*len(r.items.order)
	s.cost += r.cost
	for len(s.detailed) > 1 && (s.cost > maxCost || len(s.detailed) > maxDetailed) {
		old := s.detailed[0]
		s.detailed[0] = nil
		s.detailed = s.detailed[1:]
		s.cost -= old.cost
		old.forget()
	}
}

// forget drops the details of a run. What would be judged by them is skipped
// from now on.
func (r *run) forget() {
	r.seen, r.items, r.tools, r.late = record{}, items{}, nil, nil
	r.before, r.kept, r.cost = nil, false, 0
	r.tear()
	r.forgotten = true
}
