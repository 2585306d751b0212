package player

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tapedeck/player/scenario"
)

// parse reads a scenario that stands in a test.
func parse(t *testing.T, yaml string) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse("test", []byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// with returns a configuration that serves one scenario.
func with(s *scenario.Scenario) Config {
	return Config{Scenario: s.Name, Scenarios: []*scenario.Scenario{s}}
}

// inBubble runs a test with a gateway whose clock is synctest's.
func inBubble(t *testing.T, c Config, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, c)
		test(t, w)
		w.gateway.stage.close()
	})
}

func (s *fakeSocket) mustSend(t *testing.T, name, payload string) string {
	t.Helper()
	answer := s.send(name, payload)
	if !strings.HasPrefix(answer, `{"ok":true`) {
		t.Fatalf("%s %s was answered %s", name, payload, answer)
	}
	synctest.Wait()
	return answer
}

// start starts a run in a thread, by the first free message id.
func (s *fakeSocket) start(t *testing.T, thread, message, input string) {
	t.Helper()
	s.mustSend(t, "run:start", fmt.Sprintf(`{"threadId":%q,"messageId":%q,"input":%q}`, thread, message, input))
}

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

// TestRefusals sends what a gateway refuses, and hears the code and what to do.
func TestRefusals(t *testing.T) {
	tests := []struct{ name, command, payload, code, says string }{
		{"unknown command", "run:strat", `{}`, "INVALID_COMMAND", `did you mean "run:start"?`},
		{"no command at all", "chat", `{}`, "INVALID_COMMAND", `no command is called "chat"`},
		{"unknown key", "run:start", `{"threadId":"t","messageId":"m","input":"x","inputs":"y"}`, "INVALID_COMMAND", "/inputs"},
		{"missing key", "run:start", `{"threadId":"t","messageId":"m"}`, "INVALID_COMMAND", "command-key-missing"},
		{"no payload", "run:start", `null`, "INVALID_COMMAND", ""},
		{"an array", "run:cancel", `[]`, "INVALID_COMMAND", ""},
		{"empty input", "run:start", `{"threadId":"t","messageId":"m","input":""}`, "INVALID_COMMAND", "input-empty"},
		{"input too long", "run:start", `{"threadId":"t","messageId":"m","input":"` + strings.Repeat("x", 16001) + `"}`, "INVALID_COMMAND", "input-too-long"},
		{"bad tool kind", "run:start", `{"threadId":"t","messageId":"m","input":"x","clientTools":[{"name":"a","description":"b","arguments":{},"kind":"both"}]}`, "INVALID_COMMAND", "client-tool-kind"},
		{"resume without answer", "run:resume", `{"threadId":"t","interruptId":"i"}`, "INVALID_COMMAND", "answer"},
		{"resume of nothing", "run:resume", `{"threadId":"t","interruptId":"i","answer":null}`, "UNKNOWN_RUN", `decision "i"`},
		{"cancel of nothing", "run:cancel", `{"runId":"r"}`, "UNKNOWN_RUN", `run "r"`},
		{"detach of nothing", "run:detach", `{"runId":"r"}`, "UNKNOWN_RUN", `run "r"`},
		{"fork of nothing", "run:start", `{"threadId":"t","messageId":"m","input":"x","forkFromMessageId":"f"}`, "FORK_POINT_NOT_FOUND", `message "f"`},
		{"thread that is not known", "thread:messages", `{"threadId":"other"}`, "CONVERSATION_NOT_FOUND", `thread "other"`},
		{"unknown scenario", "run:start", `{"threadId":"t","messageId":"m","input":"scenario:aproval"}`, "INVALID_COMMAND", `did you mean "approval"?`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, Config{KnownThreads: []string{"t"}}, func(t *testing.T, w *world) {
				s := w.connect(0)
				s.messages()
				answer := s.send(test.command, test.payload)
				var a struct {
					OK    bool
					Error struct{ Code, Message string }
				}
				if err := json.Unmarshal([]byte(answer), &a); err != nil || a.OK || a.Error.Code != test.code || !strings.Contains(a.Error.Message, test.says) {
					t.Errorf("it was answered %s, want %s and %q", answer, test.code, test.says)
				}
				synctest.Wait()
				got := s.messages()
				told := len(got) == 1 && got[0].name == "protocol:error" && strings.Contains(got[0].payload, test.code)
				if told == (test.command == "thread:messages") {
					t.Errorf("besides its acknowledgement it got %v", got)
				}
				if len(s.envelopes()) > 0 {
					t.Errorf("it was refused, and streamed: %v", s.envelopes())
				}
			})
		})
	}
}

