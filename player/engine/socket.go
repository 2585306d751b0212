package engine

import (
	"encoding/json"
	"slices"
	"strconv"
	"sync/atomic"
)

// Socket is a client's place in a namespace, or a plain JSON socket. Its methods
// may be called from any goroutine; what is sent to a socket that has gone
// vanishes.
type Socket struct {
	conn      *conn
	id        string
	pid       string // its session's, where there is recovery
	namespace string
	handshake Handshake
	recovered bool

	// Guarded by the hub's lock.
	member bool // it is in its namespace
	left   bool // it will not be again
	rooms  []string

	// Guarded by the connection's lock.
	parted bool // it is not to be sent to any more
	acks   map[uint64]func(answer, error)
	gone   bool // acks have been told
}

// answer is what a client acknowledged an event with.
type answer struct {
	args        []json.RawMessage
	attachments [][]byte
}

// ID returns the Socket.IO session id. It is not Engine.IO's, and stays the same
// over a recovery.
func (s *Socket) ID() string { return s.id }

// Namespace returns the namespace, "" for a plain socket.
func (s *Socket) Namespace() string { return s.namespace }

// Handshake returns what the client brought along. It is not to be changed.
func (s *Socket) Handshake() Handshake { return s.handshake }

// Recovered reports whether the socket took up a lost session: it kept its id
// and its rooms, and was sent what it missed.
func (s *Socket) Recovered() bool { return s.recovered }

// Rooms returns the rooms that the socket is in, without the one of its own id.
func (s *Socket) Rooms() []string {
	h := &s.conn.server.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.rooms), func(room string) bool { return room == s.id })
}

// Connection returns the id of the connection, which the client's sockets of
// other namespaces share.
func (s *Socket) Connection() string { return s.conn.id }

// Transport returns "polling" or "websocket", as it is now.
func (s *Socket) Transport() string {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	return s.conn.transport()
}

// Behind reports whether the client is slow: more than a quarter of what may wait
// for it does.
func (s *Socket) Behind() bool {
	c := s.conn
	c.mu.Lock()
	l, queued := c.link, c.queued
	c.mu.Unlock()
	if l != nil {
		queued = l.waiting()
	}
	return queued > c.server.config.MaxQueue/4
}

// Emit sends an event to this socket. The arguments go out as they are; a plain
// client gets the one argument as data, and several as an array.
func (s *Socket) Emit(name string, args ...json.RawMessage) {
	s.EmitBinary(name, nil, args...)
}

// EmitBinary sends an event with attachments; args hold their placeholders. A
// plain socket has no attachments and gets none.
func (s *Socket) EmitBinary(name string, attachments [][]byte, args ...json.RawMessage) {
	s.emit(func(offset string) []packet {
		return encodeEvent(s.namespace, "", name, attachments, args, offset)
	})
}

// EmitRaw sends an event whose JSON array, the name first, is given and goes out
// byte for byte: a recorded one, or a malformed one. To a plain socket, array is
// the whole message.
func (s *Socket) EmitRaw(array json.RawMessage, attachments ...[]byte) {
	if s.conn.plain {
		s.send(framed(opText, array))
		return
	}
	s.emit(func(offset string) []packet {
		return encodeArray(s.namespace, array, attachments, offset)
	})
}

// emit sends an event without an acknowledgement id. With recovery such an event
// is kept, and carries its offset.
func (s *Socket) emit(build func(offset string) []packet) {
	if hub := &s.conn.server.hub; hub.recovery > 0 && !s.conn.plain {
		hub.emit(s.namespace, s.id, build)
		return
	}
	s.send(build("")...)
}

// send queues packets and sees to it that they leave.
func (s *Socket) send(packets ...packet) {
	s.conn.mu.Lock()
	parted := s.parted
	s.conn.mu.Unlock()
	if !parted {
		s.conn.send(packets...)
	}
}

// SendPacket sends a Socket.IO packet exactly as given, without the Engine.IO 4
// before it, and its attachments after it. Nothing is checked: it is there for
// packets of every kind, malformed ones too. To a plain socket it is a message.
func (s *Socket) SendPacket(text []byte, attachments ...[]byte) {
	head := make([]byte, headroom, headroom+1+len(text))
	if !s.conn.plain {
		head = append(head, packetMessage)
	}
	s.send(attach(seal(append(head, text...), opText), attachments)...)
}

// SendFrame sends one WebSocket message exactly as given, with no Engine.IO
// digit before it; over polling it is one packet of a payload.
func (s *Socket) SendFrame(binary bool, data []byte) {
	if binary {
		s.send(framed(opBinary, data))
		return
	}
	s.send(framed(opText, data))
}

