package recorder

import (
	"context"
	"iter"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// Reader reads a tape. Each call is a short transaction of its own. Its methods
// are safe for concurrent use.
type Reader struct{}

// Open opens the tape at path for reading, and changes nothing in it.
func Open(path string) (*Reader, error) { return &Reader{}, nil }

// Close closes the file; of a Writer's Reader it does nothing.
func (r *Reader) Close() error { return nil }

// Sessions returns the sessions in order.
func (r *Reader) Sessions(ctx context.Context) ([]capture.Session, error) { return nil, nil }

// Runs returns the runs in order of their first frames.
func (r *Reader) Runs(ctx context.Context) ([]conversation.Run, error) { return nil, nil }

// Threads returns the threads in order of their first frames.
func (r *Reader) Threads(ctx context.Context) ([]conversation.Thread, error) { return nil, nil }

// Rows returns at most n of the frames posted to a run, beginning with the
// from-th, counted from 0. The Open frames of their connections come first, so
// that the rows can be decoded by themselves.
func (r *Reader) Rows(ctx context.Context, run conversation.RunKey, from, n int) ([]capture.Frame, error) {
	return nil, nil
}

// Frames returns at most n frames from a position on.
func (r *Reader) Frames(ctx context.Context, from capture.Position, n int) ([]capture.Frame, error) {
	return nil, nil
}

// Findings returns the findings of a run, or all if run is nil, in order.
func (r *Reader) Findings(ctx context.Context, run *conversation.RunKey) ([]protocol.Finding, error) {
	return nil, nil
}

// Follow yields the frames from a position on, and goes on with those that
// come, until ctx ends or the session does.
func (r *Reader) Follow(ctx context.Context, from capture.Position) iter.Seq2[capture.Frame, error] {
	return func(yield func(capture.Frame, error) bool) {}
}
