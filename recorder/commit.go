package recorder

import (
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"
)

// job is what is due to be written.
type job struct {
	frames  batch
	derived *derived
	marks   []marking
	failed  error // the recording stopped: it is to be told
	wait    time.Duration
	over    bool
}

// run commits what comes until Close.
func (w *Writer) run() {
	defer close(w.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	told := false
	for {
		j := w.take()
		switch {
		case j.failed != nil && !told:
			told = true
			if w.opts.OnError != nil {
				w.opts.OnError(j.failed)
			}
		case len(j.frames.frames) > 0 || j.derived != nil || len(j.marks) > 0:
			w.commit(j)
		case j.over:
			return
		default:
			timer.Reset(j.wait)
			select {
			case <-w.wake:
			case <-timer.C:
			}
		}
	}
}

// take returns what is due now, or how long to wait for it. Derived rows never
// go before the frames that they were derived from.
func (w *Writer) take() job {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		w.lose(&w.pending)
		w.derived = nil
		for _, j := range w.marks {
			j.done <- fmt.Errorf("mark #%s: %w", j.mark.At, w.err)
		}
		w.marks = nil
		return job{failed: w.err, over: w.closing, wait: time.Hour}
	}
	j := job{over: w.closing, wait: time.Hour}
	frames, index := false, false
	if n := len(w.pending.frames); n > 0 {
		j.wait = commitDelay - now.Sub(w.since)
		frames = w.closing || j.wait <= 0 || n >= commitFrames || w.pending.bytes() >= commitBytes
	}
	if w.derived != nil {
		wait := indexDelay - now.Sub(w.indexed)
		index = w.closing || wait <= 0
		j.wait = min(j.wait, wait)
	}
	if len(w.marks) > 0 {
		j.marks, w.marks = w.marks, nil
		frames = true // what is marked is on the tape first
	}
	if frames || index {
		j.frames, w.pending, w.spare = w.pending, w.spare, batch{}
		w.flight = j.frames.bytes()
	}
	if index {
		j.derived, w.derived, w.indexed = w.derived, nil, now
	}
	return j
}

// lose counts the frames of a batch as lost. Called with mu held.
func (w *Writer) lose(b *batch) {
	for i := range b.frames {
		w.loss.Frames++
		w.loss.Bytes += uint64(len(b.frames[i].Data))
	}
	b.reset()
}

// commit writes the frames, and then what was derived.
func (w *Writer) commit(j job) {
	if w.gate != nil {
		w.gate()
	}
	err := w.commitFrames(&j.frames)
	if err == nil && j.derived != nil {
		err = w.commitIndex(j.derived)
	}

	w.commitMarks(j.marks)

	w.mu.Lock()
	defer w.mu.Unlock()
	w.flight = 0
	if err != nil {
		w.err = err
		w.lose(&j.frames)
	} else {
		j.frames.reset()
	}
	w.spare = j.frames
	w.space.Broadcast()
}

func (w *Writer) commitFrames(b *batch) error {
	if len(b.frames) == 0 {
		return nil
	}
	err := w.tape.update(func(tx *bolt.Tx) error {
		for i := range b.frames {
			if err := w.blocks.add(tx, &b.frames[i]); err != nil {
				return err
			}
		}
		return w.blocks.settle(tx)
	})
	w.blocks.ended()
	if err != nil {
		return fmt.Errorf("record frames from %d on: %w", b.frames[0].Position, err)
	}
	w.session.Last = b.frames[len(b.frames)-1].Position
	w.tail.flash()
	return nil
}

func (w *Writer) commitIndex(d *derived) error {
	err := w.tape.update(func(tx *bolt.Tx) error {
		return d.write(tx, &w.session, &w.counter)
	})
	if err != nil {
		return fmt.Errorf("record what was derived up to %d: %w", d.judged, err)
	}
	return nil
}

// update runs a transaction that writes.
func (t *tapeFile) update(do func(*bolt.Tx) error) error {
	return t.db.Update(do)
}
