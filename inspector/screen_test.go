package inspector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// newTestScreen returns a screen of a size on a source, loaded.
func newTestScreen(t testing.TB, src Source, width, height int, o ScreenOptions) *Screen {
	t.Helper()
	o.Tape = "bug.tape"
	s := NewScreen(t.Context(), src, o)
	t.Cleanup(s.Close)
	s.Resize(width, height)
	settle(s)
	return s
}

// settle takes all news until no more come by themselves.
func settle(s *Screen) {
	for {
		switch {
		case !s.Idle():
			s.Step()
		case s.Busy():
			s.Take(<-s.News())
		default:
			return
		}
	}
}

// press gives a screen some keys, and waits for each.
func press(s *Screen, keys ...string) {
	for _, k := range keys {
		if text, typed := strings.CutPrefix(k, "type "); typed {
			for _, r := range text {
				s.Key(Stroke(r))
			}
			continue
		}
		s.Key(Stroke(k))
		settle(s)
	}
}

func textOf(s *Screen) string {
	var b strings.Builder
	for _, line := range s.Lines() {
		b.WriteString(line.String() + "\n")
	}
	return b.String()
}

// checkScreen holds a screen to its size, and its text to what a terminal can
// show (T02, T03).
func checkScreen(t *testing.T, s *Screen, did string) {
	t.Helper()
	lines := s.Lines()
	if want := s.height; s.width > 0 && len(lines) != want {
		t.Fatalf("%s: %d lines at %d×%d, want %d", did, len(lines), s.width, s.height, want)
	}
	for i, line := range lines {
		if w := columns(line.Pieces); w > s.width {
			t.Fatalf("%s: line %d takes %d columns of %d: %q", did, i, w, s.width, line)
		}
		for _, p := range line.Pieces {
			if Clean("x"+p.Text) != "x"+p.Text && !strings.ContainsRune(p.Text, '\u200d') {
				t.Fatalf("%s: line %d is not clean: %q", did, i, p.Text)
			}
		}
	}
}

// TestScreens shows each view as a user would see it after some keys.
func TestScreens(t *testing.T) {
	sizes := []struct{ width, height int }{{80, 24}, {120, 30}, {160, 50}}
	for _, tt := range []struct {
		name, story string
		keys        []string
		sizes       int // how many of them
		ascii       bool
	}{
		{"runs", "thread", nil, 3, false},
		{"runs.ascii", "thread", nil, 1, true},
		{"timeline", "thread", []string{"G", "Enter", "j", "j"}, 3, false},
		{"timeline.ascii", "thread", []string{"G", "Enter"}, 1, true},
		{"unfolded", "thread", []string{"G", "Enter", "j", "j", " "}, 2, false},
		{"folded", "thread", []string{"G", "Enter", "G", "k", "k", "k", "k", " "}, 2, false},
		{"raw", "thread", []string{"G", "Enter", "r", "t"}, 2, false},
		{"filter", "thread", []string{"G", "Enter", "/", "type type:TOOL_CALL_*", "Enter"}, 1, false},
		{"filter.typing", "thread", []string{"G", "Enter", "/", "type typ:x"}, 1, false},
		{"rendered", "thread", []string{"G", "Enter", "j", "j", "j", "Enter"}, 3, false},
		{"rendered.waiting", "thread", []string{"G", "Enter", ":", "type 44", "Enter", "Enter"}, 1, false},
		{"rendered.end", "thread", []string{"G", "Enter", "G", "Enter"}, 1, false},
		{"event", "thread", []string{"G", "Enter", "j", "j", "j", "Enter", "2"}, 2, false},
		{"json", "thread", []string{"G", "Enter", "j", "j", "j", "Enter", "3"}, 1, false},
		{"wire", "thread", []string{"G", "Enter", "j", "j", "j", "Enter", "4", "Right"}, 1, false},
		{"diff", "thread", []string{"G", "Enter", ":", "type goto 25", "Enter", "Enter", "5"}, 1, false},
		{"timing", "thread", []string{"G", "Enter", "j", "j", "j", "Enter", "6"}, 1, false},
		{"findings", "thread", []string{"G", "Enter", "!"}, 3, false},
		{"findings.none", "rejoin", []string{"Enter", "!"}, 1, false},
		{"compare.first", "thread", []string{"c"}, 1, false},
		{"compare", "thread", []string{"c", "j", "c"}, 3, false},
		{"compare.ascii", "thread", []string{"c", "j", "c", "n"}, 1, true},
		{"compare.unfolded", "thread", []string{"c", "j", "c", " ", "G"}, 1, false},
		{"compare.opened", "thread", []string{"c", "j", "c", "n", "Enter"}, 1, false},
		{"compare.same", "rejoin", []string{":", "type compare last", "Enter"}, 1, false},
		{"help", "thread", []string{"G", "Enter", "?"}, 2, false},
		{"error", "thread", []string{"Enter"}, 1, false},
		{"rejoin", "rejoin", []string{"Enter"}, 2, false},
		{"hostile", "hostile", []string{"Enter"}, 2, false},
		{"hostile.rendered", "hostile", []string{"Enter", "G", "Enter"}, 1, false},
		{"empty", "wire", nil, 1, false},
	} {
		for _, size := range sizes[:tt.sizes] {
			name := fmt.Sprintf("screen.%s.%d.txt", tt.name, size.width)
			t.Run(name, func(t *testing.T) {
				s := newTestScreen(t, readTape(t, tt.story), size.width, size.height, ScreenOptions{Look: Look{ASCII: tt.ascii}})
				press(s, tt.keys...)
				checkScreen(t, s, name)
				if got := textOf(s); tt.ascii && strings.ContainsFunc(got, func(r rune) bool { return r > 0x7e && r != '€' }) {
					t.Errorf("it is not ASCII:\n%s", got)
				}
				golden(t, name, []byte(textOf(s)))
			})
		}
	}
}

