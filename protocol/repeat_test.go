package protocol

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tapedeck/protocol/capture"
	"tapedeck/protocol/wire"
)

// FuzzRepeat holds what is read by an envelope before it equal to what is read
// by itself. The second envelope is the first with a stretch replaced.
func FuzzRepeat(f *testing.F) {
	at := func(what string) uint16 { return uint16(bytes.Index([]byte(delta), []byte(what))) }
	for _, c := range []struct {
		at, cut     uint16
		replacement string
	}{
		{0, 0, ""},                                // the same again
		{at("as it"), 2, "another text"},          // a text that is longer
		{at("as it"), 4, ""},                      // and shorter
		{at("as it"), 1, `\ud83d`},                // half a character
		{at("as it"), 1, "\xc3"},                  // no UTF-8
		{at("as it"), 1, `","delta":"`},           // a name twice
		{at("as it"), 1, `","text":"`},            // one more member
		{at(`"sequence"`) + 11, 1, "9"},           // a number
		{at(`"sequence"`) + 11, 1, "90071992547"}, // one that is rounded
		{at(`"sequence"`) + 11, 1, "0"},
		{at(`"sequence"`) + 11, 1, "1.5e3"},
		{at(`"sequence"`) + 11, 1, `"9"`},
		{at(`"sequence"`) + 11, 1, "null,\"a\":1"},
		{at(`"threadId"`) + 11, 3, `null`},
		{at(`"delta"`), 7, `"delta" `},
		{at("TEXT"), 4, "REASONING"},
		{uint16(len(delta)) - 1, 1, ""},
		{uint16(len(delta)), 0, " "},
	} {
		f.Add([]byte(delta), c.at, c.cut, []byte(c.replacement))
	}
	for _, s := range corpus(f) {
		if len(s.message.Payload) < 1<<10 {
			f.Add(s.message.Payload, uint16(len(s.message.Payload)/2), uint16(1), []byte("7"))
		}
	}
	f.Fuzz(func(t *testing.T, first []byte, at, cut uint16, replacement []byte) {
		from := min(int(at), len(first))
		to := min(from+int(cut), len(first))
		second := bytes.Join([][]byte{first[:from], replacement, first[to:]}, nil)
		read := func(v *Validator, payload []byte) (Message, []Finding) {
			m := Message{Name: RunEvent, Direction: capture.FromGateway, Payload: payload}
			out := v.Validate(&m, nil)
			return m, out
		}
		same := func(alone *Validator, got Message, gotFindings []Finding) {
			t.Helper()
			want, wantFindings := read(alone, got.Payload)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%q after %q reads otherwise (-alone +after it):\n%s", second, first, diff)
			}
			if diff := cmp.Diff(wantFindings, gotFindings); diff != "" {
				t.Errorf("%q after %q is judged otherwise (-alone +after it):\n%s", second, first, diff)
			}
		}
		v := NewValidator(Options{})
		read(v, first)
		got, findings := read(v, second)
		same(NewValidator(Options{}), got, findings)

		// The same, told by the decoder what it is like.
		v = NewValidator(Options{})
		var d wire.Decoder
		for _, payload := range [][]byte{first, second} {
			data := append(append([]byte(`42["run:event",`), payload...), ']')
			for i, p := range d.Decode(&capture.Frame{Connection: 1, Direction: capture.FromGateway, Kind: capture.Text, Data: data}) {
				if p.Name != string(RunEvent) || len(p.Args) != 1 {
					continue
				}
				m := Message{Name: RunEvent, Direction: capture.FromGateway, Payload: p.Args[0]}
				findings := v.ValidateLike(&m, d.Like(i), nil)
				same(NewValidator(Options{}), m, findings)
			}
		}
	})
}

// TestRepeats checks that the kinds of a few streams are read by those before
// them, whatever their values, and that what has another shape is not.
func TestRepeats(t *testing.T) {
	kinds := []string{
		`{"v":1,"threadId":"t","runId":"r","sequence":7,"event":{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"a"}}`,
		`{"v":1,"threadId":"t","runId":"r","sequence":8,"event":{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{}"}}`,
		`{"v":1,"threadId":"t","runId":"r","sequence":9,"event":{"type":"TEXT_MESSAGE_END","messageId":"m"}}`,
	}
	v := NewValidator(Options{})
	for _, payload := range kinds {
		v.Validate(&Message{Name: RunEvent, Direction: capture.FromGateway, Payload: []byte(payload)}, nil)
	}
	for _, c := range []struct {
		payload string
		like    bool
	}{
		{kinds[0], true},
		{kinds[2], true},
		{`{"v":1,"threadId":"t2","runId":"r2","sequence":1077,"event":{"type":"TOOL_CALL_ARGS","toolCallId":"call","delta":"\"é"}}`, true},
		{`{"v":1,"threadId":"t","runId":"r","sequence":7,"event":{"type":"REASONING_CONTENT","messageId":"m","delta":"a"}}`, true},
		{`{"v":1,"threadId":"t","runId":"r","sequence":7,"event":{"type":"REASONING_CONTENT","messageId":"m","text":"a"}}`, false},
		{`{"v":1,"threadId":"t","runId":"r","sequence":"7","event":{"type":"TEXT_MESSAGE_END","messageId":"m"}}`, false},
		{`{"v":1,"threadId":"t","runId":"r","sequence":07,"event":{"type":"TEXT_MESSAGE_END","messageId":"m"}}`, false},
	} {
		like := v.repeats.like([]byte(c.payload))
		if n := v.noteOf(&like); (n != nil) != c.like || c.like && !n.fine {
			t.Errorf("%s is like one before: %v, want %v, in order", c.payload, n != nil, c.like)
		}
	}
}
