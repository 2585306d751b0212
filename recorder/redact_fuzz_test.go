package recorder

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"tapedeck/protocol/capture"
)

// FuzzRedact plants a secret behind any text in the places that hold one, cuts
// the frame anywhere, and looks for what is left of it.
func FuzzRedact(f *testing.F) {
	f.Add("", uint8(0), uint16(0))
	f.Add(`"\é😀`+"\x00\n", uint8(1), uint16(30))
	f.Add("% & ; = ?", uint8(2), uint16(0))
	f.Add(`{"a":[`, uint8(3), uint16(40))
	f.Add("\xff\x1e", uint8(4), uint16(17))
	f.Add(`\\\"`, uint8(8), uint16(60))
	// Of letters that no token has, so that none can be mistaken for it.
	const core = "ghijklmnopqruvwxyz"
	f.Fuzz(func(t *testing.T, before string, place uint8, cut uint16) {
		r := testRedactor(t, "passphrase", "/event/delta")
		secret := before + core
		quoted, _ := json.Marshal(secret)
		nested, _ := json.Marshal(`{"passphrase":` + string(quoted) + `}`)
		head := func(h capture.RequestHead) string { b, _ := json.Marshal(h); return string(b) }
		places := []*capture.Frame{
			messageFrame("> text", `40{"token":`+string(quoted)+`}`),
			messageFrame("> poll", "2\x1e40/a,{\"x\":["+string(quoted)+"]}\x1e2"),
			messageFrame("> text", `42["authenticate",`+string(quoted)+`]`),
			messageFrame("> text", `{"event":"auth","data":{"jwt":`+string(quoted)+`}}`),
			messageFrame("< text", `42["run:event",{"event":{"delta":`+string(quoted)+`}}]`),
			messageFrame("< body", `"x","passphrase": `+string(quoted)+`}`),
			messageFrame("< body", `"passphrase": {"a":`+string(quoted)+`}}`),
			messageFrame("< text", `42["e",{"delta":`+string(nested)+`}]`),
			{Kind: capture.Request, Data: []byte(head(capture.RequestHead{Target: "/?token=" + url.QueryEscape(secret)}))},
			{Kind: capture.Request, Data: []byte(head(capture.RequestHead{Header: http.Header{"Authorization": {secret}, "Cookie": {"a=" + secret}}}))},
		}
		frame := places[int(place)%len(places)]
		if frame.Kind != capture.Request { // heads are ours, and whole
			frame.Data = frame.Data[:len(frame.Data)-int(cut)%len(frame.Data)]
		}
		in := bytes.Clone(frame.Data)
		out := r.frame(frame)
		if !bytes.Equal(in, frame.Data) {
			t.Fatalf("the frame's own data became %q", frame.Data)
		}
		for i := range len(core) - 6 {
			if strings.Contains(string(out.Data), core[i:i+6]) {
				t.Fatalf("%q is left in %q", core[i:i+6], out.Data)
			}
		}
	})
}

// FuzzRedactAny redacts any frame: nothing panics, and a frame is either the
// same or marked.
func FuzzRedactAny(f *testing.F) {
	for _, seed := range []string{`40{"a":1}`, `{"event":"auth","data":1}`, `{"target":"/?key=1","header":{"Cookie":["a=b"]}}`, "\x83\xa4type\x00\xa4data\x81\xa1a\x01", `"a":{"b`, `"x"`, "bgqR0eXBl"} {
		for kind := range uint8(16) {
			f.Add([]byte(seed), kind, uint16(0), true)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, kind uint8, flags uint16, client bool) {
		r := testRedactor(t, "a", "/b/*", "header")
		frame := &capture.Frame{Kind: capture.Kind(kind % 16), Flags: capture.Flags(flags), Direction: capture.FromGateway, Data: data}
		if client {
			frame.Direction = capture.FromClient
		}
		in := bytes.Clone(data)
		out := r.frame(frame)
		if !bytes.Equal(in, frame.Data) {
			t.Fatal("the frame's own data was changed")
		}
		if out != frame && (!out.Flags.Has(capture.Redacted) || bytes.Equal(out.Data, in)) {
			t.Fatalf("%q became %q, %v", in, out.Data, out.Flags.Names())
		}
	})
}

// FuzzUnquote holds unquote against package json, and its places against what
// stands there.
func FuzzUnquote(f *testing.F) {
	for _, seed := range []string{`"plain"`, `"\u00e9\ud83d\ude00\ud800x\udc00"`, `"\"\\\/\b\f\n\r\t"`, `"é😀"`, `"\uD83D\u0041"`, `""`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var want string
		if len(raw) < 2 || raw[0] != '"' || json.Unmarshal(raw, &want) != nil || raw[len(raw)-1] != '"' {
			return
		}
		text, places := unquote(raw)
		if utf8.Valid(raw) && string(text) != want { // package json replaces what is no UTF-8
			t.Fatalf("%s says %q, package json says %q", raw, text, want)
		}
		if len(places) != len(text)+1 || places[len(text)] != len(raw)-1 {
			t.Fatalf("%s: %d places for %d bytes, the end at %d", raw, len(places), len(text), places[len(places)-1])
		}
	})
}
