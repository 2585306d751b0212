package conversation

import (
	"bytes"
	"slices"
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

// command is a client's command and what became of it.
type command struct {
	protocol.Command // without the slices of its payload
	socket           *socket
	at               capture.Address
	time             time.Duration
	frames           []capture.Position // its own and its answer's
	run              *run
	tools            map[string]*clientTool
	fate             fate
	code             protocol.ErrorCode // of its refusal
	byAck            bool               // refused by an acknowledgement; a protocol:error may come besides
	unsure           bool               // a protocol:error may have been meant for it
	withheld         bool               // it never reached the gateway
	wantsAck, acked  bool
	lost             bool            // its answer may be among frames that were lost
	okAt             capture.Address // of an acknowledgement that says ok
	decision         *decision       // that a run:resume answers
	doubt            doubt
	passed           bool  // the gateway took a later command of the socket's
	history          *room // of thread:messages
}

// fate is what became of a command.
type fate uint8

const (
	pending fate = iota
	accepted
	refused
)

// doubt is what is wrong with a run:resume unless the gateway refuses it.
type doubt uint8

const (
	noDoubt doubt = iota
	unknownDecision
	answeredBefore
)

const (
	maxSent   = 1 << 12 // commands that are compared with later ones
	patience  = 2 * time.Second
	maxFrames = 16 // of a command
)

// command takes a client's command.
func (s *State) command(k *socket, m *protocol.Message) {
	read, ok := protocol.ReadCommand(m)
	if !ok {
		return
	}
	c := &command{
		Command: read, socket: k, at: m.Address, time: s.now,
		frames:   []capture.Position{m.Last},
		wantsAck: m.AckID != "",
		withheld: s.turn.flags.Has(capture.Withheld),
	}
	if m.Last != m.Address.Position {
		c.frames = append(c.frames, m.Address.Position)
	}
	c.tools = s.declared(read.ClientTools)
	c.Command.Attachments, c.Command.ClientTools, c.Command.Answer = nil, nil, bytes.Clone(read.Answer)
	s.turn.thread = c.ThreadID
	s.beforeCommand(k, m)
	if c.ThreadID != "" {
		s.threadOf(c.ThreadID)
	}
	if !c.withheld {
		s.sentAgain(c, m)
		k.remember(c)
	}
	switch c.Name {
	case protocol.RunStart:
		s.start(c)
	case protocol.RunResume:
		s.resume(c)
	case protocol.RunCancel, protocol.RunDetach:
		s.steer(c)
	case protocol.ThreadMessages:
		s.ask(c, m)
	}
}

// remember keeps a command for its answer. The oldest make room.
func (k *socket) remember(c *command) {
	if len(k.commands) >= maxCommands {
		k.commands = slices.Delete(k.commands, 0, maxCommands/2)
	}
	k.commands = append(k.commands, c)
}

// sentAgain judges whether a command is one that was sent on an earlier socket,
// as a client does that resends its buffer. What another window may well repeat
// is no such command.
func (s *State) sentAgain(c *command, m *protocol.Message) {
	if c.Name != protocol.RunStart && c.Name != protocol.RunResume {
		return
	}
	key := s.hashJSON(m.Payload)
	old := s.sent[key]
	if old != nil && old.Name == c.Name && old.socket != c.socket && (c.Name == protocol.RunStart || old.socket.gone) && c.hasID() {
		s.report("command-repeated", protocol.Warning, old.at, "the same %s was sent at #%s, on an earlier socket", c.Name, old.at)
	}
	if len(s.sent) >= maxSent {
		clear(s.sent)
	}
	s.sent[key] = c
}

// hasID reports whether the command names what makes it the same as another.
func (c *command) hasID() bool {
	return c.MessageID != "" || c.InterruptID != ""
}

// start takes run:start.
func (s *State) start(c *command) {
	if c.ThreadID == "" || c.withheld {
		return
	}
	t := s.threadOf(c.ThreadID)
	c.socket.place(t.ID).started = true
	if len(t.starts) >= maxWaiting {
		t.starts = slices.Delete(t.starts, 0, 1)
	}
	t.starts = append(t.starts, c)
}

// steer takes run:cancel and run:detach.
func (s *State) steer(c *command) {
	r := s.runs[c.RunID]
	if r == nil {
		return
	}
	s.turn.run, s.turn.thread = r, r.Thread
	s.threadOf(r.Thread)
	s.link(c, r)
	switch {
	case c.withheld:
	case c.Name == protocol.RunDetach:
		r.detached = true
	case r.end.IsZero() && r.cancel == nil:
		r.cancel, r.newWork = c, false
	}
}

// ask takes thread:messages.
func (s *State) ask(c *command, m *protocol.Message) {
	if !c.wantsAck {
		s.report("history-unasked", protocol.Warning, capture.Address{},
			"thread:messages without an acknowledgement id can never be answered: emit it with a callback")
	}
	if c.ThreadID == "" || c.withheld {
		return
	}
	c.history = c.socket.place(c.ThreadID)
	c.history.asked, c.history.askedAt = m.Address, s.now
}

// link gives a command to a run, and the run what is known of the command.
func (s *State) link(c *command, r *run) {
	c.run = r
	s.postConnection(r, c.socket.conn)
	for _, at := range c.frames {
		s.post(r, at)
	}
	if c.Name == protocol.RunStart && r.Input == "" {
		r.Input = beginning(c.Input)
	}
	s.touch(r)
}

// follow posts a frame that answers a command, or keeps it until the command's
// run is known.
func (s *State) follow(c *command, m *protocol.Message) {
	if c.run != nil {
		s.turn.run, s.turn.thread = c.run, c.run.Thread
		s.postMessage(c.run, c.socket, m)
	}
	if len(c.frames) < maxFrames {
		c.frames = append(c.frames, m.Last)
	}
	if s.turn.thread == "" {
		s.turn.thread = c.ThreadID
	}
}

// began finds out which command RUN_STARTED answers. After is the thread's run
// before this one.
func (s *State) began(r, after *run, e *protocol.Event) {
	t := r.thread
	id, input := openingMessage(e.Body)
	if r.Input == "" {
		r.Input = beginning(input)
	}
	if c := t.startOf(id); c != nil {
		s.startedBy(r, c, id != "")
		return
	}
	if after != nil && after.answeredSome() {
		s.resumed(after, r)
		return
	}
	if t.resumesUnseen() {
		s.resumed(nil, r)
		return
	}
	if id == "" {
		if c := t.oldestStart(); c != nil {
			s.startedBy(r, c, false)
			return
		}
	}
	if s.refusedBefore(r, id) {
		return
	}
	// Another client started it, or a decision was answered where nobody looks.
	if id != "" {
		r.fresh = true
		s.sawMessage(t, id)
	}
}

// resumesUnseen reports whether somebody answered a decision that was asked for
// where this tool did not look.
func (t *thread) resumesUnseen() bool {
	for _, c := range t.resumes {
		if c.fate != refused && c.decision == nil && c.doubt == noDoubt {
			return true
		}
	}
	return false
}

// startOf takes the waiting run:start of a message id.
func (t *thread) startOf(id string) *command {
	if id == "" {
		return nil
	}
	for i, c := range t.starts {
		if c.MessageID == id && c.fate != refused {
			t.starts = slices.Delete(t.starts, i, i+1)
			return c
		}
	}
	return nil
}

// oldestStart takes the oldest run:start that waits and was not refused.
func (t *thread) oldestStart() *command {
	for i, c := range t.starts {
		if c.fate != refused {
			t.starts = slices.Delete(t.starts, i, i+1)
			return c
		}
	}
	return nil
}

// startedBy takes note that a run:start began a run. Sure is set if the run
// names the message.
func (s *State) startedBy(r *run, c *command, sure bool) {
	t := r.thread
	r.cause, r.fresh, r.asked = c, true, c.time
	c.fate = accepted
	r.tools = c.tools
	s.link(c, r)
	if c.ForkFromMessageID != "" {
		t.ids = nil // what came after the fork is gone, and the message is replaced
	} else if seen, is := t.ids[c.MessageID]; is && c.MessageID != "" && seen.Compare(c.at) < 0 && !s.lossy && (sure || len(t.starts) == 0) {
		s.report("message-id-reused", protocol.Error, seen, "run %s was started with message id %s, which the thread has since #%s",
			short(r.ID), short(c.MessageID), seen)
	}
	t.know(c.MessageID, c.at)
	t.known = true // a thread that waits on a decision takes no new run
}

// sawMessage takes note of a message that another client brought.
func (s *State) sawMessage(t *thread, id string) { t.know(id, s.turn.m.Address) }

// know takes note that the thread has a message.
func (t *thread) know(id string, at capture.Address) {
	if id == "" {
		return
	}
	if t.ids == nil || len(t.ids) >= maxMessageIDs {
		t.ids = make(map[string]capture.Address)
	}
	if _, is := t.ids[id]; !is {
		t.ids[id] = at
	}
}

// refusedBefore judges a run that nobody seems to have started: it may be one
// whose start the gateway refused.
func (s *State) refusedBefore(r *run, id string) bool {
	const rule = "error-then-events"
	for i, c := range r.thread.starts {
		sole := id == "" && c.socket == s.turn.socket && s.alone(c.socket.conn) && s.now-c.time <= patience
		if c.fate != refused || !(id != "" && c.MessageID == id) && !sole {
			continue
		}
		if c.unsure || s.lossy {
			s.skip(rule, "it is not sure which command the error was for")
			return false
		}
		r.thread.starts = slices.Delete(r.thread.starts, i, i+1)
		s.report(rule, protocol.Warning, c.at, "run:start was refused with %s, and its run begins all the same", short(string(c.code)))
		r.cause, r.fresh, r.tools = c, true, c.tools
		s.link(c, r)
		return true
	}
	return false
}

// alone reports whether no other connection speaks the protocol now, so that
// nobody else can have started a run before this tool's eyes.
func (s *State) alone(c *connection) bool {
	for _, other := range s.connections {
		if other != c && other.judged && other.ending == nil {
			return false
		}
	}
	return true
}
