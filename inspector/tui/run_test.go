package tui

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/gdamore/tcell/v2"
	"go.uber.org/goleak"

	"tapedeck/inspector"
	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tape is a Source with runs whose names are hard to show, and nothing in them.
type tape struct {
	ids   []string
	fault string // a panic, if not empty
}

func (t *tape) Sessions(context.Context) ([]capture.Session, error) {
	if t.fault != "" {
		panic(t.fault)
	}
	return []capture.Session{{ID: 1, Started: time.Unix(0, 0), Ended: time.Unix(9, 0), First: 1, Last: 9, Judged: 9, Clean: true}}, nil
}

func (t *tape) Runs(context.Context) ([]conversation.Run, error) {
	var runs []conversation.Run
	for i, id := range t.ids {
		runs = append(runs, conversation.Run{
			Session: 1, ID: fmt.Sprintf("run-%04d", i), Thread: "thr", Status: conversation.Finished, Input: id, Started: time.Duration(-i) * time.Second, FirstToken: -1,
		})
	}
	return runs, nil
}

func (t *tape) Threads(context.Context) ([]conversation.Thread, error) { return nil, nil }

func (t *tape) Rows(context.Context, conversation.RunKey, int, int) ([]capture.Frame, error) {
	return nil, nil
}

func (t *tape) Frames(context.Context, capture.Position, int) ([]capture.Frame, error) {
	return nil, nil
}

func (t *tape) Findings(context.Context, *conversation.RunKey) ([]protocol.Finding, error) {
	return nil, nil
}

func (t *tape) Follow(context.Context, capture.Position) iter.Seq2[capture.Frame, error] {
	return func(func(capture.Frame, error) bool) {}
}

// widths are texts of widths that are often got wrong (T03).
var widths = []string{
	"plain", "你好，世界", "👩‍👩‍👧 family", "❤️ heart", "⚡ bolt", "™ mark", "e\u0301te\u0301", "العربية", "tab\there", "\x1b[31mred\x1b[0m", "\u202egnp.exe", "🇪🇺🇩🇪 flags", "ﷺ", "a\u200db",
}

// terminal is a simulated terminal that notes whether it was given back.
type terminal struct {
	tcell.SimulationScreen
	restored bool
}

func (t *terminal) Fini() {
	t.restored = true
	t.SimulationScreen.Fini()
}

func newTerminal(t *testing.T, width, height int) *terminal {
	t.Helper()
	s := &terminal{SimulationScreen: tcell.NewSimulationScreen("UTF-8")}
	if err := s.Init(); err != nil {
		t.Fatal(err)
	}
	s.SetSize(width, height)
	return s
}

// rows are what stands in a terminal's cells.
func (t *terminal) rows() []string {
	cells, width, height := t.GetContents()
	rows := make([]string, height)
	for y := range rows {
		var b strings.Builder
		for x := 0; x < width; x++ {
			text := string(cells[y*width+x].Runes)
			b.WriteString(text)
			if inspector.Width(text) > 1 {
				x++ // a wide one stands in two cells
			}
		}
		rows[y] = strings.TrimRight(b.String(), " ")
	}
	return rows
}

// TestCells holds what stands in the terminal to what the screen says, at its
// columns: a character of two cells shifts nothing.
func TestCells(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 30}, {160, 50}, {41, 9}} {
		term := newTerminal(t, size[0], size[1])
		screen := inspector.NewScreen(t.Context(), &tape{ids: widths}, inspector.ScreenOptions{Tape: "bug.tape"})
		l := &loop{terminal: term, screen: screen, palette: newPalette(256, false)}
		l.resize()
		for screen.Busy() {
			screen.Take(<-screen.News())
		}
		for range 4 {
			l.draw()
			got := term.rows()
			for y, line := range screen.Lines() {
				if want := line.String(); got[y] != want {
					t.Errorf("%v, row %d:\n got %q\nwant %q", size, y, got[y], want)
				}
			}
			screen.Key("j")
		}
		screen.Close()
		term.Fini()
	}
}

// TestGround holds that the row of the cursor has one ground over its whole
// width, and can be told without colours too.
func TestGround(t *testing.T) {
	for _, colours := range []int{0, 16, 256} {
		term := newTerminal(t, 80, 24)
		screen := inspector.NewScreen(t.Context(), &tape{ids: widths}, inspector.ScreenOptions{})
		l := &loop{terminal: term, screen: screen, palette: newPalette(colours, false)}
		l.resize()
		for screen.Busy() {
			screen.Take(<-screen.News())
		}
		l.draw()
		cells, width, _ := term.GetContents()
		const row = 2 // under the title and the heading
		for x := range width {
			_, ground, attributes := cells[row*width+x].Style.Decompose()
			_, last, lastAttributes := cells[row*width+width-1].Style.Decompose()
			if ground != last || attributes&tcell.AttrReverse != lastAttributes&tcell.AttrReverse {
				t.Errorf("%d colours: the ground changes at column %d", colours, x)
			}
			if reversed := attributes&tcell.AttrReverse != 0; reversed == (colours == 256) {
				t.Errorf("%d colours: column %d reversed: %v", colours, x, reversed)
			}
			if fg, _, _ := cells[x].Style.Decompose(); colours == 0 && fg != tcell.ColorDefault {
				t.Errorf("without colours, column %d has %v", x, fg)
			}
		}
		screen.Close()
		term.Fini()
	}
}

