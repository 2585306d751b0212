package protocol

import "tapedeck/protocol/wire"

// keptEnvelopes is how many envelopes are remembered, to read others by: the
// kinds that a few streams at once are made of.
const keptEnvelopes = 4

// repeats are envelopes that were read before. Most that come are like one of
// them.
type repeats struct {
	envelopes [keptEnvelopes]repeat
	latest    int
}

// repeat is an envelope about whose JSON there was nothing to say.
type repeat struct {
	wire.Pattern
	places []place
	typ    string // its type's JSON, which one like it may not share, and its shape
	shape  *eventShape
}

// read reads payload into p if it is like an envelope that was read before.
func (l *repeats) read(payload []byte, p *parts, s *scanner) bool {
	for range l.envelopes {
		if r := &l.envelopes[l.latest]; r.Match(payload, s.scalar) {
			*p = parts{}
			for _, at := range r.places {
				from, to := r.At(at.from), r.At(at.to)
				p.put(at.slot, payload[from:to:to])
			}
			if p.shape = r.shape; string(p.typ) != r.typ {
				p.shape = shapeOf(p.typ)
			}
			return true
		}
		l.latest = (l.latest + 1) % keptEnvelopes
	}
	return false
}

// remember takes an envelope, which was read into p, in place of the one that was
// used least lately.
func (l *repeats) remember(payload []byte, p *parts, places []place) {
	l.latest = (l.latest + keptEnvelopes - 1) % keptEnvelopes
	r := &l.envelopes[l.latest]
	r.Learn(payload, 0)
	r.places = append(r.places[:0], places...)
	r.typ, r.shape = string(p.typ), p.shape
}
