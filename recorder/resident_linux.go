package recorder

import (
	"syscall"

	bolt "go.etcd.io/bbolt"
)

// unmap gives the pages of the tape that were looked at back to the kernel, which
// keeps them in its cache: a page stays in the process otherwise, with fifteen
// around it, and a long recording would seem to take as much memory as its tape.
func (t *tapeFile) unmap() {
	t.db.View(func(tx *bolt.Tx) error { // in which the map stays where it is
		syscall.Syscall(syscall.SYS_MADVISE, t.db.Info().Data, uintptr(tx.Size()), syscall.MADV_DONTNEED)
		return nil // the advice may be refused, and nothing rests on it
	})
}
