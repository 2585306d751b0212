//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package recorder

import (
	"errors"
	"os"
	"syscall"
)

// tryLock takes the lock that bbolt will take again on the same file, which
// changes nothing then. It reports whether nobody else has it.
func tryLock(file *os.File, write bool) (bool, error) {
	how := syscall.LOCK_SH
	if write {
		how = syscall.LOCK_EX
	}
	err := syscall.Flock(int(file.Fd()), how|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// unlock gives the lock back while the file stays open. It reports whether it
// did.
func unlock(file *os.File) bool {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_UN) == nil
}
