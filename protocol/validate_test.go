package protocol

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tapedeck/protocol/capture"
)

const delta = `{"v":1,"threadId":"thread-3f2a91c07b","runId":"run-9d1e44a8c2f0","sequence":1234,` +
	`"event":{"type":"TEXT_MESSAGE_CONTENT","messageId":"msg-51c9ff","delta":"a piece of the answer, as it streams by"}}`

func TestEnvelope(t *testing.T) {
	for _, c := range []struct {
		name, payload string
		want          *Envelope
	}{
		{"a delta", delta, &Envelope{
			V: 1, ThreadID: "thread-3f2a91c07b", RunID: "run-9d1e44a8c2f0", Sequence: 1234,
			Event: Event{Type: TextMessageContent, MessageID: "msg-51c9ff", Delta: "a piece of the answer, as it streams by"},
		}},
		{"escapes, space and another order", ` {"event": {"delta": "\"a\"\n\ud83d\ude00", "messageId": "m\u0031", "type": "REASONING_CONTENT"}, "sequence": 2e0, "runId": "r\/1", "threadId": "t", "v": 1.0}`,
			&Envelope{V: 1, ThreadID: "t", RunID: "r/1", Sequence: 2, Event: Event{Type: ReasoningContent, MessageID: "m1", Delta: "\"a\"\n😀"}}},
		{"the error of a run, its code a number", `{"runId":"r","event":{"type":"RUN_ERROR","code":429,"message":"slow\tdown"}}`,
			&Envelope{RunID: "r", Event: Event{Type: RunError, Code: "429", Message: "slow\tdown"}}},
		{"the message that opened a run", `{"event":{"type":"RUN_STARTED","message":{"id":"m"}}}`,
			&Envelope{Event: Event{Type: RunStarted, Body: []byte(`{"id":"m"}`)}}},
		{"a decision", `{"event":{"type":"INTERRUPT","interruptId":"i","payload":null}}`,
			&Envelope{Event: Event{Type: Interrupt, InterruptID: "i", Body: []byte("null")}}},
		{"a subagent", `{"event":{"type":"SUBAGENT_FINISHED","status":"finished","detached":true,"taskId":"k","delta":"not its own"}}`,
			&Envelope{Event: Event{Type: SubagentFinished, Status: "finished", Detached: true, TaskID: "k"}}},
		{"an unknown event", `{"event":{"type":"BILLING","delta":"x"}}`, &Envelope{Event: Event{Type: "BILLING"}}},
		{"wrong types", `{"v":"1","threadId":7,"runId":null,"sequence":true,"event":{"type":"TEXT_MESSAGE_CONTENT","delta":[]}}`,
			&Envelope{Event: Event{Type: TextMessageContent}}},
		{"the last of two counts", `{"runId":"a","runId":"b","event":{"type":"X"},"event":{"type":"RUN_PAUSED"}}`,
			&Envelope{RunID: "b", Event: Event{Type: RunPaused}}},
		{"too deep to judge, and read all the same", `{"runId":"r","sequence":8,"event":{"type":"TOOL_CALL_END","toolCallId":"c","x":` + strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth) + `}}`,
			&Envelope{RunID: "r", Sequence: 8, Event: Event{Type: ToolCallEnd, ToolCallID: "c"}}},
		{"no object", `[1]`, nil},
		{"no JSON", `{"runId":"r",`, nil},
		{"nothing", ``, nil},
	} {
		m := Message{Name: RunEvent, Direction: capture.FromGateway, Payload: []byte(c.payload)}
		NewValidator(Options{}).Validate(&m, nil)
		if m.Envelope != nil {
			if raw := m.Envelope.Event.Raw; len(raw) == 0 || raw[0] != '{' {
				t.Errorf("%s: the event's JSON is %q", c.name, raw)
			}
			m.Envelope.Event.Raw = nil
		}
		if diff := cmp.Diff(c.want, m.Envelope); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// TestKept checks the promises about ownership: an Envelope that the message has
// is written over, and strings stay when the bytes they came from are gone.
func TestKept(t *testing.T) {
	v := NewValidator(Options{})
	var e Envelope
	e.Event.Status = "left from before"
	payload := []byte(delta)
	m := Message{Name: RunEvent, Direction: capture.FromGateway, Payload: payload, Envelope: &e}
	v.Validate(&m, nil)
	if m.Envelope != &e || e.Event.Status != "" {
		t.Fatalf("the envelope was not written over: %p, %p, %q", m.Envelope, &e, e.Event.Status)
	}
	text, run := e.Event.Delta, e.RunID
	copy(payload, bytes.Repeat([]byte("#"), len(payload)))
	for range 2000 { // more than a block of texts
		n := Message{Name: RunEvent, Direction: capture.FromGateway, Payload: []byte(delta)}
		v.Validate(&n, nil)
	}
	if text != "a piece of the answer, as it streams by" || run != "run-9d1e44a8c2f0" {
		t.Errorf("what was kept became %q and %q", text, run)
	}
}

// TestPlaces checks that findings say where the message passed.
func TestPlaces(t *testing.T) {
	before := []Finding{{Rule: "stall"}}
	m := Message{
		Address: capture.Address{Position: 42, Packet: 3}, Connection: 7, Name: RunEvent, Direction: capture.FromGateway,
		Payload: []byte(strings.Replace(delta, `"v":1`, `"v":null`, 1)),
	}
	got := NewValidator(Options{}).Validate(&m, before)
	want := Finding{
		Rule: "envelope-shape", Severity: Error, At: m.Address, Connection: 7,
		Thread: "thread-3f2a91c07b", Run: "run-9d1e44a8c2f0", Sequence: 1234,
		Pointer: "/v", Text: "v is null: send a number",
	}
	if diff := cmp.Diff([]Finding{{Rule: "stall"}, want}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestFlood checks that a hostile message does not fill the tape.
func TestFlood(t *testing.T) {
	var keys strings.Builder
	for i := range 5000 {
		keys.WriteString(`"k` + strings.Repeat("x", i%7) + pointerAt(i)[1:] + `":1,`)
	}
	m := Message{Name: RunCancel, Direction: capture.FromClient, Payload: []byte(`{` + keys.String() + `"runId":"r"}`)}
	findings := NewValidator(Options{}).Validate(&m, nil)
	if len(findings) != maxFindings {
		t.Fatalf("%d findings, want %d", len(findings), maxFindings)
	}
	if last := findings[maxFindings-1].Text; !strings.HasPrefix(last, "more than 100 findings here, the last listed: ") {
		t.Errorf("the last one says %q", last)
	}

	long := strings.Repeat("k", 1<<20)
	m = Message{Name: TaskStatus, Direction: capture.FromGateway, Payload: []byte(`{"threadId":"t","task":{"` + long + `":9007199254740993}}`)}
	for _, f := range NewValidator(Options{}).Validate(&m, nil) {
		if f.Pointer != "/task" {
			t.Errorf("a pointer of %d bytes, want the nearest thing around it", len(f.Pointer))
		}
	}
}

// TestSteadyState checks that what is right costs no allocation.
func TestSteadyState(t *testing.T) {
	for _, payload := range []string{
		delta,
		strings.Replace(delta, "as it streams", `as \"it\"\nstreams`, 1),
		`{"v":1,"threadId":"t","runId":"r","sequence":3,"event":{"type":"TOOL_CALL_RESULT","toolCallId":"c","content":{"rows":[{"a":1.5,"b":null},{"a":2,"b":[]}]}}}`,
	} {
		v := NewValidator(Options{})
		var e Envelope
		var out []Finding
		m := Message{Name: RunEvent, Direction: capture.FromGateway, Payload: []byte(payload)}
		if n := testing.AllocsPerRun(1000, func() {
			m.Envelope = &e
			out = v.Validate(&m, out[:0])
		}); n != 0 || len(out) > 0 {
			t.Errorf("%s: %v allocations and %d findings", payload, n, len(out))
		}
	}
}

func BenchmarkValidate(b *testing.B) {
	for _, c := range []struct{ name, payload string }{
		{"delta", delta},
		{"escaped", strings.Replace(delta, "as it streams", `as \"it\"\nstreams`, 1)},
		{"tool result 64 KiB", `{"v":1,"threadId":"t","runId":"r","sequence":3,"event":{"type":"TOOL_CALL_RESULT","toolCallId":"c","content":"` + strings.Repeat("x", 64<<10) + `"}}`},
		{"trouble", strings.Replace(delta, "as it streams", `as it \ud83d streams`, 1)},
	} {
		b.Run(c.name, func(b *testing.B) {
			v := NewValidator(Options{})
			var e Envelope
			var out []Finding
			m := Message{Name: RunEvent, Direction: capture.FromGateway, Payload: []byte(c.payload)}
			b.ReportAllocs()
			b.SetBytes(int64(len(c.payload)))
			for b.Loop() {
				m.Envelope = &e
				out = v.Validate(&m, out[:0])
			}
		})
	}
}

func BenchmarkCommand(b *testing.B) {
	v := NewValidator(Options{})
	var out []Finding
	m := Message{Name: RunStart, Direction: capture.FromClient, Payload: []byte(`{"threadId":"t1","messageId":"m1","input":"what is the weather like?","clientTools":[{"name":"pick","description":"pick a day","arguments":{"type":"object"},"kind":"blocking"}]}`)}
	b.ReportAllocs()
	for b.Loop() {
		out = v.Validate(&m, out[:0])
	}
}

// TestShapes checks that the tables agree with each other: every type has its
// shape, and every field of a shape a slot, without which nobody would look at it.
func TestShapes(t *testing.T) {
	if len(eventTypes) != 19 || len(eventShapes) != len(eventTypes) {
		t.Errorf("%d types and %d shapes, want 19", len(eventTypes), len(eventShapes))
	}
	for _, typ := range eventTypes {
		shape := shapeOf([]byte(`"` + string(typ) + `"`))
		if shape == nil || shape.typ != typ {
			t.Fatalf("%s has the shape %v", typ, shape)
		}
		for _, f := range shape.fields {
			if f.slot == noSlot {
				t.Errorf("%s: %s has no slot", typ, f.name)
			}
		}
	}
	for _, name := range commands {
		if commandShapes[name] == nil {
			t.Errorf("%s has no shape", name)
		}
	}
}
