package inspector

import (
	"context"
	"fmt"
	"iter"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// pageSize is how many frames are asked for at a time.
const pageSize = 1024

// pager reads the frames of one run, a page at a time.
type pager struct {
	run  conversation.RunKey
	next int
	page []capture.Frame
	done bool
}

// peek returns the next frame, nil at the end.
func (p *pager) peek(ctx context.Context, src Source) (*capture.Frame, error) {
	if len(p.page) == 0 && !p.done {
		page, err := src.Rows(ctx, p.run, p.next, pageSize)
		if err != nil {
			return nil, fmt.Errorf("read run %q: %w", p.run.Run, err)
		}
		p.page, p.next, p.done = page, p.next+len(page), len(page) == 0
	}
	if len(p.page) == 0 {
		return nil, nil
	}
	return &p.page[0], nil
}

// RunFrames yields the frames of some runs of one session, each once, in the
// order of their positions.
func RunFrames(ctx context.Context, src Source, runs []conversation.Run) iter.Seq2[*capture.Frame, error] {
	return func(yield func(*capture.Frame, error) bool) {
		pagers := make([]pager, len(runs))
		for i, r := range runs {
			pagers[i].run = conversation.RunKey{Session: r.Session, Run: r.ID}
		}
		for last := capture.Position(0); ; {
			var next *capture.Frame
			for i := range pagers {
				f, err := pagers[i].peek(ctx, src)
				for err == nil && f != nil && f.Position <= last {
					pagers[i].page = pagers[i].page[1:]
					f, err = pagers[i].peek(ctx, src)
				}
				if err != nil {
					yield(nil, err)
					return
				}
				if f != nil && (next == nil || f.Position < next.Position) {
					next = f
				}
			}
			if next == nil {
				return
			}
			if last = next.Position; !yield(next, nil) {
				return
			}
		}
	}
}

// RunFindings returns the findings of some runs.
func RunFindings(ctx context.Context, src Source, runs []conversation.Run) ([]protocol.Finding, error) {
	found := []protocol.Finding{}
	for _, r := range runs {
		of, err := src.Findings(ctx, &conversation.RunKey{Session: r.Session, Run: r.ID})
		if err != nil {
			return nil, fmt.Errorf("read the findings of run %q: %w", r.ID, err)
		}
		found = append(found, of...)
	}
	return found, nil
}

// RunMoments yields the moments that belong to some runs of one session. A
// frame may hold messages of other runs: those are left out.
func RunMoments(ctx context.Context, src Source, runs []conversation.Run, found []protocol.Finding) iter.Seq2[*Moment, error] {
	return func(yield func(*Moment, error) bool) {
		feed, wanted, threads := NewFeed(found), map[string]bool{}, map[string]bool{}
		for _, r := range runs {
			wanted[r.ID], threads[r.Thread] = true, true
		}
		for frame, err := range RunFrames(ctx, src, runs) {
			if err != nil {
				yield(nil, err)
				return
			}
			moments := feed.Frame(frame)
			for i := range moments {
				m := &moments[i]
				if m.Message != nil && m.Message.Name == protocol.Hello && len(m.Findings) == 0 {
					continue // the connection's, and not the run's
				}
				if m.Run != "" && !wanted[m.Run] || m.Run == "" && m.Thread != "" && !threads[m.Thread] {
					continue
				}
				if !yield(m, nil) {
					return
				}
			}
		}
	}
}

// LoadTimeline folds some runs of one session.
func LoadTimeline(ctx context.Context, src Source, runs []conversation.Run, o TimelineOptions) (*Timeline, error) {
	found, err := RunFindings(ctx, src, runs)
	if err != nil {
		return nil, err
	}
	t := NewTimeline(o)
	for m, err := range RunMoments(ctx, src, runs, found) {
		if err != nil {
			return nil, err
		}
		t.Add(m)
	}
	for _, f := range found {
		if r := t.RowAt(f.At); r == nil {
			t.Loose = append(t.Loose, f)
		}
	}
	marks, err := loadMarks(ctx, src)
	if err != nil {
		return nil, err
	}
	t.Mark(marks)
	for _, r := range runs {
		if r.Status == conversation.Running || r.Status == conversation.Paused {
			return t, nil
		}
	}
	t.Finish()
	return t, nil
}
