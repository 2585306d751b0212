package tape

import (
	"crypto/sha256"
	"encoding/json"
	"time"

	"tapedeck/player/engine"
	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/wire"
)

// told takes what a gateway sent to a socket.
func (l *loader) told(s *socket, p *wire.Packet) {
	var first []byte
	if len(p.Args) > 0 {
		first = p.Args[0]
	}
	switch p.Type {
	case wire.Connect:
		l.accepted, s.joined = true, true
	case wire.ConnectError:
		if !l.accepted {
			var r engine.Refusal
			// One that cannot be read is a refusal without words.
			_ = json.Unmarshal(first, &r)
			l.refusals = append(l.refusals, r)
		}
	case wire.Disconnect:
		s.bye = true
	case wire.Ack:
		if asked := s.byPlace[p.Answers]; asked != nil {
			delete(s.byPlace, p.Answers)
			l.answered(s, asked, first)
		}
	case wire.Event, wire.BinaryEvent:
		l.event(s, p, first)
	}
}

func (l *loader) event(s *socket, p *wire.Packet, first []byte) {
	switch name := protocol.Name(p.Name); {
	case name == protocol.Hello:
		if !l.greeted {
			l.greeted, l.hello = true, l.keep(first)
		}
		s.greeted = true
	case name == protocol.RunEvent && first != nil:
		l.envelope(s, p, first)
	case name == protocol.ProtocolError && first != nil:
		failure, _ := protocol.ReadError(first)
		l.failed(s, p, failure)
	default:
		l.message(s, p, first)
	}
}

// message takes a message for a thread's room: task:status, or what the protocol
// does not know.
func (l *loader) message(s *socket, p *wire.Packet, first []byte) {
	var status struct {
		ThreadID string `json:"threadId"`
	}
	// A message of another shape belongs where the socket was last.
	_ = json.Unmarshal(first, &status)
	t := l.known[status.ThreadID]
	if t == nil {
		t = s.latest
	}
	if t == nil || l.second(s, t, p) {
		return
	}
	t.now().add(l.now, &message{name: p.Name, args: l.keepAll(p.Args), attachments: l.keepAll(p.Attachments)})
}

// second reports whether the socket is told what another was told before.
func (l *loader) second(s *socket, t *thread, p *wire.Packet) bool {
	key := heard{t, sha256.Sum256(p.Raw)}
	s.heard[key]++
	if s.heard[key] <= l.heard[key] {
		return true
	}
	l.heard[key] = s.heard[key]
	return false
}

// ended takes the end of a connection. One that the gateway or the network ended
// is part of the story.
func (l *loader) ended(f *capture.Frame) {
	s := l.sockets[f.Connection]
	ending, err := capture.Detail[capture.Ending](f)
	if s == nil || err != nil {
		return
	}
	delete(l.sockets, f.Connection)
	if s.joined && !s.greeted && !l.greeted {
		l.greeted = true // by silence
	}
	if ending.By != capture.FromGateway && !s.bye {
		return
	}
	for t := range s.rooms {
		t.now().add(l.now, &cut{politely: s.bye})
	}
}

// now is where in a thread what comes next belongs.
func (t *thread) now() *segment {
	if t.current != nil {
		return t.current
	}
	return t.root
}

func (g *segment) add(at time.Duration, act any) { g.items = append(g.items, item{at, act}) }