// TestTwoClientsAtOnce lets two clients play the same scenario, one a little
// after the other (P01, P06): each gets the whole of its own run.
func TestTwoClientsAtOnce(t *testing.T) {
	inBubble(t, Config{Scenario: "tool"}, func(t *testing.T, w *world) {
		a, b := w.connect(0), w.connect(1)
		a.start(t, "a", "m", "hi")
		time.Sleep(200 * time.Millisecond)
		b.start(t, "b", "m", "hi")
		time.Sleep(time.Minute)
		ids := map[string]string{}
		for thread, s := range map[string]*fakeSocket{"a": a, "b": b} {
			got := s.envelopes()
			if last := readEnvelope(t, got[len(got)-1]); last.Event.Type != "RUN_FINISHED" {
				t.Errorf("thread %s ended with %s", thread, last.Event.Type)
			}
			for i, payload := range got {
				e := readEnvelope(t, payload)
				if e.ThreadID != thread || e.Sequence != int64(i+1) {
					t.Errorf("thread %s got %s", thread, payload)
				}
				for _, id := range []string{e.RunID, e.Event.MessageID, e.Event.ToolCallID} {
					if other, ok := ids[id]; ok && other != thread && id != "" {
						t.Errorf("id %s is in both threads", id)
					}
					ids[id] = thread
				}
			}
		}
	})
}

// TestSeed plays with one seed twice, and with another (P04).
func TestSeed(t *testing.T) {
	play := func(seed uint64) (lines []string) {
		inBubble(t, Config{Scenario: "subagent", Seed: seed}, func(t *testing.T, w *world) {
			w.connect(0).start(t, "t", "m", "hi")
			time.Sleep(time.Minute)
			lines = w.lines()
		})
		return lines
	}
	if diff := cmp.Diff(play(7), play(7)); diff != "" {
		t.Errorf("the same seed:\n%s", diff)
	}
	if slices.Equal(play(7), play(8)) {
		t.Error("another seed changed nothing")
	}
}

// TestChoice lets the thread's id and the input choose the scenario. It stays
// chosen for the inputs after it.
func TestChoice(t *testing.T) {
	tests := []struct {
		name, thread string
		inputs       []string
		want         []string // the last run's types hold these
	}{
		{"by nothing", "t", []string{"hi"}, []string{"TEXT_MESSAGE_START"}},
		{"by thread", "scenario:tool", []string{"hi"}, []string{"TOOL_CALL_START"}},
		{"by thread, with more behind", "scenario:tool:17", []string{"hi"}, []string{"TOOL_CALL_START"}},
		{"by input", "t", []string{"scenario:tool"}, []string{"TOOL_CALL_START"}},
		{"by input, with text", "t", []string{"scenario:error-mid-text hello"}, []string{"RUN_ERROR"}},
		{"by an earlier input", "t", []string{"scenario:kitchen-sink", "next"}, []string{"SUBAGENT_STARTED"}},
		{"named again it goes on", "t", []string{"scenario:kitchen-sink", "scenario:kitchen-sink"}, []string{"SUBAGENT_STARTED"}},
		{"another one", "t", []string{"scenario:kitchen-sink", "scenario:tool"}, []string{"TOOL_CALL_START"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, Config{Speed: math.Inf(1)}, func(t *testing.T, w *world) {
				s := w.connect(0)
				for i, input := range test.inputs {
					s.messages()
					s.start(t, test.thread, fmt.Sprint("m", i), input)
				}
				for _, want := range test.want {
					if !strings.Contains(strings.Join(s.envelopes(), "\n"), want) {
						t.Errorf("there is no %s in the run of %q", want, test.inputs)
					}
				}
			})
		})
	}
}

