package player

import (
	"math"
	"runtime"
	"sync"
	"time"
)

// stage plays all runs on one goroutine and one schedule. Its clock is the
// scripts': it runs Speed times as fast as the wall's and stands still in a
// pause. The time of each act is counted from the one before as it was due, not
// as it came: a late wake-up makes nothing after it late.
type stage struct {
	quit, done chan struct{}
	once       sync.Once     // closes quit
	wake       chan struct{} // 1-buffered
	origin     time.Time
	// nap sleeps more exactly than a timer wakes, and wakes for nothing else; nil
	// leaves it to timers.
	nap func(time.Duration)

	mu     sync.Mutex // protects following
	due    queue      // by the scripts' clock
	waits  queue      // by the wall's, since origin: what no speed changes
	order  uint64
	speed  float64
	maxGap time.Duration
	held   bool // in a pause, or stepping
	steps  int  // acts let go while held
	// The scripts' clock showed at when the wall's showed since.
	at    time.Duration
	since time.Time
}

// A timer may wake so late; what is due sooner is napped for, a slice at a time,
// so that a new run does not wait for it.
const (
	timerDelay = time.Millisecond
	napSlice   = 250 * time.Microsecond
)

func newStage(speed float64, maxGap time.Duration, held bool, nap func(time.Duration)) *stage {
	now := time.Now()
	s := &stage{nap: nap, quit: make(chan struct{}), done: make(chan struct{}), wake: make(chan struct{}, 1),
		origin: now, since: now, speed: speed, maxGap: maxGap, held: held}
	go s.run()
	return s
}

// close ends the goroutine and waits for it.
func (s *stage) close() {
	s.once.Do(func() { close(s.quit) })
	<-s.done
}

func (s *stage) run() {
	defer close(s.done)
	if s.nap != nil {
		// It naps in the kernel and wakes on time only if it need not look for a
		// thread first: a third less lateness (p99) with two thousand clients.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var batch []entry
	for {
		var next time.Duration // until something is due
		batch, next = s.take(batch[:0], time.Now())
		for _, e := range batch {
			e.play.perform(e.turn)
		}
		if len(batch) == 0 {
			s.rest(timer, next)
		}
		select {
		case <-s.quit:
			return
		default:
		}
	}
}

// rest waits until something is due or was changed, or somewhat shorter.
func (s *stage) rest(timer *time.Timer, next time.Duration) {
	if s.nap != nil {
		if next <= timerDelay {
			s.nap(min(next, napSlice))
			return
		}
		next -= timerDelay
	}
	timer.Reset(next)
	select {
	case <-s.quit:
	case <-s.wake:
	case <-timer.C:
	}
}

// clock is the scripts' time. The caller holds mu.
func (s *stage) clock(now time.Time) time.Duration {
	if s.held || math.IsInf(s.speed, 1) {
		return s.at
	}
	return s.at + time.Duration(float64(now.Sub(s.since))*s.speed)
}

// take returns what is due, and how long it is to the next.
func (s *stage) take(batch []entry, now time.Time) ([]entry, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wait := time.Hour
	for len(s.waits) > 0 {
		if left := s.waits[0].due - now.Sub(s.origin); left > 0 {
			wait = left
			break
		}
		batch = append(batch, s.waits.pop())
	}
	clock := s.clock(now)
	for len(s.due) > 0 {
		first := s.due[0]
		switch {
		case s.held && s.steps == 0:
			return batch, wait
		case s.held:
			s.steps--
			s.at = max(s.at, first.due)
		case math.IsInf(s.speed, 1):
			s.at = max(s.at, first.due)
		case first.due > clock:
			return batch, min(wait, time.Duration(math.Ceil(float64(first.due-clock)/s.speed)))
		}
		batch = append(batch, s.due.pop())
	}
	return batch, wait
}

// now returns the scripts' time.
func (s *stage) now() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clock(time.Now())
}

// schedule lets a play act a gap after due, and returns when that is. The
// caller holds the lock of the play's thread.
func (s *stage) schedule(p *play, due, gap time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.maxGap > 0 && !math.IsInf(s.speed, 1) {
		gap = min(gap, time.Duration(float64(s.maxGap)*s.speed))
	}
	due += max(gap, 0)
	s.order++
	s.due.push(entry{due, s.order, p, p.turn})
	if s.due[0].order == s.order {
		s.nudge()
	}
	return due
}

// wait lets a play act when so much time has passed on the wall.
func (s *stage) wait(p *play, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order++
	s.waits.push(entry{time.Since(s.origin) + d, s.order, p, p.turn})
	s.nudge()
}

func (s *stage) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// change changes how fast the clock runs.
func (s *stage) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.at, s.since = s.clock(now), now
	f()
	s.nudge()
}

// hold stops the clock, or lets it run.
func (s *stage) hold(held bool) { s.change(func() { s.held, s.steps = held, 0 }) }

// step lets n acts go while the clock is stopped.
func (s *stage) step(n int) { s.change(func() { s.steps += n }) }

// setSpeed changes the speed of all runs, those on their way too.
func (s *stage) setSpeed(speed float64) { s.change(func() { s.speed = speed }) }

// unbounded reports whether the clock leaves out all pauses.
func (s *stage) unbounded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return math.IsInf(s.speed, 1)
}

// pace tells how the clock runs.
func (s *stage) pace() (speed float64, held bool, waiting int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.speed, s.held, len(s.due)
}
