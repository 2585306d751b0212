package engine

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
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

// TestPolling is what a session does with requests that come together, or come
// wrong.
func TestPolling(t *testing.T) {
	type flow func(t *testing.T, h *host, target string)
	for _, test := range []struct {
		name string
		flow flow
		left string // why a joined socket left, "" if it stays
	}{
		{"a parked GET gets what comes, in one payload", func(t *testing.T, h *host, target string) {
			parked := h.get(t.Context(), target)
			synctest.Wait()
			h.engine.Emit("/", "", "a", json.RawMessage("1"))
			if got := <-parked; got.body != `42["a",1]` {
				t.Errorf("parked GET: got %q", got.body)
			}
			for range 20 {
				h.engine.Emit("/", "", "b")
			}
			want := strings.TrimSuffix(strings.Repeat("42[\"b\"]\x1e", 20), "\x1e")
			if got := h.do("GET", target, ""); got.body != want {
				t.Errorf("E01: got %q, want %q", got.body, want)
			}
		}, ""},
		{"a second GET", func(t *testing.T, h *host, target string) {
			parked := h.get(t.Context(), target)
			synctest.Wait()
			second := h.do("GET", target, "")
			if got := <-parked; got.status != 200 || got.body != "1" {
				t.Errorf("first GET: got %d %q, want 200 1", got.status, got.body)
			}
			if second.status != 400 || second.body != "" {
				t.Errorf("second GET: got %d %q, want an empty 400", second.status, second.body)
			}
			unknown(t, h, target)
		}, ReasonTransportError},
		{"a POST while another is read", func(t *testing.T, h *host, target string) {
			parked := h.get(t.Context(), target)
			body := make(slowBody)
			first := make(chan int, 1)
			go func() {
				got, err := h.client.Post("http://"+h.addr+target, "text/plain", body)
				if err != nil {
					first <- 0
					return
				}
				got.Body.Close()
				first <- got.StatusCode
			}()
			body <- "4"
			synctest.Wait()
			second := h.do("POST", target, "3")
			if second.status != 400 || second.body != "" {
				t.Errorf("second POST: got %d %q, want an empty 400", second.status, second.body)
			}
			if got := <-parked; got.body != "1" {
				t.Errorf("parked GET: got %q, want 1", got.body)
			}
			close(body)
			if got := <-first; got != 200 {
				t.Errorf("first POST: got %d, want 200", got)
			}
			unknown(t, h, target)
		}, ReasonTransportError},
		{"a GET that is dropped", func(t *testing.T, h *host, target string) {
			ctx, cancel := context.WithCancel(t.Context())
			parked := h.get(ctx, target)
			synctest.Wait()
			cancel()
			<-parked
			synctest.Wait()
			unknown(t, h, target)
		}, ReasonTransportError},
		{"the client's goodbye", func(t *testing.T, h *host, target string) {
			parked := h.get(t.Context(), target)
			synctest.Wait()
			if got := h.do("POST", target, "1"); got.status != 200 || got.body != "ok" {
				t.Errorf("POST 1: got %d %q, want 200 ok", got.status, got.body)
			}
			if got := <-parked; got.status != 200 || got.body != "6" {
				t.Errorf("parked GET: got %d %q, want 200 6", got.status, got.body)
			}
			unknown(t, h, target)
		}, ReasonTransportClose},
		{"a goodbye that overtakes the GET", func(t *testing.T, h *host, target string) {
			h.do("POST", target, "1")
			if got := h.do("GET", target, ""); got.status != 200 || got.body != "6" {
				t.Errorf("late GET: got %d %q, want 200 6", got.status, got.body)
			}
			unknown(t, h, target)
		}, ReasonTransportClose},
		{"a goodbye that no GET follows", func(t *testing.T, h *host, target string) {
			h.do("POST", target, "1")
			time.Sleep(partingTime)
			unknown(t, h, target)
		}, ReasonTransportClose},
		{"a payload that is none", func(t *testing.T, h *host, target string) {
			if got := h.do("POST", target, "abc"); got.status != 200 || got.body != "ok" {
				t.Errorf("POST abc: got %d %q, want 200 ok", got.status, got.body)
			}
			unknown(t, h, target)
		}, ReasonParse},
		{"an empty payload", func(t *testing.T, h *host, target string) {
			h.do("POST", target, "")
			unknown(t, h, target)
		}, ReasonParse},
		{"a binary body", func(t *testing.T, h *host, target string) {
			if got := h.do("POST", target, "3", "Content-Type", "application/octet-stream"); got.status != 400 || got.body != "" {
				t.Errorf("got %d %q, want an empty 400", got.status, got.body)
			}
			unknown(t, h, target)
		}, ReasonTransportError},
		{"E04 a body at the limit", func(t *testing.T, h *host, target string) {
			body := `42["x","` + strings.Repeat("a", 990) + `"]`
			if got := h.do("POST", target, body); len(body) != 1000 || got.status != 200 {
				t.Errorf("%d bytes: got %d, want 200", len(body), got.status)
			}
		}, ""},
		{"E04 a body over the limit", func(t *testing.T, h *host, target string) {
			body := `42["x","` + strings.Repeat("a", 991) + `"]`
			if got := h.do("POST", target, body); len(body) != 1001 || got.status != 413 || got.body != "" {
				t.Errorf("%d bytes: got %d %q, want an empty 413", len(body), got.status, got.body)
			}
			unknown(t, h, target)
		}, ReasonTransportError},
		{"E04 a body over the limit, its length unsaid", func(t *testing.T, h *host, target string) {
			body := make(slowBody, 3)
			body <- "42"
			body <- strings.Repeat("a", 1000)
			close(body)
			got, err := h.client.Post("http://"+h.addr+target, "text/plain", body)
			if err != nil || got.StatusCode != 413 {
				t.Errorf("got %v %v, want 413", got, err)
			}
		}, ReasonTransportError},
		{"a body that takes too long", func(t *testing.T, h *host, target string) {
			body := make(slowBody)
			defer close(body)
			begin := time.Now()
			got, err := h.client.Post("http://"+h.addr+target, "text/plain", body)
			if err != nil || got.StatusCode != 408 || time.Since(begin) != bodyTime {
				t.Errorf("got %v %v after %v, want 408 after %v", got, err, time.Since(begin), bodyTime)
			}
		}, ReasonTransportError},
		{"silence", func(t *testing.T, h *host, target string) {
			time.Sleep(45*time.Second - time.Millisecond)
			if got := h.do("GET", target, ""); got.body != "2" {
				t.Errorf("just before the deadline: got %q, want 2", got.body)
			}
			time.Sleep(time.Millisecond)
			unknown(t, h, target)
		}, ReasonPing},
		{"closed by the gateway, with words queued", func(t *testing.T, h *host, target string) {
			s := h.engine.Sockets()[0]
			s.Emit("bye", json.RawMessage(`"x"`))
			s.Disconnect(true)
			if got := h.do("GET", target, ""); got.body != "42[\"bye\",\"x\"]\x1e41" {
				t.Errorf("first GET: got %q", got.body)
			}
			if got := h.do("POST", target, `42["late"]`); got.status != 200 {
				t.Errorf("late POST: got %d, want 200", got.status)
			}
			if got := h.do("GET", target, ""); got.body != "1" {
				t.Errorf("second GET: got %q, want 1", got.body)
			}
			unknown(t, h, target)
		}, ReasonServerDisconnect},
		{"closed by the gateway, and never fetched", func(t *testing.T, h *host, target string) {
			h.engine.Sockets()[0].Close(0, "")
			time.Sleep(closingTime)
			unknown(t, h, target)
		}, ReasonForcedServer},
		{"closed by the gateway, a GET parked", func(t *testing.T, h *host, target string) {
			parked := h.get(t.Context(), target)
			synctest.Wait()
			h.engine.Sockets()[0].Close(4000, "only a WebSocket would hear this")
			if got := <-parked; got.body != "1" {
				t.Errorf("parked GET: got %q, want 1", got.body)
			}
			unknown(t, h, target)
		}, ReasonForcedServer},
		{"cut", func(t *testing.T, h *host, target string) {
			parked := h.get(t.Context(), target)
			synctest.Wait()
			h.engine.Sockets()[0].Cut()
			if got := <-parked; got.status != 0 || !strings.Contains(got.body, "EOF") {
				t.Errorf("parked GET: got %d %q, want a broken connection", got.status, got.body)
			}
			unknown(t, h, target)
		}, ReasonTransportClose},
		{"a client that fetches nothing", func(t *testing.T, h *host, target string) {
			big := json.RawMessage(`"` + strings.Repeat("x", 600) + `"`)
			for range 3 {
				h.engine.Emit("/", "", "big", big)
			}
			unknown(t, h, target)
		}, ReasonQueue},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				left := make(chan string, 2)
				h := serve(t, Config{MaxPayload: 1000, MaxQueue: 1500, Left: func(_ *Socket, reason string) { left <- reason }})
				target := h.open("")
				h.do("POST", target, "40")
				if got := h.do("GET", target, ""); !matches(`40{"sid":"*"}`, got.body) {
					t.Fatalf("got %q, want a CONNECT reply", got.body)
				}
				test.flow(t, h, target)
				synctest.Wait()
				close(left)
				if got := <-left; got != test.left {
					t.Errorf("left because of %q, want %q", got, test.left)
				}
				if again, ok := <-left; ok {
					t.Errorf("left twice, again because of %q", again)
				}
				if test.left == "" { // so that nobody leaves into the closed channel
					h.engine.config.Left = nil
				}
			})
		})
	}
}

// unknown fails unless the session is gone.
func unknown(t *testing.T, h *host, target string) {
	t.Helper()
	if got := h.do("GET", target, ""); got.status != 400 || got.body != `{"code":1,"message":"Session ID unknown"}` {
		t.Errorf("GET afterwards: got %d %q, want 400, session unknown", got.status, got.body)
	}
}

// slowBody is a request body that comes when a test says so.
type slowBody chan string

func (b slowBody) Read(p []byte) (int, error) {
	text, ok := <-b
	if !ok {
		return 0, io.EOF
	}
	return copy(p, text), nil
}
