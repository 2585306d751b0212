package inspector

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

func payloadMoment(payload string) *Moment {
	return &Moment{Message: &protocol.Message{Address: capture.Address{Position: 1}, Name: protocol.RunEvent, Payload: []byte(payload)}}
}

// TestDigitsJ10: numbers beyond 2^53 are shown with all their digits, in every
// form.
func TestDigitsJ10(t *testing.T) {
	for _, digits := range []string{"9007199254740993", "9007199254740992", "1.0", "1e400", "0.1000000000000000055511151231257827", "-0"} {
		m := payloadMoment(`{"id":` + digits + `}`)
		var packet, raw, jsonl, indented bytes.Buffer
		if err := WritePackets(&packet, []Moment{*m}, began, &Look{}); err != nil {
			t.Fatal(err)
		}
		if err := NewRaw(&raw, FormatText, &Look{}).Add(m); err != nil {
			t.Fatal(err)
		}
		if err := writeJSON(&jsonl, momentToJSON(m), false); err != nil {
			t.Fatal(err)
		}
		if err := writeJSON(&indented, momentToJSON(m), true); err != nil {
			t.Fatal(err)
		}
		for form, out := range map[string]string{"packet": packet.String(), "raw": raw.String(), "jsonl": jsonl.String(), "json": indented.String()} {
			if !strings.Contains(out, digits+"}") && !strings.Contains(out, digits+"\n") {
				t.Errorf("%s: %s is not shown with all digits:\n%s", form, digits, out)
			}
		}
	}
}

// TestEmbed: JSON stands in a document as it is, all else in base64.
func TestEmbed(t *testing.T) {
	for payload, isJSON := range map[string]bool{`{"a":[1, 2]}`: true, `"x"`: true, ``: false, `{"a":`: false, "\"\xff\"": false, `NaN`: false, `{"a":1,"a":2}`: true} {
		var b bytes.Buffer
		if err := writeJSON(&b, momentToJSON(payloadMoment(payload)), false); err != nil {
			t.Fatalf("%q: %v", payload, err)
		}
		var got messageJSON
		if err := json.Unmarshal(b.Bytes(), &got); err != nil {
			t.Fatalf("%q: %v in %s", payload, err, b.Bytes())
		}
		if isJSON != (got.Payload != nil) || !isJSON && string(got.Base64) != payload {
			t.Errorf("%q comes out as payload %s and base64 %q", payload, got.Payload, got.Base64)
		}
	}
}

// TestEscapeJSON: what a terminal would obey is escaped, and means the same.
func TestEscapeJSON(t *testing.T) {
	in := map[string]string{"a": "\x7f\u009b\u202e\u2028\ufeff\U000e0041 你好 👩‍👧 é"}
	var b bytes.Buffer
	if err := writeJSON(&b, in, false); err != nil {
		t.Fatal(err)
	}
	if want := `\u007f\u009b\u202e\u2028\ufeff\udb40\udc41 你好 👩\u200d👧 é`; !strings.Contains(b.String(), want) {
		t.Errorf("got %s, want it to hold %s", b.String(), want)
	}
	var out map[string]string
	if err := json.Unmarshal(b.Bytes(), &out); err != nil || out["a"] != in["a"] {
		t.Errorf("got back %q, %v", out["a"], err)
	}
}

// TestRawLine: raw bytes are shown, and none is obeyed.
func TestRawLine(t *testing.T) {
	var b bytes.Buffer
	m := payloadMoment("{\"a\":\"\u202e\x1b[2J\xff\"}")
	m.Message.Name, m.Message.AckID = "run:\x07event", "7"
	if err := NewRaw(&b, FormatText, &Look{}).Add(m); err != nil {
		t.Fatal(err)
	}
	if got, want := b.String(), `#1 +0ms - run:\x07event ack 7 {"a":"\u202e\x1b[2J\xff"}`+"\n"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestRawArray: in JSON the messages are one array, also if there are none.
func TestRawArray(t *testing.T) {
	for n := range 3 {
		var b bytes.Buffer
		raw := NewRaw(&b, FormatJSON, &Look{})
		for range n {
			if err := raw.Add(payloadMoment(`{}`)); err != nil {
				t.Fatal(err)
			}
		}
		if err := raw.Close(); err != nil {
			t.Fatal(err)
		}
		var items []messageJSON
		if err := json.Unmarshal(b.Bytes(), &items); err != nil || len(items) != n {
			t.Errorf("%d messages come out as %s: %v", n, b.Bytes(), err)
		}
	}
}

func TestPretty(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{`{"b":1,"a":[1,2]}`, "{\n  \"b\": 1,\n  \"a\": [1, 2]\n}"},
		{`{"a":1.50, "a" :2}`, `{"a": 1.50, "a": 2}`},
		{`{}`, `{}`},
		{` [ ] `, `[]`},
		{`[{"a":{}},[]]`, "[\n  {\n    \"a\": {}\n  },\n  []\n]"},
		{`"\u001b\ud800 x"`, `"\u001b\ud800 x"`},
		{"\"\u202e\"", `"\u202e"`},
		{`{"a":`, `{"a":`},
		{"not\x1bJSON", `not\x1bJSON`},
		{`-0`, `-0`},
	} {
		if got := prettyJSON(&Look{}, []byte(tt.in), 0); got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.in, got, tt.want)
		}
	}
}

