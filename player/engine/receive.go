package engine

import (
	"encoding/json"

	"tapedeck/protocol/wire"
)

// receive takes an Engine.IO packet in the connection's turn. It returns false
// when the connection has ended.
func (c *conn) receive(data []byte, binary bool) bool {
	if !c.advance() {
		return false
	}
	pong := !binary && len(data) > 0 && data[0] == packetPong
	if !c.heard(pong) || pong {
		return true
	}
	switch {
	case binary:
		return c.receiveAttachment(data)
	case len(data) == 0:
		return c.refuse(ReasonParse, "an empty packet")
	}
	switch data[0] {
	case packetMessage:
		return c.receiveMessage(data[1:])
	case 'b':
		attachment, err := decodeBase64(data[1:])
		if err != nil {
			return c.refuse(ReasonParse, err.Error())
		}
		return c.receiveAttachment(attachment)
	case packetPing:
		return c.refuse(ReasonTransportError, "a ping, which only servers send")
	case packetOpen, packetClose, packetUpgrade, packetNoop:
		return true // nothing to do: npm does not close a WebSocket for a close packet either
	}
	return c.refuse(ReasonParse, "an unknown packet type")
}

// refuse ends the connection for what its client sent.
func (c *conn) refuse(reason, why string) bool {
	c.server.config.Logger.Warn("client sent what cannot be read", "conn", c.id, "err", why)
	c.end(reason, ending{answer: packetClose})
	return false
}

// violate ends the connection for a breach of Socket.IO's rules, which lets
// leave what is queued.
func (c *conn) violate(reason string, err string) bool {
	c.server.config.Logger.Warn("client broke the rules of socket.io", "conn", c.id, "err", err)
	c.shut(reason, false, nil)
	return false
}

// receiveMessage takes the text of a Socket.IO packet.
func (c *conn) receiveMessage(text []byte) bool {
	if c.pending != nil {
		return c.violate(ReasonForced, "text where an attachment was due")
	}
	p, err := parsePacket(text)
	if err != nil {
		return c.violate(ReasonForced, err.Error())
	}
	if p.missing > 0 {
		c.pending = &p
		return true
	}
	return c.dispatch(&p)
}

// receiveAttachment takes a binary message.
func (c *conn) receiveAttachment(data []byte) bool {
	p := c.pending
	if p == nil {
		return c.violate(ReasonForced, "binary data that no packet announced")
	}
	done, err := p.attach(data)
	if err != nil {
		return c.violate(ReasonForced, err.Error())
	}
	if !done {
		return true
	}
	c.pending = nil
	if p.kind == wire.BinaryEvent {
		p.kind = wire.Event
	} else {
		p.kind = wire.Ack
	}
	return c.dispatch(p)
}

// dispatch gives a whole packet to the socket that it is for.
func (c *conn) dispatch(p *received) bool {
	s := c.socket(p.namespace)
	switch {
	case s == nil && p.kind == wire.Connect:
		c.connect(p.namespace, p.auth)
		return true
	case s == nil:
		return c.violate(ReasonForcedServer, "a packet for a namespace that is not joined: "+p.namespace)
	}
	switch p.kind {
	case wire.Event:
		s.receiveEvent(p)
	case wire.Ack:
		s.receiveAck(p)
	case wire.Disconnect:
		s.depart(ReasonClientDisconnect, false)
	default:
		return c.violate(ReasonForcedServer, "a second CONNECT, or a CONNECT_ERROR, for "+p.namespace)
	}
	return true
}

// socket returns the connection's socket of a namespace, or nil.
func (c *conn) socket(namespace string) *Socket {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.sockets {
		if s.namespace == namespace {
			return s
		}
	}
	return nil
}

// connect answers a CONNECT.
func (c *conn) connect(namespace string, auth json.RawMessage) {
	if len(auth) == 0 {
		auth = json.RawMessage("{}")
	}
	s := &Socket{conn: c, namespace: namespace, handshake: Handshake{
		Auth: auth, Header: c.header, Query: c.query, Remote: c.remote,
	}}
	hub := &c.server.hub
	if hub.recovery > 0 {
		if found, joined := hub.restore(s); joined {
			c.joined(s)
			return
		} else if found {
			return // the connection has ended meanwhile
		}
	}
	s.id = newID()
	if hub.recovery > 0 {
		s.pid = newID()
	}
	if refusal := c.server.admit(s); refusal != nil {
		hub.drop(s)
		c.send(connectError(namespace, refusal))
		return
	}
	if hub.add(s, []packet{connectReply(namespace, s.id, s.pid)}) {
		c.joined(s)
	}
}

// admit asks whether a socket may join its namespace.
func (s *Server) admit(socket *Socket) *Refusal {
	if s.config.Connect != nil {
		return s.config.Connect(socket)
	}
	if socket.namespace == "/" || socket.namespace == plainNamespace {
		return nil
	}
	return &Refusal{Message: "Invalid namespace"}
}

// joined goes on after a socket has been added and its reply is queued.
func (c *conn) joined(s *Socket) {
	c.flush()
	c.server.config.Logger.Debug("namespace joined", "conn", c.id, "namespace", s.namespace, "recovered", s.recovered)
	if c.server.config.Joined != nil {
		c.server.config.Joined(s)
	}
}
