package tape

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tapedeck/player"
	"tapedeck/player/script"
	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

// written is a tape that a test wrote down.
type written struct {
	sessions []capture.Session
	frames   []capture.Frame
}

func (w *written) Sessions(context.Context) ([]capture.Session, error) { return w.sessions, nil }

func (w *written) Frames(_ context.Context, from capture.Position, n int) ([]capture.Frame, error) {
	rest := w.frames[min(int(from)-1, len(w.frames)):]
	return rest[:min(n, len(rest))], nil
}

// write makes a tape of lines "TIME SOCKET ARROW DATA": > is from the client, <
// from the gateway; "open", "end" and "cut" are marks; "session" begins another
// session.
func write(t *testing.T, text string) *written {
	t.Helper()
	w := &written{}
	sockets := map[string]capture.Position{}
	add := func(f capture.Frame) {
		f.Position = capture.Position(len(w.frames) + 1)
		f.Size = int64(len(f.Data))
		if f.Kind == capture.Open {
			f.Connection = f.Position
		}
		w.frames = append(w.frames, f)
		w.sessions[len(w.sessions)-1].Last = f.Position
	}
	session := func() {
		w.sessions = append(w.sessions, capture.Session{ID: capture.SessionID(len(w.sessions) + 1), First: capture.Position(len(w.frames) + 1)})
	}
	session()
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "session" {
			session()
		}
		fields := strings.SplitN(line, " ", 4)
		if len(fields) < 3 {
			continue
		}
		at, err := time.ParseDuration(fields[0])
		if err != nil {
			t.Fatal(err)
		}
		f := capture.Frame{At: at, Kind: capture.Text, Connection: sockets[fields[1]]}
		switch fields[2] {
		case "open":
			f.Kind, f.Data = capture.Open, marshal(t, capture.Opening{Transport: capture.SocketIO, EIO: "4", Target: "/socket.io/?EIO=4"})
			sockets[fields[1]] = capture.Position(len(w.frames) + 1)
		case "end":
			f.Kind, f.Data = capture.End, marshal(t, capture.Ending{By: capture.FromClient, Code: 1005})
		case "cut":
			f.Kind, f.Data = capture.End, marshal(t, capture.Ending{By: capture.FromGateway, Code: 1006})
		case ">":
			f.Direction, f.Data = capture.FromClient, []byte(fields[3])
		case "<":
			f.Direction, f.Data = capture.FromGateway, []byte(fields[3])
		}
		add(f)
	}
	return w
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func open(t *testing.T, r Reader, o Options) *Source {
	t.Helper()
	s, err := New(t.Context(), r, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ask starts a run in a live thread, and returns what would be played.
func ask(s *Source, setting player.Setting, thread, input string) (player.Segments, error) {
	return s.Begin(player.Start{
		Command: protocol.Command{Name: protocol.RunStart, ThreadID: thread, MessageID: "live-message", Input: input},
		Run:     "live-run", State: setting.State,
	})
}

// cues are cues for a person: their times, and what they do.
func cues(list []script.Cue) (out []string) {
	for _, c := range list {
		line := fmt.Sprint(c.At, " ")
		switch act := c.Act.(type) {
		case script.Event:
			line += string(act.Type)
			if act.Recorded.Stray {
				line += " astray"
			}
			if act.Recorded.Repeat {
				line += " again"
			}
		case script.Send:
			line += "send " + act.Name
		case script.Cut:
			line += "cut"
		case script.Forget:
			line += "forget"
		case script.Await:
			line += "await " + string(act.Command)
		case script.Remember:
			line += fmt.Sprint("remember ", len(act.Messages))
		case script.Open:
			line += fmt.Sprintf("open %s %d %v [%s]", act.Run, len(act.Streamed), act.Truncated, strings.Join(cues(act.Script.Cues), ", "))
		}
		out = append(out, line)
	}
	return out
}

// event is a line of a tape: an envelope.
func event(at, socket, thread, run string, sequence int, typ, rest string) string {
	return fmt.Sprintf("%s %s < 42[\"run:event\",{\"v\":1,\"threadId\":%q,\"runId\":%q,\"sequence\":%d,\"event\":{\"type\":%q%s}}]\n", at, socket, thread, run, sequence, typ, rest)
}

const opened = `
0s a open
0s a > 40
0s a < 40{"sid":"x"}
0s a < 42["protocol:hello",{"protocol":{"major":1,"minor":18},"minClientMajor":1}]
`

const startT = `100ms a > 42["run:start",{"threadId":"T","messageId":"m1","input":"Hi"}]` + "\n"

// TestScripts: what a tape holds, as it would be played.
func TestScripts(t *testing.T) {
	text := func(at string, n int) string {
		return event(at, "a", "T", "R", n, "TEXT_MESSAGE_CONTENT", `,"messageId":"x","delta":"d`+at+`"`)
	}
	for _, c := range []struct {
		name string
		tape string
		want []string
	}{
		{"times count from the command", startT + event("150ms", "a", "T", "R", 1, "RUN_STARTED", "") + text("1100ms", 2) + event("6100ms", "a", "T", "R", 3, "RUN_FINISHED", ""),
			[]string{"50ms RUN_STARTED", "1s TEXT_MESSAGE_CONTENT", "6s RUN_FINISHED"}},
		// B09: the clock runs back, and jumps by a day.
		{"a clock that moves", startT + event("10m", "a", "T", "R", 1, "RUN_STARTED", "") + text("9m", 2) + text("9m1s", 3) + event("24h", "a", "T", "R", 4, "RUN_FINISHED", ""),
			[]string{"9m59.9s RUN_STARTED", "9m59.9s TEXT_MESSAGE_CONTENT", "10m0.9s TEXT_MESSAGE_CONTENT", "20m0.9s RUN_FINISHED"}},
		{"faults stay: a gap, a repeat, what follows the end, what is astray",
			startT + event("100ms", "a", "T", "R", 1, "RUN_STARTED", "") + text("200ms", 4) + text("200ms", 4) +
				event("300ms", "a", "T", "R", 5, "RUN_FINISHED", "") + text("400ms", 6) + event("500ms", "a", "Q", "R", 7, "RUN_ERROR", ""),
			[]string{"0s RUN_STARTED", "100ms TEXT_MESSAGE_CONTENT", "100ms TEXT_MESSAGE_CONTENT again", "200ms RUN_FINISHED", "300ms TEXT_MESSAGE_CONTENT", "400ms RUN_ERROR astray"}},
		{"a second window's envelopes do not count", startT + event("100ms", "a", "T", "R", 1, "RUN_STARTED", "") + `
150ms b open
150ms b > 420["thread:messages",{"threadId":"T"}]
150ms b < 430[{"ok":true,"messages":[],"replay":{"envelopes":[{"v":1,"threadId":"T","runId":"R","sequence":1,"event":{"type":"RUN_STARTED"}}],"truncated":false}}]
` + text("200ms", 2) + strings.Replace(text("200ms", 2), " a <", " b <", 1) + event("300ms", "b", "T", "R", 3, "RUN_FINISHED", "") + event("310ms", "a", "T", "R", 3, "RUN_FINISHED", ""),
			[]string{"0s remember 0", "0s RUN_STARTED", "100ms TEXT_MESSAGE_CONTENT", "200ms RUN_FINISHED"}},
		{"a run that died is forgotten once its gateway has forgotten it", startT + event("100ms", "a", "T", "R", 1, "RUN_STARTED", "") + text("200ms", 2) + `
300ms a cut
1s b open
1s b > 420["thread:messages",{"threadId":"T"}]
1s b < 430[{"ok":true,"messages":[{"id":"m1"}]}]
`, []string{"0s RUN_STARTED", "100ms TEXT_MESSAGE_CONTENT", "100ms forget", "100ms remember 1", "200ms cut"}},
		{"a run that died with the tape stays in flight", startT + event("100ms", "a", "T", "R", 1, "RUN_STARTED", ""), []string{"0s RUN_STARTED"}},
		{"a cut, a client that comes back, and what it missed", startT + event("100ms", "a", "T", "R", 1, "RUN_STARTED", "") + `
300ms a cut
1s b open
1s b > 420["thread:messages",{"threadId":"T"}]
1s b < 430[{"ok":true,"messages":[],"replay":{"envelopes":[{"v":1,"threadId":"T","runId":"R","sequence":1,"event":{"type":"RUN_STARTED"}},{"v":1,"threadId":"T","runId":"R","sequence":2,"event":{"type":"TODOS_SNAPSHOT","todos":[]}}],"truncated":false}}]
` + event("2s", "b", "T", "R", 3, "RUN_FINISHED", ""),
			[]string{"0s remember 0", "0s RUN_STARTED", "200ms cut", "200ms TODOS_SNAPSHOT", "200ms await thread:messages", "1.2s RUN_FINISHED"}},
		{"a cancel that was obeyed is waited for; one that was refused is not",
			startT + event("100ms", "a", "T", "R", 1, "RUN_STARTED", "") + `200ms a > 42["run:cancel",{"runId":"R"}]` + "\n" + `210ms a < 42["protocol:error",{"code":"UNKNOWN_RUN","message":"?"}]` + "\n" +
				text("300ms", 2) + `400ms a > 42["run:cancel",{"runId":"R"}]` + "\n" + event("500ms", "a", "T", "R", 3, "RUN_CANCELLED", ""),
			[]string{"0s RUN_STARTED", "0s forget", "200ms TEXT_MESSAGE_CONTENT", "300ms await run:cancel", "400ms RUN_CANCELLED"}},
		{"a run of somebody else", startT + event("100ms", "a", "T", "R", 1, "RUN_STARTED", "") + event("200ms", "a", "T", "R", 2, "RUN_FINISHED", "") +
			event("1s", "a", "T", "S", 1, "RUN_STARTED", "") + event("3s", "a", "T", "S", 2, "RUN_FINISHED", ""),
			[]string{"0s RUN_STARTED", "100ms RUN_FINISHED", "900ms open S-K 0 false [0s RUN_STARTED, 2s RUN_FINISHED]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, write(t, opened+c.tape), Options{WithDrops: true})
			setting := s.Thread("live")
			segments, err := ask(s, setting, "live", "Hi")
			if err != nil {
				t.Fatal(err)
			}
			played, err := segments(player.Turn{Run: "live-run"})
			if err != nil {
				t.Fatal(err)
			}
			got := cues(played.Cues)
			for i := range got {
				got[i] = replaceAll(got[i], fmt.Sprintf("-%x", setting.State.(*live).binding.key[:4]))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("played (-want +got):\n%s", diff)
			}
		})
	}
}

// TestBeforeTheTape: a recording that begins in the middle of a run, or in a
// pause, gives that to the first client that joins.
func TestBeforeTheTape(t *testing.T) {
	joined := `
980ms a > 420["thread:messages",{"threadId":"T"}]
`
	for _, c := range []struct{ name, tape, want string }{
		{"in a run", `1s a < 430[{"ok":true,"messages":[{"id":"old"}],"replay":{"envelopes":[{"v":1,"threadId":"T","runId":"R","sequence":4,"event":{"type":"TODOS_SNAPSHOT","todos":[]}}],"truncated":true}}]` + "\n" +
			event("3s", "a", "T", "R", 5, "RUN_FINISHED", ""), "0s open R-K 1 true [2s RUN_FINISHED]"},
		{"in a pause", `1s a < 430[{"ok":true,"messages":[{"id":"old"}],"pendingInterrupt":{"interruptId":"i","payload":{"q":1}}}]` + "\n" +
			`5s a > 42["run:resume",{"threadId":"T","interruptId":"i","answer":1}]` + "\n" + event("6s", "a", "T", "R2", 1, "RUN_STARTED", "") + event("7s", "a", "T", "R2", 2, "RUN_FINISHED", ""),
			"0s open a run before the tape, i-K 3 false []"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, write(t, opened+joined+c.tape), Options{})
			setting := s.Thread("live")
			suffix := fmt.Sprintf("-%x", setting.State.(*live).binding.key[:4])
			got := cues(setting.Prelude)
			if len(got) != 1 || replaceAll(got[0], suffix) != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if past := setting.Past.Messages; len(past) != 1 || replaceAll(string(past[0]), suffix) != `{"id":"old-K"}` {
				t.Errorf("the history is %s", past)
			}
			act := setting.Prelude[0].Act.(script.Open)
			if c.name == "in a pause" {
				after, err := act.Next(player.Turn{Run: "live-run", Pauses: []map[string]json.RawMessage{{act.Streamed[0].ID: json.RawMessage("1")}}})
				if diff := cmp.Diff([]string{"1s RUN_STARTED", "2s RUN_FINISHED"}, cues(after.Cues)); err != nil || diff != "" {
					t.Errorf("after the pause: %v %s", err, diff)
				}
			}
		})
	}
}

