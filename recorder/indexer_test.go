package recorder

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

func runKeyOf(session capture.SessionID) conversation.RunKey {
	return conversation.RunKey{Session: session, Run: fmt.Sprintf("run-of-%d", session)}
}

// smallIndex says that a session has one run, with the frames at 8 and 16 in it.
func smallIndex(s *capture.Session) *Index {
	key := runKeyOf(s.ID)
	return &Index{
		Judged: s.First + 6999,
		Posts:  []conversation.Post{{Run: key, Position: s.First + 8}, {Run: key, Position: s.First + 16}, {Run: key, Position: s.First + 16}},
		Runs:   []*conversation.Run{{Session: s.ID, ID: key.Run, First: s.First + 8}},
		Threads: []*conversation.Thread{{ID: "thread", First: s.First, Last: s.First + 16, Runs: 1, Errors: 1,
			Status: conversation.Status(fmt.Sprint(s.ID))}},
		Findings: []protocol.Finding{{Rule: "r", Run: key.Run, At: capture.Address{Position: s.First + 8}}},
	}
}

// After a crash the derived rows are dropped and made again, those of one
// session and no other.
func TestIndexer(t *testing.T) {
	path := tapePath(t)
	for range 2 {
		w, s := newTape(t, path, WriterOptions{})
		write(w, frames(s.First, 7000))
		x := smallIndex(s)
		if s.ID == 2 {
			x.Judged = s.First + 100 // as when it was killed
		}
		w.Index(x)
		closeWriter(t, w, time.Second)
	}
	r := open(t, path)
	threads, err := r.Threads(t.Context())
	if err != nil || len(threads) != 1 || threads[0].Runs != 2 || threads[0].Errors != 2 || threads[0].Status != "2" || threads[0].First != 1 {
		t.Errorf("the thread of two sessions is %+v, %v", threads, err)
	}
	left, err := r.Unjudged(t.Context())
	if err != nil || len(left) != 1 || left[0].ID != 2 || left[0].Last != 14_000 {
		t.Fatalf("unjudged %+v, %v", left, err)
	}
	r.Close()
	if _, err := OpenIndexer(path, 3); err == nil || !strings.Contains(err.Error(), "there is no session 3") {
		t.Errorf("a session that is not there: %v", err)
	}

	x, err := OpenIndexer(path, 2)
	if err != nil {
		t.Fatal(err)
	}
	s := x.Session()
	inside := x.Reader()
	if runs, err := inside.Runs(t.Context()); err != nil || len(runs) != 1 || runs[0].Session != 1 {
		t.Errorf("runs meanwhile %+v, %v", runs, err)
	}
	if all, err := inside.Frames(t.Context(), s.First, 10_000); err != nil || len(all) != 7000 {
		t.Errorf("%d frames to be judged, %v", len(all), err)
	}
	inside.Close() // it is the Indexer's file
	if err := x.Index(smallIndex(&s)); err != nil {
		t.Fatal(err)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	r = open(t, path)
	left, err = r.Unjudged(t.Context())
	runs, rerr := r.Runs(t.Context())
	findings, ferr := r.Findings(t.Context(), nil)
	if err != nil || len(left) != 0 || rerr != nil || len(runs) != 2 || ferr != nil || len(findings) != 2 {
		t.Errorf("unjudged %+v, %v; runs %+v, %v; findings %+v, %v", left, err, runs, rerr, findings, ferr)
	}
	for _, session := range []capture.SessionID{1, 2} {
		if rows, err := r.Rows(t.Context(), runKeyOf(session), 0, 10); err != nil || len(rows) != 3 {
			t.Errorf("%d rows of session %d, %v; want 3", len(rows), session, err)
		}
	}
}
