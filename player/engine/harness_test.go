package engine

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a listener whose connections are pipes: no ports, and a fake clock
// can see that everybody waits.
type memory struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (m *memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.conns:
		return c, nil
	case <-m.done:
		return nil, net.ErrClosed
	}
}

func (m *memory) Close() error {
	m.once.Do(func() { close(m.done) })
	return nil
}

func (m *memory) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "memory"} }

func (m *memory) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case m.conns <- server:
		return client, nil
	case <-m.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// host is a server that is being served, in memory or on loopback.
type host struct {
	t      testing.TB
	engine *Server
	client *http.Client
	dialer websocket.Dialer
	addr   string
}

// serve serves an engine in memory until the test ends.
func serve(t testing.TB, c Config) *host {
	m := &memory{conns: make(chan net.Conn), done: make(chan struct{})}
	return serveOn(t, c, m, m.dial)
}

// serveTCP serves an engine on loopback, for what a pipe does not do.
func serveTCP(t testing.TB, c Config) *host {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serveOn(t, c, l, (&net.Dialer{}).DialContext)
}

func serveOn(t testing.TB, c Config, l net.Listener, dial func(context.Context, string, string) (net.Conn, error)) *host {
	h := &host{t: t, engine: New(c), addr: l.Addr().String()}
	if _, ok := l.(*memory); ok {
		h.addr = "engine.test"
	}
	transport := &http.Transport{DialContext: dial, DisableKeepAlives: true}
	h.client = &http.Client{Transport: transport}
	h.dialer = websocket.Dialer{NetDialContext: dial}
	server := &http.Server{Handler: h.engine}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := h.engine.Close(ctx); err != nil {
			t.Errorf("close the engine: %v", err)
		}
		server.Close()
		if err := <-served; err != http.ErrServerClosed {
			t.Errorf("serve: %v", err)
		}
		transport.CloseIdleConnections()
	})
	return h
}

// response is what a test looks at of an HTTP answer.
type response struct {
	status int
	header http.Header
	body   string
}

func (h *host) do(method, target, body string, header ...string) response {
	h.t.Helper()
	got, err := h.try(context.Background(), method, target, body, header...)
	if err != nil {
		h.t.Fatal(err)
	}
	return got
}

