package main

import (
	"io"
	"os"
	"strconv"

	"golang.org/x/term"
)

// terminal returns the file descriptor of a writer that is a terminal.
func terminal(out io.Writer) (fd int, ok bool) {
	f, isFile := out.(*os.File)
	if !isFile {
		return 0, false
	}
	fd = int(f.Fd())
	return fd, term.IsTerminal(fd)
}

// canAsk reports whether somebody can answer a question.
func (w *world) canAsk() bool {
	f, isFile := w.stdin.(*os.File)
	return isFile && term.IsTerminal(int(f.Fd()))
}

// colours reports whether out should be coloured: it is a terminal that can,
// and nobody said otherwise (NO_COLOR, CLICOLOR_FORCE, TERM=dumb).
func (w *world) colours(out io.Writer) bool {
	if w.getenv("NO_COLOR") != "" {
		return false
	}
	if force := w.getenv("CLICOLOR_FORCE"); force != "" && force != "0" {
		return true
	}
	_, ok := terminal(out)
	return ok && w.getenv("TERM") != "dumb"
}

// plainWidth is the width of output that goes to no terminal.
const plainWidth = 120

// width returns how many columns out has.
func (w *world) width(out io.Writer) int {
	if n, err := strconv.Atoi(w.getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if fd, ok := terminal(out); ok {
		if columns, _, err := term.GetSize(fd); err == nil && columns > 0 {
			return columns
		}
	}
	return plainWidth
}
