package wire

import "bytes"

// keptEvents is how many events of one direction of a connection are remembered,
// to read others by: the kinds that a stream is made of.
const keptEvents = 4

// repeats are events that were read before. Most that come are like one of them.
type repeats struct {
	events [keptEvents]repeat
	latest int
}

// repeat is an event without a question, with one object as its argument, and
// spelled as encoders do: 42["run:event",{…}].
type repeat struct {
	Pattern                // of the object
	prefix          []byte // what stands before it
	namespace, name string // which that says
	nameRaw         span
}

// Like says how the i-th packet that Decode returned last is like one before it.
// It is valid until the next call of Decode. A packet that is like none may be
// the first of its kind: then its own argument is what others will be like.
func (d *Decoder) Like(i int) Like {
	if i < len(d.likes) {
		return d.likes[i]
	}
	return Like{}
}

// like takes note how the last packet is like one before.
func (d *Decoder) like(l Like) {
	for len(d.likes) < len(d.packets)-1 {
		d.likes = append(d.likes, Like{})
	}
	d.likes = append(d.likes, l)
}

// repeated adds the n-th packet of the frame if it is like one that was read before.
func (d *Decoder) repeated(raw []byte, n int) bool {
	l := d.half.repeats
	if l == nil || raw[len(raw)-1] != ']' {
		return false
	}
	for range l.events {
		r := &l.events[l.latest]
		if at := len(r.prefix); at < len(raw) && bytes.HasPrefix(raw, r.prefix) {
			end := len(raw) - 1
			if like, ok := r.Match(raw[at:end], d.changes); ok {
				d.changes = append(d.changes, like.Changes...)
				d.interrupt()
				p := d.packet(raw, n, EngineMessage)
				p.Type, p.Namespace, p.Name = Event, r.namespace, r.name
				p.NameRaw = raw[r.nameRaw.from:r.nameRaw.to:r.nameRaw.to]
				d.args = append(d.args, raw[at:end:end])
				p.Args = d.args[len(d.args)-1 : len(d.args) : len(d.args)]
				d.like(like)
				return true
			}
		}
		l.latest = (l.latest + 1) % keptEvents
	}
	return false
}

// remember takes p, whose payload begins at byte at, in place of the event that
// was used least lately.
func (d *Decoder) remember(p *Packet, at int) {
	if p.Engine != EngineMessage || p.Type != Event || p.ID != "" || p.Reason != "" || len(p.Args) != 1 {
		return
	}
	name := span{at + 1, at + 1 + len(p.NameRaw)}
	if len(p.Raw) != name.to+len(",]")+len(p.Args[0]) || p.Args[0][0] != '{' || len(p.Args[0]) > maxPattern {
		return // it has spaces, an offset of recovery, or is too long
	}
	if d.half.repeats == nil {
		d.half.repeats = &repeats{}
	}
	l := d.half.repeats
	l.latest = (l.latest + keptEvents - 1) % keptEvents
	r := &l.events[l.latest]
	r.prefix = append(r.prefix[:0], p.Raw[:name.to+1]...)
	r.namespace, r.name, r.nameRaw = p.Namespace, p.Name, name
	d.like(r.Learn(p.Args[0]))
}
