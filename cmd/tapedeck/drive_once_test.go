package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tapedeck/inspector"
	"tapedeck/player/driver"
	"tapedeck/protocol"
	"tapedeck/protocol/conversation"
)

// TestChains joins what goes on after a pause, on the tape, and where the live
// gateway has more, there.
func TestChains(t *testing.T) {
	recorded := map[string]conversation.Run{"r1": {ID: "r1"}, "r2": {ID: "r2", Continues: "r1"}, "r3": {ID: "r3"}}
	live := map[string]conversation.Run{"l1": {ID: "l1"}, "l3": {ID: "l3"}, "l4": {ID: "l4", Continues: "l3"}, "l5": {ID: "l5"}}
	runs := []driver.Run{
		{ID: "r1", LiveID: "l1"}, {ID: "r3", LiveID: "l3"}, {ID: "r2"}, {LiveID: "l4"}, {LiveID: "l5"}, {ID: "r3", LiveID: "l3"},
	}
	want := [][]driver.Run{{runs[0], runs[2]}, {runs[1], runs[3], runs[5]}, {runs[4]}}
	if diff := cmp.Diff(want, chains(runs, recorded, live)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestCut tells a run that was cut off elsewhere from one that is another.
func TestCut(t *testing.T) {
	cancelled := driver.Run{ID: "r", LiveID: "l", End: protocol.RunCancelled, LiveEnd: protocol.RunCancelled}
	text := func(a, b string) inspector.Pair {
		c := &inspector.Construct{Kind: inspector.KindText}
		return inspector.Pair{A: c, B: c, Changes: []inspector.Change{{Field: "/text", A: a, B: b}}}
	}
	only := inspector.Pair{A: &inspector.Construct{Kind: inspector.KindText}}
	for _, c := range []struct {
		name  string
		run   driver.Run
		pairs []inspector.Pair
		want  bool
	}{
		{"one delta more", cancelled, []inspector.Pair{text(`"one two"`, `"one two three"`), only}, true},
		{"one delta fewer", cancelled, []inspector.Pair{text(`"one two"`, `"one"`)}, true},
		{"not yet begun", cancelled, []inspector.Pair{text("", `"one"`)}, true},
		{"another text", cancelled, []inspector.Pair{text(`"one two"`, `"eins"`)}, false},
		{"another order", cancelled, []inspector.Pair{{A: only.A, B: only.A, Moved: true}}, false},
		{"the client left before the end", driver.Run{ID: "r", LiveID: "l", LiveEnd: protocol.RunFinished}, []inspector.Pair{only}, true},
		{"never begun", driver.Run{ID: "r", End: protocol.RunCancelled}, []inspector.Pair{only}, false},
		{"finished before the cancel", driver.Run{ID: "r", LiveID: "l", End: protocol.RunCancelled, LiveEnd: protocol.RunFinished}, []inspector.Pair{only}, false},
	} {
		if got := isCut(c.run) && onlyCut(&inspector.Diff{Pairs: c.pairs}); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
