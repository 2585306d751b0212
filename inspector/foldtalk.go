package inspector

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

// addCommand begins a row for a command, and answers the decision that it
// answers.
func (t *Timeline) addCommand(m *Moment) {
	c := m.Command
	r := t.row(m, KindCommand, string(c.Name), c.MessageID)
	talk := &Talk{
		Input: cutBytes(c.Input, headBytes), InputBytes: len(c.Input), Fork: c.ForkFromMessageID,
		Attachments: countItems(c.Attachments), AckID: m.Message.AckID,
	}
	for _, tool := range c.ClientTools {
		talk.Tools = append(talk.Tools, tool.Name)
	}
	r.Detail = talk
	t.pending = append(t.pending, r)
	switch c.Name {
	case protocol.RunCancel:
		talk.About = c.RunID
	case protocol.RunDetach:
		talk.About = c.ToolCallID
	case protocol.RunResume:
		talk.About, talk.Answer = c.InterruptID, head(c.Answer)
		talk.Waited = t.decide(m, c)
	}
}

// decide gives an answer to the decision that it is for, and returns how long
// it was waited for. The first answer counts.
func (t *Timeline) decide(m *Moment, c *protocol.Command) time.Duration {
	thread := t.thread(c.ThreadID)
	if thread.waiting {
		t.Waits = append(t.Waits, Wait{Thread: c.ThreadID, Start: thread.quiet, End: max(m.At(), thread.quiet)})
		thread.quiet = m.At()
	}
	r := thread.decisions[c.InterruptID]
	if r == nil || r.Detail.(*Decision).Reply != nil {
		return 0
	}
	r.State = Done
	r.Detail.(*Decision).Reply = &Answer{
		At: m.Address(), Connection: m.Connection(), Value: head(c.Answer), Bytes: len(c.Answer), After: max(m.At()-r.Start, 0),
	}
	t.touched = append(t.touched, r)
	return max(m.At()-r.Start, 0)
}

// waited is how long a person was waited for in a thread since a time.
func (t *Timeline) waited(thread string, since time.Duration) time.Duration {
	sum := time.Duration(0)
	for i := len(t.Waits) - 1; i >= 0 && t.Waits[i].Start >= since; i-- {
		if w := t.Waits[i]; w.Thread == thread {
			sum += w.End - w.Start
		}
	}
	return sum
}

func (t *Timeline) addInterrupt(m *Moment, e *protocol.Event) {
	r := t.row(m, KindDecision, string(protocol.Interrupt), e.InterruptID)
	decision := &Decision{Payload: head(e.Body), Bytes: len(e.Body)}
	var call struct {
		ClientTool string `json:"clientTool"`
	}
	if json.Unmarshal(e.Body, &call) == nil {
		decision.Tool = call.ClientTool
	}
	r.Detail = decision
	t.thread(m.Thread).decisions[e.InterruptID] = r
}

// settle notes what answered the oldest unanswered command that fits, and
// returns its row; nil if none fits.
func (t *Timeline) settle(m *Moment, by string, ok bool, fits func(*Row) bool) *Row {
	i := slices.IndexFunc(t.pending, fits)
	if i < 0 {
		return nil
	}
	r := t.pending[i]
	t.pending = slices.Delete(t.pending, i, i+1)
	r.State = Done
	if !ok {
		r.State = Failed
	}
	talk := r.Detail.(*Talk)
	if talk.Reply == nil {
		talk.Reply = &Reply{At: m.Address(), By: by, OK: ok, After: max(m.At()-r.Start, 0)}
	}
	t.touched = append(t.touched, r)
	return r
}

// settleStart: a run that starts answers the run:start that asked for it, or
// all the decisions that it was waiting for; it returns the last of them.
func (t *Timeline) settleStart(m *Moment) *Row {
	thread := t.thread(m.Thread)
	thread.waiting = false
	resumes := func(c *Row) bool { return c.Name == string(protocol.RunResume) && c.Thread == m.Thread }
	by := string(m.event().Type)
	var last *Row
	for c := t.settle(m, by, true, resumes); c != nil; c = t.settle(m, by, true, resumes) {
		last = c
	}
	if last != nil {
		return last
	}
	return t.settle(m, by, true, func(c *Row) bool { return c.Name == string(protocol.RunStart) && c.Thread == m.Thread })
}

// settleResumes: a run that goes on after its pause, under its own id, answers
// the decisions that it was waiting for.
func (t *Timeline) settleResumes(m *Moment, run *runFold) {
	e := m.event()
	if run.paused == nil || run.paused.State == Open || e == nil || e.Type == protocol.RunFinished {
		return
	}
	run.paused = nil
	t.settleStart(m)
}

func (t *Timeline) settleCancel(m *Moment, by string) {
	t.settle(m, by, by == string(protocol.RunCancelled), func(c *Row) bool { return c.Name == string(protocol.RunCancel) && c.Run == m.Run })
}

