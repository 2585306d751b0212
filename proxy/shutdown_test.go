package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"tapedeck/protocol/capture"
	"tapedeck/protocol/wire"
)

// B08: at a stop both sides of every socket get Close 1001, between two
// messages, and every connection has its end on the tape.
func TestShutdownMidBurst(t *testing.T) {
	const sockets = 3
	codes := make(chan int, sockets)
	g := socketGateway(t, websocket.Upgrader{}, func(conn *websocket.Conn, _ *http.Request) {
		read := make(chan struct{})
		go func() {
			defer close(read)
			_, _, err := conn.ReadMessage()
			closed := &websocket.CloseError{Code: -1}
			errors.As(err, &closed)
			codes <- closed.Code
		}()
		for i := 0; ; i++ {
			// Long, or a client in a race detector's hands has a minute of them
			// in the buffers of its sockets.
			if conn.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, "message %8000d", i)) != nil {
				break
			}
		}
		<-read
	})
	p, tape := build(t, g.URL, nil)
	ls, _, err := Listen(context.Background(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	stop := run(t, p, ls)
	got := make(chan []string, sockets)
	for range sockets {
		conn := dialGorilla(t, "ws://"+ls[0].Addr().String()+"/", nil)
		go func() {
			var messages []string
			for {
				_, m, err := conn.ReadMessage()
				if err != nil {
					closed := &websocket.CloseError{Code: -1}
					errors.As(err, &closed)
					got <- append(messages, fmt.Sprint(closed.Code))
					return
				}
				messages = append(messages, string(m))
			}
		}()
	}
	tape.wait(t, 1000, kind(capture.Text))
	stop()
	p.Shutdown(context.Background())
	frames, _ := tape.all()
	if n := len(filter(frames, kind(capture.End))); n != sockets {
		t.Errorf("%d ends on the tape, want %d", n, sockets)
	}
	kept := map[capture.Position][]string{}
	for _, f := range filter(frames, sent(capture.FromGateway, capture.Text)) {
		if !f.Flags.Has(capture.Withheld) {
			kept[f.Connection] = append(kept[f.Connection], string(f.Data))
		}
	}
	for range sockets {
		messages := <-got
		if last := len(messages) - 1; messages[last] != "1001" {
			t.Errorf("the client was closed with %s", messages[last])
		} else if !slices.ContainsFunc(values(kept), func(k []string) bool { return slices.Equal(k, messages[:last]) }) {
			t.Errorf("the %d messages that a client got are not those on the tape", last)
		}
		if code := <-codes; code != 1001 {
			t.Errorf("the gateway was closed with %d", code)
		}
	}
}

func values[K comparable, V any](m map[K]V) (v []V) {
	for _, x := range m {
		v = append(v, x)
	}
	return v
}

// A stop in the middle of a message waits for its end, for a while.
func TestShutdownWaitsForTheBorder(t *testing.T) {
	half := make(chan struct{})
	message := fromGateway(capture.Text, "a whole message")
	upstream := rawGateway(t, func(head string, conn net.Conn, r *bufio.Reader) {
		conn.Write(append([]byte(accept(head)), message[:5]...))
		<-half
		conn.Write(message[5:])
		io.Copy(io.Discard, r)
	})
	p, _ := build(t, upstream, nil)
	ls, _, err := Listen(context.Background(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	stop := run(t, p, ls)
	_, r, _ := dialSocket(t, ls[0].Addr().String(), "/")
	expect(t, r, message[:5])
	stop()
	done := make(chan struct{})
	go func() { p.Shutdown(context.Background()); close(done) }()
	<-p.polls.Done() // it has begun
	close(half)
	expect(t, r, append(message[5:], wire.AppendServerFrame(nil, capture.Close, wire.AppendClose(nil, 1001, stopMessage))...))
	<-done
}

// A second signal cuts at once what would have its second; a parked poll is cut
// in any case, and looks broken.
func TestShutdownCutsAtOnce(t *testing.T) {
	g := gateway(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.RawQuery, "polling") || r.URL.Path == "/slow" {
			<-r.Context().Done()
		}
	})
	deaf := socketGateway(t, websocket.Upgrader{}, func(conn *websocket.Conn, _ *http.Request) {
		io.Copy(io.Discard, conn.NetConn()) // and answers no Close frame
	})
	for _, test := range []struct {
		name, upstream, request string
		second                  bool
	}{
		{"poll", g.URL, "GET " + pollTarget + "&sid=a HTTP/1.1\r\nHost: p\r\n\r\n", false},
		{"slow request", g.URL, "GET /slow HTTP/1.1\r\nHost: p\r\n\r\n", true},
		{"socket", deaf.URL, upgradeRequest("/"), true},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, tape := build(t, test.upstream, nil)
			ls, _, err := Listen(context.Background(), "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			stop := run(t, p, ls)
			_, r := dialRaw(t, ls[0].Addr().String(), test.request)
			if test.name == "socket" {
				if res, err := http.ReadResponse(r, nil); err != nil || res.StatusCode != 101 {
					t.Fatal(res, err)
				}
			}
			tape.wait(t, 1, kind(capture.Request))
			stop()
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			if test.second {
				cancel()
			}
			p.Shutdown(ctx)
			if test.name != "socket" {
				if res, err := http.ReadResponse(r, nil); err == nil {
					t.Errorf("the client got %v", res)
				}
			}
			frames, _ := tape.all()
			if o := detail[capture.Outcome](t, filter(frames, kind(capture.Done))[0]); o.By != 0 || o.Error == "" && test.name != "socket" {
				t.Errorf("outcome %+v", o)
			}
			if n := len(filter(frames, kind(capture.Open))); n != len(filter(frames, kind(capture.End))) {
				t.Errorf("an end is missing:\n%s", list(frames))
			}
		})
	}
}

