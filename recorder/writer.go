package recorder

import (
	"time"

	"tapedeck/protocol/capture"
)

// Writer adds a session to a tape. Its methods are safe for concurrent use.
type Writer struct{}

// WriterOptions configure a Writer. The zero value is ready to use.
type WriterOptions struct {
	// KeepSecrets turns redaction off, and the session says so.
	KeepSecrets bool
	// Redact names more to be redacted: a header, a field, or a JSON pointer.
	Redact []string
	// OnError is called once, on another goroutine, when the tape cannot be
	// written any more. Frames are counted from then on, and not kept.
	OnError func(error)
}

// OpenWriter opens the tape at path for writing, makes it if it is not there,
// and begins s on it: ID and First are set.
func OpenWriter(path string, s *capture.Session, opts WriterOptions) (*Writer, error) {
	return &Writer{}, nil
}

// Frame adds f, whose position must be the next one. Data is copied. It waits
// only while 8 MiB of frames wait for the disk, and never fails: an error of
// the disk is latched, see Err.
func (w *Writer) Frame(f *capture.Frame) {}

// Index adds what was derived. The values are written out before it returns or
// copied.
func (w *Writer) Index(x *Index) {}

// Reader reads the tape while it is written.
func (w *Writer) Reader() *Reader { return &Reader{} }

// Err returns the error that stopped the recording, nil if it goes on.
func (w *Writer) Err() error { return nil }

// Close commits what is left, marks the session as ended in order, at the given
// time since it began, and closes the file. A second call does nothing.
func (w *Writer) Close(at time.Duration) error { return nil }
