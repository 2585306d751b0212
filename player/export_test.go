package player

import (
	"testing"
	"testing/synctest"
	"time"

	"tapedeck/player/scenario"
	"tapedeck/protocol/capture"
)

// Rehearse plays the client of a scenario against a gateway, in a bubble of its
// own, and returns all that passed.
func Rehearse(t *testing.T, c Config, s *scenario.Scenario, thread string) []capture.Frame {
	t.Helper()
	var w *world
	synctest.Test(t, func(t *testing.T) {
		c.Now = func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
		w = newWorld(t, c)
		drive(t, w, s, thread)
		w.gateway.stage.close()
	})
	frames := make([]capture.Frame, 0, len(w.frames))
	for _, f := range w.frames {
		frames = append(frames, *f)
	}
	return frames
}

// Judge holds what passed to the findings that a scenario lists.
func Judge(t *testing.T, s *scenario.Scenario, frames []capture.Frame) {
	t.Helper()
	w := &world{}
	for i := range frames {
		w.frames = append(w.frames, &frames[i])
	}
	judge(t, s, w)
}

// Stepped starts a run on a stage that stands still, and lets one act go after
// another until nothing more comes. It returns how many envelopes had been sent
// after each step.
func Stepped(t *testing.T, c Config, input string) (sent []int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, c)
		s := w.connect(0)
		s.start(t, "live", "m", input)
		for {
			time.Sleep(time.Hour)
			if before := len(s.envelopes()); before != len(sent) {
				t.Fatalf("%d envelopes were sent without a step, %d with one", before, len(sent))
			}
			w.gateway.Step(1)
			synctest.Wait()
			if len(s.envelopes()) == len(sent) {
				break
			}
			sent = append(sent, len(s.envelopes()))
		}
		w.gateway.stage.close()
	})
	return sent
}