func TestRequestsAfterShutdown(t *testing.T) {
	p, tape := build(t, "http://127.0.0.1:1", nil)
	p.Shutdown(context.Background())
	p.Shutdown(context.Background())
	w := newResponse()
	p.ServeHTTP(w, &http.Request{Method: "GET", Header: http.Header{}})
	if frames, _ := tape.all(); w.status != 503 || len(frames) > 0 {
		t.Errorf("status %d, %d frames", w.status, len(frames))
	}
}

type response struct {
	header http.Header
	status int
}

func newResponse() *response                    { return &response{header: http.Header{}} }
func (r *response) Header() http.Header         { return r.header }
func (r *response) WriteHeader(status int)      { r.status = status }
func (r *response) Write(b []byte) (int, error) { return len(b), nil }
func (p *pipes) Addr() net.Addr                 { return &net.TCPAddr{} }
func (p *pipes) Close() error                   { p.once(); return nil }
func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	p.conns <- there
	return here, nil
}

// pipes is a listener in memory.
type pipes struct {
	conns  chan net.Conn
	closed context.Context
	once   context.CancelFunc
}

func newPipes() *pipes {
	p := &pipes{conns: make(chan net.Conn)}
	p.closed, p.once = context.WithCancel(context.Background())
	return p
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed.Done():
		return nil, net.ErrClosed
	}
}

// R04: no timeout of the proxy's cuts what is held or idle: a poll for 65 s, an
// event stream for 90 s, a WebSocket with nothing but pings for ten minutes.
func TestNothingIsCutForBeingIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := websocket.Upgrader{}
		front, back := newPipes(), newPipes()
		g := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/poll":
				time.Sleep(65 * time.Second)
				io.WriteString(w, "2")
			case "/events":
				http.NewResponseController(w).Flush()
				time.Sleep(90 * time.Second)
				io.WriteString(w, "data: late\n\n")
			case "/socket":
				conn, err := up.Upgrade(w, r, nil)
				if err != nil {
					t.Error(err)
					return
				}
				go echo(conn, r) // reads the pongs
				for range 24 {
					time.Sleep(25 * time.Second)
					conn.WriteControl(websocket.PingMessage, nil, time.Time{})
				}
				conn.WriteMessage(websocket.TextMessage, []byte("still here"))
				conn.Close()
			}
		})}
		p, _ := build(t, "http://gateway", nil)
		p.roads.rest.DialContext, p.roads.single.DialContext = back.dial, back.dial
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan struct{}, 2)
		go func() { g.Serve(back); done <- struct{}{} }()
		go func() { p.Serve(ctx, front); done <- struct{}{} }()

		c := &http.Client{Transport: &http.Transport{DialContext: front.dial, DisableKeepAlives: true}}
		for _, path := range []string{"/poll", "/events"} {
			res, err := c.Get("http://proxy" + path + "?EIO=4&transport=polling")
			if err != nil {
				t.Fatal(err)
			}
			if body, err := io.ReadAll(res.Body); err != nil || len(body) == 0 {
				t.Errorf("%s: %q, %v", path, body, err)
			}
			res.Body.Close()
		}
		d := websocket.Dialer{NetDialContext: front.dial}
		conn, _, err := d.Dial("ws://proxy/socket", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, m, err := conn.ReadMessage(); err != nil || string(m) != "still here" {
			t.Errorf("after ten minutes: %q, %v", m, err)
		}
		conn.Close()
		stop()
		p.Shutdown(context.Background())
		g.Close()
		<-done
		<-done
	})
}