// EmitAck sends an event and calls done with the client's answer, or with
// [ErrGone] when the socket ends first. The ids of a namespace count from 0, for
// all its sockets together, as npm's do. Done is called as a callback is, or
// before EmitAck returns if the socket is gone already.
func (s *Socket) EmitAck(name string, done func(args []json.RawMessage, err error), args ...json.RawMessage) {
	s.EmitBinaryAck(name, nil, func(args []json.RawMessage, _ [][]byte, err error) { done(args, err) }, args...)
}

// EmitBinaryAck is EmitAck with attachments both ways.
func (s *Socket) EmitBinaryAck(name string, attachments [][]byte,
	done func(args []json.RawMessage, attachments [][]byte, err error), args ...json.RawMessage) {
	id := s.conn.server.hub.nextID(s.namespace)
	s.conn.mu.Lock()
	gone := s.gone
	if !gone {
		if s.acks == nil {
			s.acks = make(map[uint64]func(answer, error))
		}
		s.acks[id] = func(a answer, err error) { done(a.args, a.attachments, err) }
	}
	s.conn.mu.Unlock()
	if gone {
		done(nil, nil, ErrGone)
		return
	}
	s.send(encodeEvent(s.namespace, strconv.FormatUint(id, 10), name, attachments, args, "")...)
}

// Join enters a room of the socket's namespace.
func (s *Socket) Join(room string) { s.conn.server.hub.join(s, room) }

// Leave leaves a room of the socket's namespace.
func (s *Socket) Leave(room string) { s.conn.server.hub.leave(s, room) }

// Disconnect sends a DISCONNECT. With engine it sends one to every socket of the
// connection and ends that too. A plain socket, which has no DISCONNECT, is
// closed by 1000.
func (s *Socket) Disconnect(engine bool) {
	switch {
	case s.conn.plain:
		s.conn.shut(ReasonServerDisconnect, false, closePayload(1000, ""))
	case engine:
		s.conn.shut(ReasonServerDisconnect, true, nil)
	default:
		s.depart(ReasonServerDisconnect, true)
	}
}

// Close ends the connection, its other sockets too, without a DISCONNECT: a
// WebSocket by a close frame with this code and text, 0 for a frame with neither,
// polling by a close packet. What was sent before leaves before.
func (s *Socket) Close(code int, text string) {
	var payload []byte
	if code != 0 {
		payload = closePayload(code, text)
	}
	s.conn.shut(ReasonForcedServer, false, payload)
}

// Cut drops the connection as a broken network does: no packet, no close frame.
func (s *Socket) Cut() { s.conn.end(ReasonTransportClose, ending{cut: true}) }

// depart takes the socket out of its namespace while its connection stays.
func (s *Socket) depart(reason string, tell bool) {
	c := s.conn
	c.mu.Lock()
	joined := false
	for _, other := range c.sockets {
		joined = joined || other == s
	}
	if c.state != open || !joined {
		c.mu.Unlock()
		return
	}
	if tell {
		c.force(disconnectPacket(s.namespace))
	}
	gone := c.depart([]*Socket{s}, reason)
	c.mu.Unlock()
	c.flush()
	gone()
}

// leave calls back for a socket that is gone; the connection's turn is held.
func (s *Socket) leave(reason string) {
	s.conn.mu.Lock()
	acks := s.acks
	s.acks, s.gone = nil, true
	s.conn.mu.Unlock()
	for _, done := range acks {
		done(answer{}, ErrGone)
	}
	if s.conn.server.config.Left != nil {
		s.conn.server.config.Left(s, reason)
	}
}

// receiveEvent calls back for an event.
func (s *Socket) receiveEvent(p *received) {
	if s.conn.server.config.Event == nil || p.name == "" && p.args == nil {
		return
	}
	e := Event{Name: p.name, Args: p.args, Attachments: p.attachments}
	if p.id != "" {
		var answered atomic.Bool
		ack := func(attachments [][]byte, args ...json.RawMessage) {
			if !answered.Swap(true) {
				s.send(encodeAck(s.namespace, p.id, attachments, args)...)
			}
		}
		e.Ack = func(args ...json.RawMessage) { ack(nil, args...) }
		if !s.conn.plain {
			e.AckBinary = ack
		}
	}
	s.conn.server.config.Event(s, e)
}

// receiveAck calls back for an acknowledgement; one that nobody waits for is
// ignored, as npm does.
func (s *Socket) receiveAck(p *received) {
	id, err := strconv.ParseUint(p.id, 10, 64)
	if err != nil {
		return
	}
	s.conn.mu.Lock()
	done := s.acks[id]
	delete(s.acks, id)
	s.conn.mu.Unlock()
	if done != nil {
		done(answer{args: p.args, attachments: p.attachments}, nil)
	}
}
