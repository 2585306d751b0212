package wire

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tapedeck/protocol/capture"
)

// FuzzRepeat holds what is read by an event before it equal to what is read by
// itself. The second event is the first with a stretch replaced.
func FuzzRepeat(f *testing.F) {
	event := envelopeFrame().Data
	at := func(what string) uint16 { return uint16(bytes.Index(event, []byte(what))) }
	for _, c := range []struct {
		at, cut     uint16
		replacement string
	}{
		{0, 0, ""},
		{at("a few"), 1, "no more than a"},
		{at("a few"), 5, ""},
		{at("a few"), 1, `\"\u00e9`},
		{at("a few"), 1, `\x`},
		{at("a few"), 1, "\xc3"},
		{at("a few"), 1, `","b":"`},
		{at("1042"), 4, "7"},
		{at("1042"), 4, "104277"},
		{at("1042"), 4, "-0.5e7"},
		{at("1042"), 4, `"1042"`},
		{at("1042"), 4, "null"},
		{at("run:event"), 9, "other"},
		{at("[") - 1, 1, "2/admin,"},
		{at("[") - 1, 1, "217"},
		{uint16(len(event)) - 1, 1, ""},
		{uint16(len(event)) - 1, 0, `,"offset"`},
		{uint16(len(event)), 0, " "},
	} {
		f.Add(event, c.at, c.cut, []byte(c.replacement))
	}
	f.Fuzz(func(t *testing.T, first []byte, at, cut uint16, replacement []byte) {
		from := min(int(at), len(first))
		to := min(from+int(cut), len(first))
		second := bytes.Join([][]byte{first[:from], replacement, first[to:]}, nil)
		var d, alone Decoder
		read := func(d *Decoder, at capture.Position, data []byte) []Packet {
			return d.Decode(&capture.Frame{Position: at, Connection: 1, Direction: capture.FromGateway,
				Kind: capture.Text, Data: data, Size: int64(len(data))})
		}
		read(&d, 2, first)
		read(&alone, 2, first)
		for i := range alone.connections[1].halves {
			alone.connections[1].halves[i][0].repeats = nil
		}
		if diff := cmp.Diff(read(&alone, 3, second), read(&d, 3, second)); diff != "" {
			t.Errorf("%q after %q reads otherwise (-alone +after it):\n%s", second, first, diff)
		}
	})
}

// TestPattern checks what a text is matched by, and where its values then stand.
func TestPattern(t *testing.T) {
	const learnt = `{"a":"x","b":[12,-3e2,true],"c":{"d":""},"e":0}`
	var p Pattern
	if _, ok := p.Match(nil, nil); ok {
		t.Error("the zero Pattern matches an empty text")
	}
	first := p.Learn([]byte(learnt))
	for _, c := range []struct {
		text string
		like bool
		c    string // the value of "c"
	}{
		{learnt, true, `{"d":""}`},
		{`{"a":"","b":[123,0,true],"c":{"d":"longer"},"e":7}`, true, `{"d":"longer"}`},
		{`{"a":"\"y\u00e9","b":[1,-3e2,true],"c":{"d":"]}"},"e":0.5}`, true, `{"d":"]}"}`},
		{`{"a":"x","b":[12,-3e2,false],"c":{"d":""},"e":0}`, false, ""},
		{`{"a":"x","b":[12,"3",true],"c":{"d":""},"e":0}`, false, ""},
		{`{"a":"x","b":[12,-3e2,true],"c":{"D":""},"e":0}`, false, ""},
		{`{"a":"x","b":[12,-3e2,true],"c":{"d":""},"e":00}`, false, ""},
		{`{"a":"x","b":[12,-3e2,true],"c":{"d":""},"e":0`, false, ""},
		{`{"a":"x","b":[12,-3e2,true],"c":{"d":""},"e":`, false, ""},
		{`{"a":"x`, false, ""},
		{`{"a":"x","b":[12,-3e2,true],"c":{"d":""},"e":0}}`, false, ""},
		{`{"a":"\ud83d","b":[12,-3e2,true],"c":{"d":""},"e":0}`, false, ""},
		{`{"a":"\ud83d\ude00","b":[12,-3e2,true],"c":{"d":""},"e":0}`, true, `{"d":""}`},
		{`{"a":"x","b":[12,9007199254740993,true],"c":{"d":""},"e":0}`, false, ""},
		{"", false, ""},
	} {
		like, ok := p.Match([]byte(c.text), nil)
		if ok != c.like {
			t.Errorf("%s matches: %v, want %v", c.text, ok, c.like)
		}
		if ok {
			from := bytes.Index([]byte(learnt), []byte(`{"d"`))
			if got := c.text[like.At(from):like.At(from+len(`{"d":""}`))]; got != c.c {
				t.Errorf("in %s the value of c is %s, want %s", c.text, got, c.c)
			}
		}
	}
	p.Note = "what was read"
	if !first.Holds() {
		t.Error("what was learnt holds no more, though nothing was learnt since")
	}
	if like := p.Learn(append([]byte(learnt), make([]byte, maxPattern)...)); like.Holds() || first.Holds() || p.Note != nil {
		t.Errorf("a text too long to be learnt: it holds: %v, the one before: %v, its note is %v", like.Holds(), first.Holds(), p.Note)
	}
	if _, ok := p.Match([]byte(learnt), nil); ok {
		t.Error("a text too long to be learnt left the one before")
	}
}
