package scenario

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"tapedeck/player/script"
	"tapedeck/protocol"
)

// TestBuiltins compiles the first segment of every run of every scenario in the
// binary, twice: the bytes are the same, the times never run back, and every
// event is JSON.
func TestBuiltins(t *testing.T) {
	for _, name := range Names() {
		s, err := Builtin(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if s.Title == "" || s.About == "" || s.Client == nil {
			t.Errorf("%s: title, about or client is missing", name)
		}
		for i := range s.Runs {
			in := Input{Seed: s.Seed, Thread: "t", Run: "r", Ordinal: i, Text: "hi"}
			first, _ := s.Segment(in)
			again, _ := s.Segment(in)
			if !reflect.DeepEqual(first, again) {
				t.Errorf("%s: run %d compiles to two things", name, i)
			}
			checkCues(t, name, first.Cues)
			checkCues(t, name, first.OnCancel.Instead)
		}
	}
}

func checkCues(t *testing.T, name string, cues []script.Cue) {
	t.Helper()
	if !slices.IsSortedFunc(cues, func(a, b script.Cue) int { return int(a.At - b.At) }) {
		t.Errorf("%s: the cues are not in the order of their times", name)
	}
	for _, cue := range cues {
		if e, ok := script.EventOf(cue.Act); ok && (e.Warp == nil || !e.Warp.Repeat) && !json.Valid(e.JSON) {
			t.Errorf("%s: event %s is no JSON", name, e.JSON)
		}
	}
}

// TestCatalogue names every event type that the protocol has in kitchen-sink,
// detach aside.
func TestCatalogue(t *testing.T) {
	s, err := Builtin("kitchen-sink")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[protocol.EventType]bool{protocol.RunCancelled: true} // by the client's cancel
	for i := range s.Runs {
		segment, _ := s.Segment(Input{Thread: "t", Run: "r", Ordinal: i, Tools: [][]string{{"pick_date"}}})
		for _, cue := range segment.Cues {
			if e, ok := script.EventOf(cue.Act); ok {
				seen[e.Type] = true
			}
		}
	}
	if len(seen) != 19 {
		t.Errorf("it has %d event types, want 19: %v", len(seen), seen)
	}
}

// TestUnknownName says which scenario was meant (P05).
func TestUnknownName(t *testing.T) {
	for name, want := range map[string]string{"aproval": `did you mean "approval"?`, "zzz": "there are approval, "} {
		if _, err := Builtin(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Builtin(%q): %v, want %s", name, err, want)
		}
	}
}
