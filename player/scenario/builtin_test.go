package scenario

import (
	"testing"
)

// TestBuiltinsLoad reads every scenario in the binary and compiles the first
// segment of each of its runs.
func TestBuiltinsLoad(t *testing.T) {
	for _, name := range Names() {
		s, err := Builtin(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if s.Title == "" || s.Client == nil {
			t.Errorf("%s: title or client is missing", name)
		}
		for i := range s.Runs {
			sc, problem := s.Segment(Input{Seed: s.Seed, Thread: "t", Run: "r", Ordinal: i, Text: "hi"})
			if problem == nil && len(sc.Cues) == 0 && s.Runs[i].Start != "never" {
				t.Errorf("%s: run %d compiles to nothing", name, i)
			}
			for _, c := range sc.Cues {
				t.Logf("%8v %s %+v", c.At.Milliseconds(), c.Lane, c.Act)
			}
		}
	}
}
