package protocol

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadCommand(t *testing.T) {
	for _, c := range []struct {
		name    string
		message Message
		want    Command
		ok      bool
	}{
		{"run:start", Message{Name: RunStart, Payload: []byte(`{"threadId":"t","messageId":"m","input":"a\"b","attachments":[1],"forkFromMessageId":"f",
			"clientTools":[{"name":"pick","description":"d","kind":"blocking","arguments":{"a":1},"result":true}, 7]}`)},
			Command{
				Name: RunStart, ThreadID: "t", MessageID: "m", Input: `a"b`, ForkFromMessageID: "f", Attachments: []byte("[1]"),
				ClientTools: []ClientTool{{"pick", "d", Blocking, []byte(`{"a":1}`), []byte("true")}, {}},
			}, true},
		{"null is an answer", Message{Name: RunResume, Payload: []byte(`{"interruptId":"i","answer":null}`)},
			Command{Name: RunResume, InterruptID: "i", Answer: []byte("null")}, true},
		{"no answer", Message{Name: RunResume, Payload: []byte(`{"interruptId":"i"}`)}, Command{Name: RunResume, InterruptID: "i"}, true},
		{"wrong types", Message{Name: RunDetach, Payload: []byte(` {"runId":7,"toolCallId":"c"} `)}, Command{Name: RunDetach, ToolCallID: "c"}, true},
		{"no object", Message{Name: RunCancel, Payload: []byte(`"r"`)}, Command{}, false},
		{"no payload", Message{Name: RunCancel}, Command{}, false},
		{"no command", Message{Name: TaskStatus, Payload: []byte(`{}`)}, Command{}, false},
		{"an answer to a command", Message{Name: ThreadMessages, Answer: true, Payload: []byte(`{}`)}, Command{}, false},
	} {
		got, ok := ReadCommand(&c.message)
		if diff := cmp.Diff(c.want, got); diff != "" || ok != c.ok {
			t.Errorf("%s: ok %v, want %v (-want +got):\n%s", c.name, ok, c.ok, diff)
		}
	}
}

func TestReadHistory(t *testing.T) {
	for _, c := range []struct {
		name, payload string
		want          History
		ok            bool
	}{
		{"whole", `{"ok":true,"messages":[{"id":"m","role":"user","content":"hi","createdAt":"2026","toolCalls":[]}],
			"replay":{"envelopes":[{"v":1},{"v":2}],"truncated":true},"pendingInterrupt":{"interruptId":"i"},"todos":[],"task":null}`,
			History{
				OK:        true,
				Messages:  []HistoryMessage{{ID: "m", Role: "user", CreatedAt: "2026", Content: []byte(`"hi"`), ToolCalls: []byte("[]"), Raw: []byte(`{"id":"m","role":"user","content":"hi","createdAt":"2026","toolCalls":[]}`)}},
				Replaying: true, Truncated: true, EnvelopesAt: "/replay/envelopes",
				Envelopes:        [][]byte{[]byte(`{"v":1}`), []byte(`{"v":2}`)},
				PendingInterrupt: []byte(`{"interruptId":"i"}`), Todos: []byte("[]"),
			}, true},
		{"envelopes by another name", `{"ok":true,"replay":{"truncated":false,"a/b":[{}]}}`,
			History{OK: true, Replaying: true, EnvelopesAt: "/replay/a~1b", Envelopes: [][]byte{[]byte("{}")}}, true},
		{"no replay", `{"ok":true,"messages":[],"replay":null}`, History{OK: true}, true},
		{"refused", `{"ok":false,"error":{"code":"CONVERSATION_NOT_FOUND","message":"none"}}`, History{Error: Failure{ConversationNotFound, "none"}}, true},
		{"refused, flat", `{"ok":false,"code":"INVALID_COMMAND","message":"no"}`, History{Error: Failure{InvalidCommand, "no"}}, true},
		{"no ok", `{"messages":[]}`, History{}, false},
		{"no object", `[]`, History{}, false},
		{"nothing", ``, History{}, false},
	} {
		got, ok := ReadHistory([]byte(c.payload))
		if diff := cmp.Diff(c.want, got); diff != "" || ok != c.ok {
			t.Errorf("%s: ok %v, want %v (-want +got):\n%s", c.name, ok, c.ok, diff)
		}
	}
}

func TestReadHello(t *testing.T) {
	for _, c := range []struct {
		payload string
		want    Announcement
		ok      bool
	}{
		{`{"protocol":{"major":1,"minor":17},"minClientMajor":1}`, Announcement{1, 17, 1}, true},
		{`{"protocol":{"major":2.0,"minor":0},"minClientMajor":1e0,"more":true}`, Announcement{2, 0, 1}, true},
		{`{"protocol":{"major":1,"minor":17}}`, Announcement{}, false},
		{`{"protocol":{"major":"1","minor":17},"minClientMajor":1}`, Announcement{}, false},
		{`{"protocol":{"major":-1,"minor":17},"minClientMajor":1}`, Announcement{}, false},
		{`{"protocol":{"major":1e300,"minor":17},"minClientMajor":1}`, Announcement{}, false},
		{`null`, Announcement{}, false},
	} {
		if got, ok := ReadHello([]byte(c.payload)); got != c.want || ok != c.ok {
			t.Errorf("ReadHello(%s) = %v, %v, want %v, %v", c.payload, got, ok, c.want, c.ok)
		}
	}
}

func TestReadError(t *testing.T) {
	for _, c := range []struct {
		payload string
		want    Failure
		ok      bool
	}{
		{`{"code":"UNKNOWN_RUN","message":"gone"}`, Failure{UnknownRun, "gone"}, true},
		{`{"message":"gone"}`, Failure{Message: "gone"}, true},
		{`{}`, Failure{}, false},
		{`"gone"`, Failure{}, false},
	} {
		if got, ok := ReadError([]byte(c.payload)); got != c.want || ok != c.ok {
			t.Errorf("ReadError(%s) = %v, %v, want %v, %v", c.payload, got, ok, c.want, c.ok)
		}
	}
}

// TestIntegers is report J02: an integer is one however it is spelled.
func TestIntegers(t *testing.T) {
	for value, want := range map[string]int64{
		"1": 1, "1.0": 1, "1e0": 1, "10e-1": 1, "-0": 0, "1E+2": 100, "9007199254740992": 1 << 53, "9223372036854775807": 1<<63 - 1,
	} {
		if n, ok := integerOf([]byte(value)); !ok || n != want {
			t.Errorf("%s is %d, %v, want %d", value, n, ok, want)
		}
	}
	for _, value := range []string{"1.5", `"1"`, "true", "null", "1e400", "9223372036854775808", "1e30", ""} {
		if n, ok := integerOf([]byte(value)); ok {
			t.Errorf("%s is the integer %d", value, n)
		}
	}
}

// TestMembers checks that a value is taken apart as it stands.
func TestMembers(t *testing.T) {
	o, ok := readObject([]byte(`{ "a" : [1, {"b": "}"}] , "\u0062":"x\"y" ,"a":2, "" : null}`))
	var got [][2]string
	for _, m := range o {
		got = append(got, [2]string{m.name, string(m.value)})
	}
	want := [][2]string{{"a", `[1, {"b": "}"}]`}, {"b", `"x\"y"`}, {"a", "2"}, {"", "null"}}
	if diff := cmp.Diff(want, got); diff != "" || !ok {
		t.Errorf("ok %v (-want +got):\n%s", ok, diff)
	}
	if got := o.get("a"); string(got) != "2" {
		t.Errorf("of two members the first counted: %s", got)
	}
}
