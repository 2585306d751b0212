package inspector

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

func tailOf(t *testing.T, v *View, o TailOptions) []string {
	t.Helper()
	var out bytes.Buffer
	v.Out = &out
	if err := v.Tail(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

// TestTailNew: what passed before one looked on is not shown, but known: a text
// that began earlier is whole, and a late finding names its place.
func TestTailNew(t *testing.T) {
	tp := readTape(t, "thread")
	tp.session.Last = 73 // in the middle of a text
	lines := tailOf(t, &View{Source: tp, Look: Look{Width: 140}}, TailOptions{New: true})
	all := strings.Join(lines, "\n")
	if !strings.Contains(all, `"There are three the "`) {
		t.Errorf("the text that began before is not whole:\n%s", all)
	}
	if strings.Contains(all, "#69 ") || strings.Contains(all, "RUN_STARTED") {
		t.Errorf("what passed before is shown:\n%s", all)
	}
}

// TestTailFilter: only what the filter wants is printed, once.
func TestTailFilter(t *testing.T) {
	filter, err := ParseFilter("type:RUN_FINISHED OR cmd:run:cancel")
	if err != nil {
		t.Fatal(err)
	}
	v := &View{Source: readTape(t, "rejoin"), Look: Look{Width: 100}, Filter: filter}
	if lines := tailOf(t, v, TailOptions{}); len(lines) != 1 || !strings.Contains(lines[0], "run:cancel") {
		t.Errorf("got %q, want the run:cancel alone", lines)
	}
}

// TestTailJSONL: each construct is one line, written when it ends.
func TestTailJSONL(t *testing.T) {
	seen := map[string]int{}
	for _, line := range tailOf(t, &View{Source: readTape(t, "thread"), Format: FormatJSONL}, TailOptions{}) {
		if strings.Contains(line, `"kind":"text"`) {
			seen[line]++
			if strings.Contains(line, `"state":"open"`) {
				t.Errorf("a text is written before it ends: %s", line)
			}
		}
	}
	if len(seen) != 3 {
		t.Errorf("%d texts are written, want 3", len(seen))
	}
}

// TestRules: severities that the user chose hold in every view, and what is off
// is nowhere.
func TestRules(t *testing.T) {
	rules, err := protocol.ParseSettings([]string{"sequence-gap=error", "event-unknown=off"})
	if err != nil {
		t.Fatal(err)
	}
	for name, show := range map[string]func(*View) error{
		"show":     func(v *View) error { return v.Show(t.Context(), "last", false) },
		"raw":      func(v *View) error { return v.Show(t.Context(), "last", true) },
		"packet":   func(v *View) error { return v.Show(t.Context(), "last@77", false) },
		"findings": func(v *View) error { return v.Findings(t.Context(), "last") },
		"tail":     func(v *View) error { return v.Tail(t.Context(), TailOptions{}) },
	} {
		var out bytes.Buffer
		if err := show(&View{Source: readTape(t, "thread"), Out: &out, Rules: rules, Look: Look{Width: 200}}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "✖ sequence-gap") {
			t.Errorf("%s: sequence-gap is no error:\n%s", name, out.String())
		}
		if strings.Contains(out.String(), "event-unknown") {
			t.Errorf("%s: event-unknown is off, and shown:\n%s", name, out.String())
		}
	}
}

// TestTailEnds: a source that breaks is an error; whoever stops looking makes none.
func TestTailEnds(t *testing.T) {
	tp := readTape(t, "thread")
	tp.session.Ended = began // so that it is told how it ended
	broken := &failing{tape: tp, after: 20}
	err := (&View{Source: broken, Out: &bytes.Buffer{}}).Tail(t.Context(), TailOptions{})
	if !errors.Is(err, errDisk) || !strings.Contains(err.Error(), "follow session 1") {
		t.Errorf("a source that fails gives error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	broken.after = 20
	if err := (&View{Source: broken, Out: &bytes.Buffer{}}).Tail(ctx, TailOptions{}); err != nil {
		t.Errorf("a tail that was ended gives error %v", err)
	}
}

var errDisk = errors.New("disk on fire")

// failing is a source that breaks after some frames.
type failing struct {
	*tape
	after int
}

func (f *failing) Follow(ctx context.Context, from capture.Position) iter.Seq2[capture.Frame, error] {
	return func(yield func(capture.Frame, error) bool) {
		for frame, err := range f.tape.Follow(ctx, from) {
			if f.after--; f.after < 0 {
				yield(capture.Frame{}, errDisk)
				return
			}
			if !yield(frame, err) {
				return
			}
		}
	}
}
