package scrub

import (
	"bytes"
	"encoding/base64"
	"unicode/utf16"
	"unicode/utf8"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

// separator stands between the packets of a polling body.
const separator = 0x1e

func (s *Scrubber) polling(data []byte) {
	for at := 0; at <= len(data); {
		end := len(data)
		if i := bytes.IndexByte(data[at:], separator); i >= 0 {
			end = at + i
		}
		s.packet(at, end)
		at = end + 1
	}
}

// packet looks through an Engine.IO packet, or a plain message.
func (s *Scrubber) packet(from, to int) {
	b := s.scanner.b[from:to]
	if len(b) == 0 {
		return
	}
	switch {
	case b[0] == '4' && len(b) > 1 && b[1] >= '0' && b[1] <= '6':
		s.message(b[1], from+headEnd(b), to)
	case b[0] == 'b' && from+1 < to:
		s.base64(from+1, to)
	case b[0] == '0' && s.frame.Direction == capture.FromGateway, len(b) <= len("2probe"):
		// The handshake, pings, probes.
	case b[0] == '{' && bytes.HasPrefix(b, []byte(`{"code":`)) && s.frame.Kind == capture.Polling:
	case b[0] == '{':
		s.plain(from, to)
	default:
		s.opaque(from, to, others)
	}
}

// headEnd returns where the payload of a Socket.IO packet begins.
func headEnd(b []byte) int {
	at := 2
	digits := func() {
		for at < len(b) && '0' <= b[at] && b[at] <= '9' {
			at++
		}
	}
	if b[1] == '5' || b[1] == '6' {
		if digits(); at < len(b) && b[at] == '-' {
			at++
		}
	}
	if at < len(b) && b[at] == '/' {
		i := bytes.IndexByte(b[at:], ',')
		if i < 0 {
			return len(b)
		}
		at += i + 1
	}
	digits()
	return at
}

// message looks through the payload of a Socket.IO packet.
func (s *Scrubber) message(typ byte, from, to int) {
	if from >= to {
		return
	}
	in := scanner{s.scanner.b[:to]}
	if _, ok := in.value(from, 0); !ok {
		s.opaque(from, to, others)
		return
	}
	switch typ {
	case '2', '5':
		s.event(in, from)
	case '3', '6':
		s.each(in, from, func(i, at, end int) { s.value(at, end, context{place: inPayload}, spot{others, inHistory, asValue}) })
	case '4':
		s.value(from, to, context{place: inPayload}, spot{failures, free, asText})
	}
}

// each visits the arguments in an array.
func (s *Scrubber) each(in scanner, at int, visit func(i, at, end int)) {
	if in.b[at] != '[' {
		return
	}
	i := 0
	in.items(at, 0, func(from, to int) bool {
		visit(i, from, to)
		i++
		return true
	})
}

func (s *Scrubber) event(in scanner, at int) {
	var name protocol.Name
	s.each(in, at, func(i, from, to int) {
		if i == 0 {
			if to-from > 2 && in.b[from] == '"' {
				name = protocol.Name(appendUnits(nil, units(in.b[from+1:to-1])))
			}
			return
		}
		to2, group := payloadOf(name)
		if i > 1 && in.b[from] == '"' && to-from < 68 {
			return // an offset of connection state recovery
		}
		s.value(from, to, context{place: inPayload}, spot{group, to2, asValue})
	})
}

// plain looks through a message of the plain form.
func (s *Scrubber) plain(from, to int) {
	in := scanner{s.scanner.b[:to]}
	if _, ok := in.value(from, 0); !ok {
		s.opaque(from, to, others)
		return
	}
	where, group := payloadOf(protocol.Name(in.getText(from, "event")))
	if in.get(from, "event") == nil {
		where, group = inHistory, others
		if in.get(from, "ack") == nil {
			s.value(from, to, context{place: inPayload}, spot{others, free, asValue})
			return
		}
	}
	in.members(from, 0, func(name []byte, at, end int) bool {
		switch string(name) {
		case "data":
			s.value(at, end, context{place: inPayload}, spot{group, where, asValue})
		case "event", "id", "ack":
		default:
			s.value(at, end, context{place: inPayload}, spot{others, free, asValue})
		}
		return true
	})
}

// opaque looks through what cannot be read. If anything is taken out by where it
// stands, all of it is: nobody knows what stands where.
func (s *Scrubber) opaque(from, to int, g group) {
	if !s.rules.values() || s.rules.groups&g == 0 && g == attachments {
		s.patternsIn(from, to)
		return
	}
	l := s.masks.lexer(true, nil)
	var out []byte
	for b := s.scanner.b[from:to]; len(b) > 0; {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			out = append(out, b[0])
		} else {
			var pair [2]uint16
			list := utf16.AppendRune(pair[:0], r)
			for i, u := range list {
				list[i] = l.unit(u)
			}
			out = append(out, string(utf16.Decode(list))...)
		}
		b = b[n:]
	}
	s.replace(from, to, out)
}

// binary looks through a binary message. What tells a packet of the msgpack
// parser stays.
func (s *Scrubber) binary(data []byte) {
	s.scanner = scanner{data}
	s.replace(0, len(data), s.binaries(data))
}

func (s *Scrubber) binaries(data []byte) []byte {
	if s.rules.groups&attachments == 0 {
		return s.patternBytes(data)
	}
	out := s.masks.bytes(data)
	if len(data) >= 2 && data[0] >= 0x81 && data[0] <= 0x8f && data[1]&0xe0 == 0xa0 {
		out[0], out[1] = data[0], data[1]
	}
	return out
}

// base64 looks through a binary message in its text form.
func (s *Scrubber) base64(from, to int) {
	encoding, text := base64.StdEncoding, s.scanner.b[from:to]
	if len(text)%4 != 0 {
		encoding = base64.RawStdEncoding
	}
	data := make([]byte, encoding.DecodedLen(len(text)))
	n, err := encoding.Decode(data, text)
	if err != nil {
		s.opaque(from, to, others)
		return
	}
	s.replace(from, to, encoding.AppendEncode(nil, s.binaries(data[:n])))
}