// TestSameRun plays every scenario that pauses in the other form that the page
// leaves open: a resumed segment goes on under the id that paused.
func TestSameRun(t *testing.T) {
	for _, name := range []string{"approval", "rejection", "several-interrupts", "chained-interrupts", "client-tool-blocking", "interrupt-reload"} {
		t.Run(name, func(t *testing.T) {
			s, err := scenario.Builtin(name)
			if err != nil {
				t.Fatal(err)
			}
			s.Resume = "same-run"
			w := playOnce(t, s)
			judge(t, s, w)
			ids := map[string]bool{}
			for _, e := range w.sockets[0].envelopes() {
				ids[readEnvelope(t, e).RunID] = true
			}
			if len(ids) != 1 {
				t.Errorf("it has the run ids %v, want one", ids)
			}
		})
	}
}

// TestHistory reads what is checkpointed: the message that opened the run, what
// was thought, called and written, and the halves of a character joined.
func TestHistory(t *testing.T) {
	s := parse(t, `
steps:
  - reasoning: {content: I think., chunk: word}
  - tool: {id: a, name: look, arguments: {q: x}, result: {n: 1}}
  - text: {content: "Found 😀.", chunk: mid-surrogate}
`)
	c := with(s)
	c.Speed, c.Now = math.Inf(1), func() time.Time { return time.Unix(0, 0) }
	inBubble(t, c, func(t *testing.T, w *world) {
		socket := w.connect(0)
		socket.start(t, "t", "m", "hi")
		answer := socket.mustSend(t, "thread:messages", `{"threadId":"t"}`)
		var got struct {
			Messages []struct {
				ID, Role, Content, CreatedAt, Reasoning string
				ToolCalls                               []struct {
					Name      string
					Arguments map[string]string
					Result    string
				}
			}
			Replay json.RawMessage
		}
		if err := json.Unmarshal([]byte(answer), &got); err != nil {
			t.Fatal(err)
		}
		if len(got.Messages) != 3 || got.Replay != nil {
			t.Fatalf("the history is %s", answer)
		}
		user, tool, text := got.Messages[0], got.Messages[1], got.Messages[2]
		if user.ID != "m" || user.Role != "user" || user.Content != "hi" || user.CreatedAt != "1970-01-01T00:00:00.000Z" {
			t.Errorf("the user's message is %+v", user)
		}
		if tool.Reasoning != "I think." || len(tool.ToolCalls) != 1 || tool.ToolCalls[0].Arguments["q"] != "x" || tool.ToolCalls[0].Result != `{"n":1}` {
			t.Errorf("the tool's message is %+v", tool)
		}
		if text.Role != "assistant" || text.Content != "Found 😀." {
			t.Errorf("the answer is %+v", text)
		}
	})
}

// TestRooms: without strict rooms a run:start joins the room, with them only
// thread:messages does.
func TestRooms(t *testing.T) {
	for strict, want := range map[bool]int{false: 4, true: 0} {
		inBubble(t, Config{StrictRooms: strict, Speed: math.Inf(1), Scenario: "empty-message"}, func(t *testing.T, w *world) {
			s := w.connect(0)
			s.start(t, "t", "m", "hi")
			if got := len(s.envelopes()); got != want {
				t.Errorf("strict %v: %d envelopes, want %d", strict, got, want)
			}
		})
	}
}

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
