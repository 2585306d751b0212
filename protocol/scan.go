package protocol

import "tapedeck/protocol/wire"

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

func (s *scanner) text() (ok bool) {
	s.i, s.escaped, ok = wire.SkipString(s.b, s.i)
	return ok
}

func (s *scanner) number() (ok bool) {
	s.i, ok = wire.SkipNumber(s.b, s.i)
	return ok
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