// TestDeepJ09: JSON of any depth is shown, and takes no more room than it must.
func TestDeepJ09(t *testing.T) {
	for _, depth := range []int{30, 1000, 9_000, 10_001, 200_000} {
		in := strings.Repeat(`[`, depth) + strings.Repeat(`]`, depth)
		if got := prettyJSON(&Look{}, []byte(in), 0); len(got) > 2*len(in)+200*maxIndent {
			t.Errorf("depth %d: %d bytes are shown as %d", depth, len(in), len(got))
		}
		var b bytes.Buffer
		if err := writeJSON(&b, momentToJSON(payloadMoment(in)), true); err != nil {
			t.Errorf("depth %d: %v", depth, err)
		}
	}
}

// TestHugeT04: of a message of 5 MB on one line, what is shown is bounded, and
// says what it hides; all of it comes on demand.
func TestHugeT04(t *testing.T) {
	m := payloadMoment(`{"content":"` + strings.Repeat("x", 5_000_000) + `"}`)
	var b bytes.Buffer
	if err := WritePackets(&b, []Moment{*m}, began, &Look{}); err != nil {
		t.Fatal(err)
	}
	if b.Len() > 2000 || !strings.Contains(b.String(), "…+5.0 MB") {
		t.Errorf("5 MB are shown in %d bytes, and what is hidden is not said", b.Len())
	}
	b.Reset()
	if err := WritePackets(&b, []Moment{*m}, began, &Look{Full: true}); err != nil {
		t.Fatal(err)
	}
	if b.Len() < 5_000_000 {
		t.Errorf("with Full, only %d bytes are shown", b.Len())
	}
}

// brokenPipe fails as a closed pipe does.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestBrokenPipe: an error of the writer comes back, so that the command can
// end (T05: list | head -1).
func TestBrokenPipe(t *testing.T) {
	tp := readTape(t, "thread")
	for i, show := range []func(*View) error{
		func(v *View) error { return v.Runs(t.Context()) }, func(v *View) error { return v.Threads(t.Context()) },
		func(v *View) error { return v.Show(t.Context(), "last", false) }, func(v *View) error { return v.Show(t.Context(), "last", true) },
		func(v *View) error { return v.Show(t.Context(), "last@70", false) }, func(v *View) error { return v.Findings(t.Context(), "") },
		func(v *View) error { return v.Tail(t.Context(), TailOptions{}) }, func(v *View) error { return v.Tail(t.Context(), TailOptions{Raw: true}) },
	} {
		for _, format := range []Format{FormatText, FormatJSON, FormatJSONL} {
			if err := show(&View{Source: tp, Out: brokenPipe{}, Format: format}); err == nil {
				t.Errorf("view %d as %s: the writer's error is lost", i, format)
			}
		}
	}
}

func FuzzPretty(f *testing.F) {
	for _, seed := range []string{`{"a":[1,{"b":"c"}]}`, `[]`, `"\\\""`, `{"a":`, "\xff", `[[[[`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		out := prettyJSON(&Look{Full: true}, raw, 2)
		if !json.Valid(raw) {
			return
		}
		var before, after bytes.Buffer
		if json.Compact(&before, raw) != nil || Clean(before.String()) != before.String() {
			return // an escape of ours need not be JSON
		}
		if json.Compact(&after, []byte(out)) != nil {
			t.Fatalf("%q comes out as %q, which is no JSON", raw, out)
		}
		if a, b := before.String(), after.String(); a != b {
			t.Errorf("%q comes out as %s", raw, fmt.Sprintf("%q, want %q", b, a))
		}
	})
}
