package engine

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestRefusals holds the answers of Engine.IO's HTTP surface to requests that
// open no session (E03 among them).
func TestRefusals(t *testing.T) {
	h := serve(t, Config{})
	session := strings.TrimPrefix(h.open(""), "/socket.io/?EIO=4&transport=polling")
	for _, test := range []struct {
		method, target string
		status         int
		body           string
	}{
		{"GET", "?EIO=4", 400, `{"code":0,"message":"Transport unknown"}`},
		{"GET", "?EIO=4&transport=abc", 400, `{"code":0,"message":"Transport unknown"}`},
		{"GET", "", 400, `{"code":0,"message":"Transport unknown"}`},
		{"GET", "?EIO=4&transport=polling&sid=nope", 400, `{"code":1,"message":"Session ID unknown"}`},
		{"POST", "?EIO=4&transport=polling&sid=nope", 400, `{"code":1,"message":"Session ID unknown"}`},
		{"POST", "?EIO=4&transport=polling", 400, `{"code":2,"message":"Bad handshake method"}`},
		{"PUT", "?EIO=4&transport=polling", 400, `{"code":2,"message":"Bad handshake method"}`},
		{"OPTIONS", "?EIO=4&transport=polling", 400, `{"code":2,"message":"Bad handshake method"}`},
		{"GET", "?EIO=4&transport=websocket", 400, `{"code":3,"message":"Bad request"}`},
		{"GET", "?EIO=4&transport=websocket" + session, 400, `{"code":3,"message":"Bad request"}`},
		{"GET", "?EIO=3&transport=polling" + session, 400, `{"code":3,"message":"Bad request"}`},
		{"GET", "?transport=polling", 400, `{"code":5,"message":"Unsupported protocol version"}`},
		{"GET", "?EIO=3&transport=polling", 400, `{"code":5,"message":"Unsupported protocol version"}`},
		{"GET", "?EIO=abc&transport=polling", 400, `{"code":5,"message":"Unsupported protocol version"}`},
		{"GET", "?EIO=4&transport=polling&EIO=3", 400, `{"code":5,"message":"Unsupported protocol version"}`},
		{"DELETE", "?EIO=4&transport=polling" + session, 500, ""},
	} {
		got := h.do(test.method, "/socket.io/"+test.target, "")
		if got.status != test.status || got.body != test.body {
			t.Errorf("%s %s: got %d %q, want %d %q", test.method, test.target, got.status, got.body, test.status, test.body)
		}
		if kind := got.header.Get("Content-Type"); test.body != "" && kind != "application/json" {
			t.Errorf("%s %s: got content type %q, want application/json", test.method, test.target, kind)
		}
		if len(got.header["Access-Control-Allow-Origin"]) != 0 {
			t.Errorf("%s %s: got CORS headers, and none are configured", test.method, test.target)
		}
	}
}

// TestNotFound looks at the answers to those who have come to the wrong door:
// they say where the right one is.
func TestNotFound(t *testing.T) {
	h := serve(t, Config{})
	for _, test := range []struct {
		target string
		status int
		says   string
	}{
		{"/socket.io?EIO=4&transport=polling", 404, "with a slash at its end"},
		{"/", 404, "/socket.io/"},
		{"/wsx", 404, "/socket.io/"},
		{"/ws", 426, "connect with a WebSocket"},
		{"/socket.io/socket.io.js", 404, "npm package socket.io-client"},
		{"/socket.io/socket.io.min.js.map", 404, "npm package socket.io-client"},
		{"/socket.io/socket.io.esm.min.js", 404, "npm package socket.io-client"},
		{"/socket.io/other.js", 400, "Transport unknown"},
	} {
		got := h.do("GET", test.target, "")
		if got.status != test.status || !strings.Contains(got.body, test.says) {
			t.Errorf("GET %s: got %d %q, want %d and %q", test.target, got.status, got.body, test.status, test.says)
		}
	}
}

func TestHandshake(t *testing.T) {
	h := serve(t, Config{MaxPayload: 5000, PingInterval: time.Minute})
	hello := func(list string) string {
		return `0{"sid":"*","upgrades":` + list + `,"pingInterval":60000,"pingTimeout":20000,"maxPayload":5000}`
	}
	got := h.do("GET", "/socket.io/?EIO=4&transport=polling", "")
	if !matches(hello(`["websocket"]`), got.body) || got.status != 200 {
		t.Errorf("polling: got %d %s", got.status, got.body)
	}
	for name, want := range map[string]string{
		"Content-Type": "text/plain; charset=UTF-8", "Cache-Control": "no-store", "Set-Cookie": "",
		"Access-Control-Allow-Origin": "", "Content-Encoding": "",
	} {
		if value := got.header.Get(name); value != want {
			t.Errorf("polling: got %s %q, want %q", name, value, want)
		}
	}
	h.dial("/socket.io/xyz?EIO=4&transport=websocket").want(hello("[]"))
	var first, second struct{ SID string }
	for _, at := range []*string{&first.SID, &second.SID} {
		*at = last(mustQuery(t, h.open("")), "sid")
		if len(*at) != 20 {
			t.Errorf("got sid %q, want 20 characters", *at)
		}
	}
	if first == second {
		t.Errorf("two sessions have the sid %q", first.SID)
	}
}

