package conversation

import (
	"bytes"
	"encoding/json"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/wire"
)

// packets takes a frame of a connection and the packets that it completed.
func (s *State) packets(f *capture.Frame) {
	c := s.connectionOf(f)
	if c.maxPayload > 0 {
		s.bytesOf(c, func(out []protocol.Finding) []protocol.Finding { return protocol.Frame(f, c.maxPayload, out) })
	}
	if len(s.step.Packets) == 0 && f.Kind != capture.Ping && f.Kind != capture.Pong && f.Kind != capture.Close {
		if parts := &c.parts[f.Direction%3]; len(*parts) < maxParts {
			*parts = append(*parts, f.Position)
		}
		return
	}
	for i := range s.step.Packets {
		p := &s.step.Packets[i]
		s.like = s.decoder.Like(i)
		if p.Fault != wire.NoFault {
			s.fault(c, p)
		}
		if p.Engine == wire.EngineMessage || p.Engine == wire.PlainJSON {
			s.packet(c, p, f.Flags)
		} else if p.Engine == wire.EngineOpen {
			s.handshake(c, p)
		}
		s.turn = turn{}
	}
	c.parts[f.Direction%3] = c.parts[f.Direction%3][:0]
}

// fault says what is wrong with the bytes of a packet.
func (s *State) fault(c *connection, p *wire.Packet) {
	if p.Fault == wire.OtherVersion {
		if !c.oldSpeak {
			c.oldSpeak = true
			s.step.Findings = protocol.Packet(p, s.step.Findings)
		}
		return
	}
	s.bytesOf(c, func(out []protocol.Finding) []protocol.Finding { return protocol.Packet(p, out) })
}

// bytesOf adds findings about a connection's bytes, or holds them back until it
// is known that the connection speaks this protocol.
func (s *State) bytesOf(c *connection, judge func([]protocol.Finding) []protocol.Finding) {
	if c.judged {
		s.step.Findings = judge(s.step.Findings)
	} else if len(c.held) < maxHeld {
		c.held = judge(c.held)
	}
}

// handshake reads the Engine.IO handshake.
func (s *State) handshake(c *connection, p *wire.Packet) {
	if p.Direction != capture.FromGateway || len(p.Raw) < 2 {
		return
	}
	var h struct {
		MaxPayload int64 `json:"maxPayload"`
	}
	if json.Unmarshal(p.Raw[1:], &h) == nil {
		c.maxPayload = h.MaxPayload
	}
	c.keep(p.Last)
}

// keep remembers a frame that all runs of the connection need.
func (c *connection) keep(at capture.Position) {
	if n := len(c.preamble); n < maxPreamble && (n == 0 || c.preamble[n-1] != at) {
		c.preamble = append(c.preamble, at)
	}
}

// packet takes a Socket.IO packet or a plain message.
func (s *State) packet(c *connection, p *wire.Packet, flags capture.Flags) {
	k := s.socketOf(c, p.Namespace)
	if k == nil {
		return
	}
	switch p.Type {
	case wire.Connect:
		s.connect(k, p)
	case wire.Disconnect:
		if !c.partial || k.connected > 0 {
			s.left(k, p.Last)
			delete(c.sockets, k.namespace)
			c.latest = nil
			if p.Direction == capture.FromClient {
				s.part(c, k)
			}
		}
	case wire.Event, wire.BinaryEvent:
		name := protocol.Name(p.Name)
		if !k.judged {
			if !name.Known() {
				return
			}
			s.expose(k)
		}
		s.message(k, p, name, capture.Address{}, flags)
	case wire.Ack, wire.BinaryAck:
		if !k.judged {
			return
		}
		name := protocol.Name(p.Asked)
		if p.Answers.IsZero() || !name.Known() {
			s.strayAck(k, p, flags)
			return
		}
		s.message(k, p, name, p.Answers, flags)
	}
}

// part puts in place of a socket that the client left one for what was under way
// to it. A new CONNECT takes its place in turn.
func (s *State) part(c *connection, k *socket) {
	late := newSocket(c, k.namespace)
	late.judged, late.parting = k.judged, true
	c.sockets[k.namespace] = late
}

