package inspector

import (
	"context"
	"iter"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// Source is a tape to look at: a file, or one that another process is writing.
// No call holds anything open after it returns.
type Source interface {
	// Sessions returns the sessions in order.
	Sessions(ctx context.Context) ([]capture.Session, error)
	// Runs and Threads return their summaries, in order of their first frames.
	Runs(ctx context.Context) ([]conversation.Run, error)
	Threads(ctx context.Context) ([]conversation.Thread, error)
	// Rows returns at most n of the frames posted to a run, beginning with the
	// from-th, counted from 0. The Open frames of their connections are among
	// them, so that the rows can be decoded by themselves.
	Rows(ctx context.Context, run conversation.RunKey, from, n int) ([]capture.Frame, error)
	// Frames returns at most n frames from a position on.
	Frames(ctx context.Context, from capture.Position, n int) ([]capture.Frame, error)
	// Findings returns the findings of a run, or all if run is nil.
	Findings(ctx context.Context, run *conversation.RunKey) ([]protocol.Finding, error)
	// Follow yields the frames from a position on, and goes on with those that
	// come, until ctx ends or the session does.
	Follow(ctx context.Context, from capture.Position) iter.Seq2[capture.Frame, error]
}
