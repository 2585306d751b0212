package protocol

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tapedeck/protocol/capture"
)

// addCorpus seeds a fuzz target with the payloads of the corpus.
func addCorpus(f *testing.F) {
	for _, s := range corpus(f) {
		if len(s.message.Payload) < 4<<10 { // long seeds are slow to vary, and no other
			f.Add(s.message.Payload)
		}
	}
	for _, payload := range []string{
		"", "{", `"`, `{"`, `{"a`, `{"a":`, `{"a":"`, "[[[", `{"event":`, `{"event":{"type":"`, "\xff", "nul", "-", `"\ud800`,
		`{"event":{"type":"RUN_ERROR","message":"\`, strings.Repeat("[", 300), `{"a":1,"a":{"b":2,"b":3}}`,
		` { "v" : 1 , "event" : { "type" : "TEXT_MESSAGE_START" } } `, `{"runId":"a","event":{"runId":"\u0061"}}`,
	} {
		f.Add([]byte(payload))
	}
}

// FuzzValidate gives any bytes to every message: nothing panics, and every
// finding is one that the catalogue knows, in a bounded number.
func FuzzValidate(f *testing.F) {
	addCorpus(f)
	v := NewValidator(Options{})
	f.Fuzz(func(t *testing.T, payload []byte) {
		for _, name := range messageNames() {
			for _, m := range []Message{
				{Name: Name(name), Direction: capture.FromClient},
				{Name: Name(name), Direction: capture.FromGateway},
				{Name: Name(name), Direction: capture.FromGateway, Answer: true},
			} {
				m.Payload, m.Extra = payload, [][]byte{payload}
				findings := v.Validate(&m, nil)
				if len(findings) > maxFindings {
					t.Fatalf("%d findings of one message", len(findings))
				}
				for i := range findings {
					checkFinding(t, &findings[i])
				}
				ReadCommand(&m)
			}
		}
		ReadHistory(payload)
		ReadHello(payload)
		ReadError(payload)
	})
}

// FuzzFastIsSlow holds the scanner equal to the slow way: what it lets pass has
// no finding as JSON and reads as the same envelope.
func FuzzFastIsSlow(f *testing.F) {
	addCorpus(f)
	v := NewValidator(Options{})
	f.Fuzz(func(t *testing.T, payload []byte) {
		payload = trim(payload)
		var fast, slow parts
		clean := v.scanner.clean(payload)
		if ok := v.scanner.envelope(payload, &fast); ok != clean {
			t.Fatalf("the scanner says %v of an envelope and %v of the same JSON: %q", ok, clean, payload)
		}
		j := judge{Validator: v, m: &Message{}}
		state := j.syntax(payload)
		if !clean {
			if state == readable && len(j.out) == 0 && !unusual(payload) {
				t.Fatalf("the scanner refuses what there is nothing to say about: %q", payload)
			}
			return
		}
		if state != readable || len(j.out) > 0 {
			t.Fatalf("the scanner lets pass %q, which breaks\n%s", payload, listing(j.out))
		}
		slow.read(payload)
		if diff := cmp.Diff(slow, fast, cmp.AllowUnexported(parts{}), cmp.Comparer(func(a, b *eventShape) bool { return a == b })); diff != "" {
			t.Fatalf("%q (-slow +fast)\n%s", payload, diff)
		}
		var fromFast, fromSlow Envelope
		v.keep.fill(&fromFast, &fast)
		v.keep.fill(&fromSlow, &slow)
		if diff := cmp.Diff(fromSlow, fromFast); diff != "" {
			t.Fatalf("%q (-slow +fast)\n%s", payload, diff)
		}
	})
}

// unusual reports whether payload has what the scanner leaves to the slow way
// although nothing is wrong with it: escapes in names, large objects, deep
// nesting, long numbers.
func unusual(payload []byte) bool {
	run := 0
	for _, c := range payload {
		if '0' <= c && c <= '9' {
			run++
		} else {
			run = 0
		}
		if run > 2 {
			return true
		}
	}
	return hasEscape(payload) || nesting(payload) > scanDepth/2 || strings.Count(string(payload), ":") > scanNames
}

// FuzzSchema compiles any bytes and checks any value: nothing panics or hangs.
func FuzzSchema(f *testing.F) {
	for _, c := range schemaCases {
		if len(c.value) < 4<<10 {
			f.Add([]byte(c.schema), []byte(c.value))
		}
	}
	f.Fuzz(func(t *testing.T, schema, value []byte) {
		s, err := CompileSchema(schema)
		if err != nil {
			return
		}
		for _, misfit := range s.Check(value) {
			if misfit.Text == "" {
				t.Errorf("a misfit without a text at %q", misfit.Pointer)
			}
		}
	})
}