// TestGreeting: the announcement, and what a CONNECT was refused with, are the
// recorded gateway's.
func TestGreeting(t *testing.T) {
	s := open(t, write(t, "0s z open\n0s z < 44{\"message\":\"who?\",\"data\":{\"code\":401}}\n0s z end\n"+opened), Options{})
	if got := string(s.Hello()); got != `{"protocol":{"major":1,"minor":18},"minClientMajor":1}` {
		t.Errorf("hello is %s", got)
	}
	if r := s.Refuse(0); r == nil || r.Message != "who?" || string(r.Data) != `{"code":401}` {
		t.Errorf("the first refusal is %v", r)
	}
	if r := s.Refuse(1); r != nil {
		t.Errorf("the second attempt is refused: %v", r)
	}
	if silent := open(t, write(t, "0s a open\n0s a < 40{\"sid\":\"x\"}\n"), Options{}); silent.Hello() != nil {
		t.Errorf("a gateway that said nothing says %s", silent.Hello())
	}
	if empty := open(t, write(t, ""), Options{}); empty.Hello() == nil {
		t.Error("a tape without sockets says that its gateway announced nothing")
	}
}

// TestMatching: which recorded run answers, by the way to match.
func TestMatching(t *testing.T) {
	var text strings.Builder
	text.WriteString(opened)
	for i, start := range []struct{ thread, input string }{{"T", "one"}, {"T", "two"}, {"T", "one"}, {"U", "three"}} {
		fmt.Fprintf(&text, "%ds a > 42[\"run:start\",{\"threadId\":%q,\"messageId\":\"m%d\",\"input\":%q}]\n", i+1, start.thread, i, start.input)
		run := fmt.Sprintf("R%d", i)
		text.WriteString(event(fmt.Sprintf("%ds", i+1), "a", start.thread, run, 1, "RUN_STARTED", ""))
		text.WriteString(event(fmt.Sprintf("%ds", i+1), "a", start.thread, run, 2, "RUN_FINISHED", ""))
	}
	tape := write(t, text.String())
	for _, c := range []struct {
		name   string
		o      Options
		inputs string
		want   string // the recorded runs, - for a miss
	}{
		{"as recorded", Options{}, "one two one", "R0 R1 R2"},
		{"the same input anywhere", Options{}, "two one three", "R1 R0 R3"},
		{"else in order", Options{}, "other two else", "R0 R1 R2"},
		{"until none is left", Options{}, "x x x x", "R0 R1 R2 -"},
		{"an input that comes again", Options{Match: MatchInput}, "two two", "R1 R1"},
		{"by input alone", Options{Match: MatchInput}, "one four", "R0 -"},
		{"in order alone", Options{Match: MatchOrder}, "two two two", "R0 R1 R2"},
		{"next on a miss", Options{Match: MatchInput, OnMiss: MissNext}, "four one", "R0 R2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, tape, c.o)
			setting := s.Thread("live")
			var got []string
			for i, input := range strings.Fields(c.inputs) {
				segments, err := ask(s, setting, "live", input)
				if err != nil {
					got = append(got, "-")
					continue
				}
				live := fmt.Sprintf("live-%d", i)
				if _, err := segments(player.Turn{Run: live}); err != nil {
					t.Fatal(err)
				}
				recorded, _ := s.recordedID(live)
				got = append(got, recorded)
			}
			if g := strings.Join(got, " "); g != c.want {
				t.Errorf("%q was answered by %s, want %s", c.inputs, g, c.want)
			}
			if misses := strings.Count(c.want, "-"); c.o.OnMiss == "" && s.Misses() != misses {
				t.Errorf("%d misses were counted, want %d", s.Misses(), misses)
			}
		})
	}
}

