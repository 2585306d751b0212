//go:build !windows

package main

import (
	"errors"
	"syscall"
)

// isBrokenPipe reports whether err is that of a reader who left, as head does.
func isBrokenPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }
