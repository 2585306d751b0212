package recorder

import (
	"errors"
	"fmt"

	"tapedeck/protocol/capture"
)

var (
	// ErrLocked is returned when another process writes to the tape, or when it is
	// to be written and another process reads in it for longer than a moment.
	ErrLocked = errors.New("another process has it open; wait until that ends, or name another tape")
	// ErrForeign is returned when the file is no tape.
	ErrForeign = errors.New("it is not a tape")
	// ErrEmpty is returned when the file has no bytes at all. A file that is not
	// there is made; one that is there and empty is not taken for a tape.
	ErrEmpty = errors.New("the file is empty, which no tape is; remove it, or name another")
	// ErrNewer is returned when the tape's format is newer than this package.
	ErrNewer = errors.New("it was made by a newer tapedeck; update this one to read it")
	// ErrDamaged is returned when the file is a tape, and not whole.
	ErrDamaged = errors.New("the tape is damaged")
	// ErrClosed is returned when a Reader, or the Writer that it belongs to, was
	// closed.
	ErrClosed = errors.New("the tape was closed")
)

// LostError is returned when frames cannot be read, since the bytes that held
// them are damaged. Reading goes on after Last. It is an ErrDamaged.
type LostError struct {
	First, Last capture.Position
	Reason      error
}

// Error names the positions and what to do.
func (e *LostError) Error() string {
	what := fmt.Sprintf("frame %d is lost", e.First)
	if e.Last != e.First {
		what = fmt.Sprintf("frames %d to %d are lost", e.First, e.Last)
	}
	return fmt.Sprintf("%s: %v: %v", what, ErrDamaged, e.Reason)
}

// Unwrap returns ErrDamaged and the reason.
func (e *LostError) Unwrap() []error { return []error{ErrDamaged, e.Reason} }
