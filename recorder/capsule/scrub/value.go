package scrub

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strconv"

	"tapedeck/protocol"
)

// value looks through a JSON value, whose place in its message is known.
func (s *Scrubber) value(from, to int, around context, at spot) {
	s.walk(from, to, context{place: at.place, group: at.group, event: around.event, role: around.role}, at, false)
}

// walk looks through a value. Forced is set below a member that was named.
func (s *Scrubber) walk(from, to int, c context, at spot, forced bool) {
	b := s.scanner.b
	forced = forced || len(s.rules.pointers) > 0 && s.rules.pointed(s.path)
	switch b[from] {
	case '{':
		s.object(from, to, c, forced)
	case '[':
		i := 0
		scanner{b[:to]}.items(from, 0, func(itemFrom, itemTo int) bool {
			s.path = append(s.path, strconv.Itoa(i))
			s.walk(itemFrom, itemTo, c, at, forced)
			s.path = s.path[:len(s.path)-1]
			i++
			return true
		})
	case '"':
		s.text(from+1, to-1, at, forced)
	case 't', 'f', 'n':
	default:
		if forced || s.rules.groups&at.group != 0 {
			s.number(from, to)
		}
	}
}

func (s *Scrubber) object(from, to int, c context, forced bool) {
	in := scanner{s.scanner.b[:to]}
	switch c.place {
	case inEnvelope:
		s.streams.enter(in, from)
	case inEvent:
		c.event = protocol.EventType(in.getText(from, "type"))
		s.streams.event(in, from, c.event)
	case inMessage:
		if role := in.getText(from, "role"); role != "" {
			c.role = role
		}
	}
	in.members(from, 0, func(raw []byte, at, end int) bool {
		name := string(raw)
		if bytes.IndexByte(raw, '\\') >= 0 {
			name = string(appendUnits(nil, units(raw)))
		}
		spot := member(c, name)
		s.path = append(s.path, name)
		s.walk(at, end, context{spot.place, spot.group, c.event, c.role}, spot, forced || s.rules.field(name))
		s.path = s.path[:len(s.path)-1]
		return true
	})
	if c.place == inEvent {
		s.streams.left(s, c.event)
	}
}

// text looks through what stands between the quotes of a string.
func (s *Scrubber) text(from, to int, at spot, forced bool) {
	raw := s.scanner.b[from:to]
	list := units(raw)
	whole := forced || s.rules.groups&at.group != 0
	var out []uint16
	switch {
	case at.how == asStream || at.how == asPieces:
		out = s.piece(list, at, whole)
	case whole && at.how == asFile:
		out = s.file(list)
	case at.how == asJSON || at.how == asValue && isJSON(list):
		if !whole && len(s.rules.fields) == 0 {
			out = s.patterns(list)
			break
		}
		l := s.masks.lexer(whole, s.rules.field)
		if out = l.units(list); !whole {
			out = s.patterns(out)
		}
	case whole:
		out = s.masks.text(list)
	default:
		out = s.patterns(list)
	}
	if !slices.Equal(out, list) {
		s.replace(from, to, appendUnits(nil, out))
	}
}

// number replaces a number by one of the same length.
func (s *Scrubber) number(from, to int) {
	l := s.masks.lexer(true, nil)
	out := make([]byte, 0, to-from)
	for _, c := range s.scanner.b[from:to] {
		out = append(out, byte(l.unit(uint16(c))))
	}
	s.replace(from, to, out)
}

// file replaces an attachment's bytes or address. Base64 stays base64, and an
// address of data keeps what says what it is.
func (s *Scrubber) file(list []uint16) []uint16 {
	head := 0
	if text := appendUnits(nil, list[:min(len(list), 256)]); bytes.HasPrefix(text, []byte("data:")) {
		if comma := slices.Index(list, ','); comma >= 0 {
			head = comma + 1
		}
	}
	text := appendUnits(nil, list[head:])
	data := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	if n, err := base64.StdEncoding.Decode(data, text); err == nil && n > 0 {
		return append(slices.Clone(list[:head]), ofText(base64.StdEncoding.EncodeToString(s.masks.bytes(data[:n])))...)
	}
	return append(slices.Clone(list[:head]), s.masks.text(list[head:])...)
}
