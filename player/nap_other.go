//go:build !linux

package player

import "time"

// nap sleeps for d.
func nap(d time.Duration) { time.Sleep(d) }
