package recorder

import (
	"fmt"
	"slices"
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
	defer w.leave()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	told, unmapped := false, time.Now()
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
			if time.Since(unmapped) > unmapAfter {
				w.tape.unmap()
				unmapped = time.Now()
			}
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

// leave says that run has ended.
func (w *Writer) leave() {
	w.mu.Lock()
	w.over = true
	w.written.Signal()
	w.mu.Unlock()
	close(w.done)
}

// take returns what is due now, or how long to wait for it. Derived rows never
// go before the frames that they were derived from.
func (w *Writer) take() job {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		for _, b := range w.full {
			w.lose(b)
		}
		w.full = nil
		w.lose(w.takePending())
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
		frames = w.closing || w.draining || j.wait <= 0 || n >= commitFrames || w.pending.load.all >= commitBytes
	}
	if w.derived != nil {
		wait := indexDelay - now.Sub(w.indexed)
		index = w.closing || wait <= 0
		j.wait = min(j.wait, wait)
	}
	if len(w.marks) > 0 && len(w.full) == 0 {
		j.marks, w.marks = w.marks, nil
		frames = true // what is marked is on the tape first
	}
	switch {
	case len(w.full) > 0:
		j.frames = w.full[0]
		w.full = slices.Delete(w.full, 0, 1)
	case frames || index:
		j.frames = w.takePending()
	}
	if index {
		j.derived, w.derived, w.indexed = w.derived, nil, now
	}
	return j
}

// takePending returns the pending frames. Called with mu held.
func (w *Writer) takePending() batch {
	b := w.pending
	w.flight = w.flight.plus(b.load)
	w.pending = batch{}
	if n := len(w.spares); n > 0 {
		w.pending, w.spares = w.spares[n-1], w.spares[:n-1]
	}
	return b
}

// lose counts the frames of a batch as lost and passes it on. Called with mu held.
func (w *Writer) lose(b batch) {
	for i := range b.frames {
		w.loss.Frames++
		w.loss.Bytes += uint64(len(b.frames[i].Data))
	}
	w.pass(b)
}

// pass hands a batch on to be observed, if somebody does, else takes it back.
// Called with mu held.
func (w *Writer) pass(b batch) {
	if w.opts.Observe == nil || len(b.frames) == 0 {
		w.reuse(b)
		return
	}
	w.watched = append(w.watched, b)
	w.written.Signal()
}

// reuse takes the room of a batch back. Called with mu held.
func (w *Writer) reuse(b batch) {
	w.flight = w.flight.minus(b.load)
	if b.reset(&w.long); len(w.spares) < keepBatches {
		w.spares = append(w.spares, b)
	}
	w.space.Broadcast()
}

// observe shows what was written until run has ended.
func (w *Writer) observe() {
	defer close(w.seen)
	for b, ok := w.nextWatched(); ok; b, ok = w.nextWatched() {
		w.opts.Observe(b.frames)
		w.mu.Lock()
		w.reuse(b)
		w.mu.Unlock()
	}
}

// nextWatched waits for a batch to observe. It returns false when there will be
// none.
func (w *Writer) nextWatched() (b batch, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.watched) == 0 && !w.over {
		w.written.Wait()
	}
	if len(w.watched) == 0 {
		return b, false
	}
	b = w.watched[0]
	w.watched = slices.Delete(w.watched, 0, 1)
	return b, true
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
	if err != nil {
		w.err = err
		w.lose(j.frames)
		return
	}
	w.pass(j.frames)
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
