package player

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tapedeck/player/scenario"
	"tapedeck/protocol/conversation"
)

func judge(t *testing.T, s *scenario.Scenario, w *world) {
	t.Helper()
	state := conversation.New(conversation.Options{})
	got := map[string]int{}
	for _, f := range w.frames {
		for _, finding := range state.Observe(f).Findings {
			got[finding.Rule]++
			t.Logf("%s %s at %s: %s", finding.Severity, finding.Rule, finding.At, finding.Text)
		}
	}
	for _, finding := range state.End().Findings {
		got[finding.Rule]++
		t.Logf("%s %s at the end: %s", finding.Severity, finding.Rule, finding.Text)
	}
	want := map[string]int{}
	for _, f := range s.Findings {
		want[f.Rule] += f.Times
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-listed +raised):\n%s", diff)
	}
}
