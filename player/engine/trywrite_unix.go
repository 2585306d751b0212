//go:build unix

package engine

import (
	"net"
	"syscall"
)

// tryWriter writes to a connection what its socket buffer takes, and never
// waits. It is not safe for concurrent use.
type tryWriter struct {
	raw     syscall.RawConn
	attempt func(fd uintptr) bool
	data    []byte
	n       int
	err     error
}

// newTryWriter returns nil for a connection that is not plainly a socket: what
// wraps one must see the writes.
func newTryWriter(c net.Conn) *tryWriter {
	var raw syscall.RawConn
	var err error
	switch c := c.(type) {
	case *net.TCPConn:
		raw, err = c.SyscallConn()
	case *net.UnixConn:
		raw, err = c.SyscallConn()
	default:
		return nil
	}
	if err != nil {
		return nil
	}
	t := &tryWriter{raw: raw}
	t.attempt = func(fd uintptr) bool {
		t.n, t.err = syscall.Write(int(fd), t.data)
		return true // also when it would block: the caller does not wait
	}
	return t
}

// write returns how many bytes were taken.
func (t *tryWriter) write(data []byte) (int, error) {
	t.data = data
	err := t.raw.Write(t.attempt)
	t.data = nil
	switch {
	case err != nil:
		return 0, err
	case t.err == syscall.EAGAIN || t.err == syscall.EINTR:
		return 0, nil
	case t.err != nil:
		return 0, t.err
	}
	return t.n, nil
}