func (h *host) try(ctx context.Context, method, target, body string, header ...string) (response, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://"+h.addr+target, strings.NewReader(body))
	if err != nil {
		return response{}, err
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	got, err := h.client.Do(request)
	if err != nil {
		return response{}, err
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	return response{got.StatusCode, got.Header, string(text)}, err
}

// open opens a polling session and returns its target, sid included.
func (h *host) open(extra string) string {
	h.t.Helper()
	target := h.engine.config.Path + "?" + extra + "EIO=4&transport=polling"
	got := h.do("GET", target, "")
	var hello struct{ SID string }
	if got.status != 200 || json.Unmarshal([]byte(strings.TrimPrefix(got.body, "0")), &hello) != nil {
		h.t.Fatalf("GET %s: got %d %q, want a handshake", target, got.status, got.body)
	}
	return target + "&sid=" + url.QueryEscape(hello.SID)
}

// get is a GET that runs; its answer comes on the channel.
func (h *host) get(ctx context.Context, target string) chan response {
	answers := make(chan response, 1)
	go func() {
		got, err := h.try(ctx, "GET", target, "")
		if err != nil {
			got.body = err.Error()
		}
		answers <- got
	}()
	return answers
}

// socket is a client's WebSocket.
type socket struct {
	t testing.TB
	*websocket.Conn
}

func (h *host) dial(target string, header ...string) socket {
	h.t.Helper()
	ws, got, err := h.tryDial(target, header...)
	if err != nil {
		h.t.Fatalf("dial %s: %v (%v)", target, err, got)
	}
	h.t.Cleanup(func() { ws.Close() })
	return socket{h.t, ws}
}

func (h *host) tryDial(target string, header ...string) (*websocket.Conn, *http.Response, error) {
	values := make(http.Header)
	for i := 0; i+1 < len(header); i += 2 {
		values.Set(header[i], header[i+1])
	}
	return h.dialer.Dial("ws://"+h.addr+target, values)
}

// dialEngine opens a WebSocket session and takes its handshake.
func (h *host) dialEngine() socket {
	h.t.Helper()
	ws := h.dial(h.engine.config.Path + "?EIO=4&transport=websocket")
	if got := ws.text(); !strings.HasPrefix(got, `0{"sid":"`) {
		h.t.Fatalf("got %q, want a handshake", got)
	}
	return ws
}

// join opens a WebSocket session and joins "/".
func (h *host) join() socket {
	h.t.Helper()
	ws := h.dialEngine()
	ws.send("40")
	got := ws.text()
	for got == "2" { // where pings are a millisecond apart, some come first
		got = ws.text()
	}
	if !strings.HasPrefix(got, `40{"sid":"`) {
		h.t.Fatalf("got %q, want a CONNECT reply", got)
	}
	return ws
}

func (s socket) send(text string) {
	s.t.Helper()
	if err := s.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		s.t.Fatalf("send %q: %v", text, err)
	}
}

func (s socket) sendBinary(data []byte) {
	s.t.Helper()
	if err := s.WriteMessage(websocket.BinaryMessage, data); err != nil {
		s.t.Fatalf("send %x: %v", data, err)
	}
}

// text returns the next message; a binary one as b and its base64, like over
// polling. An end is "closed" and the code of the close frame, if there was one.
func (s socket) text() string {
	kind, data, err := s.ReadMessage()
	var closed *websocket.CloseError
	switch {
	case errors.As(err, &closed) && closed.Code == websocket.CloseAbnormalClosure:
		return "closed by the network"
	case errors.As(err, &closed):
		return strings.TrimSpace("closed " + closeText(closed))
	case err != nil:
		return "closed by the network"
	case kind == websocket.BinaryMessage:
		return "b" + base64.StdEncoding.EncodeToString(data)
	}
	return string(data)
}

func closeText(c *websocket.CloseError) string {
	if c.Code == websocket.CloseNoStatusReceived {
		return ""
	}
	return strings.TrimSpace(strconv.Itoa(c.Code) + " " + c.Text)
}

func (s socket) want(texts ...string) {
	s.t.Helper()
	for _, want := range texts {
		if got := s.text(); !matches(want, got) {
			s.t.Fatalf("got %q, want %q", got, want)
		}
	}
}

// matches compares with a pattern whose * stands for an id.
func matches(pattern, text string) bool {
	for i := 0; i < len(pattern); i++ {
		if pattern[i] == '*' {
			n := 0
			for n < len(text) && (text[n] == '-' || text[n] == '_' || text[n] >= '0' && text[n] <= '9' ||
				text[n] >= 'A' && text[n] <= 'Z' || text[n] >= 'a' && text[n] <= 'z') {
				n++
			}
			if n == 0 {
				return false
			}
			text = text[n:]
			continue
		}
		if len(text) == 0 || text[0] != pattern[i] {
			return false
		}
		text = text[1:]
	}
	return text == ""
}

// echo is a server that answers as the official suites want it: "message" by
// "message-back", "message-with-ack" by its arguments, on / and /custom.
func echo() Config {
	return Config{
		PingInterval: 300 * time.Millisecond, PingTimeout: 200 * time.Millisecond, ConnectTimeout: time.Second,
		Connect: func(s *Socket) *Refusal {
			switch s.Namespace() {
			case "/", "/custom", plainNamespace:
				return nil
			case "/admin":
				return &Refusal{Message: "not authorized", Data: json.RawMessage(`{"code": 401}`)}
			}
			return &Refusal{Message: "Invalid namespace"}
		},
		Joined: func(s *Socket) { s.Emit("auth", s.Handshake().Auth) },
		Event: func(s *Socket, e Event) {
			switch {
			case e.Name == "message":
				s.EmitBinary("message-back", e.Attachments, e.Args...)
			case e.Name == "bye":
				s.Disconnect(bytes.Equal(e.Args[0], []byte("true")))
			case e.Ack == nil:
			case len(e.Attachments) > 0:
				e.AckBinary(e.Attachments, e.Args...)
			default:
				e.Ack(e.Args...)
			}
		},
	}
}
