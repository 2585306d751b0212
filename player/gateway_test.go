package player

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
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

// TestReplace: a scenario that changed is played from the next run:start on.
func TestReplace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		says := func(text string) *scenario.Scenario {
			s, err := scenario.Parse("mine", []byte("title: Mine\nsteps: [{text: "+text+"}]\n"))
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		one, two := says("one"), says("two")
		w := newWorld(t, Config{Scenario: "mine", Scenarios: []*scenario.Scenario{one}})
		s := w.connect(0)
		said := func(message string) string {
			s.send("run:start", `{"threadId":"t","messageId":"`+message+`","input":"go"}`)
			time.Sleep(time.Minute)
			synctest.Wait()
			text := ""
			for _, payload := range s.envelopes() {
				text += readEnvelope(t, payload).Event.Delta
			}
			s.messages()
			return text
		}
		if got := said("m1"); got != "one" {
			t.Errorf("before: %q", got)
		}
		if err := w.gateway.Replace(two); err != nil {
			t.Fatal(err)
		}
		if got := said("m2"); got != "two" {
			t.Errorf("after: %q", got)
		}
	})
}
