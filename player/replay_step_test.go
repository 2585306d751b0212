package player_test

import (
	"testing"

	"tapedeck/player"
	"tapedeck/player/scenario"
	"tapedeck/player/tape"
)

// TestStepThroughATape holds a recording before each envelope, however long that
// lasts, and lets one go at a time.
func TestStepThroughATape(t *testing.T) {
	s, err := scenario.Builtin("tool")
	if err != nil {
		t.Fatal(err)
	}
	recorded := player.Rehearse(t, player.Config{Scenario: "tool"}, s, "thread-1")
	want, _ := events(recorded)
	source, err := tape.New(t.Context(), frames(recorded), tape.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := player.Stepped(t, player.Config{Source: source, Step: true}, s.Client[1].Start.Input)
	if len(got) != len(want) || len(want) < 10 {
		t.Fatalf("%d envelopes were stepped through, and %d recorded", len(got), len(want))
	}
	for at, sent := range got {
		if sent != at+1 {
			t.Fatalf("after step %d, %d envelopes had been sent", at+1, sent)
		}
	}
}
