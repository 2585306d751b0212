package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// TestTrickleNeverWaits is E11: a reader that has stopped does not stop the
// traffic. What it missed is told, and what it did not miss is in order.
func TestTrickleNeverWaits(t *testing.T) {
	r, w := io.Pipe() // nobody reads it yet
	out := newTrickle(w)
	line := strings.Repeat("x", 1000)
	const lines = 5000 // five times what may wait
	for i := range lines {
		fmt.Fprintf(out, "%04d %s\n", i, line)
	}
	read := make(chan string)
	go func() {
		text, _ := io.ReadAll(r)
		read <- string(text)
	}()
	// Once there is room again, the next line says what is missing.
	for {
		out.mu.Lock()
		room := out.waiting.Len() == 0
		out.mu.Unlock()
		if room {
			break
		}
	}
	fmt.Fprintf(out, "last\n")
	if err := out.close(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.Close()
	got := strings.Split(strings.TrimSuffix(<-read, "\n"), "\n")
	shown, missing := 0, 0
	for i, l := range got[:len(got)-2] {
		if !strings.HasPrefix(l, fmt.Sprintf("%04d ", i)) {
			t.Fatalf("line %d is %.20q", i, l)
		}
		shown++
	}
	if _, err := fmt.Sscanf(got[len(got)-2], "… %d lines were left out", &missing); err != nil {
		t.Fatalf("%q: %v", got[len(got)-2], err)
	}
	if shown+missing != lines || got[len(got)-1] != "last" {
		t.Errorf("%d lines shown and %d missing of %d, then %q", shown, missing, lines, got[len(got)-1])
	}
}

func TestTrickleClose(t *testing.T) {
	r, w := io.Pipe()
	out := newTrickle(w)
	fmt.Fprintln(out, "nobody reads this")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := out.close(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("close with a stopped reader: %v", err)
	}
	r.Close()
	<-out.done

	var text bytes.Buffer
	out = newTrickle(&text)
	fmt.Fprintln(out, "a")
	if err := out.close(t.Context()); err != nil || text.String() != "a\n" {
		t.Errorf("got %q, %v", text.String(), err)
	}
}
