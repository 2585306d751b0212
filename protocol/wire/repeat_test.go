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
		alone.repeats = repeats{}
		if diff := cmp.Diff(read(&alone, 3, second), read(&d, 3, second)); diff != "" {
			t.Errorf("%q after %q reads otherwise (-alone +after it):\n%s", second, first, diff)
		}
	})
}

// TestPattern checks what a text is matched by, and where its values then stand.
func TestPattern(t *testing.T) {
	const learnt = `{"a":"x","b":[12,-3e2,true],"c":{"d":""},"e":0}`
	var p Pattern
	if p.Match(nil, skipScalar) {
		t.Error("the zero Pattern matches an empty text")
	}
	p.Learn([]byte(learnt), 0)
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
		{"", false, ""},
	} {
		like := p.Match([]byte(c.text), skipScalar)
		if like != c.like {
			t.Errorf("%s matches: %v, want %v", c.text, like, c.like)
		}
		if like {
			from := bytes.Index([]byte(learnt), []byte(`{"d"`))
			if got := c.text[p.At(from):p.At(from+len(`{"d":""}`))]; got != c.c {
				t.Errorf("in %s the value of c is %s, want %s", c.text, got, c.c)
			}
		}
	}
	p.Learn(append([]byte(learnt), make([]byte, maxPattern)...), 0)
	if p.Match([]byte(learnt), skipScalar) {
		t.Error("a text too long to be learnt left the one before")
	}
}