// TestLookedAt: threads that the recorded client only looked at, or that there
// never were, do not stand in the way of the one with runs.
func TestLookedAt(t *testing.T) {
	s := open(t, write(t, opened+`
10ms a > 420["thread:messages",{"threadId":"gone"}]
11ms a < 430[{"ok":false,"error":{"code":"CONVERSATION_NOT_FOUND","message":"?"}}]
20ms a > 421["thread:messages",{"threadId":"old"}]
21ms a < 431[{"ok":true,"messages":[{"id":"a"}]}]
`+startT+event("1s", "a", "T", "R", 1, "RUN_STARTED", "")), Options{})
	setting := s.Thread("live")
	if setting.Unknown || len(setting.Past.Messages) != 1 {
		t.Errorf("the first thread begins as %+v", setting)
	}
	if _, err := ask(s, setting, "live", "Something else"); err != nil {
		t.Error(err)
	}
	if !s.Thread("gone").Unknown {
		t.Error("a thread that there never was is there")
	}
}

// TestRefusedStart: a start that the gateway refused for reasons of its own is
// refused again; one that came while the thread was busy takes no turn.
func TestRefusedStart(t *testing.T) {
	s := open(t, write(t, opened+startT+event("110ms", "a", "T", "R", 1, "RUN_STARTED", "")+
		`200ms a > 42["run:start",{"threadId":"T","messageId":"m2","input":"Too soon"}]
210ms a < 42["protocol:error",{"code":"INVALID_COMMAND","message":"busy"}]
`+event("300ms", "a", "T", "R", 2, "RUN_FINISHED", "")+
		`400ms a > 42["run:start",{"threadId":"T","messageId":"m3","input":"Too dear"}]
410ms a < 42["protocol:error",{"code":"INVALID_COMMAND","message":"no budget"}]
`), Options{Match: MatchOrder})
	setting := s.Thread("live")
	if _, err := ask(s, setting, "live", "Hi"); err != nil {
		t.Errorf("the first start was refused: %v", err)
	}
	if _, err := ask(s, setting, "live", "Too dear"); err == nil || !strings.Contains(err.Error(), "no budget") {
		t.Errorf("the start without budget was answered %v", err)
	}
}

