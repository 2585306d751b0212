package conversation

import (
	"encoding/json"
	"strings"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/wire"
)

// answered takes an acknowledgement of a command.
func (s *State) answered(k *socket, m *protocol.Message) {
	c := k.asked(m.Answers)
	if c == nil {
		s.skip("ack-unexpected", "the command is forgotten")
		return
	}
	s.follow(c, m)
	if c.wantsAck && c.acked {
		s.report("ack-unexpected", protocol.Error, c.at, "a second acknowledgement of the %s at #%s", c.Name, c.at)
		return
	}
	c.acked = true
	if c.Name == protocol.ThreadMessages {
		s.history(k, c, m)
		return
	}
	read, ok := protocol.ReadHistory(m.Payload) // run:* are answered in the same form
	switch {
	case !ok:
	case read.OK:
		c.okAt = m.Address
		if c.doubt != noDoubt {
			c.fate = accepted
		}
	default:
		c.byAck = true
		s.refuse(c, read.Error.Code)
	}
}

// asked returns the socket's command at an address.
func (k *socket) asked(at capture.Address) *command {
	for i := len(k.commands) - 1; i >= 0; i-- {
		if k.commands[i].at == at {
			return k.commands[i]
		}
	}
	return nil
}

// strayAck judges an acknowledgement that answers no command known here.
func (s *State) strayAck(k *socket, p *wire.Packet, flags capture.Flags) {
	if !p.Answers.IsZero() && !p.Repeated {
		return // it answers an event that is the application's own
	}
	if k.conn.partial || s.lossy {
		s.skip("ack-unexpected", "what it answers may have passed before")
		return
	}
	m := protocol.Message{Address: p.Address, Last: p.Last, Connection: p.Connection}
	s.turn = turn{m: &m, socket: k, flags: flags}
	if p.Repeated {
		s.report("ack-unexpected", protocol.Error, p.Answers, "a second acknowledgement of id %s, asked at #%s", short(p.ID), p.Answers)
		return
	}
	s.report("ack-unexpected", protocol.Error, capture.Address{}, "an acknowledgement of id %s, which nobody asked for", short(p.ID))
}

// refused takes protocol:error. It names no command, so it is taken for the
// oldest unanswered one of the socket that fits its code.
func (s *State) refused(k *socket, m *protocol.Message) {
	failure, ok := protocol.ReadError(m.Payload)
	if !ok {
		return
	}
	candidates := k.candidates(failure.Code)
	if len(candidates) == 0 {
		if c := k.refusedByAck(failure.Code); c != nil {
			c.byAck = false
			s.follow(c, m)
		}
		return
	}
	c := candidates[0]
	if named := namedBy(failure.Message, candidates); named != nil {
		c = named
	} else if len(candidates) > 1 && !alike(candidates) {
		for _, other := range candidates {
			other.unsure = true
		}
	}
	s.follow(c, m)
	s.refuse(c, failure.Code)
}

// candidates are the commands that a protocol:error may be for, oldest first.
func (k *socket) candidates(code protocol.ErrorCode) (fit []*command) {
	for _, c := range k.commands {
		if c.fate == pending && canBe(&c.Command, code) {
			fit = append(fit, c)
		}
	}
	return fit
}

func (k *socket) refusedByAck(code protocol.ErrorCode) *command {
	for _, c := range k.commands {
		if c.fate == refused && c.byAck && c.code == code {
			return c
		}
	}
	return nil
}

// canBe reports whether a command can be refused with a code. A code that is
// not the page's can be for any of them.
func canBe(c *protocol.Command, code protocol.ErrorCode) bool {
	switch name := c.Name; code {
	case protocol.UnknownRun:
		return name == protocol.RunCancel || name == protocol.RunDetach || name == protocol.RunResume
	case protocol.DuplicateMessage:
		return name == protocol.RunStart
	case protocol.ForkPointNotFound:
		return name == protocol.RunStart && c.ForkFromMessageID != ""
	case protocol.ConversationNotFound:
		return name == protocol.RunStart || name == protocol.RunResume
	}
	return c.Name != protocol.ThreadMessages
}

// namedBy returns the one command among those whose id an error's message
// names.
func namedBy(message string, commands []*command) (named *command) {
	for _, c := range commands {
		for _, id := range [...]string{c.MessageID, c.InterruptID, c.RunID} {
			if len(id) < 2 || !strings.Contains(message, id) {
				continue
			}
			if named != nil && named != c {
				return nil
			}
			named = c
		}
	}
	return named
}

// alike reports whether it makes no difference which of the commands is meant.
func alike(commands []*command) bool {
	first := commands[0]
	for _, c := range commands[1:] {
		if c.Name != first.Name || c.MessageID != first.MessageID || c.InterruptID != first.InterruptID || c.RunID != first.RunID {
			return false
		}
	}
	return true
}

// refuse takes note that the gateway refused a command.
func (s *State) refuse(c *command, code protocol.ErrorCode) {
	c.fate, c.code = refused, code
	switch c.Name {
	case protocol.RunResume:
		s.reopen(c.decision, c)
	case protocol.RunCancel:
		if c.run != nil && c.run.cancel == c {
			c.run.cancel = nil
		}
	}
}

// unanswered reports the questions that a socket which ended leaves behind.
func (s *State) unanswered(k *socket) {
	for _, c := range k.commands {
		if c.Name != protocol.ThreadMessages || !c.wantsAck || c.acked || c.lost {
			continue
		}
		c.acked = true
		severity, who := protocol.Error, "the connection broke"
		switch end := k.conn.ending; {
		case end == nil || end.By == capture.FromClient:
			severity, who = protocol.Note, "the client left"
		case end.By == 0:
			severity, who = protocol.Note, "the proxy ended it"
		case end.Error == "" && end.Code != 1006:
			who = "the gateway closed"
		}
		s.blame(protocol.Finding{
			Rule: "ack-missing", Severity: severity, At: c.at, Other: capture.Address{Position: k.conn.endAt},
			Connection: k.conn.position, Thread: c.ThreadID,
		}, "thread:messages was not answered: %s after %s", who, brief(s.now-c.time))
	}
}

// taskStatus takes task:status: it is posted to the run whose subagent the task
// was.
func (s *State) taskStatus(k *socket, m *protocol.Message) {
	var body struct {
		ThreadID string          `json:"threadId"`
		Task     json.RawMessage `json:"task"`
	}
	if json.Unmarshal(m.Payload, &body) != nil || body.ThreadID == "" {
		return
	}
	s.turn.thread = body.ThreadID
	t := s.threads[body.ThreadID]
	if t == nil {
		return
	}
	s.threadOf(t.ID)
	var task struct {
		ID     string `json:"id"`
		TaskID string `json:"taskId"`
	}
	if json.Unmarshal(body.Task, &task) != nil {
		return
	}
	for _, id := range [...]string{task.TaskID, task.ID} {
		if r := s.tasks[id]; r != nil && id != "" {
			s.turn.run = r
			s.postConnection(r, k.conn)
			s.postMessage(r, k, m)
			return
		}
	}
}
