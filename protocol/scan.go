package protocol

import "unicode/utf8"

// scanner reads JSON in one pass and without allocating. It is content only
// with JSON about which there is nothing to say; what it refuses is looked at
// again, slowly, by judge.syntax, which says why. The two are held equal by a
// fuzz target.
type scanner struct {
	b []byte
	i int
	// names are the names in the objects that are open, as indices into b.
	names []span
	// places are where the values with a slot stand.
	places []place
	// escaped is set if the string that was read last has an escape.
	escaped bool
}

type span struct{ from, to int }

// place is where the value of a slot stands.
type place struct {
	slot slot
	span
}

// How far the scanner goes before it leaves the rest to the slow way.
const (
	scanDepth = 200 // levels
	scanNames = 64  // members of one object
)

// layer says what an object is to the scanner.
type layer uint8

const (
	inOther layer = iota
	inEnvelope
	inEvent
)

// envelope reads an envelope's payload into p.
func (s *scanner) envelope(payload []byte, p *parts) bool {
	*p = parts{}
	ok := s.scan(payload, inEnvelope)
	for _, at := range s.places {
		p.put(at.slot, payload[at.from:at.to:at.to])
	}
	p.shape = shapeOf(p.typ)
	return ok
}

// clean reports whether there is nothing to say about payload as JSON.
func (s *scanner) clean(payload []byte) bool { return s.scan(payload, inOther) }

func (s *scanner) scan(payload []byte, in layer) bool {
	s.b, s.i, s.names, s.places = payload, 0, s.names[:0], s.places[:0]
	s.space()
	ok := s.value(0, in)
	s.space()
	ok = ok && s.i == len(s.b)
	s.b = nil
	return ok
}

func (s *scanner) value(depth int, in layer) bool {
	if s.i == len(s.b) || depth > scanDepth {
		return false
	}
	switch c := s.b[s.i]; c {
	case '"':
		return s.text()
	case '{':
		return s.object(depth, in)
	case '[':
		return s.array(depth)
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	default:
		return s.number()
	}
}

// object reads an object, and notes the places of its members that have a slot
// there.
func (s *scanner) object(depth int, in layer) bool {
	first := len(s.names)
	s.i++
	if s.space(); s.next('}') {
		return true
	}
	for {
		name, ok := s.name(first)
		if !ok {
			return false
		}
		start, slot, below := s.i, noSlot, inOther
		switch in {
		case inEnvelope:
			if slot = routeOf(name); slot == slotEvent {
				below = inEvent
			}
		case inEvent:
			slot = slotOf(name)
		}
		if !s.value(depth+1, below) {
			return false
		}
		if slot != noSlot {
			s.places = append(s.places, place{slot, span{start, s.i}})
		}
		if s.space(); s.next('}') {
			s.names = s.names[:first]
			return true
		}
		if !s.next(',') {
			return false
		}
		s.space()
	}
}

// name reads a member's name and the colon behind it. It refuses one that the
// object has already, of which the names begin at index first, and one that is
// escaped and may be.
func (s *scanner) name(first int) (name []byte, ok bool) {
	start := s.i + 1
	if s.i == len(s.b) || s.b[s.i] != '"' || !s.text() {
		return nil, false
	}
	end := s.i - 1
	name = s.b[start:end]
	if s.escaped || len(s.names)-first >= scanNames {
		return nil, false
	}
	for _, n := range s.names[first:] {
		if string(s.b[n.from:n.to]) == string(name) {
			return nil, false
		}
	}
	s.names = append(s.names, span{start, end})
	s.space()
	ok = s.next(':')
	s.space()
	return name, ok
}

func (s *scanner) array(depth int) bool {
	s.i++
	if s.space(); s.next(']') {
		return true
	}
	for {
		if !s.value(depth+1, inOther) {
			return false
		}
		if s.space(); s.next(']') {
			return true
		}
		if !s.next(',') {
			return false
		}
		s.space()
	}
}

// scalar steps over the string or the number at i.
func (s *scanner) scalar(b []byte, i int) (end int, ok bool) {
	s.b, s.i = b, i
	if i < len(b) && b[i] == '"' {
		ok = s.text()
	} else {
		ok = s.number()
	}
	s.b = nil
	return s.i, ok
}

// plain are the bytes that stand in a string for themselves.
var plain = func() (t [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

func (s *scanner) text() bool {
	b, i, ascii := s.b, s.i+1, true
	start := i
	s.escaped = false
	for i < len(b) {
		switch c := b[i]; {
		case plain[c]:
			i++
		case c == '"':
			s.i = i + 1
			return ascii || utf8.Valid(b[start:i])
		case c == '\\':
			n := escape(b[i:])
			if n == 0 {
				return false
			}
			s.escaped = true
			i += n
		case c >= utf8.RuneSelf:
			ascii = false
			i++
		default:
			return false
		}
	}
	return false
}

// escape returns the length of the escape that b begins with: 12 for a
// surrogate pair, 0 for what is no escape or half a pair.
func escape(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	}
	unit, ok := codeUnit(b)
	switch {
	case !ok, isLow(unit):
		return 0
	case !isHigh(unit):
		return 6
	}
	if low, ok := codeUnit(b[6:]); ok && isLow(low) {
		return 12
	}
	return 0
}

// codeUnit reads \uXXXX.
func codeUnit(b []byte) (unit uint16, ok bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	for _, c := range b[2:6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		unit = unit<<4 | uint16(c)
	}
	return unit, true
}

func isHigh(unit uint16) bool { return unit>>10 == 0xd800>>10 }
func isLow(unit uint16) bool  { return unit>>10 == 0xdc00>>10 }

// number reads a number that JavaScript surely keeps as it is: no integer
// beyond 2^53, and no exponent that could carry it out of range.
func (s *scanner) number() bool {
	s.next('-')
	start := s.i
	if !s.next('0') && s.digits() == 0 {
		return false
	}
	whole := s.b[start:s.i]
	if s.next('.') && s.digits() == 0 {
		return false
	}
	if s.i < len(s.b) && s.b[s.i]|0x20 == 'e' {
		s.i++
		if !s.next('+') {
			s.next('-')
		}
		if n := s.digits(); n == 0 || n > 2 || len(whole) > 100 {
			return false
		}
		return true
	}
	const largest = "9007199254740992"
	return len(whole) < len(largest) || len(whole) == len(largest) && string(whole) <= largest
}

func (s *scanner) digits() int {
	start := s.i
	for s.i < len(s.b) && '0' <= s.b[s.i] && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i - start
}

func (s *scanner) word(w string) bool {
	if len(s.b)-s.i < len(w) || string(s.b[s.i:s.i+len(w)]) != w {
		return false
	}
	s.i += len(w)
	return true
}

// next steps over c if it stands here.
func (s *scanner) next(c byte) bool {
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

func (s *scanner) space() {
	s.i = skipSpace(s.b, s.i)
}
