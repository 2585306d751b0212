package player

import (
	"encoding/json"
	"errors"
	"fmt"

	"tapedeck/player/engine"
	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

// event answers an event that a client sent.
func (g *Gateway) event(s socket, e engine.Event) {
	name := protocol.Name(e.Name)
	var payload json.RawMessage
	if len(e.Args) > 0 {
		payload = e.Args[0]
	}
	o := order{from: s, ack: e.Ack}
	var err error
	if o.Command, err = g.read(s, name, payload); err == nil {
		err = g.obey(o)
	}
	refusal := asRefusal(err)
	g.journal.add(journalEntry{Socket: s.ID(), Name: name, Thread: g.threadOf(o.Command), Payload: payload, Refused: refusal})
	if refusal != nil {
		g.config.Logger.Info("command refused", "socket", s.ID(), "command", e.Name, "code", refusal.Code, "err", refusal.Message)
		g.decline(s, name, refusal, e.Ack)
	}
}

// threadOf names the thread that a command is about.
func (g *Gateway) threadOf(c protocol.Command) string {
	if c.ThreadID != "" {
		return c.ThreadID
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ran[c.RunID]
}

// order is a command and who gave it.
type order struct {
	protocol.Command
	from socket
	ack  func(...json.RawMessage) // nil if none was asked for
}

// accept answers a command that is going to be obeyed. It is called under the
// thread's lock, so that the answer precedes what the command leads to.
func (o order) accept() {
	if o.ack != nil {
		o.ack(json.RawMessage(`{"ok":true}`))
	}
}

// decline tells a client that its command was refused: by its acknowledgement,
// and by protocol:error. thread:messages is answered by the acknowledgement
// alone, if it asked for one.
func (g *Gateway) decline(s socket, name protocol.Name, r *Refusal, ack func(...json.RawMessage)) {
	problem := object{}.text("code", string(r.Code)).text("message", r.Message).close()
	if ack != nil {
		ack(object{}.raw("ok", json.RawMessage("false")).raw("error", problem).close())
		if name == protocol.ThreadMessages {
			return
		}
	}
	s.Emit(string(protocol.ProtocolError), problem)
}

func asRefusal(err error) *Refusal {
	var refusal *Refusal
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refusal):
		return refusal
	}
	return &Refusal{protocol.InvalidCommand, err.Error()}
}

func refuse(code protocol.ErrorCode, format string, args ...any) error {
	return &Refusal{code, fmt.Sprintf(format, args...)}
}

// read reads a command strictly: what the page forbids is refused by the name
// of the pointer and the rule.
func (g *Gateway) read(s socket, name protocol.Name, payload json.RawMessage) (protocol.Command, error) {
	if !name.IsCommand() {
		return protocol.Command{}, unknownCommand(name)
	}
	m := protocol.Message{Name: name, Payload: payload, Direction: capture.FromClient, Namespace: s.Namespace()}
	g.mu.Lock()
	guest := g.guests[s]
	g.mu.Unlock()
	if guest == nil {
		return protocol.Command{}, refuse(protocol.InvalidCommand, "this socket has left")
	}
	validator := g.validators.Get().(*protocol.Validator)
	defer g.validators.Put(validator)
	for _, finding := range validator.Validate(&m, nil) {
		if finding.Severity == protocol.Error {
			at := finding.Pointer
			if at == "" {
				at = "the payload"
			}
			return protocol.Command{}, refuse(protocol.InvalidCommand, "%s: %s (%s)", at, finding.Text, finding.Rule)
		}
	}
	command, ok := protocol.ReadCommand(&m)
	if !ok {
		return command, refuse(protocol.InvalidCommand, "the payload of %s is no object", name)
	}
	return command, nil
}

func unknownCommand(name protocol.Name) error {
	known := []string{"run:start", "run:resume", "run:cancel", "run:detach", "thread:messages"}
	if near := protocol.Nearest(string(name), known); near != "" {
		return refuse(protocol.InvalidCommand, "no command is called %q: did you mean %q?", name, near)
	}
	return refuse(protocol.InvalidCommand, "no command is called %q", name)
}

// obey does what a valid command asks.
func (g *Gateway) obey(o order) error {
	switch o.Name {
	case protocol.RunStart:
		return g.start(o)
	case protocol.RunResume:
		return g.resume(o)
	case protocol.RunCancel:
		return g.inRun(o, g.cancel)
	case protocol.RunDetach:
		return g.inRun(o, g.detach)
	}
	return g.messages(o)
}

// inRun does something with the run in flight that a command names.
func (g *Gateway) inRun(o order, do func(r *run, o order) error) error {
	g.mu.Lock()
	r := g.runs[o.RunID]
	g.mu.Unlock()
	if r == nil {
		return unknownRun(o.RunID)
	}
	r.thread.lock()
	defer r.thread.unlock()
	if r.ended {
		return unknownRun(o.RunID)
	}
	if err := do(r, o); err != nil {
		return err
	}
	r.thread.heard(o.Name)
	return nil
}

func unknownRun(id string) error {
	return refuse(protocol.UnknownRun, "run %q is not active", id)
}

// heard lets the plays go on that waited for a command.
func (t *thread) heard(command protocol.Name) {
	for p := range t.plays {
		p.release(command)
	}
}
