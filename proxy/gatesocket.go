package proxy

import (
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

// judgeMessage asks the gate about m and does as it says.
func (w *way) judgeMessage(m *wire.Message) {
	f := w.frame(m.Kind, m.Payload)
	f.Flags, f.Size, f.At = m.Flags, m.Size, w.s.p.tap.now()
	v := w.s.conn.gate.judge(w.s.p.cfg.Gate, &f, w.s.packets)
	if v.passes() {
		w.record(m, 0)
		w.out = append(w.out, m.Raw...)
		return
	}
	of := w.record(m, capture.Withheld)
	d := v.Deed
	d.Of = of
	if v.Replace != nil {
		edited := w.frame(m.Kind, v.Replace)
		edited.Flags = capture.Injected
		d.Sent = w.s.p.tap.put(edited)
		w.out = appendFrame(w.out, w.dir, m.Kind, v.Replace)
	}
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
