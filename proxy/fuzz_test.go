package proxy

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"tapedeck/protocol/capture"
)

// What the proxy reads of Engine.IO bodies it reads without harm, whatever they
// are.
func FuzzEngineBody(f *testing.F) {
	for _, seed := range []string{handshake, `96:0{"sid":"x"}`, "6\x1e1", "", "0{", `451-["b"]`, "\x1f\x8b\x08", "x\x9c\x01"} {
		for _, flags := range []uint16{0, uint16(capture.Gzip), uint16(capture.Deflate)} {
			f.Add([]byte(seed), flags)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, flags uint16) {
		b := body{data: data, flags: capture.Flags(flags)}
		out := plain(b.data, b.flags)
		if flags&uint16(capture.Gzip|capture.Deflate) != 0 && len(out) > maxInflated {
			t.Errorf("%d bytes inflated to %d", len(data), len(out))
		}
		sid, patience := parseHandshake(out)
		if sid != "" && (patience <= 0 || patience > 48*3600e9) {
			t.Errorf("a session may be silent for %v", patience)
		}
		hasClose(&b)
		if n := attachmentCount(data); n < 0 || n > 10*maxAttachments+9 {
			t.Errorf("%d attachments", n)
		}
	})
}

// A request target is written to the gateway as it came, whatever net/http has
// let in.
func FuzzTarget(f *testing.F) {
	for _, seed := range []string{"/", "//a//b", "/a/../b?c=d&a=%2F", "*", "http://a/b?c", "/?", "/a%2e?x?y", "/a{b|c}\"<>^`\\"} {
		f.Add(seed)
	}
	gateway := url.URL{Scheme: "http", Host: "gateway:80"}
	f.Fuzz(func(t *testing.T, raw string) {
		parsed, err := url.ParseRequestURI(raw)
		if err != nil || strings.ContainsAny(raw, " \t") || strings.HasPrefix(raw, "//") && parsed.EscapedPath() != pathOf(raw) {
			return // refused before, or one of those that cannot be written
		}
		if got := target(gateway, raw, false).RequestURI(); got != raw {
			t.Errorf("%q is written as %q", raw, got)
		}
	})
}

func pathOf(raw string) string { path, _, _ := strings.Cut(raw, "?"); return path }

// An adapted cookie keeps its value and fits: adapting it again changes nothing.
func FuzzFitCookie(f *testing.F) {
	for _, seed := range []string{"a=1; Secure; Domain=.example.com", "__Host-a=1; Secure; Path=/", "=;;=", "a=b;domain=LOCALHOST", "a; SameSite = None "} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		r := &http.Request{Host: "localhost:8080"}
		fit, why := fitCookie(line, r)
		if (why == "") != (fit == line) {
			t.Errorf("%q: %q, told %q", line, fit, why)
		}
		if again, _ := fitCookie(fit, r); again != fit {
			t.Errorf("%q is adapted twice: %q, then %q", line, fit, again)
		}
		first := strings.TrimSpace(strings.Split(line, ";")[0])
		if got := strings.TrimSpace(strings.Split(fit, ";")[0]); got != first && got != cookieMark+first {
			t.Errorf("%q: the cookie became %q", line, got)
		}
	})
}
