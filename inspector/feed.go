package inspector

import (
	"encoding/json"
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// Feed turns the frames of a session, or those of some runs of it, into
// moments. Use NewFeed. A Feed is not safe for concurrent use.
type Feed struct {
	state    *conversation.State
	known    map[capture.Position][]protocol.Finding // nil: as the state finds them
	runs     map[string]*feedRun
	names    map[[2]string]string // (thread, call or task) to the name of tool or subagent
	moments  []Moment
	findings []protocol.Finding
}

// feedRun is what a Feed remembers of a run.
type feedRun struct {
	last   time.Duration
	status conversation.Status
	said   map[construct][]byte // the end of what each of them said
}

// construct names a text, a reasoning or a call of a run.
type construct struct {
	kind Kind
	id   string
}

// NewFeed returns a Feed. With findings, those are given to the moments where
// they belong: frames of one run alone are too little to judge by. Without, the
// state judges what it sees.
func NewFeed(findings []protocol.Finding) *Feed {
	return NewFeedFrom(conversation.New(conversation.Options{}), findings)
}

// NewFeedFrom is NewFeed with a state that judges by other settings than the
// default ones. It must not have seen a frame.
func NewFeedFrom(state *conversation.State, findings []protocol.Finding) *Feed {
	f := &Feed{state: state, runs: map[string]*feedRun{}, names: map[[2]string]string{}}
	if findings != nil {
		f.known = map[capture.Position][]protocol.Finding{}
		for _, found := range findings {
			f.known[found.At.Position] = append(f.known[found.At.Position], found)
		}
	}
	return f
}

// Frame takes the next frame and returns the moments that it completes: its
// messages, its packets that are no messages, or the frame itself if it holds
// neither. They are valid until the next call.
func (f *Feed) Frame(frame *capture.Frame) []Moment { return f.Step(f.state.Observe(frame)) }

// End returns the findings that can only be made when the recording stops.
func (f *Feed) End() []protocol.Finding {
	if f.known != nil {
		return nil
	}
	return f.state.End().Findings
}

// Late returns the findings of the last frame that are about earlier ones.
func (f *Feed) Late() []protocol.Finding { return f.findings }

// Step is Frame for a caller who has a state of its own.
func (f *Feed) Step(step *conversation.Step) []Moment {
	f.moments, f.findings = f.moments[:0], f.findings[:0]
	message := 0
	for i := range step.Packets {
		m := Moment{Frame: step.Frame, Packet: &step.Packets[i]}
		if message < len(step.Messages) && step.Messages[message].Address == m.Packet.Address {
			m.Message = &step.Messages[message]
			message++
		}
		f.place(&m)
		f.moments = append(f.moments, m)
	}
	// Messages without packets come from callers who have nothing but messages.
	for ; message < len(step.Messages); message++ {
		m := Moment{Frame: step.Frame, Message: &step.Messages[message]}
		f.place(&m)
		f.moments = append(f.moments, m)
	}
	if len(f.moments) == 0 && step.Frame != nil {
		f.moments = append(f.moments, Moment{Frame: step.Frame})
	}
	f.attach(step)
	return f.moments
}

// attach gives each moment its findings, and sets aside those about others.
func (f *Feed) attach(step *conversation.Step) {
	if f.known != nil {
		for i := range f.moments {
			m := &f.moments[i]
			for _, found := range f.known[m.Address().Position] {
				if samePlace(found.At, m.Address()) {
					m.Findings = append(m.Findings, found)
				}
			}
		}
		return
	}
next:
	for _, found := range step.Findings {
		for i := range f.moments {
			if m := &f.moments[i]; samePlace(found.At, m.Address()) {
				m.Findings = append(m.Findings, found)
				continue next
			}
		}
		f.findings = append(f.findings, found)
	}
}

// samePlace takes a frame as a whole for its first packet.
func samePlace(a, b capture.Address) bool {
	return a.Position == b.Position && max(a.Packet, 1) == max(b.Packet, 1)
}

// place says where a moment belongs.
func (f *Feed) place(m *Moment) {
	if m.Message == nil {
		return
	}
	if command, ok := protocol.ReadCommand(m.Message); ok {
		m.Command, m.Thread, m.Run = &command, command.ThreadID, command.RunID
	}
	e := m.Message.Envelope
	if e == nil {
		if m.Thread == "" {
			m.Thread = payloadThread(m.Message)
		}
		return
	}
	m.Thread, m.Run = e.ThreadID, e.RunID
	run := f.runs[e.RunID]
	if run == nil {
		run = &feedRun{last: m.Message.At, said: map[construct][]byte{}}
		f.runs[e.RunID] = run
	}
	m.Gap, run.last = max(m.Message.At-run.last, 0), m.Message.At
	run.status = statusAfter(run.status, e.Event.Type)
	m.Status = run.status
	f.placeEvent(m, run, &e.Event)
}

func (f *Feed) placeEvent(m *Moment, run *feedRun, e *protocol.Event) {
	switch e.Type {
	case protocol.ToolCallStart:
		f.names[[2]string{m.Thread, e.ToolCallID}] = e.ToolCallName
	case protocol.SubagentStarted:
		if e.SubagentName != "" {
			f.names[[2]string{m.Thread, "sub " + e.TaskID + e.ToolCallID}] = e.SubagentName
		}
	}
	switch e.Type {
	case protocol.SubagentStarted, protocol.SubagentFinished:
		m.Agent = f.names[[2]string{m.Thread, "sub " + e.TaskID + e.ToolCallID}]
	}
	if e.ToolCallID != "" {
		m.Tool = f.names[[2]string{m.Thread, e.ToolCallID}]
	}
	if e.Delta == "" {
		return
	}
	key := construct{KindText, e.MessageID}
	switch e.Type {
	case protocol.ReasoningContent:
		key.kind = KindReasoning
	case protocol.ToolCallArgs:
		key = construct{KindTool, e.ToolCallID}
	}
	said := run.said[key]
	m.Before = said[max(len(said)-reach, 0):]
	if len(said)+len(e.Delta) > saidBytes { // begun anew, since moments may point to the old
		said = append(make([]byte, 0, saidBytes), m.Before...)
	}
	run.said[key] = append(said, e.Delta[max(len(e.Delta)-reach, 0):]...)
}

// saidBytes is how much of a construct is kept, so that only every so many
// deltas cost a copy.
const saidBytes = 16 * reach

// statusAfter is how a run stands after an event. A pause is followed by a
// finish of the same run, which does not end the pause.
func statusAfter(s conversation.Status, t protocol.EventType) conversation.Status {
	switch t {
	case protocol.RunPaused:
		return conversation.Paused
	case protocol.RunFinished:
		if s == conversation.Paused {
			return s
		}
		return conversation.Finished
	case protocol.RunCancelled:
		return conversation.Cancelled
	case protocol.RunError:
		return conversation.Failed
	case protocol.RunStarted:
		return conversation.Running
	}
	switch s {
	case "", conversation.Paused:
		return conversation.Running
	}
	return s
}

// payloadThread reads the thread of a message that is no command and carries no
// envelope, such as task:status.
func payloadThread(m *protocol.Message) string {
	if m.Name != protocol.TaskStatus {
		return ""
	}
	var payload struct {
		ThreadID string `json:"threadId"`
	}
	if json.Unmarshal(m.Payload, &payload) != nil {
		return ""
	}
	return payload.ThreadID
}

func countItems(raw []byte) int {
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		return 0
	}
	return len(items)
}
