package player

import (
	"syscall"
	"time"
)

// nap sleeps on the clock of the system. An idle Go program wakes for a timer
// with up to a millisecond's delay, since it waits in epoll; this wakes within
// some fifty microseconds.
func nap(d time.Duration) {
	ts := syscall.NsecToTimespec(int64(d))
	// An interrupted sleep is a short one: the caller looks at the clock.
	_ = syscall.Nanosleep(&ts, nil)
}
