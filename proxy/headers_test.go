package proxy

import (
	"crypto/tls"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tapedeck/protocol/capture"
)

// R06: a cookie is changed only where a browser would drop it at the proxy's own
// origin.
func TestFitCookie(t *testing.T) {
	for _, test := range []struct{ host, scheme, line, want string }{
		{"localhost:8080", "http", "io=a; Path=/; HttpOnly; SameSite=Lax", ""},
		{"localhost:8080", "http", `a="x,y"; Expires=Wed, 21 Oct 2026 07:28:00 GMT;Max-Age=5`, ""},
		{"localhost", "http", "a=1; Secure; Domain=.example.com", "a=1"},
		{"localhost", "http", "a=1;secure;path=/x", "a=1;path=/x"},
		{"localhost", "https", "a=1; Secure; SameSite=None", ""},
		{"localhost", "http", "a=1; Secure; SameSite=None; Partitioned", "a=1"},
		{"localhost", "http", "a=1; Domain=localhost", ""},
		{"app.dev.example:1", "https", "a=1; Domain=.dev.example", ""},
		{"app.dev.example:1", "https", "a=1; Domain=ev.example; Path=/", "a=1; Path=/"},
		{"127.0.0.1", "https", "a=1; Domain=0.0.1", "a=1"},
		{"[::1]:80", "http", "a=1; Domain=example.com", "a=1"},
		{"localhost", "http", "__Host-sid=1; Secure; Path=/", "tapedeck__Host-sid=1; Path=/"},
		{"localhost", "http", "__Secure-sid=1; Secure; Domain=g.example", "tapedeck__Secure-sid=1"},
		{"localhost", "https", "__Host-sid=1; Secure; Path=/", ""},
		{"localhost", "http", "a=Secure; b", ""},
		{"localhost", "http", "", ""},
	} {
		r := &http.Request{Host: test.host}
		if test.scheme == "https" {
			r.TLS = new(tls.ConnectionState)
		}
		want := test.want
		if want == "" {
			want = test.line
		}
		if got, why := fitCookie(test.line, r); got != want || (why == "") != (test.want == "") {
			t.Errorf("%q at %s://%s: got %q (%s), want %q", test.line, test.scheme, test.host, got, why, want)
		}
	}
}

func TestLocalLocation(t *testing.T) {
	for _, test := range []struct{ gateway, location, want string }{
		{"https://gw.example", "https://gw.example/a/../b?c#d", "http://localhost:8080/a/../b?c#d"},
		{"https://gw.example", "https://GW.example:443/a", "http://localhost:8080/a"},
		{"https://gw.example", "//gw.example/a", "//localhost:8080/a"},
		{"https://gw.example", "https://gw.example", "http://localhost:8080"},
		{"https://gw.example", "https://gw.example?x", "http://localhost:8080?x"},
		{"https://gw.example", "http://gw.example/a", ""},
		{"https://gw.example", "https://gw.example:444/a", ""},
		{"https://gw.example", "https://login.example/?next=https://gw.example/", ""},
		{"https://gw.example", "/a", ""}, {"https://gw.example", "a", ""}, {"https://gw.example", "", ""}, {"https://gw.example", "https://%zz/", ""},
		{"http://[::1]:3000", "http://[::1]:3000/a", "http://localhost:8080/a"},
	} {
		g, err := url.Parse(test.gateway)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := localLocation(test.location, *g, &http.Request{Host: "localhost:8080"})
		if want := test.want; ok != (want != "") || ok && got != want || !ok && got != test.location {
			t.Errorf("%q from %s: got %q, %v, want %q", test.location, test.gateway, got, ok, want)
		}
	}
}

// R06: cookies and redirects arrive as they must, and both forms are on the tape.
func TestAdaptedAnswers(t *testing.T) {
	var cookies []string
	g := gateway(t, func(w http.ResponseWriter, r *http.Request) {
		cookies = r.Header["Cookie"]
		w.Header()["Set-Cookie"] = []string{"a=1; Secure; Domain=.example.com", "b=2", "__Host-c=3; Secure; Path=/"}
		w.Header().Set("Location", "http://"+r.Host+"/next")
		w.WriteHeader(http.StatusFound)
	})
	for _, keep := range []bool{false, true} {
		address, tape := start(t, g.URL, func(c *Config) { c.KeepCookies = keep })
		req, _ := http.NewRequest("GET", "http://"+address, nil)
		req.Header.Set("Cookie", "b=2; tapedeck__Host-c=3; x=tapedeck")
		res, err := client(t).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		sent := []string{"a=1; Secure; Domain=.example.com", "b=2", "__Host-c=3; Secure; Path=/"}
		want, back := []string{"a=1", "b=2", "tapedeck__Host-c=3; Path=/"}, "b=2; __Host-c=3; x=tapedeck"
		if keep {
			want, back = sent, "b=2; tapedeck__Host-c=3; x=tapedeck"
		}
		if diff := cmp.Diff(want, res.Header["Set-Cookie"]); diff != "" {
			t.Errorf("keep %v: cookies (-want +got):\n%s", keep, diff)
		}
		if !slices.Equal(cookies, []string{back}) {
			t.Errorf("keep %v: the gateway got %q, want %q", keep, cookies, back)
		}
		if got := res.Header.Get("Location"); got != "http://"+address+"/next" {
			t.Errorf("redirected to %q", got)
		}
		frames := tape.wait(t, 1, kind(capture.Done))
		h := detail[capture.ResponseHead](t, filter(frames, kind(capture.Response))[0])
		if got := h.Adapted["Location"]; !slices.Equal(got, []string{g.URL + "/next"}) {
			t.Errorf("the gateway's Location is %q on the tape", got)
		}
		if !keep && (!slices.Equal(h.Adapted["Set-Cookie"], sent) || !slices.Equal(h.Header["Set-Cookie"], want)) {
			t.Errorf("on the tape: %q, was %q", h.Header["Set-Cookie"], h.Adapted["Set-Cookie"])
		}
		var acts []string
		for _, f := range filter(frames, kind(capture.Act)) {
			acts = append(acts, detail[capture.Deed](t, f).Text)
		}
		if got := strings.Join(acts, "\n"); strings.Contains(got, "Set-Cookie a passed without Secure") == keep {
			t.Errorf("keep %v: told %q", keep, got)
		}
	}
}