// TestSessions: each session of a tape is a recording of its own, and one can be
// chosen.
func TestSessions(t *testing.T) {
	one := opened + startT + event("1s", "a", "T", "R", 1, "RUN_STARTED", "") + event("2s", "a", "T", "R", 2, "RUN_FINISHED", "")
	tape := write(t, one+"session\n"+strings.ReplaceAll(one, "Hi", "Ho"))
	if got := open(t, tape, Options{}).Summary(); got.Starts != 2 {
		t.Errorf("all sessions: %+v", got)
	}
	second := open(t, tape, Options{Session: 2, Match: MatchInput})
	if _, err := ask(second, second.Thread("live"), "live", "Ho"); err != nil {
		t.Error(err)
	}
	if _, err := New(t.Context(), tape, Options{Session: 3}); err == nil || !strings.Contains(err.Error(), "no session 3") {
		t.Errorf("session 3: %v", err)
	}
	if _, err := New(t.Context(), tape, Options{Limit: 10}); err == nil || !strings.Contains(err.Error(), "10 bytes") {
		t.Errorf("over the limit: %v", err)
	}
	if _, err := New(t.Context(), tape, Options{Match: "best"}); err == nil || !strings.Contains(err.Error(), "auto") {
		t.Errorf("an unknown way to match: %v", err)
	}
}