// strokes are the keys of the key table, and some of a prompt.
func strokes() []Stroke {
	keys := []Stroke{"Backspace", "a", "é", "1", "2", "3", "4", "5", "6", "Delete", "\"", "Alt+x", "F13", ""}
	for _, b := range keyTable() {
		for _, k := range b.keys {
			if k != "q" && k != "Q" && k != "Ctrl+C" {
				keys = append(keys, k)
			}
		}
	}
	return keys
}

// wander presses what the bytes say, resizes on the way, and holds each screen
// to its size.
func wander(t *testing.T, s *Screen, path []byte) {
	t.Helper()
	keys := strokes()
	sizes := [][2]int{{0, 0}, {1, 1}, {2, 1}, {10, 3}, {20, 5}, {40, 8}, {80, 24}, {120, 30}, {160, 50}, {300, 100}, {41, 9}, {64, 12}}
	for i, b := range path {
		did := ""
		if b >= 240 {
			size := sizes[int(b)%len(sizes)]
			s.Resize(size[0], size[1])
			did = fmt.Sprintf("step %d, size %v", i, size)
		} else {
			k := keys[int(b)%len(keys)]
			s.Key(k)
			did = fmt.Sprintf("step %d, key %q", i, k)
		}
		if b%3 > 0 { // else the next key comes before the answer
			settle(s)
		}
		checkScreen(t, s, did)
	}
}

// TestScreenSizes goes through all sizes in every view (T02).
func TestScreenSizes(t *testing.T) {
	views := map[string][]string{
		"runs": nil, "timeline": {"G", "Enter"}, "raw": {"G", "Enter", "r"}, "rendered": {"G", "Enter", "G", "Enter"},
		"event": {"G", "Enter", "j", "j", "Enter", "2"}, "json": {"G", "Enter", "j", "j", "Enter", "3"}, "wire": {"G", "Enter", "j", "Enter", "4"},
		"diff": {"G", "Enter", ":", "type 25", "Enter", "Enter", "5"}, "timing": {"G", "Enter", "j", "j", "Enter", "6"},
		"findings": {"G", "Enter", "!"}, "help": {"?"}, "prompt": {"G", "Enter", "/", "type type:"}, "error": {":", "type nonsense", "Enter"},
	}
	for name, keys := range views {
		t.Run(name, func(t *testing.T) {
			s := newTestScreen(t, readTape(t, "thread"), 80, 24, ScreenOptions{})
			press(s, keys...)
			before := textOf(s)
			for _, size := range [][2]int{{0, 0}, {1, 1}, {2, 1}, {10, 3}, {20, 5}, {39, 8}, {40, 7}, {300, 100}} {
				s.Resize(size[0], size[1])
				checkScreen(t, s, fmt.Sprint(size))
				for w := 40; w < 130; w += 7 {
					s.Resize(w, 8+w%23)
					checkScreen(t, s, fmt.Sprint(w))
				}
			}
			s.Resize(20, 5)
			if got := textOf(s); !strings.Contains(got, "tapedeck needs 40") {
				t.Errorf("below the least size it says %q", got)
			}
			s.Resize(80, 24)
			if got := textOf(s); got != before && name != "rendered" {
				t.Errorf("the view did not come back:\n%s\nbefore:\n%s", got, before)
			}
		})
	}
}

