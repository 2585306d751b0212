package proxy

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"tapedeck/protocol/capture"
	"tapedeck/protocol/wire"
)

// What the Close frame says when the proxy stops.
const (
	goingAway   = 1001
	stopMessage = "tapedeck was stopped"
)

// way is one direction of a socket. Bytes pass as they come, one write for each
// read; beside them, a scanner finds the messages for the tap.
type way struct {
	s        *socket
	dir      capture.Direction
	src, dst *leg
	scan     *wire.Scanner
	passed   int64

	small [relaySmall]byte
	large *piece

	leaving atomic.Bool // the proxy stops
	// writing is held by whoever writes to dst, since what is written to a
	// WebSocket must not mix. It guards what follows.
	writing   sync.Mutex
	answered  bool     // src sent a Close frame
	border    bool     // what was written ends with a message
	shut      bool     // a Close frame was sent, by us or by src: nothing may follow
	said      bool     // and it was ours
	out       []byte   // of a gated way: what is to be written
	waiting   []answer // of a gated way: for dst, at the next border
	replies   []answer // of a gated way: for src
	parts     []part   // of a gated way: a binary event that is not whole
	heldBytes int
}

// run passes src's bytes to dst until src ends, or dst does.
func (w *way) run(done chan<- struct{}) {
	if done != nil {
		defer close(done)
	}
	defer w.release()
	buf := w.small[:]
	for {
		n, err := w.src.Read(buf)
		if n > 0 {
			w.passed += int64(n)
			if werr := w.forward(buf[:n]); werr != nil {
				// dst is gone, and the other way will find out, but only when
				// it has drained what dst had sent before.
				w.s.ended(w.dir.Other(), werr)
				return
			}
			if w.closed() && w.other().saidClose() {
				w.dst.closeWrite()
				return
			}
			buf = w.resize(buf, n)
		}
		if err != nil {
			w.end(err)
			return
		}
	}
}

// resize returns the buffer for the next read, after one of n bytes into buf:
// thousands of idle connections are to cost little, and a full one should not
// cost many calls.
func (w *way) resize(buf []byte, n int) []byte {
	switch {
	case w.large == nil && n == len(buf):
		w.large = w.s.p.pieces.Get().(*piece)
		return w.large[:]
	case w.large != nil && n <= len(w.small):
		w.release()
		return w.small[:]
	}
	return buf
}

func (w *way) release() {
	if w.large != nil {
		w.s.p.pieces.Put(w.large)
		w.large = nil
	}
}

// forward records b and passes it on. It is put on the tape first, so that what
// it causes comes after it.
func (w *way) forward(b []byte) error {
	w.writing.Lock()
	out := b
	switch {
	case w.s.p.cfg.Gate != nil:
		w.scan.Feed(b)
		out = w.judge()
	case w.leaving.Load() && !w.said:
		w.scan.Hold()
		w.scan.Feed(b)
		out = w.lastBytes()
	case w.scan.Inside(len(b)):
		// No message ends here, so nothing can be caused by it: a long one need
		// not wait for its record.
		err := w.write(b)
		w.scan.Feed(b)
		w.scan.Next()
		w.writing.Unlock()
		return err
	default:
		w.scan.Feed(b)
		for m := w.scan.Next(); m != nil; m = w.scan.Next() {
			w.record(m, w.withheld())
		}
		w.border = w.scan.Border()
	}
	err := w.write(out)
	replies := w.replies
	w.replies = nil
	w.writing.Unlock()
	w.depart()
	if len(replies) > 0 {
		w.other().answer(replies)
	}
	return err
}

// lastBytes returns what completes the message that had begun to pass when the
// proxy was stopped. What comes after it is withheld, or a sender that never
// pauses would leave no room for a goodbye.
func (w *way) lastBytes() (out []byte) {
	for m := w.scan.Next(); m != nil; m = w.scan.Next() {
		if !m.Unheld {
			w.record(m, capture.Withheld)
			continue
		}
		out = append(out, m.Raw...)
		if m.Kind != 0 {
			w.record(m, 0)
			w.border = true
		}
	}
	return out
}

// write sends b to dst, unless our Close frame went before it. It is called with
// writing held.
func (w *way) write(b []byte) error {
	if w.said || len(b) == 0 {
		return nil
	}
	_, err := w.dst.Write(b)
	if err == nil {
		err = w.giveAnswers()
	}
	return err
}

// withheld is the flag of a message that comes after our Close frame.
func (w *way) withheld() capture.Flags {
	if w.said {
		return capture.Withheld
	}
	return 0
}

// record puts a message on the tape and takes note of what it says about the
// connection.
func (w *way) record(m *wire.Message, flags capture.Flags) capture.Position {
	switch {
	case m.Kind == capture.Close && m.Flags&capture.Partial == 0:
		w.answered, w.shut = true, true
		code, reason := wire.ParseClose(m.Payload)
		w.s.closedBy(w.dir, code, reason)
	case w.dir == capture.FromClient && !w.s.owner && isUpgrade(m.Kind, m.Payload):
		w.s.owner = true
		w.s.p.tap.upgrade(w.s.conn)
		w.replies = append(w.replies, w.s.conn.gate.take()...)
	}
	f := w.frame(m.Kind, m.Payload)
	f.Flags, f.Size = m.Flags|flags, m.Size
	return w.s.p.tap.put(f)
}

func (w *way) frame(kind capture.Kind, data []byte) capture.Frame {
	return capture.Frame{
		Kind: kind, Direction: w.dir, Connection: w.s.conn.position, Exchange: w.s.x.position,
		Size: int64(len(data)), Data: data,
	}
}

// end records what src left unfinished, and passes its end on: a half-closed
// connection as that, unless both sides have said goodbye, and a broken one as
// broken.
func (w *way) end(err error) {
	w.writing.Lock()
	w.out = w.out[:0]
	w.passParts()
	w.write(w.out)
	w.scan.End()
	for m := w.scan.Next(); m != nil; m = w.scan.Next() {
		w.record(m, w.withheld())
		if w.s.p.cfg.Gate != nil {
			w.write(m.Raw) // half a message breaks off there as it did here
		}
	}
	over := w.answered
	w.writing.Unlock()
	w.s.ended(w.dir, err)
	if errors.Is(err, io.EOF) && !(over && w.other().closed()) {
		w.dst.closeWrite()
	} else {
		w.dst.Close()
	}
}

func (w *way) other() *way {
	if w.dir == capture.FromClient {
		return &w.s.down
	}
	return &w.s.up
}

// closed reports whether src sent a Close frame.
func (w *way) closed() bool {
	w.writing.Lock()
	defer w.writing.Unlock()
	return w.answered
}

func (w *way) saidClose() bool {
	w.writing.Lock()
	defer w.writing.Unlock()
	return w.said
}

// depart sends Close 1001 if the proxy is stopping and dst can take it now. It
// is called when writing was released, too: so either the one who set leaving
// finds it free, or the one who held it finds leaving set.
func (w *way) depart() {
	if !w.leaving.Load() || !w.writing.TryLock() {
		return
	}
	defer w.writing.Unlock()
	if w.shut || !w.border {
		return
	}
	payload := wire.AppendClose(nil, goingAway, stopMessage)
	f := w.frame(capture.Close, payload)
	f.Flags = capture.Injected
	w.s.p.tap.put(f)
	w.s.closedBy(0, goingAway, stopMessage)
	w.dst.Write(appendFrame(nil, w.dir, capture.Close, payload)) // or its time is up
	w.shut, w.said = true, true
}
