package driver

import (
	"crypto/sha256"
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

const (
	// mostSegments is how many segments of a thread are told apart, and mostIDs
	// how many ids of one class within a segment.
	mostSegments = 10_000
	mostIDs      = 10_000
)

// story is what a gateway told of its threads, on one side: on the tape, or live.
// Threads go by their recorded ids on both sides, segments by their number, and
// so a place in one story is a place in the other.
type story struct {
	// name returns the recorded id of a thread that goes by id on this side.
	name    func(id string) (recorded string, known bool)
	born    func(g *segment, child string) // is told of each subagent's own thread
	threads map[string]*thread
	order   []*thread
	runs    map[string]*segment // by the run's id on this side, the latest

	validator *protocol.Validator
	findings  []protocol.Finding // a scratch pad: nobody asks here
}

// thread is a conversation as it was told.
type thread struct {
	id       string // the recorded one
	parent   string // the recorded id of the thread whose subagent it is
	segments []*segment
	latest   *segment // the one that something came of last
}

// segment is a run up to its pause or its end.
type segment struct {
	thread   *thread
	index    int
	run      string
	first    int64 // the sequence that it began with
	sequence int64 // the latest
	counts   map[protocol.EventType]int
	last     protocol.EventType
	at       moment // of what came last
	paused   bool
	end      protocol.EventType // "" while it goes on
	ids      [classes][]string  // in the order of their appearance
	places   [classes][]capture.Address
	asked    [][sha256.Size]byte
}

// moment is a place on the tape and its time; on the live side only the time.
type moment struct {
	address capture.Address
	when    time.Duration
}

// class is a kind of id that a gateway chooses. Ids of one class are counted
// within a segment.
type class int

const (
	aMessage  class = iota // TEXT_MESSAGE_START
	aCall                  // TOOL_CALL_START
	aSubagent              // SUBAGENT_STARTED's toolCallId
	aChild                 // SUBAGENT_STARTED's childThreadId
	aDecision              // INTERRUPT
	classes
	aRun = classes // the segment's own
)

var classNames = [...]string{"message", "tool call", "subagent", "subagent's thread", "decision", "run"}

func newStory() *story {
	return &story{
		name: func(id string) (string, bool) { return id, true }, born: func(*segment, string) {},
		threads: map[string]*thread{}, runs: map[string]*segment{}, validator: protocol.NewValidator(protocol.Options{}),
	}
}

// thread returns the thread that goes by id on this side, nil if the recording
// has no such thread.
func (s *story) thread(id string) *thread {
	recorded, known := s.name(id)
	if !known || recorded == "" {
		return nil
	}
	t := s.threads[recorded]
	if t == nil {
		t = &thread{id: recorded}
		s.threads[recorded] = t
		s.order = append(s.order, t)
	}
	return t
}

// envelope takes the payload of a run:event, whichever window it came to. What
// was heard before, in another window or a replay, is not counted again.
func (s *story) envelope(payload []byte, at moment) {
	m := protocol.Message{Name: protocol.RunEvent, Payload: payload, Direction: capture.FromGateway}
	s.findings = s.validator.Validate(&m, s.findings[:0])
	if e := m.Envelope; e != nil {
		if g := s.segment(e); g != nil {
			s.take(g, e, at)
		}
	}
}

// segment returns the one that an envelope belongs to, and begins it.
func (s *story) segment(e *protocol.Envelope) *segment {
	if e.RunID == "" {
		return nil
	}
	g := s.runs[e.RunID]
	var t *thread
	switch {
	case g == nil:
		if t = s.thread(e.ThreadID); t == nil {
			return nil
		}
	case g.end != "" && g.paused && e.Sequence > g.sequence:
		t = g.thread // the run goes on under its id
	default:
		return g
	}
	if len(t.segments) >= mostSegments {
		return nil
	}
	g = &segment{thread: t, index: len(t.segments), run: e.RunID, first: e.Sequence, counts: map[protocol.EventType]int{}}
	t.segments = append(t.segments, g)
	s.runs[e.RunID] = g
	return g
}

// take counts an event. That a run ends is never taken for a repetition: the
// sequence of what ends it may be what is wrong with it.
func (s *story) take(g *segment, e *protocol.Envelope, at moment) {
	ends := isEnd(e.Event.Type)
	if g.end != "" || e.Sequence <= g.sequence && !(ends && e.Sequence >= g.first) {
		return
	}
	g.sequence = max(g.sequence, e.Sequence)
	g.counts[e.Event.Type]++
	g.last, g.at, g.thread.latest = e.Event.Type, at, g
	switch v := &e.Event; v.Type {
	case protocol.TextMessageStart:
		g.note(aMessage, v.MessageID, at)
	case protocol.ToolCallStart:
		g.note(aCall, v.ToolCallID, at)
	case protocol.SubagentStarted:
		g.note(aSubagent, v.ToolCallID, at)
		g.note(aChild, v.ChildThreadID, at)
		if v.ChildThreadID != "" {
			s.born(g, v.ChildThreadID)
		}
	case protocol.Interrupt:
		if g.note(aDecision, v.InterruptID, at) {
			g.asked = append(g.asked, sha256.Sum256(v.Body))
		}
	case protocol.RunPaused:
		g.paused = true
	}
	if ends {
		g.end = e.Event.Type
	}
}

func (g *segment) note(c class, id string, at moment) bool {
	if len(g.ids[c]) >= mostIDs {
		return false
	}
	g.ids[c], g.places[c] = append(g.ids[c], id), append(g.places[c], at.address)
	return true
}

func isEnd(t protocol.EventType) bool {
	return t == protocol.RunFinished || t == protocol.RunCancelled || t == protocol.RunError
}

// replay takes the envelopes of an answer to thread:messages.
func (s *story) replay(answer []byte, at moment) {
	h, _ := protocol.ReadHistory(answer)
	for _, payload := range h.Envelopes {
		s.envelope(payload, at)
	}
}

// mark is a place that a thread reaches: the end of a segment, or the n-th event
// of a type in it.
type mark struct {
	thread  string
	segment int
	event   protocol.EventType // "" is the end
	n       int
	moment
}

// mark returns where the thread stands, false if nothing has come of it.
func (t *thread) mark() (mark, bool) {
	g := t.latest
	if g == nil {
		return mark{}, false
	}
	m := mark{thread: t.id, segment: g.index, moment: g.at}
	if g.end == "" {
		m.event, m.n = g.last, g.counts[g.last]
	}
	return m, true
}

// find returns the segment of a mark or a reference, nil if it has not begun.
func (s *story) find(thread string, segment int) *segment {
	t := s.threads[thread]
	if t == nil || segment >= len(t.segments) {
		return nil
	}
	return t.segments[segment]
}

// reached reports whether the story has come to a mark, and over whether it no
// longer can.
func (s *story) reached(m *mark) (reached, over bool) {
	g := s.find(m.thread, m.segment)
	switch {
	case g == nil:
		return false, false
	case m.event == "":
		return g.end != "", false
	case g.counts[m.event] >= m.n:
		return true, false
	}
	return false, g.end != ""
}
