//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package recorder

import "os"

// tryLock leaves the lock to bbolt: here the same file cannot be locked twice.
func tryLock(*os.File, bool) (bool, error) { return true, nil }
