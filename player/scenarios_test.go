package player

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tapedeck/player/scenario"
)

var update = flag.Bool("update", false, "write the golden files")

// TestBuiltins plays every built-in scenario with the client that it expects,
// compares all that passed with its golden file, and has it judged: it raises
// the findings that it lists and no others.
func TestBuiltins(t *testing.T) {
	for _, name := range scenario.Names() {
		t.Run(name, func(t *testing.T) {
			s, err := scenario.Builtin(name)
			if err != nil {
				t.Fatal(err)
			}
			w := playOnce(t, s)
			golden(t, name, w.lines())
			judge(t, s, w)
		})
	}
}

// playOnce plays a scenario once.
func playOnce(t *testing.T, s *scenario.Scenario) (w *world) {
	synctest.Test(t, func(t *testing.T) {
		w = newWorld(t, Config{Scenario: s.Name, Scenarios: []*scenario.Scenario{s},
			Now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }})
		drive(t, w, s, "thread-1")
		w.gateway.stage.close()
	})
	return w
}

// golden compares lines with a file a person can read: long ones are cut, and
// of many in a row that differ in their sequence and delta alone the middle is
// left out.
func golden(t *testing.T, name string, lines []string) {
	t.Helper()
	const most = 400
	if len(lines) > most {
		lines = append(append(append([]string{}, lines[:most/2]...), "          …"), lines[len(lines)-most/2:]...)
	}
	var b strings.Builder
	for _, line := range lines {
		if len(line) > 600 {
			line = line[:600] + "…"
		}
		b.WriteString(line + "\n")
	}
	file := filepath.Join("testdata", "scenarios", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v: run go test -update", err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("it differs from %s (-want +got):\n%s", file, diff)
	}
}
