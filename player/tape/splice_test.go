package tape

import (
	"encoding/json"
	"fmt"
	"testing"
)

// TestSplice: ids are replaced where ids stand, and nothing else is touched.
func TestSplice(t *testing.T) {
	for _, c := range []struct {
		name     string
		in       place
		recorded string
		want     string
	}{
		{"an envelope", inEnvelope,
			`{"v":1,"threadId":"T","runId":"R","sequence":7,"event":{"type":"TOOL_CALL_START","toolCallId":"c1","parentMessageId":"m1"}}`,
			`{"v":1,"threadId":"t!","runId":"r!","sequence":7,"event":{"type":"TOOL_CALL_START","toolCallId":"c1-K","parentMessageId":"m1-K"}}`},
		{"order, spaces, numbers and escapes stay", inEnvelope,
			"{ \"event\" : {\"delta\":\"\\u00e9\\/\\ud83d\",\"n\":1.0e2,\"type\":\"TEXT_MESSAGE_CONTENT\"} ,\n\"runId\" :\t\"R\",\"x\":12345678901234567890 }",
			"{ \"event\" : {\"delta\":\"\\u00e9\\/\\ud83d\",\"n\":1.0e2,\"type\":\"TEXT_MESSAGE_CONTENT\"} ,\n\"runId\" :\t\"r!\",\"x\":12345678901234567890 }"},
		{"a text that is an id's is a text", inEnvelope,
			`{"runId":"R","event":{"delta":"R","content":"T","name":"R"}}`,
			`{"runId":"r!","event":{"delta":"R","content":"T","name":"R"}}`},
		{"the agent's own ids stay, known ones do not", inEnvelope,
			`{"event":{"content":{"id":"R","orderId":"4711","list":[{"runId":"R","toolCallId":"zzz"},"R"]}}}`,
			`{"event":{"content":{"id":"r!","orderId":"4711","list":[{"runId":"r!","toolCallId":"zzz"},"R"]}}}`},
		{"the opening message", inEnvelope,
			`{"event":{"type":"RUN_STARTED","message":{"id":"M","content":"M","attachments":[{"id":"a1"}]}}}`,
			`{"event":{"type":"RUN_STARTED","message":{"id":"m!","content":"M","attachments":[{"id":"a1"}]}}}`},
		{"an id in escapes", inEnvelope, `{"run\u0049d":"\u0052"}`, `{"run\u0049d":"r!"}`},
		{"a live id that needs escapes", inEnvelope, `{"threadId":"Q"}`, `{"threadId":"a\"b"}`},
		{"ids that are no strings", inEnvelope, `{"runId":null,"threadId":7,"event":[{"runId":"R"}]}`, `{"runId":null,"threadId":7,"event":[{"runId":"r!"}]}`},
		{"a UUID stays one", inEvent, `{"messageId":"0190b5c2-1111-7abc-8def-000000000001"}`, ""},
		{"a message of a history", inMessage,
			`{"id":"M","toolCalls":[{"id":"c1","arguments":{"id":"c9"}}],"task":{"id":"k","childThreadId":"h"}}`,
			`{"id":"m!","toolCalls":[{"id":"c1-K","arguments":{"id":"c9"}}],"task":{"id":"k-K","childThreadId":"h-K"}}`},
		{"task:status", inStatus, `{"threadId":"T","task":{"id":"k","toolCallId":"c1"}}`, `{"threadId":"t!","task":{"id":"k-K","toolCallId":"c1-K"}}`},
		{"what is no JSON", inEnvelope, `{"runId":"R","event":{"x":"unended`, `{"runId":"r!","event":{"x":"unended`},
		{"nothing", inEnvelope, ``, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBinding(1, "t!", 0)
			for recorded, live := range map[string]string{"T": "t!", "R": "r!", "M": "m!", "Q": `a"b`} {
				b.set(recorded, live)
			}
			want := c.want
			suffix := fmt.Sprintf("-%x", b.key[:4])
			got := string(b.splice(c.in, []byte(c.recorded)).payload)
			if want == "" && c.recorded != "" {
				var e struct{ MessageID string }
				if json.Unmarshal([]byte(got), &e) != nil || !isUUID(e.MessageID) || got == c.recorded {
					t.Errorf("got %s", got)
				}
				return
			}
			if got = replaceAll(got, suffix); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func replaceAll(text, suffix string) string {
	out := ""
	for i := 0; i < len(text); i++ {
		if len(text)-i >= len(suffix) && text[i:i+len(suffix)] == suffix {
			out += "-K"
			i += len(suffix) - 1
			continue
		}
		out += text[i : i+1]
	}
	return out
}

// TestSplicedParts: the event and its delta are found in what goes out.
func TestSplicedParts(t *testing.T) {
	b := newBinding(1, "t", 0)
	s := b.splice(inEnvelope, []byte(`{"threadId":"T","event":{"messageId":"M","content":{"delta":"no","event":{}},"delta":"a\"b"},"runId":"R"}`))
	event, delta := string(s.event.of(s.payload)), string(s.delta.of(s.payload))
	if want := `{"messageId":"` + b.of("M") + `","content":{"delta":"no","event":{}},"delta":"a\"b"}`; event != want || delta != `"a\"b"` {
		t.Errorf("event %s, delta %s; want %s", event, delta, want)
	}
}

// TestBindings: a map is stable and one to one, and no two threads share an id.
func TestBindings(t *testing.T) {
	one, again, two, other := newBinding(1, "a", 0), newBinding(1, "a", 0), newBinding(1, "b", 0), newBinding(2, "a", 0)
	seen := map[string]string{}
	for _, id := range []string{"m1", "m2", "0190b5c2-1111-7abc-8def-000000000001", "0190b5c2-1111-7abc-8def-000000000002", "0190B5C2-1111-7ABC-8DEF-00000000000A", "é"} {
		if first := one.of(id); first != one.of(id) || first != again.of(id) {
			t.Errorf("%s is not stable", id)
		}
		for _, b := range []*binding{one, two, other} {
			live := b.of(id)
			if there, ok := seen[live]; ok {
				t.Errorf("%s stands for %s and %s", live, there, id)
			}
			seen[live] = id
			if back, ok := b.recorded(live); !ok || back != id {
				t.Errorf("%s leads back to %s, want %s", live, back, id)
			}
		}
	}
}

// FuzzSplice: what was JSON stays JSON and what was none stays none; the way
// back gives the same bytes, but for the ids' escapes; and what is not an id is
// not touched.
func FuzzSplice(f *testing.F) {
	for _, seed := range []string{
		`{"v":1,"threadId":"T","runId":"R","sequence":7,"event":{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"x"}}`,
		`{"event":{"message":{"id":"a","toolCalls":[{"id":"b"}]}}}`, `{"runId":"\ud800"}`, `{"runId":"\q"}`, `{"a":"b" "runId":"x"}`, `[{"id":"R"}]`, `{"runId"`, `}]{"runId":"R"}`,
		`{"threadId":"R","messages":[{"id":"x"},[{"id":"y"}]]}`,
	} {
		for p := free; p <= inStatus; p++ {
			f.Add(seed, uint8(p))
		}
	}
	f.Fuzz(func(t *testing.T, in string, p uint8) {
		b := newBinding(1, "thread", 0)
		b.set("R", "live-run")
		s := b.splice(place(p%uint8(inStatus+1)), []byte(in))
		if json.Valid([]byte(in)) != json.Valid(s.payload) {
			t.Fatalf("%q became %q", in, s.payload)
		}
		if e := s.event.of(s.payload); e != nil && json.Valid(s.payload) && !json.Valid(e) {
			t.Fatalf("of %q, %q is no event", s.payload, e)
		}
		if d := s.delta.of(s.payload); d != nil && json.Valid(s.payload) && !json.Valid(d) {
			t.Fatalf("of %q, %q is no delta", s.payload, d)
		}
		before, after := parts(in), parts(string(s.payload))
		if len(before) != len(after) {
			t.Fatalf("%q became %q: another shape", in, s.payload)
		}
		for i := range before {
			if before[i] == after[i] {
				continue
			}
			id, ok := unquoted([]byte(before[i]))
			live, _ := unquoted([]byte(after[i]))
			if i%2 == 0 || !ok || b.of(string(id)) != string(live) {
				t.Fatalf("%q became %q: %q was touched", in, s.payload, before[i])
			}
		}
	})
}

// parts cuts JSON at its strings: what stands outside them and in them in turn.
func parts(text string) (out []string) {
	from, in := 0, false
	for i := 0; i < len(text); i++ {
		switch {
		case in && text[i] == '\\':
			i++
		case text[i] == '"':
			out = append(out, text[from:i])
			from, in = i+1, !in
		}
	}
	return append(out, text[min(from, len(text)):])
}

func BenchmarkSplice(b *testing.B) {
	m := newBinding(1, "thread", 0)
	payload := []byte(`{"v":1,"threadId":"thread-1","runId":"run_9a29cff36690","sequence":1042,"event":{"type":"TEXT_MESSAGE_CONTENT","messageId":"msg_1","delta":"some words of a message"}}`)
	b.ReportAllocs()
	b.SetBytes(int64(len(payload)))
	for b.Loop() {
		m.splice(inEnvelope, payload)
	}
}
