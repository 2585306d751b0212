package wire

import (
	"fmt"
	"unicode/utf8"

	"tapedeck/protocol/capture"
)

// plain reads a message of a WebSocket that is not Socket.IO: the plain form if
// it is that, else another application's, which is nobody's fault.
func (d *Decoder) plain() {
	f := d.frame
	switch {
	case f.Kind != capture.Text:
		d.opaque(f.Data, 1, NoFault, "a binary message, which the plain form does not have", -1)
		return
	case f.Flags.Has(capture.Cut) || f.Flags.Has(capture.Partial):
		d.torn(f.Data, 1)
		return
	}
	fault := NoFault // of what is no message: it is one only where messages were seen
	if d.conn.plain {
		fault = BadEncoding
	}
	if !utf8.Valid(f.Data) {
		i := invalidUTF8(f.Data)
		d.opaque(f.Data, 1, fault, fmt.Sprintf("not UTF-8 at byte %d: 0x%02x", i, f.Data[i]), i)
		return
	}
	s := &d.json
	s.reset(f.Data, 0)
	m, ok := readPlain(s)
	if !ok {
		if m.event != nil || m.ack != nil {
			fault = BadEncoding
		}
		reason, offending := s.complaint()
		d.opaque(f.Data, 1, fault, reason, offending)
		return
	}
	p := d.packet(f.Data, 1, PlainJSON)
	id := m.id
	switch {
	case m.event != nil && m.event[0] == '"':
		p.Type, p.NameRaw, p.Name = Event, m.event, d.name(m.event)
	case m.event == nil && m.ack != nil:
		p.Type, id = Ack, m.ack
	default:
		p.refuse(NoFault, `another application's message: it has neither an "event" that is a string nor an "ack"`, -1)
		return
	}
	d.conn.plain = true
	if m.data != nil {
		d.args = append(d.args, m.data)
		p.Args = d.args[len(d.args)-1:]
	}
	p.setPlainID(id)
	d.conn.asked.pair(p)
}

// plainMessage is the JSON of the members that the plain form has, nil for those
// that are not there. Of two members of one name the last counts.
type plainMessage struct{ event, data, id, ack []byte }

// readPlain reads one JSON text. Of one that is no object it finds no members.
func readPlain(s *splitter) (m plainMessage, ok bool) {
	s.space()
	if s.peek() != '{' {
		return m, s.value() && s.atEnd()
	}
	ok = s.members(func(name, value []byte) {
		switch string(name) {
		case `"event"`:
			m.event = value
		case `"data"`:
			m.data = value
		case `"id"`:
			m.id = value
		case `"ack"`:
			m.ack = value
		}
	})
	return m, ok && s.atEnd()
}

// setPlainID sets the acknowledgement id from its JSON: a number's digits, or
// what a string says.
func (p *Packet) setPlainID(raw []byte) {
	switch {
	case raw == nil || raw[0] == 'n':
		if p.Type == Ack {
			p.blame(Malformed, "an acknowledgement without an id", -1)
		}
	case raw[0] == '"':
		p.ID = unquote(raw)
	case raw[0] == '-' || '0' <= raw[0] && raw[0] <= '9':
		p.ID = string(raw)
		if digitsEnd(raw, 0) == len(raw) && rounds(raw) {
			p.blame(BadBinary, fmt.Sprintf("the acknowledgement id %s is beyond 2^53: its peer answers another one", shorten(raw)), -1)
		}
	default:
		p.blame(Malformed, "the acknowledgement id is neither a number nor a string", -1)
	}
}
