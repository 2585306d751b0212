package inspector

import (
	"fmt"
	"testing"
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// story makes the messages of a session by hand, with a clock of its own.
type story struct {
	feed      *Feed
	timeline  *Timeline
	validator *protocol.Validator
	position  capture.Position
	at        time.Duration
	conn      capture.Position
	thread    string
	run       string
	sequence  int64
	findings  []protocol.Finding // for the next message
	moments   func(ms []Moment)
}

func newStory(o TimelineOptions) *story {
	s := &story{feed: NewFeed(nil), timeline: NewTimeline(o), validator: protocol.NewValidator(protocol.Options{}), position: 1, conn: 1, thread: "thr-12"}
	s.moments = func(ms []Moment) {
		for i := range ms {
			s.timeline.Add(&ms[i])
		}
	}
	return s
}

// wait lets time pass.
func (s *story) wait(d time.Duration) *story {
	s.at += d
	return s
}

// message lets a message pass.
func (s *story) message(m protocol.Message) capture.Address {
	s.position++
	m.Address, m.Last, m.At, m.Connection, m.Namespace = capture.Address{Position: s.position, Packet: 1}, s.position, s.at, s.conn, "/"
	s.validator.Validate(&m, nil)
	for i := range s.findings {
		s.findings[i].At = m.Address
	}
	frame := &capture.Frame{Position: s.position, At: s.at, Connection: s.conn, Direction: m.Direction, Kind: capture.Text, Size: int64(len(m.Payload)), Data: m.Payload}
	s.moments(s.feed.Step(&conversation.Step{Frame: frame, Messages: []protocol.Message{m}, Findings: s.findings}))
	s.findings = nil
	return m.Address
}

// client lets a command pass.
func (s *story) client(name protocol.Name, payload string, ack string) capture.Address {
	return s.message(protocol.Message{Direction: capture.FromClient, Name: name, Payload: []byte(payload), AckID: ack})
}

// gateway lets another message of the gateway pass.
func (s *story) gateway(name protocol.Name, payload string) capture.Address {
	return s.message(protocol.Message{Direction: capture.FromGateway, Name: name, Payload: []byte(payload)})
}

// answer lets an acknowledgement pass.
func (s *story) answer(of capture.Address, name protocol.Name, payload string) capture.Address {
	return s.message(protocol.Message{Direction: capture.FromGateway, Name: name, Answer: true, Answers: of, Payload: []byte(payload)})
}

// envelope is the JSON of the next envelope.
func (s *story) envelope(event string) string {
	s.sequence++
	return fmt.Sprintf(`{"v":1,"threadId":%q,"runId":%q,"sequence":%d,"event":%s}`, s.thread, s.run, s.sequence, event)
}

// event lets an event of the run pass.
func (s *story) event(format string, args ...any) capture.Address {
	return s.gateway(protocol.RunEvent, s.envelope(fmt.Sprintf(format, args...)))
}

// found puts a finding on the next message.
func (s *story) found(severity protocol.Severity, rule, text string, other capture.Address) *story {
	s.findings = append(s.findings, protocol.Finding{Rule: rule, Severity: severity, Text: text, Other: other, Run: s.run, Thread: s.thread})
	return s
}

// start asks for a run and lets it begin.
func (s *story) start(run, input string) {
	s.run, s.sequence = run, 0
	s.client(protocol.RunStart, fmt.Sprintf(`{"threadId":%q,"messageId":"u-%s","input":%q}`, s.thread, run, input), "")
	s.wait(310 * time.Millisecond).event(`{"type":"RUN_STARTED"}`)
}

// stream lets deltas pass, with a time between them.
func (s *story) stream(kind, field, id string, gap time.Duration, deltas ...string) {
	content := kind + "_CONTENT"
	if kind == "TOOL_CALL" {
		content = "TOOL_CALL_ARGS"
	}
	for _, d := range deltas {
		s.wait(gap).event(`{"type":%q,%q:%q,"delta":%q}`, content, field, id, d)
	}
}

func (s *story) text(id string, gap time.Duration, deltas ...string) {
	s.event(`{"type":"TEXT_MESSAGE_START","messageId":%q,"role":"assistant"}`, id)
	s.stream("TEXT_MESSAGE", "messageId", id, gap, deltas...)
	s.event(`{"type":"TEXT_MESSAGE_END","messageId":%q}`, id)
}

func (s *story) reasoning(id string, gap time.Duration, deltas ...string) {
	s.event(`{"type":"REASONING_START","messageId":%q}`, id)
	s.stream("REASONING", "messageId", id, gap, deltas...)
	s.event(`{"type":"REASONING_END","messageId":%q}`, id)
}

func (s *story) tool(id, name string, gap time.Duration, args ...string) {
	s.event(`{"type":"TOOL_CALL_START","toolCallId":%q,"toolCallName":%q}`, id, name)
	s.stream("TOOL_CALL", "toolCallId", id, gap, args...)
	s.event(`{"type":"TOOL_CALL_END","toolCallId":%q}`, id)
}

// tell is a whole thread: an opening, a run with reasoning, a tool and text; an
// approval that a person takes 42 s for; subagents; and an error in mid-text.
func (s *story) tell() {
	s.gateway(protocol.Hello, `{"protocol":{"major":1,"minor":17},"minClientMajor":1}`)
	asked := s.wait(4*time.Millisecond).client(protocol.ThreadMessages, `{"threadId":"thr-12"}`, "0")
	s.wait(9*time.Millisecond).answer(asked, protocol.ThreadMessages, `{"ok":true,"messages":[{"id":"a","role":"user","content":"hi","createdAt":"2026-01-01T00:00:00Z"}]}`)

	s.wait(1200*time.Millisecond).start("7f3a9c21", "Find me a flight to Lisbon on Friday, window seat, under 200 €")
	s.wait(200*time.Millisecond).reasoning("r1", 140*time.Millisecond, "Let me ", "check ", "the flights ", "of Friday, ", "then compare ", "prices.")
	s.wait(40*time.Millisecond).tool("k1", "search_flights", 30*time.Millisecond, `{"from":"BER",`, `"to":"LIS",`, `"day":"2026-12-04",`, `"max":200}`)
	s.wait(840 * time.Millisecond).event(`{"type":"TOOL_CALL_RESULT","toolCallId":"k1","content":"[{\"flight\":\"TP 533\",\"price\":189},{\"flight\":\"LH 1166\",\"price\":241},{\"flight\":\"FR 1143\",\"price\":97}]"}`)
	s.event(`{"type":"TODOS_SNAPSHOT","todos":[{"content":"Search flights","status":"completed"},{"content":"Ask before booking","status":"in_progress"},{"content":"Book","status":"pending"}]}`)
	s.wait(60*time.Millisecond).text("m1", 26*time.Millisecond, "Here ", "are ", "the ", "two ", "that ", "fit: ", "**TP 533** ", "for 189 € ", "and ", "FR 1143 ", "for 97 €.")
	s.wait(30*time.Millisecond).tool("k2", "book_flight", 20*time.Millisecond, `{"flight":`, `"TP 533"}`)
	s.event(`{"type":"INTERRUPT","interruptId":"i1","payload":{"clientTool":"approve","arguments":{"flight":"TP 533","price":189}}}`)
	s.event(`{"type":"RUN_PAUSED"}`)
	s.event(`{"type":"RUN_FINISHED"}`)

	s.conn = 9 // another window
	s.wait(42*time.Second).client(protocol.RunResume, `{"threadId":"thr-12","interruptId":"i1","answer":{"approved":true}}`, "3")
	s.conn = 1
	s.run, s.sequence = "b81c0d77", 0
	s.wait(120 * time.Millisecond).event(`{"type":"RUN_STARTED"}`)
	s.wait(900 * time.Millisecond).event(`{"type":"TOOL_CALL_RESULT","toolCallId":"k2","content":{"booked":true,"reference":9007199254740993}}`)
	s.agents()
	s.found(protocol.Warning, "run-open-items", "The run finished while subagent \"b\" was still open; a UI would show it as working for ever.", capture.Address{Position: 74})
	s.wait(80 * time.Millisecond).event(`{"type":"RUN_FINISHED"}`)

	s.wait(5*time.Second).start("c0ffee00", "And a hotel?")
	s.wait(400 * time.Millisecond).event(`{"type":"TEXT_MESSAGE_START","messageId":"m9"}`)
	s.stream("TEXT_MESSAGE", "messageId", "m9", 30*time.Millisecond, "There ", "are ", "three ", "near ")
	s.event(`{"type":"MOOD_CHANGED","mood":"sunny"}`)
	s.event(`{"type":"MOOD_CHANGED","mood":"rainy"}`)
	s.found(protocol.Error, "sequence-gap", "Sequence 9 follows 7: one envelope is missing, and its words with it.", capture.Address{Position: s.position})
	s.sequence++
	s.wait(3*time.Second).stream("TEXT_MESSAGE", "messageId", "m9", 30*time.Millisecond, "the ")
	s.wait(30 * time.Millisecond).event(`{"type":"RUN_ERROR","code":"MODEL_OVERLOADED","message":"The model is overloaded, try again later"}`)
	s.wait(700*time.Millisecond).client(protocol.RunStart, `{"threadId":"thr-12","messageId":"u-c0ffee00","input":"And a hotel?","attachments":[{"id":"x"}],"clientTools":[{"name":"map"}]}`, "")
	s.wait(12*time.Millisecond).gateway(protocol.ProtocolError, `{"code":"DUPLICATE_MESSAGE","message":"a message with this id exists"}`)
	s.wait(time.Second).client(protocol.RunCancel, `{"runId":"c0ffee00"}`, "")
}

func (s *story) agents() {
	s.event(`{"type":"SUBAGENT_STARTED","taskId":"t-a","childThreadId":"thr-12-a","toolCallId":"k3","name":"hotels"}`)
	s.wait(100 * time.Millisecond).event(`{"type":"SUBAGENT_STARTED","taskId":"t-b","childThreadId":"thr-12-b","toolCallId":"k4","name":"weather"}`)
	parent, sequence := s.run, s.sequence
	s.thread, s.run, s.sequence = "thr-12-a", "a1b2", 0
	s.wait(100 * time.Millisecond).event(`{"type":"RUN_STARTED"}`)
	s.wait(100*time.Millisecond).text("ma", 20*time.Millisecond, "Looking ", "for ", "rooms.")
	s.wait(10 * time.Millisecond).event(`{"type":"RUN_FINISHED"}`)
	s.thread, s.run, s.sequence = "thr-12", parent, sequence
	s.wait(500*time.Millisecond).text("m2", 20*time.Millisecond, "Booked. ", "Have ", "a ", "good ", "flight!")
	s.wait(200 * time.Millisecond).event(`{"type":"SUBAGENT_FINISHED","taskId":"t-a","status":"finished"}`)
	s.wait(50 * time.Millisecond).event(`{"type":"SUBAGENT_FINISHED","taskId":"t-b","status":"finished","detached":true}`)
	s.wait(20*time.Millisecond).gateway(protocol.TaskStatus, `{"threadId":"thr-12","task":{"id":"t-b","status":"running"}}`)
}

func TestPrintStory(t *testing.T) {
	for _, width := range []int{80, 120, 160} {
		s := newStory(TimelineOptions{})
		s.tell()
		s.timeline.Finish()
		WriteTimeline(t.Output(), s.timeline, &Look{Width: width, ASCII: width == 80})
	}
}
