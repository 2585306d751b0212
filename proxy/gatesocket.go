package proxy

import (
	"bytes"
	"slices"

	"tapedeck/protocol/capture"
	"tapedeck/protocol/wire"
)

// judge asks the gate about what the scanner found, and returns the bytes that
// may pass. It is called with writing held.
func (w *way) judge() []byte {
	w.out = w.out[:0]
	for m := w.scan.Next(); m != nil; m = w.scan.Next() {
		data := m.Kind == capture.Text || m.Kind == capture.Binary
		switch {
		case m.Kind == 0:
			w.border = false // a piece of what cannot be held
			w.out = append(w.out, m.Raw...)
		case w.said || !data || m.Unheld:
			w.record(m, w.withheld())
			w.border = w.border || data
			w.out = append(w.out, m.Raw...)
		default:
			w.judgeMessage(m)
		}
	}
	out := w.out
	if cap(out) > relayLarge {
		w.out = nil // one large message should not stay
	}
	return out
}

// judgeMessage asks the gate about m, and does as it says when the last part of
// what m belongs to has come.
func (w *way) judgeMessage(m *wire.Message) {
	f := w.frame(m.Kind, m.Payload)
	f.Flags, f.Size, f.At = m.Flags, m.Size, w.s.p.tap.now()
	gate := &w.s.conn.gate
	part, e := alone, event{}
	if w.s.packets {
		part, e = gate.follow(&f)
	}
	if part == header || part == alone {
		w.passParts() // of an event that this one has broken off
	}
	v := w.s.p.cfg.Gate.Judge(&f)
	switch {
	case part == header || part == attachment && e.fate == held:
		w.hold(m, v)
		if e.left == 0 {
			w.decideParts()
		} else if w.heldBytes > w.s.p.cfg.BodyLimit {
			w.passParts()
			gate.settle(w.dir, passed)
		}
	case part == attachment && e.fate == withheld:
		w.record(m, capture.Withheld)
	case part == attachment || v.passes():
		w.pass(m)
	default:
		w.refuse(m, &v)
	}
}

// part is a part of a binary event that is held.
type part struct {
	message wire.Message
	verdict Verdict
}

// hold keeps m until its event is whole.
func (w *way) hold(m *wire.Message, v Verdict) {
	kept := *m
	kept.Payload, kept.Raw = bytes.Clone(m.Payload), bytes.Clone(m.Raw)
	w.parts = append(w.parts, part{kept, v})
	w.heldBytes += len(kept.Raw)
}

// decideParts does as the gate says of a whole event: what is refused in part is
// refused in all.
func (w *way) decideParts() {
	refused := slices.IndexFunc(w.parts, func(p part) bool { return p.verdict.Withhold && p.verdict.Replace == nil })
	if refused < 0 {
		w.passParts()
		return
	}
	first := w.record(&w.parts[0].message, capture.Withheld)
	for i := 1; i < len(w.parts); i++ {
		w.record(&w.parts[i].message, capture.Withheld)
	}
	w.say(&w.parts[refused].verdict, first, 0)
	w.parts, w.heldBytes = nil, 0
}

// passParts sends on what is held of an event.
func (w *way) passParts() {
	for i := range w.parts {
		if p := &w.parts[i]; p.verdict.Replace != nil {
			w.refuse(&p.message, &p.verdict)
		} else {
			w.pass(&p.message)
		}
	}
	w.parts, w.heldBytes = nil, 0
}

// pass sends m on.
func (w *way) pass(m *wire.Message) {
	w.record(m, w.withheld())
	w.out = append(w.out, m.Raw...)
}

// refuse withholds m, sends what is to stand in its place, and tells both.
func (w *way) refuse(m *wire.Message, v *Verdict) {
	of, sent := w.record(m, capture.Withheld), capture.Position(0)
	if v.Replace != nil {
		edited := w.frame(m.Kind, v.Replace)
		edited.Flags = capture.Injected
		sent = w.s.p.tap.put(edited)
		w.out = appendFrame(w.out, w.dir, m.Kind, v.Replace)
	}
	w.say(v, of, sent)
}

// say puts the gate's deed on the tape, and its answers on their way.
func (w *way) say(v *Verdict, of, sent capture.Position) {
	d := v.Deed
	d.Of, d.Sent = of, sent
	w.s.x.act(d)
	for _, text := range v.Answers {
		w.replies = append(w.replies, answer{text: text, of: of, rule: d.Rule})
	}
}

// answer sends the gate's answers to dst as soon as they do not break into a
// message, or between a binary event and its attachments.
func (w *way) answer(a []answer) {
	w.writing.Lock()
	w.waiting = append(w.waiting, a...)
	w.giveAnswers() // if dst is gone, its own way says so
	w.writing.Unlock()
	w.depart()
}

// giveAnswers is called with writing held.
func (w *way) giveAnswers() error {
	if len(w.waiting) == 0 || !w.border || w.shut || w.s.packets && !w.s.conn.gate.free(w.dir) {
		return nil
	}
	var out []byte
	for _, a := range w.waiting {
		f := w.frame(capture.Text, a.text)
		f.Flags = capture.Injected
		sent := w.s.p.tap.put(f)
		w.s.x.act(capture.Deed{Did: "injected", Of: a.of, Sent: sent, Rule: a.rule})
		out = appendFrame(out, w.dir, capture.Text, a.text)
	}
	w.waiting = nil
	_, err := w.dst.Write(out)
	return err
}