// TestStrokes holds the names of keys to those that the screen knows.
func TestStrokes(t *testing.T) {
	for _, tt := range []struct {
		key  tcell.Key
		r    rune
		mod  tcell.ModMask
		want inspector.Stroke
	}{
		{tcell.KeyRune, 'j', 0, "j"}, {tcell.KeyRune, ' ', 0, " "}, {tcell.KeyRune, 'é', 0, "é"}, {tcell.KeyRune, 'x', tcell.ModAlt, "Alt+x"},
		{tcell.KeyEnter, 0, 0, "Enter"}, {tcell.KeyEscape, 0, 0, "Esc"}, {tcell.KeyTab, 0, 0, "Tab"}, {tcell.KeyBacktab, 0, 0, "Shift+Tab"},
		{tcell.KeyLeft, 0, 0, "Left"}, {tcell.KeyLeft, 0, tcell.ModShift, "Shift+Left"}, {tcell.KeyRight, 0, tcell.ModShift, "Shift+Right"},
		{tcell.KeyCtrlC, 0, tcell.ModCtrl, "Ctrl+C"}, {tcell.KeyCtrlD, 0, 0, "Ctrl+D"}, {tcell.KeyCtrlU, 0, tcell.ModCtrl, "Ctrl+U"},
		{tcell.KeyBackspace2, 0, 0, "Backspace"}, {tcell.KeyPgDn, 0, 0, "PgDn"}, {tcell.KeyHome, 0, 0, "Home"},
	} {
		if got := stroke(tcell.NewEventKey(tt.key, tt.r, tt.mod)); got != tt.want {
			t.Errorf("%v %q %v is %q, want %q", tt.key, tt.r, tt.mod, got, tt.want)
		}
	}
}

// typed is a source that types once it is asked for its runs.
type typed struct {
	*tape
	term *terminal
	keys string
}

func (y typed) Runs(ctx context.Context) ([]conversation.Run, error) {
	go func() { // the loop is not reading keys while it is asked
		for _, r := range y.keys {
			y.term.InjectKey(tcell.KeyRune, r, 0)
		}
	}()
	return y.tape.Runs(ctx)
}

// TestRun leaves in each of the ways there are, and each gives the terminal
// back (T01).
func TestRun(t *testing.T) {
	t.Run("q", func(t *testing.T) {
		term := newTerminal(t, 80, 24)
		if err := show(t.Context(), term, typed{&tape{ids: widths}, term, "jjkq"}, Options{}); err != nil || !term.restored {
			t.Errorf("it ends with %v, restored %v", err, term.restored)
		}
	})
	t.Run("the context ends", func(t *testing.T) {
		term := newTerminal(t, 80, 24)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := show(ctx, term, &tape{}, Options{}); err != nil || !term.restored {
			t.Errorf("it ends with %v, restored %v", err, term.restored)
		}
	})
	t.Run("a panic", func(t *testing.T) {
		term := newTerminal(t, 80, 24)
		defer func() {
			if fault := fmt.Sprint(recover()); !strings.Contains(fault, "on purpose") || !term.restored {
				t.Errorf("it ends with the panic %q, restored %v", fault, term.restored)
			}
		}()
		show(t.Context(), term, &tape{fault: "on purpose"}, Options{})
	})
	t.Run("TERM=dumb", func(t *testing.T) {
		t.Setenv("TERM", "dumb")
		if err := Run(t.Context(), &tape{}, Options{}); !errors.Is(err, ErrNoTerminal) {
			t.Errorf("it ends with %v, want ErrNoTerminal", err)
		}
	})
}

// TestCopy gives what is copied to the clipboard and to a file.
func TestCopy(t *testing.T) {
	term := newTerminal(t, 120, 24)
	saved := ""
	screen := inspector.NewScreen(t.Context(), &tape{ids: widths}, inspector.ScreenOptions{})
	l := &loop{terminal: term, screen: screen, palette: newPalette(0, true), save: func(text string) (string, error) {
		saved = text
		return "copy.json", nil
	}}
	l.resize()
	for screen.Busy() {
		screen.Take(<-screen.News())
	}
	l.key("y")
	if got := string(term.GetClipboardData()); got != saved || !strings.Contains(got, `"run": "run-0000"`) {
		t.Errorf("the clipboard has %q, the file %q", got, saved)
	}
	l.draw()
	if rows := term.rows(); !strings.Contains(rows[23], "wrote it to copy.json") {
		t.Errorf("it says %q", rows[23])
	}
	l.copy(strings.Repeat("x", maxClipboard))
	if len(term.GetClipboardData()) == maxClipboard {
		t.Error("what is too long for a terminal went to its clipboard")
	}
	screen.Close()
	term.Fini()
}
