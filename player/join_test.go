package player

import (
	"encoding/json"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tapedeck/player/scenario"
)

// replayed are the envelopes of an answer to thread:messages.
func replayed(t *testing.T, answer string) []string {
	t.Helper()
	var a struct {
		Replay struct {
			Envelopes []json.RawMessage
			Truncated bool
		}
	}
	if err := json.Unmarshal([]byte(answer), &a); err != nil {
		t.Fatalf("read answer %s: %v", answer, err)
	}
	var out []string
	for _, e := range a.Replay.Envelopes {
		out = append(out, string(e))
	}
	return out
}

// TestJoinAtEverySequence lets a window join after each envelope of a run: its
// replay and what the room delivers then are the run, with no hole and no
// overlap.
func TestJoinAtEverySequence(t *testing.T) {
	found, err := scenario.Builtin("kitchen-sink")
	if err != nil {
		t.Fatal(err)
	}
	c := with(found)
	c.Step = true
	inBubble(t, c, func(t *testing.T, w *world) {
		first := w.connect(0)
		first.start(t, "t", "m", "hi")
		type window struct {
			socket *fakeSocket
			replay []string
		}
		var windows []window
		for sequence := 0; ; sequence++ {
			s := w.connect(sequence + 1)
			answer := s.mustSend(t, "thread:messages", `{"threadId":"t"}`)
			if got := replayed(t, answer); len(got) != sequence && !strings.Contains(answer, `"role":"assistant"`) {
				t.Fatalf("after %d envelopes the replay holds %d", sequence, len(got))
			}
			if len(first.envelopes()) < sequence {
				break // nothing more came: the run is over
			}
			windows = append(windows, window{s, replayed(t, answer)})
			w.gateway.Step(1)
			synctest.Wait()
		}
		want := first.envelopes()
		if len(want) < 50 {
			t.Fatalf("the run has %d envelopes only", len(want))
		}
		for at, win := range windows[:len(want)] {
			if diff := cmp.Diff(want, append(win.replay, win.socket.envelopes()...)); diff != "" {
				t.Fatalf("joined after %d envelopes (-first +second window):\n%s", at, diff)
			}
		}
	})
}

// TestJoinWhileItStreams is the same at full speed, with the windows on
// goroutines of their own.
func TestJoinWhileItStreams(t *testing.T) {
	c := with(parse(t, `steps: [{text: {content: "word ", repeat: 500}}]`))
	c.Speed = math.Inf(1)
	w := newWorld(t, c)
	first := w.connect(0)
	var windows sync.WaitGroup
	for i := range 16 {
		windows.Go(func() {
			if i == 8 {
				first.send("run:start", `{"threadId":"t","messageId":"m","input":"hi"}`)
				return
			}
			s := w.connect(i + 1)
			replay := replayed(t, s.send("thread:messages", `{"threadId":"t"}`))
			for len(replay)+len(s.envelopes()) < 504 {
				if len(replay) == 0 && len(s.envelopes()) == 0 && len(first.envelopes()) == 504 {
					return // it joined when all was over
				}
				time.Sleep(time.Millisecond)
			}
			for at, payload := range append(replay, s.envelopes()...) {
				if e := readEnvelope(t, payload); e.Sequence != int64(at+1) {
					t.Errorf("window %d: envelope %d has sequence %d", i, at+1, e.Sequence)
					return
				}
			}
		})
	}
	windows.Wait()
}
