package protocol

import (
	"slices"

	"tapedeck/protocol/wire"
)

// keptEnvelopes is how many envelopes are remembered of those that come without
// word of what they are like: the kinds that a stream is made of.
const keptEnvelopes = 4

// repeats are envelopes that were read before. Most that come are like one of
// them.
type repeats struct {
	envelopes [keptEnvelopes]wire.Pattern
	changes   []wire.Change
	latest    int
}

// like returns what payload is like among those read before.
func (l *repeats) like(payload []byte) wire.Like {
	for range l.envelopes {
		if like, ok := l.envelopes[l.latest].Match(payload, l.changes[:0]); ok {
			l.changes = like.Changes
			return like
		}
		l.latest = (l.latest + 1) % keptEnvelopes
	}
	return wire.Like{}
}

// learn takes an envelope in place of the one that was used least lately.
func (l *repeats) learn(payload []byte) wire.Like {
	l.latest = (l.latest + keptEnvelopes - 1) % keptEnvelopes
	return l.envelopes[l.latest].Learn(payload)
}

// note is what a Validator remembers of an envelope about whose JSON there was
// nothing to say, to read others by.
type note struct {
	by     *Validator
	places []place
	typ    string // its type's JSON, which one like it may not share, and its shape
	shape  *eventShape

	// fine is set if there was nothing to find in it and nothing but strings and
	// numbers to keep: then envelope is what it said, and slots are those of the
	// pattern's values, noSlot where nobody looks at what a value says.
	fine     bool
	envelope Envelope
	slots    []slot
	event    span
}

// noteOf returns what v remembers of the envelope that one is like, nil if
// nothing.
func (v *Validator) noteOf(like *wire.Like) *note {
	if !like.Holds() {
		return nil
	}
	if n, ok := like.Pattern.Note.(*note); ok && n.by == v {
		return n
	}
	return nil
}

// read reads an envelope into p that is like n's.
func (n *note) read(payload []byte, like *wire.Like, p *parts) {
	*p = parts{}
	for _, at := range n.places {
		from, to := like.At(at.from), like.At(at.to)
		p.put(at.slot, payload[from:to:to])
	}
	if p.shape = n.shape; string(p.typ) != n.typ {
		p.shape = shapeOf(p.typ)
	}
}

// remember notes what was read of the envelope that was scanned last, and whether
// it was found fine.
func (v *Validator) remember(like *wire.Like, e *Envelope, fine bool) {
	p, places := &v.parts, v.scanner.places
	n := &note{by: v, places: slices.Clone(places), typ: string(p.typ), shape: p.shape}
	like.Pattern.Note = n
	if n.fine = fine && v.schemas == nil && p.shape != nil && p.shape.typ != RunStarted && e.Event.Body == nil; !n.fine {
		return
	}
	n.envelope = *e
	n.envelope.Event.Raw = nil
	n.slots = make([]slot, like.Pattern.Values())
	for i := range n.slots {
		from, to := like.Pattern.Value(i)
		for _, at := range places {
			if at.span == (span{from, to}) && (at.slot >= slotThreadID || p.shape.has(at.slot)) {
				n.slots[i] = at.slot
			}
		}
	}
	at := slices.IndexFunc(places, func(at place) bool { return at.slot == slotEvent })
	n.event = places[at].span
}

// again gives e what an envelope says that is like n's, if that takes no other
// look than at what changed. There is nothing to find in it.
func (v *Validator) again(n *note, like *wire.Like, payload []byte, e *Envelope) bool {
	if !n.fine {
		return false
	}
	*e = n.envelope
	for _, c := range like.Changes {
		value := payload[c.From:c.To:c.To]
		switch s := n.slots[c.Value]; s {
		case noSlot, slotTimestamp:
		case slotSequence:
			sequence, ok := integerOf(value)
			if !ok || sequence <= 1 {
				return false
			}
			e.Sequence = sequence
		case slotDelta:
			if len(value) == len(`""`) || v.cutAtBorder(value) {
				return false
			}
			e.Event.Delta = v.keep.text(value)
		case slotMessageID, slotToolCallID:
			v.keep.set(&e.Event, s, value)
		default:
			return false
		}
	}
	from, to := like.At(n.event.from), like.At(n.event.to)
	e.Event.Raw = payload[from:to:to]
	return true
}
