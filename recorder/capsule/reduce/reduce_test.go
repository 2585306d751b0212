package reduce

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation/corpus"
)

var update = flag.Bool("update", false, "write the golden files anew")

// conversations are those of the corpus, by name.
func conversations(t *testing.T) map[string][]capture.Frame {
	t.Helper()
	read, err := corpus.All("../../../protocol/testdata/conversations")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]capture.Frame{}
	for name, c := range read {
		all[name] = c.Frames
	}
	return all
}

// told writes frames for a person.
func told(frames []capture.Frame) string {
	var b strings.Builder
	for _, f := range frames {
		fmt.Fprintf(&b, "#%d %s %s %s\n", f.Position, f.Direction, f.Kind, f.Data)
	}
	return b.String()
}

// TestEveryRule reduces each conversation of the corpus to each rule that it
// breaks: the rule is broken in what is left, no other one that matters is, and
// nothing more can be taken out.
func TestEveryRule(t *testing.T) {
	tested := map[string]bool{}
	for name, frames := range conversations(t) {
		all := &reducer{ctx: t.Context(), session: 1}
		before := all.broken(frames)
		for rule := range before {
			t.Run(name+"/"+rule, func(t *testing.T) {
				if len(frames) > 500 && tested[rule] {
					t.Skip("the rule is reduced elsewhere")
				}
				tested[rule] = true
				result, err := Frames(t.Context(), 1, frames, Options{Rule: rule})
				if err != nil {
					t.Fatal(err)
				}
				if len(result.Frames) > len(frames) || !result.Whole || result.Finding.Rule != rule {
					t.Errorf("%d frames of %d are left, whole: %v, finding %+v", len(result.Frames), len(frames), result.Whole, result.Finding)
				}
				now := all.broken(result.Frames)
				for other, f := range now {
					if _, was := before[other]; !was && f.Severity >= protocol.Warning {
						t.Errorf("%s is broken in what is left, and was not before:\n%s", other, told(result.Frames))
					}
				}
				again, err := Frames(t.Context(), 1, result.Frames, Options{Rule: rule})
				if err != nil {
					t.Fatalf("reduced again: %v; it was:\n%s", err, told(result.Frames))
				}
				if len(again.Frames) != len(result.Frames) {
					t.Errorf("reduced again, %d frames of %d are left:\n%s", len(again.Frames), len(result.Frames), told(result.Frames))
				}
			})
		}
	}
}

// TestGolden shows what comes out.
func TestGolden(t *testing.T) {
	all := conversations(t)
	for _, tt := range []struct{ conversation, rule string }{
		{"sequence-gap.bad", "sequence-gap"}, {"run-open-items.bad", "run-open-items"},
	} {
		frames, ok := all[tt.conversation]
		if !ok {
			t.Fatalf("no conversation %q", tt.conversation)
		}
		result, err := Frames(t.Context(), 1, frames, Options{Rule: tt.rule})
		if err != nil {
			t.Fatal(err)
		}
		golden(t, tt.rule, fmt.Sprintf("%d frames, of which are left:\n%s", len(frames), told(result.Frames)))
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; -update writes it anew):\n%s", path, diff)
	}
}

func talk(t *testing.T, messages string) []capture.Frame {
	t.Helper()
	c, err := corpus.Read([]byte("-- messages --\n" + messages))
	if err != nil {
		t.Fatal(err)
	}
	return c.Frames
}

// TestLongRun finds one missing envelope among twenty thousand. Sequences are
// counted anew, but for the gap.
func TestLongRun(t *testing.T) {
	frames := talk(t, `
0 a connect
0.01 a> run:start {"threadId":"t","messageId":"m","input":"hi"}
0.02 a< t/r/1 RUN_STARTED
0.03 a< t/r/2 TEXT_MESSAGE_START {"messageId":"x"}
0.1+0.001*10000 a< t/r/{3} TEXT_MESSAGE_CONTENT {"messageId":"x","delta":"word "}
20.1+0.001*10000 a< t/r/{10004} TEXT_MESSAGE_CONTENT {"messageId":"x","delta":"word "}
40 a< t/r/20004 TEXT_MESSAGE_END {"messageId":"x"}
40.01 a< t/r/20005 RUN_FINISHED
41 a end client 1000
`)
	result, err := Frames(t.Context(), 1, frames, Options{Rule: "sequence-gap"})
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Frames) > 12 || !result.Renumbered || result.Tries > 500 {
		t.Errorf("%d frames are left of %d, after %d tries, renumbered %v:\n%s",
			len(result.Frames), len(frames), result.Tries, result.Renumbered, told(result.Frames))
	}
}

