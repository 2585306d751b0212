package inspector

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

func someRuns() []conversation.Run {
	return []conversation.Run{
		{Session: 1, ID: "7f3a9c21", First: 5}, {Session: 1, ID: "7f3b0000", First: 20}, {Session: 1, ID: "a@b", First: 30},
		{Session: 2, ID: "7f3a9c21", First: 50}, {Session: 2, ID: "7f3a9c21-2", First: 60}, {Session: 2, ID: "c0ffee00", First: 70},
	}
}

func TestSelect(t *testing.T) {
	for _, tt := range []struct {
		name  string
		first capture.Position // of the run that is meant
		at    string
	}{
		{"", 70, ""}, {"last", 70, ""}, {"last~0", 70, ""}, {"last~2", 50, ""}, {"c0", 70, ""}, {"7f3b", 20, ""}, {"1/7f3a", 5, ""},
		{"2/7f3a9c21", 50, ""}, {"7f3a9c21-", 60, ""}, {"last@1042", 70, "1042"}, {"c0@1042.3", 70, "1042.3"}, {"@7", 0, "7"}, {"7f3b@#9", 20, "9"},
		{"a@b@3", 30, "3"},
	} {
		s, err := Select(someRuns(), tt.name)
		if err != nil {
			t.Errorf("%q: %v", tt.name, err)
			continue
		}
		var first capture.Position
		if s.Run != nil {
			first = s.Run.First
		}
		at := ""
		if !s.At.IsZero() {
			at = s.At.String()
		}
		if first != tt.first || at != tt.at {
			t.Errorf("%q: got the run at #%d and position %q, want #%d and %q", tt.name, first, at, tt.first, tt.at)
		}
	}
}

// TestSelectAnyOrder: a source lists runs as it keeps them, by their ids.
func TestSelectAnyOrder(t *testing.T) {
	runs := someRuns()
	slices.Reverse(runs)
	for name, first := range map[string]capture.Position{"last": 70, "last~2": 50} {
		if s, err := Select(runs, name); err != nil || s.Run.First != first {
			t.Errorf("%q: got %+v, %v, want the run at #%d", name, s.Run, err, first)
		}
	}
}

func TestSelectErrors(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		nothing    bool // exit code 3
	}{
		{"7f3", "may be any of 1/7f3a9c21, 1/7f3b0000, 2/7f3a9c21, 2/7f3a9c21-2: write more of it", false},
		{"7f3a9c21", "may be any of 1/7f3a9c21, 2/7f3a9c21", false},
		{"c0ffee99", "did you mean c0ffee00?", true},
		{"zzz", "the latest are 7f3a9c21, 7f3b0000, a@b", true},
		{"last~9", "the tape holds 6 runs", true},
		{"last~x", "behind last~ stands a number", false},
		{"last@x", "is not a number such as 1042", false},
		{"@0", "positions are counted from 1", false}, // found by FuzzSelect
		{"last@7.0", "packets are counted from 1", false},
	} {
		_, err := Select(someRuns(), tt.name)
		if err == nil || !strings.Contains(err.Error(), tt.want) || errors.Is(err, ErrNothing) != tt.nothing {
			t.Errorf("%q: got error %v (nothing matched: %v), want %q", tt.name, err, errors.Is(err, ErrNothing), tt.want)
		}
	}
	if _, err := Select(nil, "last"); !errors.Is(err, ErrNothing) || !strings.Contains(err.Error(), "holds no runs yet") {
		t.Errorf("on an empty tape: got error %v", err)
	}
}

// FuzzSelect: a name is whatever was typed.
func FuzzSelect(f *testing.F) {
	for _, seed := range []string{"last", "last~2", "7f3a@1042.3", "2/7", "@", "~", "\xff", "a@b@c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if s, err := Select(someRuns(), name); err == nil && s.Run == nil && s.At.IsZero() {
			t.Errorf("%q stands for nothing, and that is no error", name)
		}
	})
}

func TestChain(t *testing.T) {
	runs := []conversation.Run{
		{Session: 1, ID: "a", First: 1}, {Session: 1, ID: "x", First: 2}, {Session: 1, ID: "b", Continues: "a", First: 3, Started: 1},
		{Session: 2, ID: "c", Continues: "b", First: 4}, {Session: 1, ID: "c", Continues: "b", First: 5, Started: 2}, {Session: 1, ID: "loop", Continues: "loop", First: 6},
	}
	for _, tt := range []struct {
		of   int
		want string
	}{{0, "a b c"}, {2, "a b c"}, {4, "a b c"}, {1, "x"}, {3, "c"}, {5, "loop"}} {
		var ids []string
		for _, r := range Chain(runs, &runs[tt.of]) {
			ids = append(ids, r.ID)
		}
		if got := strings.Join(ids, " "); got != tt.want {
			t.Errorf("the chain of %s is %q, want %q", runs[tt.of].ID, got, tt.want)
		}
	}
}