func BenchmarkLoad100k(b *testing.B) {
	w := &written{sessions: []capture.Session{{ID: 1, First: 1}}}
	add := func(f capture.Frame) {
		f.Position = capture.Position(len(w.frames) + 1)
		f.Connection = 1
		w.frames = append(w.frames, f)
		w.sessions[0].Last = f.Position
	}
	add(capture.Frame{Kind: capture.Open, Data: []byte(`{"transport":"socket.io","eio":"4"}`)})
	add(capture.Frame{Kind: capture.Text, Direction: capture.FromClient, Data: []byte(`42["run:start",{"threadId":"T","messageId":"m","input":"Hi"}]`)})
	for i := range 100_000 {
		add(capture.Frame{Kind: capture.Text, Direction: capture.FromGateway, At: time.Duration(i) * time.Millisecond, Data: fmt.Appendf(nil,
			`42["run:event",{"v":1,"threadId":"T","runId":"R","sequence":%d,"event":{"type":"TEXT_MESSAGE_CONTENT","messageId":"msg_1","delta":"some words of a message"}}]`, i+1)})
	}
	b.ReportAllocs()
	for b.Loop() {
		s, err := New(b.Context(), w, Options{})
		if err != nil {
			b.Fatal(err)
		}
		segments, err := ask(s, s.Thread("live"), "live", "Hi")
		if err != nil {
			b.Fatal(err)
		}
		if played, err := segments(player.Turn{Run: "live-run"}); err != nil || len(played.Cues) != 100_000 {
			b.Fatal(err, len(played.Cues))
		}
	}
}
