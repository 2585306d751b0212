// Package story tells what passed in other words: runs as AG-UI events, which
// AG-UI's own tools read, and a session as a scenario for the player, to edit.
// Both leave out what their form cannot say; they are for going on with, not for
// keeping.
package story

import (
	"bytes"
	"iter"
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// Session is a session to tell. Frames yields its frames; a frame is valid until
// the next one.
type Session struct {
	Row    capture.Session
	Runs   []string // those to tell, and what goes on after their pauses; none is all
	Frames iter.Seq2[*capture.Frame, error]
}

// event is an event that was delivered for the first time.
type event struct {
	at          time.Duration
	thread, run string
	sequence    int64
	protocol.Event
}

// listener is told what passed, in order.
type listener interface {
	// command is a command that a client sent, and that was not sent before.
	command(at time.Duration, c *protocol.Command) error
	// event is an event; its raw parts are valid during the call.
	event(e *event) error
}

// tell tells a listener what passed: each command once, and each event once,
// whoever it was delivered to and whether live or in a replay.
func tell(s *Session, to listener) error {
	t := &teller{to: to, top: map[string]int64{}, wanted: map[string]bool{}}
	for _, run := range s.Runs {
		t.wanted[run] = true
	}
	state := conversation.New(conversation.Options{Session: s.Row.ID})
	for f, err := range s.Frames {
		if err != nil {
			return err
		}
		step := state.Observe(f)
		for i := range step.Messages {
			if err := t.message(&step.Messages[i]); err != nil {
				return err
			}
		}
		state.Changed()
		state.ChangedThreads()
	}
	return nil
}

type teller struct {
	to     listener
	wanted map[string]bool // nil wants all
	top    map[string]int64
	latest []byte // the latest command, which a reconnect may send again
}

func (t *teller) message(m *protocol.Message) error {
	switch {
	case m.Envelope != nil:
		return t.envelope(m.At, m.Envelope)
	case m.Answer && m.Name == protocol.ThreadMessages:
		return t.replay(m)
	case !m.Answer && m.Name.IsCommand() && m.Name != protocol.ThreadMessages:
		c, ok := protocol.ReadCommand(m)
		if !ok || bytes.Equal(t.latest, m.Payload) {
			return nil
		}
		t.latest = bytes.Clone(m.Payload)
		return t.to.command(m.At, &c)
	}
	return nil
}

// replay tells of a replay what nobody was told live.
func (t *teller) replay(m *protocol.Message) error {
	h, ok := protocol.ReadHistory(m.Payload)
	if !ok {
		return nil
	}
	validator := protocol.NewValidator(protocol.Options{})
	for _, raw := range h.Envelopes {
		one := protocol.Message{Name: protocol.RunEvent, Payload: raw, Direction: capture.FromGateway}
		validator.Validate(&one, nil)
		if one.Envelope == nil {
			continue
		}
		if err := t.envelope(m.At, one.Envelope); err != nil {
			return err
		}
	}
	return nil
}

func (t *teller) envelope(at time.Duration, e *protocol.Envelope) error {
	if len(t.wanted) > 0 && !t.wanted[e.RunID] || e.RunID == "" || e.Sequence <= t.top[e.RunID] {
		return nil
	}
	t.top[e.RunID] = e.Sequence
	return t.to.event(&event{at: at, thread: e.ThreadID, run: e.RunID, sequence: e.Sequence, Event: e.Event})
}
