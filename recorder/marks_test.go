package recorder

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tapedeck/protocol/capture"
)

// marksOf tells the marks of a tape, by session.
func marksOf(t *testing.T, path string) (told []string) {
	t.Helper()
	sessions, err := open(t, path).Sessions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sessions {
		if s.Notes == nil {
			continue
		}
		for _, m := range s.Notes.Marks {
			told = append(told, fmt.Sprintf("%d: #%s %s", s.ID, m.At, m.Text))
		}
	}
	return told
}

func mark(at capture.Position, packet int, text string) capture.Mark {
	return capture.Mark{At: capture.Address{Position: at, Packet: packet}, Text: text}
}

// TestMarks marks places of a tape while it is written and when it is at rest,
// and finds them after all that is done to tapes.
func TestMarks(t *testing.T) {
	path := tapePath(t)
	w, s := newTape(t, path, WriterOptions{})
	write(w, frames(s.First, 10))
	closeWriter(t, w, time.Second)
	w, s = newTape(t, path, WriterOptions{})
	write(w, frames(s.First, 10))
	for _, m := range []capture.Mark{mark(15, 1, "second"), mark(3, 2, "first"), mark(12, 1, "wrong"), mark(12, 1, ""), mark(15, 1, "again")} {
		if err := w.SetMark(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.SetMark(t.Context(), mark(21, 1, "beyond")); err == nil || !strings.Contains(err.Error(), "the tape ends at #20") {
		t.Errorf("a mark beyond the end: %v", err)
	}
	w.Index(&Index{Judged: 20}) // it writes the session's row, too
	closeWriter(t, w, time.Second)
	if err := SetMark(path, mark(16, 1, "at rest")); err != nil {
		t.Fatal(err)
	}
	want := []string{"1: #3.2 first", "2: #15 again", "2: #16 at rest"}
	if diff := cmp.Diff(want, marksOf(t, path)); diff != "" {
		t.Errorf("marks (-want +got):\n%s", diff)
	}

	repaired := filepath.Join(t.TempDir(), "b.tape")
	if _, err := Repair(t.Context(), path, repaired); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, marksOf(t, repaired)); diff != "" {
		t.Errorf("marks of the repaired tape (-want +got):\n%s", diff)
	}
	if _, err := Prune(t.Context(), path, Policy{Last: 1}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want[1:], marksOf(t, path)); diff != "" {
		t.Errorf("marks of the pruned tape (-want +got):\n%s", diff)
	}
	if err := SetMark(path, mark(3, 2, "gone")); err == nil || !strings.Contains(err.Error(), "no session has #3") {
		t.Errorf("a mark where nothing is any more: %v", err)
	}
}

// TestMarksRefused: who cannot keep a mark says so.
func TestMarksRefused(t *testing.T) {
	path := tapePath(t)
	w, s := newTape(t, path, WriterOptions{})
	write(w, frames(s.First, 3))
	if err := SetMark(path, mark(1, 1, "x")); !errors.Is(err, ErrLocked) {
		t.Errorf("another process writes the tape: %v, want ErrLocked", err)
	}
	if err := w.SetMark(t.Context(), mark(0, 0, "x")); err == nil {
		t.Error("position 0 was marked")
	}
	closeWriter(t, w, time.Second)
	if err := w.SetMark(context.Background(), mark(1, 1, "x")); !errors.Is(err, ErrClosed) {
		t.Errorf("the writer is closed: %v, want ErrClosed", err)
	}
}
