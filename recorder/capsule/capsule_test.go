package capsule

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tapedeck/protocol/conversation"
)

// TestRoundTripsAreExact records, exports, imports and exports again.
func TestRoundTripsAreExact(t *testing.T) {
	for name, frames := range conversations(t) {
		t.Run(name, func(t *testing.T) {
			tape := record(t, frames)
			first := export(t, tape, Options{Format: JSONL, Title: "a title"})
			again, report := importText(t, first)
			if report.Broken > 0 {
				t.Fatalf("skipped %v", report.Skipped)
			}
			if diff := cmp.Diff(first, export(t, again, Options{Format: JSONL})); diff != "" {
				t.Errorf("the second export differs (-first +second):\n%s", diff)
			}
		})
	}
}

// TestCapsuleJudgesLikeTheTape exports each run alone, as a tape and as text.
func TestCapsuleJudgesLikeTheTape(t *testing.T) {
	for name, frames := range conversations(t) {
		t.Run(name, func(t *testing.T) {
			tape := record(t, frames, frames)
			runs := runsOf(t, tape)
			for i := range runs[:min(len(runs), 3)] {
				run := keyOf(&runs[i])
				want := rulesOf(t, tape, run)
				path := filepath.Join(t.TempDir(), "bug.tape")
				if _, err := ExportFile(context.Background(), tape, []conversation.RunKey{run}, path, Options{}); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, rulesOf(t, open(t, path), conversation.RunKey{Session: 1, Run: run.Run})); diff != "" {
					t.Errorf("findings of %s (-tape +capsule):\n%s", run.Run, diff)
				}
				text := export(t, tape, Options{Format: JSONL}, run)
				imported, _ := importText(t, text)
				if diff := cmp.Diff(want, rulesOf(t, imported, conversation.RunKey{Session: 1, Run: run.Run})); diff != "" {
					t.Errorf("findings of %s (-tape +imported):\n%s", run.Run, diff)
				}
				if diff := cmp.Diff(text, export(t, imported, Options{Format: JSONL}, conversation.RunKey{Session: 1, Run: run.Run})); diff != "" {
					t.Errorf("the second export of %s differs:\n%s", run.Run, diff)
				}
			}
		})
	}
}
