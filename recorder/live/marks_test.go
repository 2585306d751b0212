package live

import (
	"context"
	"strings"
	"testing"
	"time"

	"tapedeck/protocol/capture"
)

// TestSetMark marks a tape through the process that writes it, and in the file
// when that has ended.
func TestSetMark(t *testing.T) {
	path, w := recording(t)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	l := must(Listen(path))
	go func() { served <- Serve(ctx, l, w.Reader(), w.SetMark) }()
	r := must(Open(path))
	defer r.Close()
	first := capture.Mark{At: capture.Address{Position: 7, Packet: 1}, Text: "here é"}
	if err := r.SetMark(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	beyond := capture.Mark{At: capture.Address{Position: 101, Packet: 1}, Text: "x"}
	if err := r.SetMark(t.Context(), beyond); err == nil || !strings.Contains(err.Error(), "the tape ends at #100") {
		t.Errorf("a mark beyond the end: %v", err)
	}
	long := capture.Mark{At: first.At, Text: strings.Repeat("x", maxMark)}
	if err := r.SetMark(t.Context(), long); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("a mark that is too long: %v", err)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if err := w.Close(time.Second); err != nil {
		t.Fatal(err)
	}
	second := capture.Mark{At: capture.Address{Position: 9, Packet: 1}, Text: "and there"}
	if err := r.SetMark(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	notes := must(r.Sessions(t.Context()))[0].Notes
	if notes == nil || len(notes.Marks) != 2 || notes.Marks[0] != first || notes.Marks[1] != second {
		t.Errorf("the tape has the notes %+v", notes)
	}
}
