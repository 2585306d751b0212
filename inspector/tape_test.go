package inspector

import (
	"cmp"
	"context"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
	"tapedeck/protocol/conversation/corpus"
)

// tape is a Source in memory, judged as a proxy would judge it.
type tape struct {
	session  capture.Session
	frames   []capture.Frame
	runs     []conversation.Run
	threads  []conversation.Thread
	posts    map[string][]capture.Position
	findings []protocol.Finding
}

// began is when the sessions of tests began.
var began = time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)

// readTape reads a story of testdata.
func readTape(t testing.TB, name string) *tape {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := corpus.Read(data)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return newTape(c.Frames)
}

func newTape(frames []capture.Frame) *tape {
	tp := &tape{frames: frames, posts: map[string][]capture.Position{}}
	tp.session = capture.Session{ID: 1, Started: began, First: 1, Source: "proxy", Listen: "127.0.0.1:8080", Gateway: "https://gateway.example", Clean: true}
	state := conversation.New(conversation.Options{Session: 1})
	runs, threads := map[string]conversation.Run{}, map[string]conversation.Thread{}
	take := func(s *conversation.Step) {
		tp.findings = append(tp.findings, s.Findings...)
		for _, p := range s.Posts {
			tp.posts[p.Run.Run] = append(tp.posts[p.Run.Run], p.Position)
		}
		for _, r := range state.Changed() {
			runs[r.ID] = *r
		}
		for _, th := range state.ChangedThreads() {
			threads[th.ID] = *th
		}
	}
	for i := range frames {
		take(state.Observe(&frames[i]))
	}
	take(state.End())
	if n := len(frames); n > 0 {
		last := frames[n-1]
		tp.session.Last, tp.session.Judged, tp.session.Ended = last.Position, last.Position, began.Add(last.At)
	}
	for _, r := range runs {
		tp.runs = append(tp.runs, r)
	}
	for _, th := range threads {
		tp.threads = append(tp.threads, th)
	}
	slices.SortFunc(tp.runs, func(a, b conversation.Run) int { return cmp.Compare(a.First, b.First) })
	slices.SortFunc(tp.threads, func(a, b conversation.Thread) int { return cmp.Compare(a.First, b.First) })
	for _, posts := range tp.posts {
		slices.Sort(posts)
	}
	return tp
}

func (t *tape) Sessions(context.Context) ([]capture.Session, error) {
	if t.session.ID == 0 {
		return nil, nil
	}
	return []capture.Session{t.session}, nil
}

func (t *tape) Runs(context.Context) ([]conversation.Run, error)       { return t.runs, nil }
func (t *tape) Threads(context.Context) ([]conversation.Thread, error) { return t.threads, nil }

func (t *tape) Rows(_ context.Context, run conversation.RunKey, from, n int) ([]capture.Frame, error) {
	var positions []capture.Position
	for _, p := range t.posts[run.Run] {
		positions = append(positions, p)
		if c := t.frames[p-1].Connection; c != 0 {
			positions = append(positions, c)
		}
	}
	slices.Sort(positions)
	positions = slices.Compact(positions)
	var page []capture.Frame
	for _, p := range positions[min(from, len(positions)):min(from+n, len(positions))] {
		page = append(page, t.frames[p-1])
	}
	return page, nil
}

func (t *tape) Frames(_ context.Context, from capture.Position, n int) ([]capture.Frame, error) {
	if from < 1 || int(from) > len(t.frames) {
		return nil, nil
	}
	return t.frames[from-1 : min(int(from)-1+n, len(t.frames))], nil
}

func (t *tape) Findings(_ context.Context, run *conversation.RunKey) ([]protocol.Finding, error) {
	var found []protocol.Finding
	for _, f := range t.findings {
		if run == nil || f.Run == run.Run {
			found = append(found, f)
		}
	}
	return found, nil
}

func (t *tape) Follow(_ context.Context, from capture.Position) iter.Seq2[capture.Frame, error] {
	return func(yield func(capture.Frame, error) bool) {
		for _, f := range t.frames[max(from, 1)-1:] {
			if !yield(f, nil) {
				return
			}
		}
	}
}
