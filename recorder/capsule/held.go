package capsule

import (
	"cmp"
	"context"
	"slices"

	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// Held is one session in memory, as a Source. It has no runs: all of it is
// exported. Positions grow, and may leave some out.
type Held struct {
	session capture.Session
	frames  []capture.Frame
}

// Hold returns a source of frames of a session, which it keeps.
func Hold(s capture.Session, frames []capture.Frame) *Held {
	if len(frames) > 0 {
		s.First, s.Last = frames[0].Position, frames[len(frames)-1].Position
	}
	return &Held{s, frames}
}

// Sessions returns the session.
func (h *Held) Sessions(context.Context) ([]capture.Session, error) {
	return []capture.Session{h.session}, nil
}

// Runs returns none.
func (h *Held) Runs(context.Context) ([]conversation.Run, error) { return nil, nil }

// Frames returns at most n frames from a position on.
func (h *Held) Frames(_ context.Context, from capture.Position, n int) ([]capture.Frame, error) {
	i, _ := slices.BinarySearchFunc(h.frames, from, func(f capture.Frame, p capture.Position) int { return cmp.Compare(f.Position, p) })
	return h.frames[i:min(i+n, len(h.frames))], nil
}