func mustQuery(t *testing.T, target string) map[string][]string {
	r, err := http.NewRequest("GET", target, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r.URL.Query()
}

func TestCookie(t *testing.T) {
	h := serve(t, Config{Cookie: "io"})
	got := h.do("GET", "/socket.io/?EIO=4&transport=polling", "")
	if cookie := got.header.Get("Set-Cookie"); !matches("io=*; Path=/; HttpOnly; SameSite=Lax", cookie) {
		t.Errorf("got cookie %q", cookie)
	}
	ws, answer, err := h.tryDial("/socket.io/?EIO=4&transport=websocket")
	if err != nil {
		t.Fatal(err)
	}
	ws.Close()
	if answer.Header.Get("Set-Cookie") != "" {
		t.Errorf("over WebSocket got cookie %q, want none", answer.Header.Get("Set-Cookie"))
	}
}

func TestCORS(t *testing.T) {
	const app, other = "http://app.test", "http://other.test"
	for _, test := range []struct {
		name    string
		origins []string
		origin  string
		want    map[string]string
	}{
		{"none configured", nil, app, map[string]string{}},
		{"any", []string{"*"}, app, map[string]string{"Access-Control-Allow-Origin": "*"}},
		{"listed", []string{app}, app, map[string]string{
			"Access-Control-Allow-Origin": app, "Access-Control-Allow-Credentials": "true", "Vary": "Origin"}},
		{"not listed", []string{app}, other, map[string]string{
			"Access-Control-Allow-Credentials": "true", "Vary": "Origin"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := serve(t, Config{Origins: test.origins})
			const target = "/socket.io/?EIO=4&transport=polling"
			got := h.do("GET", target, "", "Origin", test.origin)
			if got.status != 200 || !strings.HasPrefix(got.body, "0{") {
				t.Errorf("got %d %q, want a handshake for any origin", got.status, got.body)
			}
			ws, answer, err := h.tryDial("/socket.io/?EIO=4&transport=websocket", "Origin", test.origin)
			if err != nil {
				t.Fatalf("a WebSocket must be let in from any origin: %v", err)
			}
			ws.Close()
			for _, name := range []string{"Access-Control-Allow-Origin", "Access-Control-Allow-Credentials", "Vary"} {
				if value := got.header.Get(name); value != test.want[name] {
					t.Errorf("GET: got %s %q, want %q", name, value, test.want[name])
				}
				if value := answer.Header.Get(name); value != test.want[name] {
					t.Errorf("101: got %s %q, want %q", name, value, test.want[name])
				}
			}
		})
	}
	t.Run("preflight", func(t *testing.T) {
		h := serve(t, Config{Origins: []string{"*"}})
		got := h.do("OPTIONS", "/socket.io/?EIO=4&transport=polling", "",
			"Origin", app, "Access-Control-Request-Headers", "authorization,x-a")
		if got.status != 204 || got.header.Get("Access-Control-Allow-Headers") != "authorization,x-a" ||
			got.header.Get("Access-Control-Allow-Methods") != "GET,HEAD,PUT,PATCH,POST,DELETE" ||
			got.header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("got %d %v", got.status, got.header)
		}
	})
}

// TestSocketRefusals are WebSocket handshakes that are turned down: in plain
// words, before the 101.
func TestSocketRefusals(t *testing.T) {
	h := serve(t, Config{})
	for _, test := range []struct{ target, body string }{
		{"?EIO=4&transport=websocket&sid=nope", "Session ID unknown"},
		{"?EIO=4&transport=abc", "Transport unknown"},
		{"?EIO=4", "Transport unknown"},
		{"?EIO=3&transport=websocket", "Unsupported protocol version"},
		{"?transport=websocket", "Unsupported protocol version"},
	} {
		_, answer, err := h.tryDial("/socket.io/" + test.target)
		if err == nil || answer == nil {
			t.Fatalf("%s: got %v, want a refusal", test.target, err)
		}
		body := make([]byte, 100)
		n, _ := answer.Body.Read(body)
		if answer.StatusCode != 400 || string(body[:n]) != test.body || answer.Header.Get("Content-Type") != "text/html" {
			t.Errorf("%s: got %d %q, want 400 %q", test.target, answer.StatusCode, body[:n], test.body)
		}
	}
	h.dial("/socket.io/?EIO=4&transport=polling").want("closed")
}

func TestHandshakeReachesTheGateway(t *testing.T) {
	joined := make(chan Handshake, 1)
	h := serve(t, Config{Joined: func(s *Socket) { joined <- s.Handshake() }})
	ws := h.dial("/socket.io/?tenant=a%20b&EIO=4&transport=websocket", "Authorization", "Bearer x", "Cookie", "a=1; b=2")
	ws.want(`0{"sid":"*","upgrades":[],"pingInterval":25000,"pingTimeout":20000,"maxPayload":1000000}`)
	ws.send(`40{"token":"t"}`)
	got := <-joined
	if string(got.Auth) != `{"token":"t"}` || got.Query.Get("tenant") != "a b" || got.Remote == "" ||
		got.Header.Get("Authorization") != "Bearer x" || got.Header.Get("Cookie") != "a=1; b=2" {
		t.Errorf("got %+v", got)
	}
}
