package player

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestPace plays recorded gaps at several speeds (P03). The clock is exact, so
// the times are.
func TestPace(t *testing.T) {
	gaps := `steps: [{raw: {event: {type: A}}}, {wait: 100ms}, {raw: {event: {type: B}}}, {wait: 1s}, {raw: {event: {type: C}}}, {wait: 5s}, {raw: {event: {type: D}}}]` +
		"\npace: {ttft: 0s, rate: max}"
	const ms = time.Millisecond
	tests := []struct {
		name   string
		speed  float64
		maxGap time.Duration
		want   []time.Duration
	}{
		{"as written", 1, 0, []time.Duration{0, 0, 100 * ms, 1100 * ms, 6100 * ms, 6100 * ms}},
		{"twice as fast", 2, 0, []time.Duration{0, 0, 50 * ms, 550 * ms, 3050 * ms, 3050 * ms}},
		{"half as fast", 0.5, 0, []time.Duration{0, 0, 200 * ms, 2200 * ms, 12200 * ms, 12200 * ms}},
		{"no gap over two seconds", 1, 2 * time.Second, []time.Duration{0, 0, 100 * ms, 1100 * ms, 3100 * ms, 3100 * ms}},
		{"no gap over two seconds, at twice the speed", 2, 2 * time.Second, []time.Duration{0, 0, 50 * ms, 550 * ms, 2550 * ms, 2550 * ms}},
		{"at once", math.Inf(1), 0, make([]time.Duration, 6)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := with(parse(t, gaps))
			c.Speed, c.MaxGap = test.speed, test.maxGap
			inBubble(t, c, func(t *testing.T, w *world) {
				s := w.connect(0)
				s.start(t, "t", "m", "hi")
				time.Sleep(time.Minute)
				if diff := cmp.Diff(test.want, w.times()); diff != "" {
					t.Errorf("times (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// times are those of all envelopes so far.
func (w *world) times() []time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	var times []time.Duration
	for _, f := range w.frames {
		if strings.HasPrefix(string(f.Data), `42["run:event"`) {
			times = append(times, f.At)
		}
	}
	return times
}

// TestLateIsNotLater wakes the stage late again and again: what comes after is
// on time all the same, over 10,000 events.
func TestLateIsNotLater(t *testing.T) {
	c := with(parse(t, "pace: {ttft: 0s, rate: 100, jitter: 0}\nsteps: [{text: {content: 'x ', repeat: 10000}}]"))
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, c)
		slow := &slowRooms{world: w}
		w.gateway.rooms = slow
		w.connect(0).start(t, "t", "m", "hi")
		time.Sleep(2 * time.Minute)
		times := w.times()
		if len(times) != 10004 {
			t.Fatalf("%d envelopes came", len(times))
		}
		// Deltas stand 10 ms apart from the third envelope on. This one is far
		// enough from the last late one.
		if got, want := times[2+9_950], 9_950*10*time.Millisecond; got != want {
			t.Errorf("delta 9,950 came at %v, want %v", got, want)
		}
		w.gateway.stage.close()
	})
}

// slowRooms takes 25 ms for every hundredth message.
type slowRooms struct {
	*world
	n int
}

func (s *slowRooms) Emit(namespace, room, name string, args ...json.RawMessage) {
	if s.n++; s.n%100 == 0 {
		time.Sleep(25 * time.Millisecond)
	}
	s.world.Emit(namespace, room, name, args...)
}

// TestSpeedChangesOnTheWay pauses a run, lets it go on, and makes it faster.
func TestSpeedChangesOnTheWay(t *testing.T) {
	c := with(parse(t, "pace: {ttft: 0s, rate: max}\nsteps: [{wait: 10s}, {raw: {event: {type: A}}}, {wait: 10s}]"))
	inBubble(t, c, func(t *testing.T, w *world) {
		s := w.connect(0)
		s.start(t, "t", "m", "hi")
		time.Sleep(4 * time.Second)
		w.gateway.Pause(true)
		time.Sleep(time.Hour)
		w.gateway.Pause(false)
		time.Sleep(2 * time.Second)
		if err := w.gateway.SetSpeed(4); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		// 4 s, an hour, 2 s, then 4 s at four times the speed, then 10 s so.
		want := []time.Duration{0, time.Hour + 7*time.Second, time.Hour + 9500*time.Millisecond}
		if diff := cmp.Diff(want, w.times()); diff != "" {
			t.Errorf("times (-want +got):\n%s", diff)
		}
	})
}
