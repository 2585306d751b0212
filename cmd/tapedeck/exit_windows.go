package main

import (
	"errors"
	"syscall"
)

// errNoData is ERROR_NO_DATA, with which Windows says that a pipe was closed.
const errNoData = syscall.Errno(232)

// isBrokenPipe reports whether err is that of a reader who left.
func isBrokenPipe(err error) bool {
	return errors.Is(err, syscall.ERROR_BROKEN_PIPE) || errors.Is(err, errNoData)
}