// connect takes a CONNECT, of either side.
func (s *State) connect(k *socket, p *wire.Packet) {
	var body struct {
		SID string `json:"sid"`
		PID string `json:"pid"`
	}
	var payload []byte
	if len(p.Args) > 0 {
		payload = p.Args[0]
		_ = json.Unmarshal(payload, &body) // an auth payload of any other shape has neither
	}
	if p.Direction == capture.FromClient {
		if k.connected > 0 {
			s.left(k, p.Last)
		}
		*k = *newSocket(k.conn, k.namespace)
		k.asking = true
		if len(bytes.TrimSpace(payload)) > 0 {
			k.auth = s.hashJSON(payload)
		}
		if k.askedPID = body.PID; k.askedPID != "" {
			k.recovering = s.pids[body.PID]
		}
		k.conn.keep(p.Last)
		return
	}
	k.conn.keep(p.Last)
	if old := k.recovering; old != nil && body.SID != "" && old.sid == body.SID {
		k.recover(old)
	}
	k.recovering = nil
	k.recovered = k.recovered || k.askedPID != "" && k.askedPID == body.PID // of a socket that was not seen
	k.sid, k.pid = body.SID, body.PID
	k.connectAt, k.connected = p.Address, s.now
	if k.pid != "" {
		if len(s.pids) >= maxPids {
			clear(s.pids)
		}
		s.pids[k.pid] = k
	}
	if k.asking {
		s.awaitHello(k)
	}
}

// recover takes over from the socket that connection state recovery brought
// back: the gateway has kept its rooms, and sends what was missed.
func (k *socket) recover(old *socket) {
	if k.recovered {
		return
	}
	k.recovered, k.judged = true, k.judged || old.judged
	k.rooms, k.cursors, k.hello = old.rooms, old.cursors, old.hello
	k.hello.awaited = false
	for r := range k.cursors {
		if old.gone {
			r.watchers++
		}
	}
	old.rooms, old.cursors, old.latest, old.latestCur = map[string]*room{}, map[*run]*cursor{}, nil, nil
}

// message judges a message by itself, and then in its place. Answers is what it
// answers, zero if it is no answer.
func (s *State) message(k *socket, p *wire.Packet, name protocol.Name, answers capture.Address, flags capture.Flags) {
	i := len(s.step.Messages)
	s.step.Messages = append(s.step.Messages, protocol.Message{})
	m := &s.step.Messages[i]
	m.Address, m.Last, m.At = p.Address, p.Last, p.At
	m.Connection, m.Namespace, m.Direction = p.Connection, p.Namespace, p.Direction
	m.Name, m.Answer, m.Answers = name, !answers.IsZero(), answers
	m.AckID, m.Offset = p.ID, p.Offset
	if len(p.Args) > 0 {
		m.Payload, m.Extra = p.Args[0], p.Args[1:]
	}
	if k.hello.readable {
		m.GatewayMinor = k.hello.announced.Minor
	}
	if m.Name == protocol.RunEvent && !m.Answer {
		m.Envelope = s.envelope(i)
	}
	t := &s.turn
	*t = turn{m: m, socket: k, flags: flags}
	before := len(s.step.Findings)
	if !flags.Has(capture.Injected) {
		s.step.Findings = s.validator.ValidateLike(t.m, s.like, s.step.Findings)
	}
	s.step.Findings = append(s.step.Findings[:before], forgive(s.step.Findings[before:], t.m.Envelope)...)
	after := len(s.step.Findings)
	s.dispatch(k, t.m)
	if after > before {
		s.place(s.step.Findings[before:after])
	}
}

// envelope returns the i-th envelope of the frame to read into.
func (s *State) envelope(i int) *protocol.Envelope {
	for len(s.envelopes) <= i {
		s.envelopes = append(s.envelopes, new(protocol.Envelope))
	}
	return s.envelopes[i]
}

// dispatch takes a message in its place.
func (s *State) dispatch(k *socket, m *protocol.Message) {
	switch {
	case m.Answer:
		s.answered(k, m)
	case m.Name.IsCommand():
		if m.Direction == capture.FromClient {
			s.command(k, m)
		}
	case m.Direction != capture.FromGateway:
	case m.Name == protocol.RunEvent:
		s.delivered(k, m)
	case m.Name == protocol.Hello:
		s.hello(k, m)
	case m.Name == protocol.ProtocolError:
		s.refused(k, m)
	case m.Name == protocol.TaskStatus:
		s.taskStatus(k, m)
	}
}

// place completes and counts the findings of the validator, which knows one
// message only: whose run and thread it is, and what it rests on.
func (s *State) place(findings []protocol.Finding) {
	t := &s.turn
	for i := range findings {
		f := &findings[i]
		if f.Thread == "" {
			f.Thread = t.thread
		}
		if f.Run == "" && t.run != nil {
			f.Run = t.run.ID
		}
		if f.Sequence == 0 {
			f.Sequence = t.seq
		}
		if f.Rule == "run-start-not-first" && t.run != nil && f.Other.IsZero() && t.run.startAt != f.At {
			f.Other = t.run.startAt
		}
		s.count(f)
	}
}
