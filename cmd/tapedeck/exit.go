package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"

	"tapedeck/inspector"
	"tapedeck/recorder"
)

// The exit codes. A command that was ended by a signal, as a proxy is, ends
// with exitClean; the tape is complete then.
const (
	exitClean       = 0
	exitFindings    = 1   // findings at --fail-on, or differences
	exitFailure     = 2   // wrong usage, or it could not be done
	exitNothing     = 3   // nothing matched
	exitInterrupted = 130 // cut short by a second signal
)

// codedError is an error with an exit code of its own. A nil err says nothing:
// what there is to say was printed.
type codedError struct {
	code int
	err  error
}

func (e *codedError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *codedError) Unwrap() error { return e.err }

// withCode gives err an exit code.
func withCode(code int, err error) error { return &codedError{code, err} }

// usageError is a command line that cannot be obeyed.
func usageError(format string, args ...any) error {
	return withCode(exitFailure, fmt.Errorf(format, args...))
}

// exit prints what an error has to say, with what to do next, and returns its
// exit code.
func (w *world) exit(err error) int {
	if err == nil {
		return exitClean
	}
	code := exitFailure
	var coded *codedError
	switch {
	case errors.As(err, &coded):
		code = coded.code
		if coded.err == nil {
			return code
		}
	case errors.Is(err, inspector.ErrNothing):
		code = exitNothing
	case errors.Is(err, context.Canceled):
		code = exitInterrupted
	case isBrokenPipe(err):
		return exitClean // whoever read our output had enough
	}
	text := strings.TrimSuffix(err.Error(), "\n")
	if code == exitInterrupted { // by a person, who knows no contexts
		text = strings.ReplaceAll(text, context.Canceled.Error(), "interrupted")
	}
	w.talk("%s", text)
	if next := hint(err); next != "" {
		w.talk("%s", next)
	}
	return code
}

// talk prints a line for the person at the terminal.
func (w *world) talk(format string, args ...any) {
	for line := range strings.SplitSeq(fmt.Sprintf(format, args...), "\n") {
		fmt.Fprintf(w.stderr, "tapedeck: %s\n", inspector.Clean(line))
	}
}

// logger writes what -v asks for: connections and trouble, never payloads.
func (w *world) logger() *slog.Logger { return slog.New(slog.NewTextHandler(w.stderr, nil)) }

// hint says what to do about an error, where the error itself cannot know.
func hint(err error) string {
	switch {
	case errors.Is(err, recorder.ErrLocked):
		return "wait for it to end, or record to another file with -w FILE"
	case errors.Is(err, fs.ErrNotExist):
		return "record one with: tapedeck proxy -u http://GATEWAY, or name another with -r FILE"
	}
	return ""
}