// TestPollingBodies are cut into their packets.
func TestPollingBodies(t *testing.T) {
	frames := talk(t, `
0 a open polling
0.001 a> 40
0.002 a< 40{"sid":"s"}
0.003 a< protocol:hello {"protocol":{"major":1,"minor":17},"minClientMajor":1}
0.01 a> run:start {"threadId":"t","messageId":"m","input":"hi"}
0.02 a< 42["run:event",{"v":1,"threadId":"t","runId":"r","sequence":1,"event":{"type":"RUN_STARTED"}}]␞42["run:event",{"v":1,"threadId":"t","runId":"r","sequence":2,"event":{"type":"TODOS_SNAPSHOT","todos":[]}}]␞42["run:event",{"v":1,"threadId":"t","runId":"r","sequence":3,"event":{"type":"NOPE"}}]␞42["run:event",{"v":1,"threadId":"t","runId":"r","sequence":4,"event":{"type":"RUN_FINISHED"}}]
1 a end client 1000
`)
	result, err := Frames(t.Context(), 1, frames, Options{Rule: "event-unknown"})
	if err != nil {
		t.Fatal(err)
	}
	text := told(result.Frames)
	if strings.Contains(text, "TODOS_SNAPSHOT") || !strings.Contains(text, "NOPE") {
		t.Errorf("what is left:\n%s", text)
	}
}

// TestStill keeps to what a function says, and no rule matters.
func TestStill(t *testing.T) {
	frames := talk(t, `
0 a connect
0.01 a> run:start {"threadId":"t","messageId":"m","input":"hi"}
0.02 a< t/r/1 RUN_STARTED
0.03 a< t/r/2 TEXT_MESSAGE_START {"messageId":"x"}
0.04 a< t/r/3 TEXT_MESSAGE_CONTENT {"messageId":"x","delta":"needle"}
0.05 a< t/r/4 TEXT_MESSAGE_END {"messageId":"x"}
0.06 a< t/r/5 RUN_FINISHED
1 a end client 1000
`)
	has := func(_ context.Context, frames []capture.Frame) (bool, error) {
		return strings.Contains(told(frames), "needle"), nil
	}
	result, err := Frames(t.Context(), 1, frames, Options{Still: has})
	if err != nil {
		t.Fatal(err)
	}
	if text := told(result.Frames); strings.Contains(text, "RUN_") || !strings.Contains(text, `"sequence":1,`) {
		t.Errorf("what is left:\n%s", text)
	}
	never := func(context.Context, []capture.Frame) (bool, error) { return false, nil }
	if _, err := Frames(t.Context(), 1, frames, Options{Still: never}); !errors.Is(err, ErrNotShown) {
		t.Errorf("it is never shown: %v, want ErrNotShown", err)
	}
	broken := errors.New("the disk is full")
	fails := func(_ context.Context, frames []capture.Frame) (bool, error) {
		if len(frames) < 8 {
			return false, broken
		}
		return true, nil
	}
	if _, err := Frames(t.Context(), 1, frames, Options{Still: fails}); !errors.Is(err, broken) {
		t.Errorf("a try fails: %v, want its error", err)
	}
}

// TestCutShort gives what was reached, and says so.
func TestCutShort(t *testing.T) {
	frames := conversations(t)["sequence-gap.bad"]
	result, err := Frames(t.Context(), 1, frames, Options{Rule: "sequence-gap", Tries: 3})
	if err != nil || result.Whole || result.Tries != 3 || result.Finding.Rule == "" {
		t.Errorf("after 3 tries: %+v, %v", result, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	tries := 0
	result, err = Frames(ctx, 1, frames, Options{Rule: "sequence-gap", Progress: func(int, int) {
		if tries++; tries == 2 {
			cancel()
		}
	}})
	if err != nil || result.Whole || tries != 2 {
		t.Errorf("interrupted: %+v, %v, after %d tries", result, err, tries)
	}
	if _, err := Frames(t.Context(), 1, frames, Options{Rule: "event-unknown"}); !errors.Is(err, ErrNotShown) {
		t.Errorf("a rule that is not broken: %v", err)
	}
	if slices.ContainsFunc(frames, func(f capture.Frame) bool { return f.Position == 0 }) {
		t.Error("the frames were changed")
	}
}