func TestScreenWander(t *testing.T) {
	for _, story := range []string{"thread", "hostile", "rejoin", "wire"} {
		t.Run(story, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			s := newTestScreen(t, readTape(t, story), 120, 30, ScreenOptions{})
			path := make([]byte, 1500)
			for i := range path {
				path[i] = byte(random.Uint32())
			}
			wander(t, s, path)
		})
	}
}

func FuzzScreen(f *testing.F) {
	f.Add([]byte("open the run, look at it, leave"))
	f.Add([]byte{250, 14, 14, 16, 2, 251, 3, 241, 240})
	f.Fuzz(func(t *testing.T, path []byte) {
		s := newTestScreen(t, readTape(t, "thread"), 120, 30, ScreenOptions{})
		wander(t, s, path[:min(len(path), 200)])
	})
}

// TestScreenKeys follows what keys lead to, by the address under the cursor.
func TestScreenKeys(t *testing.T) {
	for _, tt := range []struct {
		name string
		keys []string
		want string // the address, and behind it a part of the footer
	}{
		{"partner of a command", []string{":", "type 8", "Enter", "x"}, "9"},
		{"partner of an interrupt", []string{":", "type 43", "Enter", "x"}, "53"},
		{"partner of a resume", []string{":", "type 53", "Enter", "x"}, "43"},
		{"partner of a start", []string{":", "type 18", "Enter", "x"}, "24"},
		{"partner of an end", []string{":", "type 18", "Enter", "x", "x"}, "18"},
		{"partner of a run's start", []string{":", "type 9", "Enter", "x"}, "44"},
		{"next finding", []string{"g", "n"}, "39"},
		{"no finding further down", []string{"g", "n", "n"}, "39 no finding further down"},
		{"finding before", []string{"G", "N"}, "39"},
		{"first broken", []string{"G", "b"}, "68 nothing in this run broke a rule"},
		{"search", []string{"s", "type TP 533", "Enter"}, "18"},
		{"search again", []string{"s", "type TP 533", "Enter", "]"}, "26"},
		{"search back", []string{"s", "type TP 533", "Enter", "["}, "43"},
		{"search in vain", []string{"s", "type nowhere", "Enter"}, `8 nothing holds "nowhere"`},
		{"scrub", []string{"j", "j", "Enter", "Right", "Right"}, "12"},
		{"scrub by construct", []string{"j", "j", "Enter", "Shift+Right"}, "18"},
		{"scrub back by construct", []string{"j", "j", "Enter", "Right", "Shift+Left", "Shift+Left"}, "9"},
		{"scrub, and the cursor follows", []string{"j", "j", "Enter", "Shift+Right", "Shift+Right", "Esc"}, "25"},
		{"goto within detail", []string{"Enter", ":", "type goto 33", "Enter"}, "33"},
		{"goto nowhere", []string{":", "type goto 9999", "Enter"}, "8 #9999 is no message of this run"},
		{"a misspelt command", []string{":", "type flter x", "Enter"}, `8 no command "flter"; did you mean :filter?`},
		{"a command that is not for here", []string{":", "type sort time", "Enter"}, "8 :sort does nothing here"},
		{"another run", []string{":", "type run e0c4", "Enter"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newTestScreen(t, readTape(t, "thread"), 120, 40, ScreenOptions{Run: "7f3a"})
			press(s, tt.keys...)
			want, said, _ := strings.Cut(tt.want, " ")
			a, _ := s.address()
			if got := a.String(); got != want && want != "" {
				t.Errorf("the cursor is at #%s, want #%s\n%s", got, want, textOf(s))
			}
			if said != "" && !strings.Contains(s.say, said) {
				t.Errorf("it says %q, want %q", s.say, said)
			}
		})
	}
}

