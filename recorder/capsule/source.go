package capsule

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// Source is a tape to export from: a file, or one that another process is
// writing. It is what a recorder.Reader and a live.Client offer.
type Source interface {
	Sessions(ctx context.Context) ([]capture.Session, error)
	Runs(ctx context.Context) ([]conversation.Run, error)
	Frames(ctx context.Context, from capture.Position, n int) ([]capture.Frame, error)
}

// pageFrames is how many frames are read at once.
const pageFrames = 1024

// framesOf yields the frames of a session. A frame is valid until the next one.
func framesOf(ctx context.Context, src Source, s *capture.Session) iter.Seq2[*capture.Frame, error] {
	return func(yield func(*capture.Frame, error) bool) {
		for from := s.First; from != 0 && from <= s.Last; {
			page, err := src.Frames(ctx, from, int(min(pageFrames, s.Last-from+1)))
			if err != nil {
				yield(nil, err)
				return
			}
			if len(page) == 0 {
				return
			}
			for i := range page {
				if f := &page[i]; f.Position > s.Last || !yield(f, nil) {
					return
				}
			}
			from = page[len(page)-1].Position + 1
		}
	}
}

// wanted is what of a session goes into a capsule.
type wanted struct {
	session capture.Session
	// runs are the runs asked for, and those that they belong together with; nil
	// is the whole session.
	runs map[string]bool
	// threads are those of the runs.
	threads map[string]bool
}

// resolve says which sessions and which of their runs are to be exported.
func resolve(ctx context.Context, src Source, keys []conversation.RunKey) ([]wanted, error) {
	sessions, err := src.Sessions(ctx)
	if err != nil {
		return nil, err
	}
	var all []wanted
	if len(keys) == 0 {
		for _, s := range sessions {
			all = append(all, wanted{session: s})
		}
		return all, nil
	}
	runs, err := src.Runs(ctx)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		if !slices.ContainsFunc(runs, func(r conversation.Run) bool { return r.Session == key.Session && r.ID == key.Run }) {
			return nil, fmt.Errorf("export run %q: there is no such run in session %d", key.Run, key.Session)
		}
	}
	for _, s := range sessions {
		w := wanted{session: s, runs: map[string]bool{}, threads: map[string]bool{}}
		for _, key := range keys {
			if key.Session == s.ID {
				w.runs[key.Run] = true
			}
		}
		if len(w.runs) == 0 {
			continue
		}
		w.complete(runs)
		if n := s.Notes; n != nil && len(n.Runs) == len(w.runs) && !slices.ContainsFunc(n.Runs, func(id string) bool { return !w.runs[id] }) {
			w.runs, w.threads = nil, nil // it is a capsule of just these
		}
		all = append(all, w)
	}
	return all, nil
}

// complete adds the runs that went on after a pause of one that is wanted, or
// that paused before it: neither makes sense alone.
func (w *wanted) complete(runs []conversation.Run) {
	for grown := true; grown; {
		grown = false
		for _, r := range runs {
			if r.Session != w.session.ID || r.Continues == "" || w.runs[r.ID] == w.runs[r.Continues] {
				continue
			}
			w.runs[r.ID], w.runs[r.Continues], grown = true, true, true
		}
	}
	for _, r := range runs {
		if r.Session == w.session.ID && w.runs[r.ID] {
			w.threads[r.Thread] = true
		}
	}
}

// ids returns the runs in the order of their names.
func (w *wanted) ids() []string {
	var ids []string
	for id := range w.runs {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, strings.Compare)
	return ids
}
