package inspector

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// long is a source of one run of so many envelopes, made as they are asked for:
// each is a row of its own, but that every tenth is a text of three.
type long struct {
	*tape
	envelopes int
	rows      int // times that frames were asked for
}

func newLong(envelopes int) *long {
	return &long{tape: newTape(nil), envelopes: envelopes}
}

func (l *long) Sessions(context.Context) ([]capture.Session, error) {
	return []capture.Session{{ID: 1, Started: began, Ended: began, First: 1, Last: capture.Position(l.envelopes + 1), Judged: capture.Position(l.envelopes + 1), Clean: true}}, nil
}

func (l *long) Runs(context.Context) ([]conversation.Run, error) {
	return []conversation.Run{{Session: 1, ID: "r", Thread: "t", Status: conversation.Finished, Envelopes: l.envelopes, FirstToken: -1}}, nil
}

func (l *long) frame(p capture.Position) capture.Frame {
	f := capture.Frame{Position: p, Connection: 1, Direction: capture.FromGateway, Kind: capture.Text}
	if p == 1 {
		f.Kind, f.Direction = capture.Open, 0
		f.Data = []byte(`{"transport":"socket.io","eio":"4","target":"/socket.io/?EIO=4&transport=websocket"}`)
		return f
	}
	event := fmt.Sprintf(`{"type":"TODOS_SNAPSHOT","todos":[{"content":"step %d","status":"pending"}]}`, p)
	f.Data = fmt.Appendf(nil, `42["run:event",{"v":1,"threadId":"t","runId":"r","sequence":%d,"event":%s}]`, p-1, event)
	f.Size = int64(len(f.Data))
	return f
}

func (l *long) Rows(_ context.Context, _ conversation.RunKey, from, n int) ([]capture.Frame, error) {
	l.rows++
	var page []capture.Frame
	for i := from; i < min(from+n, l.envelopes+1); i++ {
		page = append(page, l.frame(capture.Position(i+1)))
	}
	return page, nil
}

func (l *long) Frames(_ context.Context, from capture.Position, n int) ([]capture.Frame, error) {
	return l.Rows(context.Background(), conversation.RunKey{}, int(from)-1, n)
}

func (l *long) Findings(context.Context, *conversation.RunKey) ([]protocol.Finding, error) {
	return nil, nil
}

// million has a screen list as many rows as asked for without holding them: the
// rows of a shorter run, over and over.
func million(t *testing.T, items int) *Screen {
	t.Helper()
	s := newTestScreen(t, newLong(2000), 120, 40, ScreenOptions{Run: "r"})
	v := &s.line
	rows := v.items
	if len(rows) < 2000 {
		t.Fatalf("only %d rows of 2000", len(rows))
	}
	v.items = make([]item, items)
	for i := range v.items {
		v.items[i] = rows[i%len(rows)]
	}
	return s
}

// TestScreenMillion counts what a key press costs by its allocations: with a
// million rows no more than with a few thousand, and the tape is not asked.
func TestScreenMillion(t *testing.T) {
	few, many := million(t, 4000), million(t, 1_000_000)
	for _, keys := range [][]Stroke{{"j"}, {"k"}, {"PgDn"}, {"PgUp"}, {"G"}, {"g"}, {"G", "PgUp"}, {"n"}, {"t"}, {"f"}, {"?", "Esc"}, {":", "Esc"}} {
		cost := func(s *Screen) float64 {
			return testing.AllocsPerRun(10, func() {
				for _, k := range keys {
					s.Key(k)
					s.Lines()
				}
			})
		}
		asked := many.source.(ruled).Source.(*long).rows
		a, b := cost(few), cost(many)
		if b > 1.3*a+200 {
			t.Errorf("%v costs %.0f allocations with a million rows, %.0f with 4000", keys, b, a)
		}
		if now := many.source.(ruled).Source.(*long).rows; now != asked {
			t.Errorf("%v asks the tape %d times", keys, now-asked)
		}
	}
}

// TestScreenLoads holds that a long run comes in parts, that keys work between
// them, and that Esc stops it.
func TestScreenLoads(t *testing.T) {
	src := newLong(20_000)
	s := NewScreen(t.Context(), src, ScreenOptions{Run: "r"})
	defer s.Close()
	s.Resize(100, 30)
	parts := 0
	for len(s.line.items) < 5000 {
		before := len(s.line.items)
		s.Take(<-s.News())
		if grew := len(s.line.items) - before; grew > batchFrames {
			t.Fatalf("%d rows came at once, want %d at most", grew, batchFrames)
		}
		parts++
	}
	if got := textOf(s); !strings.Contains(got, "loading, 2") || !strings.Contains(got, "Esc stops") {
		t.Errorf("it does not say how far it is:\n%s", got)
	}
	s.Key("G")
	if a, _ := s.address(); int(a.Position) != len(s.line.items)+1 {
		t.Errorf("the end of what is loaded is #%s", a)
	}
	s.Key("Esc")
	if s.Busy() || s.top() != inTimeline {
		t.Error("Esc does not stop the loading")
	}
	if got := textOf(s); !strings.Contains(got, "loading stopped") {
		t.Errorf("it does not say that it stopped:\n%s", got)
	}
	press(s, ":", "type reload", "Enter")
	if n := len(s.line.items); n != 20_000 {
		t.Errorf("read again, it has %d rows, want 20,000", n)
	}
	press(s, "s", "type step 19999", "Enter")
	if a, _ := s.address(); a.Position != 19999 {
		t.Errorf("the search ends at #%s", a)
	}
}

// TestScreenReader steps back and forth through a run that is longer than the
// reader's window, and comes to the same each time.
func TestScreenReader(t *testing.T) {
	src := newLong(5 * windowMessages)
	runs, _ := src.Runs(t.Context())
	r := newReader(src, runs, "t")
	for _, p := range []capture.Position{10, 2 * windowMessages, 5000, 4990, 3500, 4200, 20, 5 * windowMessages, 2} {
		got, err := r.at(t.Context(), capture.Address{Position: p})
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Todos) != 1 || got.Todos[0].Content != fmt.Sprintf("step %d", p) {
			t.Errorf("at #%d a client would show %v", p, got.Todos)
		}
		if n := len(r.window); n > 2*windowMessages {
			t.Errorf("at #%d it holds %d messages", p, n)
		}
	}
}
