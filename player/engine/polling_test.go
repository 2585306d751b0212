package engine

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

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
			for range 4 {
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