// TestScreenRestoresFilter takes a filter away, and the cursor stays.
func TestScreenFilter(t *testing.T) {
	s := newTestScreen(t, readTape(t, "thread"), 120, 40, ScreenOptions{Run: "7f3a"})
	press(s, "/", "type tool:book_flight", "Enter")
	if got := len(s.line.items); got != 1 {
		t.Fatalf("%d rows match, want 1\n%s", got, textOf(s))
	}
	press(s, "/", "type  (", "Enter")
	if s.prompt == nil || !s.bad {
		t.Fatalf("a bad filter is taken\n%s", textOf(s))
	}
	press(s, "Esc", "/", "Ctrl+U", "Enter")
	if a, _ := s.address(); a.String() != "39" || len(s.line.items) < 10 {
		t.Errorf("without a filter the cursor is at #%s of %d rows\n%s", a, len(s.line.items), textOf(s))
	}
}

func TestScreenCopies(t *testing.T) {
	for _, tt := range []struct {
		keys []string
		want string
	}{
		{[]string{"y"}, `"status": "finished"`},
		{[]string{"Enter", "y"}, `"kind": "command"`},
		{[]string{"Enter", "Enter", "y"}, `"name": "run:start"`},
		{[]string{"Y"}, "tapedeck show 1/7f3a9c21 -r bug.tape"},
		{[]string{"Enter", "j", "j", "Enter", "Right", "Y"}, "tapedeck show 1/7f3a9c21@11 -r bug.tape"},
		{[]string{"Enter", "!", "y"}, `"rule": "json-number-rounded"`},
	} {
		s := newTestScreen(t, readTape(t, "thread"), 120, 40, ScreenOptions{Flags: "-r bug.tape"})
		press(s, append([]string{"G"}, tt.keys...)...)
		got, ok := s.Copied()
		if !ok || !strings.Contains(got, tt.want) {
			t.Errorf("%v copies %q, want %q in it", tt.keys, got, tt.want)
		}
		if _, again := s.Copied(); again {
			t.Errorf("%v copies twice", tt.keys)
		}
	}
}

func TestShellWord(t *testing.T) {
	for in, want := range map[string]string{
		"1/7f3a@10": "1/7f3a@10", "a b": "'a b'", "$(rm -rf x)": "'$(rm -rf x)'", "it's": `'it'\''s'`, "": "''", "-x": "'-x'", "a\x1b[2J": `'a\x1b[2J'`,
	} {
		if got := shellWord(in); got != want {
			t.Errorf("shellWord(%q) is %s, want %s", in, got, want)
		}
	}
}

// marked is a tape with marks on it.
type marked struct {
	Source
	marks []capture.Mark
}

func (m *marked) Sessions(ctx context.Context) ([]capture.Session, error) {
	sessions, err := m.Source.Sessions(ctx)
	sessions = slices.Clone(sessions)
	sessions[0].Notes = &capture.Notes{Marks: m.marks}
	return sessions, err
}

func keepMark(_ context.Context, m capture.Mark) error {
	if m.Text == "fail" {
		return errors.New("the disk is full")
	}
	return nil
}

func TestScreenDeeds(t *testing.T) {
	tape := &marked{readTape(t, "thread"), []capture.Mark{{At: capture.Address{Position: 9}, Text: "it starts here"}}}
	served := make(chan string, 1)
	s := newTestScreen(t, tape, 120, 40, ScreenOptions{
		Run: "7f3a", SetMark: keepMark,
		Export: func(_ context.Context, chain []conversation.Run, file string) (string, error) {
			return cmp.Or(file, chain[0].ID+".tape"), nil
		},
		Serve: func(ctx context.Context, run conversation.Run, say func(string)) error {
			say("gateway at http://127.0.0.1:4081 for " + run.ID)
			<-ctx.Done()
			served <- run.ID
			return nil
		},
	})
	contains := func(want string) {
		t.Helper()
		if got := textOf(s); !strings.Contains(got, want) {
			t.Errorf("%q is not to be seen:\n%s", want, got)
		}
	}
	contains("◈ it starts here")
	press(s, "j", "j", "m", "type think again", "Enter")
	contains("◈ think again")
	press(s, "m", "Ctrl+U", "type fail", "Enter")
	contains("mark #10: the disk is full")
	press(s, "m", "Ctrl+U", "Enter")
	if s.marks[capture.Address{Position: 10, Packet: 1}] != "" {
		t.Error("an empty comment leaves the mark")
	}
	press(s, "e")
	contains("exported to 7f3a9c21.tape")
	press(s, ":", "type export bug.html", "Enter")
	contains("exported to bug.html")
	press(s, "R")
	s.Take(<-s.News())
	contains("gateway at http://127.0.0.1:4081 for 7f3a9c21")
	contains("serving 7f3a9c21")
	press(s, "R")
	if got := <-served; got != "7f3a9c21" {
		t.Errorf("served %q", got)
	}
}

