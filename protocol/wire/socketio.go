package wire

import (
	"bytes"
	"fmt"
	"slices"
)

// maxExact is the integer from which on a JavaScript peer rounds, 2^53.
const maxExact = "9007199254740992"

// reserved are the event names that socket.io keeps for itself and refuses.
var reserved = [...]string{"connect", "connect_error", "disconnect", "disconnecting", "newListener", "removeListener"}

// head is what stands before a Socket.IO packet's payload:
// <type>[<attachments>-][<namespace>,][<id>].
type head struct {
	typ         Type
	attachments []byte // its digits
	namespace   []byte
	id          []byte
	payload     int // where it begins
}

// parseHead reads the head of a packet that begins with Engine.IO's 4. Why says
// what cannot be read at the byte bad.
func parseHead(raw []byte) (h head, why string, bad int) {
	if len(raw) < 2 {
		return h, "an empty Socket.IO packet", -1
	}
	h.typ = Type(raw[1] - '0')
	if h.typ > BinaryAck {
		return h, fmt.Sprintf("not a Socket.IO packet: its type is %q and not 0 to 6", firstRune(raw[1:])), 1
	}
	i := 2
	if h.typ >= BinaryEvent {
		end := digitsEnd(raw, i)
		if end == i || end == len(raw) || raw[end] != '-' {
			return h, "a binary packet that does not say how many attachments it has", min(end, len(raw)-1)
		}
		h.attachments, i = raw[i:end], end+1
	}
	if i < len(raw) && raw[i] == '/' {
		end := len(raw)
		if comma := bytes.IndexByte(raw[i:], ','); comma >= 0 {
			end = i + comma
		}
		h.namespace, i = raw[i:end], min(end+1, len(raw))
	}
	end := digitsEnd(raw, i)
	h.id, h.payload = raw[i:end], end
	return h, "", -1
}

func digitsEnd(b []byte, i int) int {
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		i++
	}
	return i
}

// rounds reports whether a JavaScript peer would round the number of these digits.
func rounds(digits []byte) bool {
	digits = bytes.TrimLeft(digits, "0")
	return len(digits) > len(maxExact) || len(digits) == len(maxExact) && string(digits) > maxExact
}

// socketIO reads a Socket.IO packet, in the n-th Engine.IO packet of its frame.
func (d *Decoder) socketIO(raw []byte, n int) {
	d.interrupt()
	h, why, bad := parseHead(raw)
	if h.typ >= BinaryEvent && why == "" {
		// What waits for later frames must not point into this one.
		raw = bytes.Clone(raw)
		h, _, _ = parseHead(raw)
	}
	p := d.packet(raw, n, EngineMessage)
	if why != "" {
		fault := Malformed
		if h.typ >= BinaryEvent && h.typ <= BinaryAck {
			fault = BadBinary
		}
		p.refuse(fault, why, bad)
		return
	}
	p.Type, p.Namespace = h.typ, "/"
	if len(h.namespace) > 0 {
		p.Namespace = d.intern(h.namespace)
	}
	if len(h.id) > 0 {
		p.ID = string(h.id)
		if rounds(h.id) {
			p.blame(BadBinary, fmt.Sprintf("the acknowledgement id %s is beyond 2^53: its peer answers another one", shorten(h.id)), h.payload-len(h.id))
		}
	}
	d.payload(p, h.payload)
	if h.typ >= BinaryEvent {
		d.await(p, h.attachments)
		return
	}
	if p.Engine == EngineMessage {
		d.done(p)
		d.remember(p, h.payload)
	}
}

// payload reads what follows the head, from byte at on.
func (d *Decoder) payload(p *Packet, at int) {
	if at == len(p.Raw) {
		switch p.Type {
		case Event, BinaryEvent:
			p.blame(Malformed, "an event without a name", -1)
		case Ack, BinaryAck:
			p.blame(Malformed, "an acknowledgement without its arguments", -1)
		}
		return
	}
	read := len(d.args)
	if !d.split(p, at) {
		reason, offending := d.json.complaint()
		p.refuse(BadEncoding, reason, offending)
		if (p.Type == Event || p.Type == BinaryEvent) && len(d.args) > read && d.args[read][0] == '"' {
			p.NameRaw, p.Name = d.args[read], d.name(d.args[read])
		}
		return
	}
	first := p.Raw[at]
	switch p.Type {
	case Event, BinaryEvent:
		if first != '[' {
			p.refuse(Malformed, "not a Socket.IO event: its payload is no array", at)
			return
		}
		d.event(p, at)
	case Ack, BinaryAck:
		if first != '[' {
			p.refuse(Malformed, "not a Socket.IO acknowledgement: its payload is no array", at)
		} else if p.ID == "" {
			p.blame(Malformed, "an acknowledgement without an id", at)
		}
	case Connect:
		if first != '{' {
			p.refuse(Malformed, "not a Socket.IO CONNECT: its payload is no object", at)
		}
	case ConnectError:
		if first != '{' && first != '"' {
			p.refuse(Malformed, "not a Socket.IO CONNECT_ERROR: its payload is neither an object nor a string", at)
		}
	case Disconnect:
		p.refuse(Malformed, "not a Socket.IO DISCONNECT: it has a payload", at)
	}
}

// split checks the JSON from byte at on, and puts it into Args: the values of an
// array for an event or an acknowledgement, else the value itself.
func (d *Decoder) split(p *Packet, at int) bool {
	s, from := &d.json, len(d.args)
	s.reset(p.Raw, at)
	list := p.Type != Connect && p.Type != ConnectError && p.Type != Disconnect && s.take('[')
	if list && s.take(']') {
		return s.atEnd()
	}
	for {
		s.space()
		start := s.i
		if !s.value() {
			return false
		}
		d.args = append(d.args, p.Raw[start:s.i:s.i])
		if !list || s.take(']') {
			break
		}
		if !s.take(',') {
			return false
		}
	}
	p.Args = d.args[from:len(d.args):len(d.args)]
	return s.atEnd()
}

// event takes the name off an event's arguments, and the offset that recovery
// has added.
func (d *Decoder) event(p *Packet, at int) {
	if len(p.Args) == 0 {
		p.refuse(Malformed, "not a Socket.IO event: it has no name", at)
		return
	}
	raw := p.Args[0]
	switch c := raw[0]; {
	case c == '"':
		p.Name = d.name(raw)
	case c == '-' || '0' <= c && c <= '9':
		p.Name = d.intern(raw)
	default:
		p.refuse(Malformed, "not a Socket.IO event: its name is neither a string nor a number", at+1)
		return
	}
	p.NameRaw, p.Args = raw, p.Args[1:]
	if slices.Contains(reserved[:], p.Name) {
		p.blame(Malformed, fmt.Sprintf("the event name %q is reserved: socket.io drops the connection", p.Name), at+1)
	}
}

// name returns what a JSON string says, kept for the next time.
func (d *Decoder) name(raw []byte) string {
	if bytes.IndexByte(raw, '\\') >= 0 {
		return unquote(raw)
	}
	return d.intern(raw[1 : len(raw)-1])
}

// done does what a packet that is whole brings about.
func (d *Decoder) done(p *Packet) {
	switch p.Type {
	case Connect:
		d.conn.connect(p, &d.json)
	case Event, BinaryEvent:
		d.conn.takeOffset(p)
	}
	d.conn.asked.pair(p)
}

// shorten cuts digits for a message.
func shorten(digits []byte) string {
	if len(digits) <= 24 {
		return string(digits)
	}
	return fmt.Sprintf("%s… (%d digits)", digits[:24], len(digits))
}
