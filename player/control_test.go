package player

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"tapedeck/player/scenario"
)

// TestReset forgets everything: the thread is new, and the socket in no room.
func TestReset(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, w *world) {
		s := w.connect(0)
		s.start(t, "t", "m", "hi")
		w.gateway.Reset()
		s.messages()
		time.Sleep(time.Minute)
		if got := s.messages(); len(got) > 0 {
			t.Errorf("after the reset came %v", got)
		}
		if got, want := s.mustSend(t, "thread:messages", `{"threadId":"t"}`), `{"ok":true,"messages":[]}`; got != want {
			t.Errorf("the history is %s, want %s", got, want)
		}
		s.start(t, "t", "m", "hi")
	})
}

// TestVerify holds the journal of a client that did what hello expects, and of
// one that did not, against it.
func TestVerify(t *testing.T) {
	inBubble(t, Config{Speed: math.Inf(1)}, func(t *testing.T, w *world) {
		s := w.connect(0)
		s.mustSend(t, "thread:messages", `{"threadId":"t"}`)
		s.start(t, "t", "m", "hi")
		s.mustSend(t, "thread:messages", `{"threadId":"t"}`)
		expected, err := scenario.Builtin("hello")
		if err != nil {
			t.Fatal(err)
		}
		if v := w.gateway.verify(expected, "t"); !v.OK {
			t.Errorf("the right client: %q", v.Problems)
		}
		s.send("run:start", `{"threadId":"t","messageId":"m","input":"hi"}`)
		v := w.gateway.verify(expected, "t")
		if want := []string{"command 4, run:start refused by DUPLICATE_MESSAGE, was not expected"}; !slices.Equal(v.Problems, want) {
			t.Errorf("problems %q, want %q", v.Problems, want)
		}
	})
}

// TestDetachNested detaches a subagent while one of its own is at work: what had
// begun is finished in the run, the rest is the task's, and nothing is left open
// in either.
func TestDetachNested(t *testing.T) {
	s := parse(t, `
steps:
  - subagent:
      id: outer
      name: planner
      prompt: Plan.
      steps:
        - text: I ask.
        - subagent:
            id: inner
            name: timetable
            prompt: Look.
            steps: [{text: I look and look and look.}, {wait: 5s}, {text: There is one at nine.}]
            result: at nine
        - text: I have the plan.
      result: done
  - text: That is all.
client:
  - join: true
  - start: Plan a trip
  - when: TEXT_MESSAGE_CONTENT*4
    detach: "1"
  - when: RUN_FINISHED
    thread: task
    after: 10s
    join: true
`)
	w := playOnce(t, s)
	judge(t, s, w)
	if t.Failed() {
		t.Log(strings.Join(w.lines(), "\n"))
	}
}

// TestControlChooses lets the control API choose for the next run, once, and for
// a thread, from its first run on.
func TestControlChooses(t *testing.T) {
	inBubble(t, Config{Speed: math.Inf(1)}, func(t *testing.T, w *world) {
		s := w.connect(0)
		play := func(message, input, want string) {
			t.Helper()
			s.messages()
			s.start(t, "t", message, input)
			if !strings.Contains(strings.Join(s.envelopes(), "\n"), want) {
				t.Errorf("run %s has no %s", message, want)
			}
		}
		choose := func(body string) {
			t.Helper()
			if _, err := w.gateway.controlScenario(nil, []byte(body)); err != nil {
				t.Fatal(err)
			}
		}
		play("m1", "hi", "synthetic ")
		choose(`{"scenario":"tool"}`)
		play("m2", "hi", "TOOL_CALL_START")
		play("m3", "hi", "synthetic ")
		choose(`{"scenario":"kitchen-sink","thread":"t"}`)
		play("m4", "hi", "REASONING_START")
		play("m5", "hi", "SUBAGENT_STARTED")
		play("m6", "scenario:hello", "synthetic ")
	})
}

// TestCancelInTheBackground cancels a background task by its own run.
func TestCancelInTheBackground(t *testing.T) {
	inBubble(t, Config{Scenario: "detach"}, func(t *testing.T, w *world) {
		s := w.connect(0)
		s.start(t, "t", "m", "hi")
		time.Sleep(600 * time.Millisecond)
		run := readEnvelope(t, s.envelopes()[0]).RunID
		s.mustSend(t, "run:detach", fmt.Sprintf(`{"runId":%q}`, run))
		var child string
		for _, e := range s.envelopes() {
			if e := readEnvelope(t, e); e.Event.ChildThreadID != "" {
				child = e.Event.ChildThreadID
			}
		}
		replay := replayed(t, s.mustSend(t, "thread:messages", fmt.Sprintf(`{"threadId":%q}`, child)))
		s.mustSend(t, "run:cancel", fmt.Sprintf(`{"runId":%q}`, readEnvelope(t, replay[0]).RunID))
		var last string
		for _, m := range s.messages() {
			if m.name == "task:status" {
				last = m.payload
			}
		}
		if !strings.Contains(last, `"status":"cancelled"`) {
			t.Errorf("the last task:status is %s", last)
		}
	})
}
