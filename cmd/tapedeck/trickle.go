package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"
)

// trickleLimit is how much output may wait for a reader who does not read.
const trickleLimit = 1 << 20

// trickle is a writer that never makes its caller wait: a viewer that is paused
// must not pause the traffic. Lines that its reader is too slow for are left
// out, and their number is told where they are missing. The tape has them all.
type trickle struct {
	out  io.Writer
	done chan struct{}

	mu      sync.Mutex // guards what follows
	changed sync.Cond
	waiting bytes.Buffer
	skipped int
	closed  bool
	err     error
}

func newTrickle(out io.Writer) *trickle {
	t := &trickle{out: out, done: make(chan struct{})}
	t.changed.L = &t.mu
	go t.run()
	return t
}

// Write takes whole lines.
func (t *trickle) Write(lines []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.err != nil:
		return 0, t.err
	case t.waiting.Len()+len(lines) > trickleLimit:
		t.skipped += bytes.Count(lines, []byte("\n"))
	default:
		if t.skipped > 0 {
			fmt.Fprintf(&t.waiting, "… %d lines were left out here, since nobody read them; the tape has them\n", t.skipped)
			t.skipped = 0
		}
		t.waiting.Write(lines)
		t.changed.Signal()
	}
	return len(lines), nil
}

// close waits until all is written, but no longer than ctx: a reader that is
// stopped does not keep the program from ending.
func (t *trickle) close(ctx context.Context) error {
	t.mu.Lock()
	t.closed = true
	t.changed.Signal()
	t.mu.Unlock()
	select {
	case <-t.done:
		return t.err
	case <-ctx.Done():
		return fmt.Errorf("write the last lines: %w", ctx.Err())
	}
}

func (t *trickle) run() {
	defer close(t.done)
	var batch bytes.Buffer
	for t.next(&batch) {
		if _, err := t.out.Write(batch.Bytes()); err != nil {
			t.mu.Lock()
			t.err = err
			t.mu.Unlock()
			return
		}
		batch.Reset()
	}
}

func (t *trickle) next(batch *bytes.Buffer) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.waiting.Len() == 0 && !t.closed {
		t.changed.Wait()
	}
	*batch, t.waiting = t.waiting, *batch
	return batch.Len() > 0
}
