package wire

import "unicode/utf8"

// keptEvents is how many events are remembered, to read others by: the kinds
// that a few streams at once are made of.
const keptEvents = 4

// repeats are events that were read before. Most that come are like one of them.
type repeats struct {
	events [keptEvents]repeat
	latest int
}

// repeat is an event without a question, with one object as its argument, and
// spelled as encoders do: 42["run:event",{…}].
type repeat struct {
	Pattern
	namespace, name string
	nameRaw         span
}

// repeated adds the n-th packet of the frame if it is like one that was read before.
func (d *Decoder) repeated(raw []byte, n int) bool {
	l := &d.repeats
	for range l.events {
		if r := &l.events[l.latest]; r.Match(raw, skipScalar) {
			d.interrupt()
			p := d.packet(raw, n, EngineMessage)
			p.Type, p.Namespace, p.Name = Event, r.namespace, r.name
			p.NameRaw = raw[r.nameRaw.from:r.nameRaw.to:r.nameRaw.to]
			end := len(raw) - 1
			d.args = append(d.args, raw[r.nameRaw.to+1:end:end])
			p.Args = d.args[len(d.args)-1 : len(d.args) : len(d.args)]
			return true
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
	if len(p.Raw) != name.to+len(",]")+len(p.Args[0]) || p.Args[0][0] != '{' {
		return // it has spaces, or an offset of recovery
	}
	l := &d.repeats
	l.latest = (l.latest + keptEvents - 1) % keptEvents
	r := &l.events[l.latest]
	r.namespace, r.name, r.nameRaw = p.Namespace, p.Name, name
	r.Learn(p.Raw, name.to)
}

// skipScalar steps over a string, which must be UTF-8, or a number.
func skipScalar(b []byte, i int) (end int, ok bool) {
	if byteAt(b, i) != '"' {
		return skipNumber(b, i)
	}
	end, ok = skipText(b, i)
	return end, ok && utf8.Valid(b[i:end])
}