// TestEmpty: nothing to show names the next step, and is no error of a list.
func TestEmpty(t *testing.T) {
	ctx := context.Background()
	for _, tt := range []struct {
		name    string
		session capture.Session
		want    string
	}{
		{"no tape", capture.Session{}, "Start with: tapedeck proxy -u"},
		{"waiting", capture.Session{ID: 1, Live: true, Listen: "127.0.0.1:8080", Gateway: "https://gw.example"}, "point the app at http://127.0.0.1:8080 in place of https://gw.example"},
		{"other traffic", capture.Session{ID: 1, Live: true, Listen: "127.0.0.1:8080", First: 1, Last: 9}, "9 frames passed at http://127.0.0.1:8080"},
		{"over", capture.Session{ID: 1, Ended: began, Clean: true}, "session 1 held no run:event"},
	} {
		var out, talk bytes.Buffer
		v := &View{Source: &tape{session: tt.session}, Out: &out, Talk: &talk}
		if err := v.Runs(ctx); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if out.Len() > 0 || !strings.Contains(talk.String(), tt.want) {
			t.Errorf("%s: got data %q and talk %q, want %q", tt.name, out.String(), talk.String(), tt.want)
		}
		if err := v.Show(ctx, "last", false); !errors.Is(err, ErrNothing) {
			t.Errorf("%s: show last: got error %v, want ErrNothing", tt.name, err)
		}
		out.Reset()
		v.Format = FormatJSON
		if err := v.Runs(ctx); err != nil || out.String() != "[]\n" {
			t.Errorf("%s: JSON is %q, %v", tt.name, out.String(), err)
		}
	}
}

func TestShowNothing(t *testing.T) {
	ctx := context.Background()
	filter, _ := ParseFilter("type:NO_SUCH_EVENT")
	for name, show := range map[string]func(*View) error{
		"a position beyond the tape": func(v *View) error { return v.Show(ctx, "@9999", false) },
		"a packet beyond the frame":  func(v *View) error { return v.Show(ctx, "@9.7", false) },
		"a filter":                   func(v *View) error { v.Filter = filter; return v.Show(ctx, "last", false) },
		"a filter, raw":              func(v *View) error { v.Filter = filter; return v.Show(ctx, "last", true) },
	} {
		v := &View{Source: readTape(t, "thread"), Out: &bytes.Buffer{}}
		if err := show(v); !errors.Is(err, ErrNothing) {
			t.Errorf("%s that matches nothing: got error %v, want ErrNothing", name, err)
		}
	}
}

// TestIncomplete: a recording that lacks something says so in each view.
func TestIncomplete(t *testing.T) {
	for _, tt := range []struct {
		session capture.Session
		want    string
	}{
		{capture.Session{ID: 3, Fault: "disk\x1b full"}, `Session 3 is incomplete: disk\x1b full`},
		{capture.Session{ID: 3}, "Session 3 was cut off"},
		{capture.Session{ID: 3, Ended: began, Clean: true, Last: 9, Judged: 4}, "Session 3 is judged up to #4 of #9"},
		{capture.Session{ID: 3, Live: true}, ""},
		{capture.Session{ID: 3, Ended: began, Clean: true, Last: 9, Judged: 9}, ""},
	} {
		if got := Incomplete(&tt.session); !strings.HasPrefix(got, tt.want) || (got == "") != (tt.want == "") {
			t.Errorf("%+v: got %q, want %q", tt.session, got, tt.want)
		}
	}
	tp := readTape(t, "thread")
	tp.session.Fault = "the disk is full"
	var talk bytes.Buffer
	v := &View{Source: tp, Out: &bytes.Buffer{}, Talk: &talk}
	for _, show := range []func() error{
		func() error { return v.Runs(context.Background()) }, func() error { return v.Show(context.Background(), "last", false) },
		func() error { return v.Findings(context.Background(), "") },
	} {
		talk.Reset()
		if err := show(); err != nil || !strings.Contains(talk.String(), "the disk is full") {
			t.Errorf("a view does not say that the recording is incomplete: %q, %v", talk.String(), err)
		}
	}
}

func TestShortest(t *testing.T) {
	runs := []conversation.Run{{ID: "0123456789-a"}, {ID: "0123456789-b"}, {ID: "0123"}, {ID: "你好你好你好"}}
	var got []string
	for i := range runs {
		got = append(got, shortest(runs, i))
	}
	if want := []string{"0123456789-a", "0123456789-b", "0123", "你好"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestModelTime(t *testing.T) {
	for _, tt := range []struct{ took, human, want time.Duration }{{10, 4, 6}, {10, 0, 10}, {3, 42, 3}, {-5, 0, 0}} {
		if got := ModelTime(&conversation.Run{Ended: tt.took, Human: tt.human}); got != tt.want {
			t.Errorf("of %d, %d human: got %d, want %d", tt.took, tt.human, got, tt.want)
		}
	}
}

// TestSubagentsOwnRuns: who looks at a run is told of those that its subagents had
// in conversations of their own.
func TestSubagentsOwnRuns(t *testing.T) {
	agent := &Row{Name: "hotels", Where: Where{Thread: "t", Run: "a"}, Detail: &Agent{Child: "c"}}
	runs := []conversation.Run{{Session: 1, ID: "a", Thread: "t"}, {Session: 1, ID: "b", Thread: "c"}, {Session: 2, ID: "d", Thread: "c"}}
	v := &View{Flags: "-r bug.tape"}
	steps := strings.Join(v.nextSteps(&Timeline{Rows: []*Row{agent}}, runs, &runs[0]), "\n")
	if want := "What hotels did itself: tapedeck show b -r bug.tape"; !strings.Contains(steps, want) || strings.Contains(steps, "show d") {
		t.Errorf("got %q, want %q in it", steps, want)
	}
}
