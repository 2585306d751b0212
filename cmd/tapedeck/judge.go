package main

import (
	"sync"
	"time"

	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
	"tapedeck/recorder"
)

const (
	// judgeLimit bounds the bytes that wait to be judged. At the limit the
	// proxy waits, and with it the traffic. As much again is being judged.
	judgeLimit = 4 << 20
	// frameCost is the bytes of a frame that waits, besides its data.
	frameCost = 96
	// judgeDelay lets frames gather before they are judged: waking a goroutine
	// for each would cost more than judging it, and nobody sees the difference.
	judgeDelay = 10 * time.Millisecond
	// judgeAtOnce is how many bytes are judged without waiting for more.
	judgeAtOnce = 256 << 10
)

// judge reads what passed in one session, beside the path, and says what it
// means: runs, threads and findings, for the tape's index and for whoever
// watches. It is a proxy.Sink. One goroutine does it all, since runs and
// reconnects cross connections.
type judge struct {
	state *conversation.State
	index func(*recorder.Index)    // the tape's; keeps nothing of what it is given
	watch func(*conversation.Step) // the live view's; may be nil

	done chan struct{}

	mu      sync.Mutex // guards what follows
	changed sync.Cond  // pending shrank, grew from nothing, or closed was set
	pending frames
	closed  bool
	waited  int // how often the traffic had to wait
}

// frames is a batch of frames whose data lie in one buffer.
type frames struct {
	list  []capture.Frame
	bytes []byte
}

// size is the bytes that the batch takes.
func (b *frames) size() int { return len(b.bytes) + frameCost*len(b.list) }

func (b *frames) add(f *capture.Frame) {
	at := len(b.bytes)
	b.bytes = append(b.bytes, f.Data...)
	b.list = append(b.list, *f)
	// Where the buffer moves, the older frames keep what they point at.
	b.list[len(b.list)-1].Data = b.bytes[at:len(b.bytes):len(b.bytes)]
}

// reset empties the batch and keeps its memory, unless that grew out of use.
func (b *frames) reset() {
	if cap(b.bytes) > 2*judgeLimit {
		b.bytes = nil
	}
	clear(b.list)
	b.list, b.bytes = b.list[:0], b.bytes[:0]
}

// newJudge starts the judge of a session.
func newJudge(state *conversation.State, index func(*recorder.Index), watch func(*conversation.Step)) *judge {
	j := &judge{state: state, index: index, watch: watch, done: make(chan struct{})}
	j.changed.L = &j.mu
	go j.run()
	return j
}

// Frame takes a copy of f. It waits only at the limit.
func (j *judge) Frame(f *capture.Frame) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.pending.size() > judgeLimit {
		j.waited++
		for j.pending.size() > judgeLimit {
			j.changed.Wait()
		}
	}
	before := j.pending.size()
	j.pending.add(f)
	if before == 0 || before < judgeAtOnce && j.pending.size() >= judgeAtOnce {
		j.changed.Broadcast()
	}
}

// close waits until all that came is judged, and ends the books.
func (j *judge) close() (waited int) {
	j.mu.Lock()
	j.closed = true
	j.changed.Broadcast()
	j.mu.Unlock()
	<-j.done
	return j.waited
}

func (j *judge) run() {
	defer close(j.done)
	var batch frames
	x := &recorder.Index{}
	for j.next(&batch) {
		j.judge(&batch, x)
		batch.reset()
	}
	*x = recorder.Index{}
	j.collect(j.state.End(), x)
	j.index(finish(x, j.state))
}

// next swaps the empty batch for one that has frames in it. It returns false
// when there are none and there will be no more.
func (j *judge) next(batch *frames) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	for len(j.pending.list) == 0 && !j.closed {
		j.changed.Wait()
	}
	if j.pending.size() < judgeAtOnce && !j.closed {
		timer := time.AfterFunc(judgeDelay, j.gathered)
		j.changed.Wait() // for the timer, for more than enough, or for the end
		timer.Stop()
	}
	*batch, j.pending = j.pending, *batch
	j.changed.Broadcast()
	return len(batch.list) > 0
}

func (j *judge) gathered() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.changed.Broadcast()
}

// judge observes a batch and writes one index entry for it, in the room of the
// one before.
func (j *judge) judge(batch *frames, x *recorder.Index) {
	*x = recorder.Index{Posts: x.Posts[:0], Findings: x.Findings[:0]}
	for i := range batch.list {
		f := &batch.list[i]
		x.Judged = f.Position
		j.collect(j.state.Observe(f), x)
	}
	j.index(finish(x, j.state))
}

func (j *judge) collect(step *conversation.Step, x *recorder.Index) {
	add(x, step)
	if j.watch != nil {
		j.watch(step)
	}
}
