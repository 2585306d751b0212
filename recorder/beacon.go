package recorder

import (
	"sync"
	"time"
)

// beacon tells those who follow a tape that there is more, or that there will
// be none.
type beacon struct {
	mu        sync.Mutex // guards what follows
	more      chan struct{}
	over      bool
	followers int
	idle      chan struct{} // closed when the last follower of an ended tape left
}

func newBeacon() *beacon {
	return &beacon{more: make(chan struct{}), idle: make(chan struct{})}
}

// flash wakes all who wait.
func (b *beacon) flash() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.more)
	b.more = make(chan struct{})
}

// watch returns a channel that is closed when there is more than now, and
// whether the tape is over.
func (b *beacon) watch() (more <-chan struct{}, over bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.more, b.over
}

func (b *beacon) enter() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.followers++
}

func (b *beacon) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.followers--; b.followers == 0 && b.over {
		close(b.idle)
	}
}

// end says that there will be no more, and gives the followers a while to read
// the rest.
func (b *beacon) end(while time.Duration) {
	b.mu.Lock()
	b.over = true
	close(b.more)
	b.more = make(chan struct{})
	wait := b.followers > 0
	b.mu.Unlock()
	if !wait {
		return
	}
	timer := time.NewTimer(while)
	defer timer.Stop()
	select {
	case <-b.idle:
	case <-timer.C:
	}
}
