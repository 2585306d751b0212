package main

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tapedeck/player"
	"tapedeck/player/scenario"
	"tapedeck/protocol/conversation"
	"tapedeck/recorder"
	"tapedeck/recorder/capsule"
)

// capsuleScenarios are those whose recordings are made into capsules: one for
// each thing that a capsule can get wrong, and none that waits long.
var capsuleScenarios = []string{
	"hello", "reasoning", "tool", "parallel-tools", "approval", "several-interrupts", "client-tool-blocking", "subagent",
	"todos", "error-mid-text", "cancel-mid-text", "disconnect-mid-run", "second-window", "two-threads", "unicode", "malformed-repeat",
	"kitchen-sink",
}

// TestCapsulesOfRecordings makes capsules of what passed through the proxy: they
// must say of each run what the tape says, and be a scenario that can be read.
func TestCapsulesOfRecordings(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: the scenarios are played in real time")
	}
	recorded := recordAll(t, capsuleScenarios)
	for _, name := range capsuleScenarios {
		t.Run(name, func(t *testing.T) {
			r := recorded[name]
			<-r.done
			if r.err != nil {
				t.Fatal(r.err)
			}
			tape, err := recorder.Open(r.path)
			if err != nil {
				t.Fatal(err)
			}
			defer tape.Close()
			runs, err := tape.Runs(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, run := range runs {
				sameInCapsule(t, tape, conversation.RunKey{Session: run.Session, Run: run.ID})
			}
			var yaml bytes.Buffer
			if _, err := capsule.Export(t.Context(), tape, nil, &yaml, capsule.Options{Format: capsule.Scenario}); err != nil {
				t.Fatal(err)
			}
			if _, err := scenario.Parse("exported", yaml.Bytes()); err != nil {
				t.Errorf("%v\n%s", err, yaml.String())
			}
			eventsOfAGUI(t, tape)
		})
	}
}

var placeInText = regexp.MustCompile(`#[0-9.]+`)

// sameInCapsule exports a run, redacted, and compares the findings.
func sameInCapsule(t *testing.T, tape *recorder.Reader, run conversation.RunKey) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run.tape")
	_, err := capsule.ExportFile(t.Context(), tape, []conversation.RunKey{run}, path, capsule.Options{Tool: version(), Redact: []string{"all"}})
	if err != nil {
		t.Fatal(err)
	}
	small, err := recorder.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer small.Close()
	told := func(r *recorder.Reader, run conversation.RunKey) (rules []string) {
		found, err := r.Findings(context.Background(), &run)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			rules = append(rules, f.Rule+" "+placeInText.ReplaceAllString(f.Text, "#"))
		}
		return rules
	}
	if diff := cmp.Diff(told(tape, run), told(small, conversation.RunKey{Session: 1, Run: run.Run}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("findings of %s (-tape +capsule):\n%s", run.Run, diff)
	}
}

// eventsOfAGUI holds the order that AG-UI asks for: a run begins, what is in it
// begins and ends, and it ends; then the next one.
func eventsOfAGUI(t *testing.T, tape *recorder.Reader) {
	t.Helper()
	var text bytes.Buffer
	if _, err := capsule.Export(t.Context(), tape, nil, &text, capsule.Options{Format: capsule.AGUI}); err != nil {
		t.Fatal(err)
	}
	running, open := "", map[string]bool{}
	lines := bytes.Split(bytes.TrimSpace(text.Bytes()), []byte("\n"))
	for i, line := range lines {
		var e struct {
			Type, RunID, MessageID, ToolCallID, Delta string
			Outcome                                   struct {
				Type       string
				Interrupts []struct{ ID, Reason string }
			}
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("line %d: %v", i+1, err)
		}
		bad := func(why string) { t.Errorf("line %d %s: %s", i+1, why, line) }
		switch e.Type {
		case "RUN_STARTED":
			if running != "" {
				bad("begins while " + running + " goes on")
			}
			running = e.RunID
		case "RUN_FINISHED", "RUN_ERROR":
			if running == "" || len(open) > 0 && e.Type == "RUN_FINISHED" {
				bad("ends a run too early")
			}
			if e.Outcome.Type == "interrupt" && len(e.Outcome.Interrupts) == 0 {
				bad("interrupts and asks nothing")
			}
			running, open = "", map[string]bool{}
		case "TEXT_MESSAGE_START", "REASONING_MESSAGE_START", "TOOL_CALL_START":
			open[e.MessageID+e.ToolCallID] = true
		case "TEXT_MESSAGE_CONTENT", "REASONING_MESSAGE_CONTENT", "TOOL_CALL_ARGS":
			if !open[e.MessageID+e.ToolCallID] || e.Delta == "" {
				bad("adds to nothing, or nothing")
			}
		case "TEXT_MESSAGE_END", "REASONING_MESSAGE_END", "TOOL_CALL_END":
			delete(open, e.MessageID+e.ToolCallID)
		}
		if running == "" && e.Type != "RUN_FINISHED" && e.Type != "RUN_ERROR" {
			bad("stands outside a run")
		}
	}
}

// TestExportedScenariosPlay plays a recording's scenario: the client sees the
// same run again.
func TestExportedScenariosPlay(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: the scenarios are played in real time")
	}
	for _, name := range []string{"tool", "approval", "subagent"} {
		t.Run(name, func(t *testing.T) {
			recorded := recordAll(t, []string{name})[name]
			<-recorded.done
			if recorded.err != nil {
				t.Fatal(recorded.err)
			}
			first, yaml := shapeOf(t, recorded.path)
			s, err := scenario.Parse("exported", yaml)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "again.tape")
			if err := recordPlayer(player.Config{Scenario: s.Name, Scenarios: []*scenario.Scenario{s}}, s, "thread-1", path); err != nil {
				t.Fatal(err)
			}
			again, _ := shapeOf(t, path)
			if diff := cmp.Diff(first, again); diff != "" {
				t.Errorf("what was recorded, and what its scenario plays (-first +again):\n%s\n%s", diff, yaml)
			}
		})
	}
}

// shapeOf is what a tape's runs consist of: the text of each thing in them.
func shapeOf(t *testing.T, path string) (shape []string, yaml []byte) {
	t.Helper()
	tape, err := recorder.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer tape.Close()
	var out bytes.Buffer
	if _, err := capsule.Export(t.Context(), tape, nil, &out, capsule.Options{Format: capsule.Scenario}); err != nil {
		t.Fatal(err)
	}
	var events bytes.Buffer
	if _, err := capsule.Export(t.Context(), tape, nil, &events, capsule.Options{Format: capsule.AGUI}); err != nil {
		t.Fatal(err)
	}
	for _, line := range bytes.Split(bytes.TrimSpace(events.Bytes()), []byte("\n")) {
		var e struct {
			Type, Delta, Content, ToolCallName string
			Outcome                            struct{ Type string }
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		if n := len(shape); e.Delta != "" && n > 0 && shape[n-1][0] == '+' {
			shape[n-1] += e.Delta
		} else if e.Delta != "" {
			shape = append(shape, "+"+e.Delta)
		} else {
			shape = append(shape, e.Type+" "+e.ToolCallName+e.Content+e.Outcome.Type)
		}
	}
	return shape, out.Bytes()
}
