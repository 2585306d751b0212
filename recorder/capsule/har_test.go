package capsule

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// TestArchivesOfBrowsers imports what browsers save. Each has one run.
func TestArchivesOfBrowsers(t *testing.T) {
	for _, c := range []struct {
		file, gateway string
		broken        int
		findings      []string
	}{
		{"chrome.har", "https://gateway.example", 1, nil},  // a message that tells of an error
		{"firefox.har", "https://gateway.example", 1, nil}, // an entry of yesterday
		{"playwright.har", "http://gateway.example", 0, []string{"note stall t1 r1  24h0m0s without an event, after #"}},
	} {
		t.Run(c.file, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("testdata/har", c.file))
			if err != nil {
				t.Fatal(err)
			}
			tape, report := importText(t, string(text))
			if report.Broken != c.broken {
				t.Errorf("skipped %v, want %d", report.Skipped, c.broken)
			}
			if s := report.Sessions[0]; s.Gateway != c.gateway || s.Source != "bug.jsonl" {
				t.Errorf("the session is %+v", s)
			}
			runs := runsOf(t, tape)
			if len(runs) != 1 || runs[0].ID != "r1" || runs[0].Status != conversation.Finished || runs[0].Input != "hello" {
				t.Fatalf("the runs are %+v", runs)
			}
			if diff := cmp.Diff(c.findings, rulesOf(t, tape, keyOf(&runs[0]))); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
			for _, f := range framesIn(t, tape) {
				if !f.Flags.Has(capture.Imported) {
					t.Errorf("frame %d is not marked as imported", f.Position)
				}
			}
			golden(t, filepath.Join("testdata/har", strings.TrimSuffix(c.file, ".har")+".txt"), brief(framesIn(t, tape)))
		})
	}
}

// brief lists frames for people.
func brief(frames []capture.Frame) string {
	var b strings.Builder
	for _, f := range frames {
		data := string(f.Data)
		if len(data) > 60 {
			data = data[:60] + "…"
		}
		fmt.Fprintf(&b, "%3d %12v conn %d exch %d %-7s %-8s %q\n", f.Position, f.At, f.Connection, f.Exchange, f.Direction, f.Kind, data)
	}
	return b.String()
}

// TestTimesThatRunBackwards is B09: they are kept, and so is the order.
func TestTimesThatRunBackwards(t *testing.T) {
	text, err := os.ReadFile("testdata/har/playwright.har")
	if err != nil {
		t.Fatal(err)
	}
	tape, _ := importText(t, string(text))
	var at []time.Duration
	for _, f := range framesIn(t, tape) {
		if f.Kind == capture.Text {
			at = append(at, f.At)
		}
	}
	want := []time.Duration{100 * time.Millisecond, time.Second, 500 * time.Millisecond, 24*time.Hour + time.Second}
	if diff := cmp.Diff(want, at); diff != "" {
		t.Errorf("times (-want +got):\n%s", diff)
	}
	if run := runsOf(t, tape)[0]; run.Started < 0 || run.Ended < run.Started || run.FirstToken > 0 {
		t.Errorf("the run's times are %+v", run)
	}
}

// TestArchivesRoundTrip exports, imports and exports again.
func TestArchivesRoundTrip(t *testing.T) {
	all := conversations(t)
	all["planted"] = planted(t)
	for name, frames := range all {
		t.Run(name, func(t *testing.T) {
			tape := record(t, frames)
			first := export(t, tape, Options{Format: HAR, Tool: "v1"})
			if !json.Valid([]byte(first)) {
				t.Fatalf("it is no JSON:\n%s", first)
			}
			again, report := importText(t, first)
			if report.Broken > 0 {
				t.Fatalf("skipped %v", report.Skipped)
			}
			second := export(t, again, Options{Format: HAR, Tool: "v1"})
			if name == "planted" { // where its bodies were cut is lost, the first time
				again, _ := importText(t, second)
				first, second = second, export(t, again, Options{Format: HAR, Tool: "v1"})
			}
			if diff := cmp.Diff(first, second); diff != "" {
				t.Errorf("the second archive differs (-first +second):\n%s", diff)
			}
			for _, run := range runsOf(t, tape) {
				if diff := cmp.Diff(rulesOf(t, tape, keyOf(&run)), rulesOf(t, again, keyOf(&run))); diff != "" {
					t.Errorf("findings of %s (-tape +archive):\n%s", run.ID, diff)
				}
			}
		})
	}
}
