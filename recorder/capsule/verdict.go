package capsule

import (
	"fmt"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// verdict is what the judge says of some frames: the findings, and how the runs
// stand. Two verdicts can be compared though one of them saw less.
type verdict struct {
	found map[string]protocol.Finding
	stand map[string]string
}

func newVerdict() verdict {
	return verdict{found: map[string]protocol.Finding{}, stand: map[string]string{}}
}

func (v verdict) findings(list []protocol.Finding) {
	for _, f := range list {
		key := fmt.Sprintf("%d.%d %s %s %s", f.At.Position, f.At.Packet, f.Rule, f.Run, f.Pointer)
		v.found[key] = f
	}
}

func (v verdict) runs(changed []*conversation.Run) {
	for _, r := range changed {
		v.stand[r.ID] = fmt.Sprint(r.Status, r.Envelopes, r.Continues, r.Waiting, r.Errors, r.Warnings, r.Notes)
	}
}

// same reports whether what was judged by itself, as part, says of the wanted
// runs what the whole says, and nothing of what is in it that the whole does not
// say.
func (v verdict) same(part verdict, taken *set, runs map[string]bool) bool {
	for key, f := range v.found {
		if _, is := part.found[key]; !is && (runs[f.Run] || f.Run == "" && taken.has(f.At.Position)) {
			return false
		}
	}
	for key, f := range part.found {
		if _, is := v.found[key]; !is && (f.Run == "" || runs[f.Run]) {
			return false
		}
	}
	for id := range runs {
		if v.stand[id] != part.stand[id] {
			return false
		}
	}
	return true
}

// trial judges part of a session as if there were nothing else.
type trial struct {
	taken   *set
	state   *conversation.State
	verdict verdict
}

func newTrial(session capture.SessionID) *trial {
	return &trial{taken: newSet(), state: conversation.New(conversation.Options{Session: session}), verdict: newVerdict()}
}

func (t *trial) frame(f *capture.Frame) {
	t.taken.add(f.Position)
	t.verdict.findings(t.state.Observe(f).Findings)
	t.verdict.runs(t.state.Changed())
	t.state.ChangedThreads()
}

func (t *trial) end() {
	t.verdict.findings(t.state.End().Findings)
	t.verdict.runs(t.state.Changed())
}