// growing is a session that goes on: it holds so many frames of a tape.
type growing struct {
	*tape
	shown atomic.Int64
}

func (g *growing) now() *tape {
	part := newTape(g.frames[:g.shown.Load()])
	part.session.Ended, part.session.Clean, part.session.Live = time.Time{}, false, true
	for i := range part.runs {
		if part.runs[i].Status == conversation.Truncated { // it only seems so
			part.runs[i].Status = conversation.Running
		}
	}
	return part
}

func (g *growing) Sessions(ctx context.Context) ([]capture.Session, error) {
	return g.now().Sessions(ctx)
}

func (g *growing) Runs(ctx context.Context) ([]conversation.Run, error) { return g.now().Runs(ctx) }

func (g *growing) Rows(ctx context.Context, run conversation.RunKey, from, n int) ([]capture.Frame, error) {
	return g.now().Rows(ctx, run, from, n)
}

// TestScreenLive follows a run that goes on: the cursor stays where it is until
// one asks, what came is counted, and frozen is frozen.
func TestScreenLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &growing{tape: readTape(t, "thread")}
		g.shown.Store(12)
		s := newTestScreen(t, g, 120, 40, ScreenOptions{Run: "7f3a", Now: func() time.Time { return began.Add(time.Minute) }})
		grow := func(to int) {
			g.shown.Store(int64(to))
			time.Sleep(2 * liveEvery)
			for {
				synctest.Wait()
				select {
				case n := <-s.News():
					s.Take(n)
					settle(s)
					continue
				default:
				}
				return
			}
		}
		has := func(want string) {
			t.Helper()
			if got := textOf(s); !strings.Contains(got, want) {
				t.Fatalf("%q is not to be seen:\n%s", want, got)
			}
		}
		has("● live")
		before, _ := s.address()
		grow(20)
		if after, _ := s.address(); after != before {
			t.Errorf("the cursor moved from #%s to #%s by itself", before, after)
		}
		has("+8 new, f follows")
		press(s, "f")
		grow(30)
		has("following")
		if i := s.line.list.cursor; i != len(s.line.items)-1 {
			t.Errorf("the cursor is at row %d of %d, though it follows", i, len(s.line.items))
		}
		press(s, "k")
		grow(36)
		has("+6 new")
		press(s, "p")
		rows := textOf(s)
		grow(42)
		has("frozen")
		has("+6 new, p goes on")
		if got := textOf(s); strings.Count(got, "#") > strings.Count(rows, "#")+1 {
			t.Errorf("frozen, it went on:\n%s", got)
		}
		press(s, "p")
		grow(53) // a person answers, and nothing answers that yet
		has("run:resume")
		has("has been waiting for")
		press(s, "f")
		grow(len(g.frames)) // another window joined: its beginning was posted late
		has("RUN_FINISHED")
		s.Close()
	})
}

// panics is a source with a fault in it.
type panics struct{ Source }

func (panics) Runs(context.Context) ([]conversation.Run, error) { panic("a fault in the source") }

// TestScreenPanics holds that a panic in the background ends the goroutine that
// owns the screen, which can restore the terminal (T01).
func TestScreenPanics(t *testing.T) {
	s := NewScreen(t.Context(), panics{readTape(t, "thread")}, ScreenOptions{})
	defer s.Close()
	defer func() {
		if fault := fmt.Sprint(recover()); !strings.Contains(fault, "a fault in the source") || !strings.Contains(fault, "panics.Runs") {
			t.Errorf("it panics with %q", fault)
		}
	}()
	settle(s)
}

// gone is a source that cannot be read.
type gone struct{ Source }

func (gone) Sessions(context.Context) ([]capture.Session, error) {
	return nil, errors.New("the proxy \x1b[2Jwent away")
}

func TestScreenErrors(t *testing.T) {
	s := newTestScreen(t, gone{}, 80, 24, ScreenOptions{})
	if got := textOf(s); !strings.Contains(got, `the proxy \x1b[2Jwent away`) {
		t.Errorf("the error is not to be seen:\n%s", got)
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