// addAnswer folds an acknowledgement into the command that asked for it.
func (t *Timeline) addAnswer(m *Moment) {
	r := t.RowAt(m.Message.Answers)
	if r == nil || r.Kind != KindCommand {
		r = t.row(m, KindMessage, string(m.Message.Name), m.Message.AckID)
		r.State = Done
		r.Detail = &Note{Said: "an answer to what was not seen", Text: head(m.Message.Payload), Bytes: int64(len(m.Message.Payload))}
		return
	}
	t.note(r, m)
	r.Last = m.Address()
	if i := slices.Index(t.pending, r); i >= 0 && (r.Name == string(protocol.ThreadMessages) || !answerOK(m.Message.Payload)) {
		t.pending = slices.Delete(t.pending, i, i+1)
	}
	reply := &Reply{At: m.Address(), By: "ack", OK: true, After: max(m.At()-r.Start, 0)}
	r.State, r.Detail.(*Talk).Reply = Done, reply
	h, ok := protocol.ReadHistory(m.Message.Payload)
	if !ok {
		return
	}
	if reply.OK = h.OK; !h.OK {
		r.State, reply.Code, reply.Message = Failed, h.Error.Code, cutBytes(h.Error.Message, headBytes)
		return
	}
	if r.Name == string(protocol.ThreadMessages) {
		reply.History = &History{
			Messages: len(h.Messages), Replayed: len(h.Envelopes), Truncated: h.Truncated,
			Pending: h.PendingInterrupt != nil, Todos: h.Todos != nil, Task: h.Task != nil,
		}
		t.addReplay(m, r, &h)
	}
}

func answerOK(payload []byte) bool {
	h, ok := protocol.ReadHistory(payload)
	return !ok || h.OK
}

// addReplay folds in the envelopes of a replay. Those that came live are only
// counted; what was missed makes rows of its own, marked as replayed.
func (t *Timeline) addReplay(m *Moment, asked *Row, h *protocol.History) {
	if len(h.Envelopes) == 0 {
		return
	}
	within := *m
	within.Thread, within.Replayed = asked.Thread, true
	r := t.row(&within, KindReplay, "replay", "")
	r.State = Done
	replay := &Replay{Envelopes: len(h.Envelopes), Truncated: h.Truncated}
	r.Detail = replay
	for _, raw := range h.Envelopes {
		message := *m.Message
		message.Name, message.Answer, message.Payload, message.Envelope = protocol.RunEvent, false, raw, nil
		t.judge.Validate(&message, nil)
		e := message.Envelope
		if e == nil {
			continue
		}
		if r.FirstSeq == 0 {
			r.FirstSeq, r.Run = e.Sequence, e.RunID
		}
		r.LastSeq = e.Sequence
		within.Message, within.Thread, within.Run = &message, e.ThreadID, e.RunID
		switch first, seen := t.run(&within).seen[e.Sequence]; {
		case !seen:
			replay.New++
			t.replayOne(&within, e)
		case first.sum != checksum(e.Event.Raw):
			replay.Different++
		}
	}
}

// replayOne folds in an envelope that was not seen live, as if it were.
func (t *Timeline) replayOne(m *Moment, e *protocol.Envelope) {
	outer := t.touched
	t.touched = nil
	t.addEnvelope(m, e, true)
	if len(t.touched) > 0 && t.options.Filter.Match(m) {
		t.touched[0].Matched = true
	}
	for _, r := range t.touched {
		if !slices.Contains(outer, r) {
			outer = append(outer, r)
		}
	}
	t.touched = outer
}

// addMessage makes rows of the gateway's other messages, and of those that
// nobody knows.
func (t *Timeline) addMessage(m *Moment) {
	name, payload := m.Message.Name, m.Message.Payload
	note := &Note{Text: head(payload), Bytes: int64(len(payload))}
	kind, state := KindMessage, Done
	switch {
	case m.Direction() == capture.FromClient:
	case name == protocol.Hello:
		kind = KindHello
		if a, ok := protocol.ReadHello(payload); ok {
			note.Said = fmt.Sprintf("protocol %d.%d, oldest client %d", a.Major, a.Minor, a.MinClientMajor)
			note.Text, note.Bytes = "", 0
		}
	case name == protocol.TaskStatus:
		kind = KindTask
		task := taskOf(payload)
		note.Text, note.Bytes = head(task), int64(len(task))
	case name == protocol.ProtocolError:
		if t.refuse(m) {
			return
		}
		kind, state = KindRefusal, Failed
		if f, ok := protocol.ReadError(payload); ok {
			note.Text, note.Bytes = joinText(string(f.Code), f.Message), 0
		}
	}
	r := t.row(m, kind, string(name), m.Message.AckID)
	r.State, r.Detail = state, note
}

func taskOf(payload []byte) []byte {
	var status struct {
		Task json.RawMessage `json:"task"`
	}
	if json.Unmarshal(payload, &status) != nil || status.Task == nil {
		return payload
	}
	return status.Task
}

// refuse folds a protocol:error into the command that it refuses, if only one
// fits: the message names none.
func (t *Timeline) refuse(m *Moment) bool {
	f, ok := protocol.ReadError(m.Message.Payload)
	if !ok {
		return false
	}
	fits := func(c *Row) bool {
		return c.Connection == m.Connection() && c.Detail.(*Talk).Reply == nil && mayRefuse(f.Code, protocol.Name(c.Name))
	}
	candidates := 0
	for _, c := range t.pending {
		if fits(c) {
			candidates++
		}
	}
	if candidates != 1 {
		return false
	}
	r := t.settle(m, string(protocol.ProtocolError), false, fits)
	t.touched = t.touched[:len(t.touched)-1]
	t.note(r, m)
	r.Last = m.Address()
	reply := r.Detail.(*Talk).Reply
	reply.Code, reply.Message = f.Code, cutBytes(f.Message, headBytes)
	return true
}

// mayRefuse reports whether an error code can be about a command ("Errors").
func mayRefuse(code protocol.ErrorCode, command protocol.Name) bool {
	switch code {
	case protocol.UnknownRun:
		return command == protocol.RunResume || command == protocol.RunCancel || command == protocol.RunDetach
	case protocol.DuplicateMessage, protocol.ForkPointNotFound:
		return command == protocol.RunStart
	case protocol.ConversationNotFound:
		return command != protocol.RunCancel && command != protocol.RunDetach
	}
	return true
}
