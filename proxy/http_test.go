package proxy

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tapedeck/protocol/capture"
)

// R01: the gateway sees the bytes of the request target that the client sent.
func TestTargetPassesAsSent(t *testing.T) {
	upstream := rawGateway(t, func(head string, conn net.Conn, _ *bufio.Reader) {
		line, _, _ := strings.Cut(head, "\r\n")
		fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(line), line)
	})
	address, tape := start(t, upstream, nil)
	for _, target := range []string{
		"/", "/api//a/%2F/b", "/socket.io?EIO=4&transport=polling", "/a/../b", "/a%2e/", "/a/./b", "//a//b",
		"/?b=2&a=1&b=1", "/?a=%20&b=+&c=;d", "/?", "/a?x?y", "/%E2%82%AC/%e2%82%ac", "/[a]|{b}", "/a;p=1/b,c",
		"http://elsewhere.example/a/../b?q", "/x?q=100%",
	} {
		_, r := dialRaw(t, address, "GET "+target+" HTTP/1.1\r\nHost: p\r\nConnection: close\r\n\r\n")
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(res.Body)
		if want := "GET " + target + " HTTP/1.1"; string(got) != want || res.StatusCode != 200 {
			t.Errorf("target %q: status %d, the gateway got %q, want %q", target, res.StatusCode, got, want)
		}
		frames := filter(first(tape.all()), kind(capture.Request))
		if h := detail[capture.RequestHead](t, frames[len(frames)-1]); h.Target != target {
			t.Errorf("target %q is %q on the tape", target, h.Target)
		}
	}
	_, r := dialRaw(t, address, "OPTIONS * HTTP/1.1\r\nHost: p\r\nConnection: close\r\n\r\n")
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := io.ReadAll(res.Body); string(got) != "OPTIONS * HTTP/1.1" {
		t.Errorf("the gateway got %q of OPTIONS *", got)
	}
}

func first[A, B any](a A, _ B) A { return a }

// Nothing is added to a request or an answer, and what speaks of one connection
// only is not passed on.
func TestHeadersPassAsSent(t *testing.T) {
	heads := make(chan string, 1)
	upstream := rawGateway(t, func(head string, conn net.Conn, _ *bufio.Reader) {
		heads <- head
		io.WriteString(conn, "HTTP/1.1 200 Fine\r\nContent-Length: 2\r\nX-A: 1\r\nX-A: 2\r\nConnection: x-hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\n\r\nok")
	})
	address, tape := start(t, upstream, nil)
	_, r := dialRaw(t, address, "GET / HTTP/1.1\r\nHost: proxy.example\r\nForwarded: for=a\r\nX-Forwarded-For: 9\r\nVia: x\r\n"+
		"Cookie: a=1; b=\"2\"\r\nConnection: close, x-mine\r\nX-Mine: 1\r\nTE: trailers, deflate\r\nProxy-Authorization: p\r\n\r\n")
	raw, _ := io.ReadAll(r)
	want := "GET / HTTP/1.1\r\nHost: " + strings.TrimPrefix(upstream, "http://") + "\r\nConnection: close\r\n" +
		"Cookie: a=1; b=\"2\"\r\nForwarded: for=a\r\nProxy-Authorization: p\r\nTe: trailers\r\nVia: x\r\nX-Forwarded-For: 9\r\n\r\n"
	if diff := cmp.Diff(want, <-heads); diff != "" {
		t.Errorf("the gateway's request (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-A: 1\r\nX-A: 2\r\nConnection: close\r\n\r\nok", string(raw)); diff != "" {
		t.Errorf("the client's answer (-want +got):\n%s", diff)
	}
	frames := tape.wait(t, 1, kind(capture.Done))
	if h := detail[capture.RequestHead](t, frames[0]); h.Host != "proxy.example" || h.Header.Get("X-Mine") != "1" {
		t.Errorf("the request on the tape is %+v", h)
	}
}

// R02: a compressed answer passes as it is, and only if the client asked.
func TestGzipPassesUntouched(t *testing.T) {
	var packed strings.Builder
	z := gzip.NewWriter(&packed)
	io.WriteString(z, `{"a":1}`)
	z.Close()
	g := gateway(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "gzip" {
			io.WriteString(w, "plain")
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		io.WriteString(w, packed.String())
	})
	address, tape := start(t, g.URL, nil)
	req, _ := http.NewRequest("GET", "http://"+address, nil)
	req.Header.Set("Accept-Encoding", "gzip")
	res, err := client(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := io.ReadAll(res.Body)
	res.Body.Close()
	if string(got) != packed.String() || res.Header.Get("Content-Encoding") != "gzip" || res.ContentLength != int64(packed.Len()) {
		t.Errorf("got %q, %v", got, res.Header)
	}
	if _, body := get(t, "http://"+address); body != "plain" {
		t.Errorf("without Accept-Encoding: %q", body)
	}
	frames := filter(tape.wait(t, 2, kind(capture.Done)), kind(capture.Body))
	if !frames[0].Flags.Has(capture.Gzip) || frames[1].Flags != 0 {
		t.Errorf("flags on the tape: %v, %v", frames[0].Flags.Names(), frames[1].Flags.Names())
	}
}

// R03: each event of a stream passes, and is on the tape, while the stream is
// still open.
func TestStreamIsFlushedAtOnce(t *testing.T) {
	next := make(chan string)
	g := gateway(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		http.NewResponseController(w).Flush()
		for event := range next {
			io.WriteString(w, event)
			http.NewResponseController(w).Flush()
		}
	})
	address, tape := start(t, g.URL, nil)
	res, err := client(t).Get("http://" + address)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	for i := range 5 {
		event := fmt.Sprintf("data: %d\n\n", i)
		next <- event
		got := make([]byte, len(event))
		if _, err := io.ReadFull(res.Body, got); err != nil || string(got) != event {
			t.Fatalf("event %d: %q, %v", i, got, err)
		}
		tape.wait(t, i+1, kind(capture.Body))
	}
	close(next)
	io.Copy(io.Discard, res.Body)
	frames := tape.wait(t, 1, kind(capture.Done))
	if n := len(filter(frames, kind(capture.Body))); n != 5 {
		t.Errorf("%d bodies on the tape, want 5", n)
	}
}

// R07: who left, and when, is on the tape with all that passed before.
func TestEndsOfAnswers(t *testing.T) {
	big := strings.Repeat("x", 1<<20)
	left := make(chan struct{})
	g := gateway(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/whole":
			io.WriteString(w, "0123456789")
		case "/half": // as much as the client will read
			w.Header().Set("Content-Length", fmt.Sprint(len(big)))
			io.WriteString(w, big[:len(big)/2])
			http.NewResponseController(w).Flush()
			<-r.Context().Done()
			left <- struct{}{}
		case "/stream":
			io.WriteString(w, "data: RUN_FINISHED\n\n")
			http.NewResponseController(w).Flush()
			<-r.Context().Done()
			left <- struct{}{}
		case "/abort":
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "only this")
			http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		case "/chunked-abort":
			io.WriteString(w, "only this")
			http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		case "/headless":
			panic(http.ErrAbortHandler)
		}
	})
	g.Config.ErrorLog = nil
	for _, test := range []struct {
		path    string
		read    int // what the client reads before it goes
		cut     bool
		want    capture.Outcome
		waiting bool // the gateway must notice
	}{
		{path: "/whole", read: 10, want: capture.Outcome{ResponseBytes: 10, Expected: 10}},
		{path: "/half", read: len(big) / 2, waiting: true, want: capture.Outcome{
			ResponseBytes: int64(len(big) / 2), Expected: int64(len(big)), By: capture.FromClient,
			Error: "client left after 524288 of 1048576 bytes"}},
		{path: "/stream", read: 20, waiting: true, want: capture.Outcome{
			ResponseBytes: 20, Expected: -1, By: capture.FromClient, Error: "client left after 20 bytes"}},
		{path: "/abort", read: 9, cut: true, want: capture.Outcome{
			ResponseBytes: 9, Expected: 100, By: capture.FromGateway,
			Error: "gateway cut the answer after 9 of 100 bytes: ended in the middle"}},
		{path: "/chunked-abort", read: 9, cut: true, want: capture.Outcome{
			ResponseBytes: 9, Expected: -1, By: capture.FromGateway,
			Error: "gateway cut the answer after 9 bytes: ended in the middle"}},
	} {
		t.Run(test.path[1:], func(t *testing.T) {
			address, tape := start(t, g.URL, nil)
			conn, r := dialRaw(t, address, "GET "+test.path+" HTTP/1.1\r\nHost: p\r\n\r\n")
			res, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(res.Body, make([]byte, test.read)); err != nil {
				t.Fatal(err)
			}
			if test.cut {
				if _, err := io.ReadAll(res.Body); err == nil {
					t.Error("a cut answer looks whole")
				}
			}
			conn.Close()
			if test.waiting {
				<-left
			}
			frames := tape.wait(t, 1, kind(capture.Done))
			if diff := cmp.Diff(test.want, detail[capture.Outcome](t, filter(frames, kind(capture.Done))[0])); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}

// W05 and W12: a gateway that does not answer gives a 502 that names it and says
// what to do.
func TestGatewayDown(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	l.Close()
	plain := gateway(t, func(http.ResponseWriter, *http.Request) {})
	resets := rawGateway(t, func(_ string, conn net.Conn, _ *bufio.Reader) { conn.(*net.TCPConn).SetLinger(0) })
	garbage := rawGateway(t, func(_ string, conn net.Conn, _ *bufio.Reader) { io.WriteString(conn, "SSH-2.0-x\r\n") })
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	secure.Config.ErrorLog = nil
	defer secure.Close()
	for _, test := range []struct{ name, upstream, want string }{
		{"refused", "http://" + nobody, "nothing listens there"},
		{"reset", resets, "closed the connection without an answer"},
		{"no HTTP", garbage, "does not speak HTTP"},
		{"no TLS", "https" + strings.TrimPrefix(plain.URL, "http"), "use http://"},
		{"unknown authority", secure.URL, "--insecure"},
		{"no such name", "http://no-such-name.invalid", "cannot be resolved"},
	} {
		t.Run(test.name, func(t *testing.T) {
			address, tape := start(t, test.upstream, nil)
			u, _ := url.Parse(test.upstream)
			for _, request := range []string{"GET / HTTP/1.1\r\nHost: p\r\nConnection: close\r\n\r\n", upgradeRequest("/")} {
				_, r := dialRaw(t, address, request)
				res, err := http.ReadResponse(r, nil)
				if err != nil {
					t.Fatal(err)
				}
				body, _ := io.ReadAll(res.Body)
				if res.StatusCode != http.StatusBadGateway || !strings.Contains(string(body), test.want) || !strings.Contains(string(body), u.Host) {
					t.Errorf("got %d %q, want %q and %q in it", res.StatusCode, body, test.want, u.Host)
				}
			}
			frames := tape.wait(t, 2, kind(capture.Done))
			for _, f := range filter(frames, kind(capture.Response)) {
				if h := detail[capture.ResponseHead](t, f); !h.Made {
					t.Errorf("the tape takes the answer for the gateway's: %+v", h)
				}
			}
			if len(filter(frames, kind(capture.Open))) > 0 {
				t.Errorf("a connection was opened:\n%s", list(frames))
			}
		})
	}
}

// W05: a gateway that comes back is found without a restart.
func TestGatewayComesBack(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	where := l.Addr().String()
	l.Close()
	address, _ := start(t, "http://"+where, nil)
	if res, _ := get(t, "http://"+address); res.StatusCode != 502 {
		t.Errorf("status %d while it is down", res.StatusCode)
	}
	if l, err = net.Listen("tcp", where); err != nil {
		t.Skipf("the port was taken meanwhile: %v", err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "back") })}
	done := make(chan struct{})
	go func() { server.Serve(l); close(done) }()
	defer func() { server.Close(); <-done }()
	if res, body := get(t, "http://"+address); res.StatusCode != 200 || body != "back" {
		t.Errorf("got %d %q when it is back", res.StatusCode, body)
	}
}

// W12: a gateway with TLS that prefers HTTP/2 serves REST over it.
func TestTLSGateway(t *testing.T) {
	g := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Proto, " ", r.Host, " ", r.TLS.ServerName)
	}))
	g.EnableHTTP2 = true
	g.StartTLS()
	defer g.Close()
	host := g.Listener.Addr().String()
	pool := x509.NewCertPool()
	pool.AddCert(g.Certificate())
	for name, change := range map[string]func(*Config){
		"insecure":  func(c *Config) { c.Insecure = true },
		"authority": func(c *Config) { c.RootCAs = pool },
	} {
		t.Run(name, func(t *testing.T) {
			address, _ := start(t, g.URL, change)
			for range 2 {
				if _, body := get(t, "http://"+address+"/a?b"); body != "HTTP/2.0 "+host+" " {
					t.Errorf("REST: got %q", body)
				}
			}
			if _, body := get(t, "http://"+address+"/socket.io/?EIO=4&transport=polling"); body != "HTTP/1.1 "+host+" " {
				t.Errorf("polling: got %q", body)
			}
		})
	}
}

// W13: HTTP and WebSockets ask the same function for a forward proxy.
func TestForwardProxy(t *testing.T) {
	asked := make(chan string, 2)
	forward := rawGateway(t, func(head string, conn net.Conn, _ *bufio.Reader) {
		line, _, _ := strings.Cut(head, "\r\n")
		asked <- line
		io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n")
	})
	via, _ := url.Parse(forward)
	address, _ := start(t, "http://gateway.invalid:81", func(c *Config) {
		c.Via = func(*http.Request) (*url.URL, error) { return via, nil }
	})
	for _, request := range []string{"GET /a/../b?c HTTP/1.1\r\nHost: p\r\n\r\n", upgradeRequest("/a/../b?c")} {
		_, r := dialRaw(t, address, request)
		if res, err := http.ReadResponse(r, nil); err != nil || res.StatusCode != 204 {
			t.Fatalf("got %v, %v", res, err)
		}
		if got, want := <-asked, "GET http://gateway.invalid:81/a/../b?c HTTP/1.1"; got != want {
			t.Errorf("the forward proxy was asked %q, want %q", got, want)
		}
	}
}

// W14: an upgrade to anything but WebSocket is not tunnelled.
func TestOtherUpgradesAreNotTunnelled(t *testing.T) {
	heads := make(chan string, 1)
	upstream := rawGateway(t, func(head string, conn net.Conn, _ *bufio.Reader) {
		heads <- head
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	})
	address, tape := start(t, upstream, nil)
	_, r := dialRaw(t, address, "GET / HTTP/1.1\r\nHost: p\r\nUpgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAA\r\n\r\n")
	if res, err := http.ReadResponse(r, nil); err != nil || res.StatusCode != 200 {
		t.Fatalf("got %v, %v", res, err)
	}
	if head := <-heads; strings.Contains(head, "h2c") || strings.Contains(head, "Http2-Settings") {
		t.Errorf("the gateway was asked to upgrade: %q", head)
	}
	tape.wait(t, 1, kind(capture.Done))

	_, r = dialRaw(t, address, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	if res, err := http.ReadResponse(r, nil); err != nil || res.StatusCode != 505 {
		t.Errorf("HTTP/2 without TLS: got %v, %v", res, err)
	}
	_, r = dialRaw(t, address, "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n")
	if res, err := http.ReadResponse(r, nil); err != nil || res.StatusCode != 405 {
		t.Errorf("CONNECT: got %v, %v", res, err)
	}
}

// E13: the gateway's CORS headers pass once, and it answers preflights itself.
func TestCORSIsTheGateways(t *testing.T) {
	g := gateway(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
		w.Header().Set("Vary", "Origin")
		if r.Method == http.MethodOptions {
			w.WriteHeader(204)
		}
	})
	address, _ := start(t, g.URL, nil)
	for _, method := range []string{"GET", "OPTIONS"} {
		req, _ := http.NewRequest(method, "http://"+address+"/socket.io/?EIO=4&transport=polling", nil)
		req.Header.Set("Origin", "http://localhost:5173")
		res, err := client(t).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if got := res.Header.Values("Access-Control-Allow-Origin"); !slices.Equal(got, []string{"http://localhost:5173"}) {
			t.Errorf("%s: %q", method, got)
		}
	}
}

func TestOriginOverride(t *testing.T) {
	g := gateway(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Header.Get("Origin")) })
	address, tape := start(t, g.URL, func(c *Config) { c.Origin = "https://app.example" })
	req, _ := http.NewRequest("GET", "http://"+address, nil)
	req.Header.Set("Origin", "http://localhost")
	res, err := client(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(res.Body)
	res.Body.Close()
	if string(body) != "https://app.example" {
		t.Errorf("the gateway saw the origin %q", body)
	}
	if _, body := get(t, "http://"+address); body != "" {
		t.Errorf("an origin %q was invented", body)
	}
	if frames := tape.wait(t, 1, kind(capture.Act)); detail[capture.Deed](t, filter(frames, kind(capture.Act))[0]).Did != "adapted" {
		t.Errorf("the tape has\n%s", list(frames))
	}
}

// What surrounds the body of an exchange passes too.
func TestHTTPCorners(t *testing.T) {
	g := gateway(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/early":
			w.Header().Set("Link", "</a.css>")
			w.WriteHeader(http.StatusEarlyHints)
			io.WriteString(w, "after")
		case "/trailer":
			body, _ := io.ReadAll(r.Body)
			w.Header().Set("Trailer", "X-Sum")
			fmt.Fprintf(w, "%s %s", body, r.Trailer.Get("X-Mine"))
			w.Header().Set("X-Sum", "42")
			w.Header().Set(http.TrailerPrefix+"X-Late", "43")
		case "/head":
			w.Header().Set("Content-Length", "1234")
		case "/304":
			w.Header().Set("Etag", `"a"`)
			w.WriteHeader(http.StatusNotModified)
		case "/echo":
			io.Copy(w, r.Body)
		}
	})
	address, tape := start(t, g.URL, nil)
	c := client(t)

	t.Run("informational", func(t *testing.T) {
		var early textproto.MIMEHeader
		req, _ := http.NewRequest("GET", "http://"+address+"/early", nil)
		req = req.WithContext(httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{
			Got1xxResponse: func(_ int, h textproto.MIMEHeader) error { early = h; return nil },
		}))
		res, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if early.Get("Link") != "</a.css>" || string(body) != "after" {
			t.Errorf("got %v, then %q", early, body)
		}
	})
	t.Run("trailers", func(t *testing.T) {
		req, _ := http.NewRequest("POST", "http://"+address+"/trailer", io.MultiReader(strings.NewReader("body")))
		req.Trailer = http.Header{"X-Mine": {"mine"}}
		res, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if string(body) != "body mine" || res.Trailer.Get("X-Sum") != "42" || res.Trailer.Get("X-Late") != "43" {
			t.Errorf("got %q, %v", body, res.Trailer)
		}
		checkTrailers(t, tape.wait(t, 2, kind(capture.Done)))
	})
	t.Run("trailers that nobody announced", func(t *testing.T) {
		_, r := dialRaw(t, address, "POST /trailer HTTP/1.1\r\nHost: p\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\nX-Mine: mine\r\n\r\n")
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(res.Body); string(body) != "body mine" || res.Trailer.Get("X-Late") != "43" {
			t.Errorf("got %q, %v, %v", body, res.Trailer, err)
		}
		checkTrailers(t, tape.wait(t, 3, kind(capture.Done)))
	})
	t.Run("HEAD", func(t *testing.T) {
		res, err := c.Head("http://" + address + "/head")
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.ContentLength != 1234 {
			t.Errorf("length %d", res.ContentLength)
		}
	})
	t.Run("304", func(t *testing.T) {
		if res, body := get(t, "http://"+address+"/304"); res.StatusCode != 304 || body != "" || res.Header.Get("Etag") != `"a"` {
			t.Errorf("got %d %q", res.StatusCode, body)
		}
	})
	t.Run("empty post", func(t *testing.T) {
		res, err := c.Post("http://"+address+"/echo", "text/plain", nil)
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("got %v, %v", res, err)
		}
		res.Body.Close()
	})
	frames := tape.wait(t, 6, kind(capture.Done))
	var statuses []int
	for _, f := range filter(frames, kind(capture.Response)) {
		statuses = append(statuses, detail[capture.ResponseHead](t, f).Status)
	}
	if diff := cmp.Diff([]int{103, 200, 200, 200, 200, 304, 200}, statuses); diff != "" {
		t.Errorf("statuses on the tape (-want +got):\n%s", diff)
	}
}

// checkTrailers looks at the last exchange's end.
func checkTrailers(t *testing.T, frames []capture.Frame) {
	t.Helper()
	done := filter(frames, kind(capture.Done))
	want := capture.Outcome{
		RequestBytes: 4, ResponseBytes: 9, Expected: -1,
		RequestTrailer: http.Header{"X-Mine": {"mine"}}, Trailer: http.Header{"X-Sum": {"42"}, "X-Late": {"43"}},
	}
	if diff := cmp.Diff(want, detail[capture.Outcome](t, done[len(done)-1])); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
}

// An answer over HTTP/2 can have both a length and trailers, which are awaited.
func TestTrailersAfterALength(t *testing.T) {
	g := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "4")
		w.Header().Set("Trailer", "Grpc-Status")
		io.WriteString(w, "body")
		w.Header().Set("Grpc-Status", "0")
	}))
	g.EnableHTTP2 = true
	g.StartTLS()
	defer g.Close()
	address, tape := start(t, g.URL, func(c *Config) { c.Insecure = true })
	if _, body := get(t, "http://"+address+"/"); body != "body" {
		t.Errorf("got %q", body)
	}
	done := filter(tape.wait(t, 1, kind(capture.Done)), kind(capture.Done))[0]
	want := capture.Outcome{ResponseBytes: 4, Expected: 4, Trailer: http.Header{"Grpc-Status": {"0"}}}
	if diff := cmp.Diff(want, detail[capture.Outcome](t, done)); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
}

// A client that waits for the gateway's leave to send its body gets the
// gateway's answer, not the proxy's.
func TestExpectContinue(t *testing.T) {
	for _, test := range []struct{ name, answer, want string }{
		{"agreed", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 100 Continue\r\n"},
		{"refused", "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 413 Request Entity Too Large\r\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			upstream := rawGateway(t, func(head string, conn net.Conn, r *bufio.Reader) {
				io.WriteString(conn, test.answer)
				if test.name == "agreed" {
					io.ReadFull(r, make([]byte, 4))
					io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n")
				}
			})
			address, _ := start(t, upstream, nil)
			conn, r := dialRaw(t, address, "POST / HTTP/1.1\r\nHost: p\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
			line, err := r.ReadString('\n')
			if err != nil || line != test.want {
				t.Fatalf("got %q, %v; want %q", line, err, test.want)
			}
			if test.name == "agreed" {
				r.ReadString('\n')
				io.WriteString(conn, "body")
				if res, err := http.ReadResponse(r, nil); err != nil || res.StatusCode != 204 {
					t.Errorf("got %v, %v", res, err)
				}
			}
		})
	}
}

// An answer may begin while the request's body is still coming.
func TestFullDuplex(t *testing.T) {
	g := gateway(t, func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).EnableFullDuplex()
		http.NewResponseController(w).Flush()
		io.Copy(flushing{w}, r.Body)
	})
	address, _ := start(t, g.URL, nil)
	body, feed := io.Pipe()
	res, err := client(t).Post("http://"+address, "text/plain", body)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	for i := range 3 {
		fmt.Fprintf(feed, "%d", i)
		got := make([]byte, 1)
		if _, err := io.ReadFull(res.Body, got); err != nil || string(got) != fmt.Sprint(i) {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	feed.Close()
}

type flushing struct{ http.ResponseWriter }

func (f flushing) Write(p []byte) (int, error) {
	n, err := f.ResponseWriter.Write(p)
	http.NewResponseController(f.ResponseWriter).Flush()
	return n, err
}

// What is longer than the limit passes whole, and the tape says how long it was.
func TestBodyLimit(t *testing.T) {
	long := strings.Repeat("abcdefgh", 1000)
	g := gateway(t, func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
	address, tape := start(t, g.URL, func(c *Config) { c.BodyLimit = 100 })
	res, err := client(t).Post("http://"+address, "text/plain", strings.NewReader(long))
	if err != nil {
		t.Fatal(err)
	}
	got, _ := io.ReadAll(res.Body)
	res.Body.Close()
	if string(got) != long {
		t.Errorf("%d bytes came back, of %d", len(got), len(long))
	}
	frames := tape.wait(t, 1, kind(capture.Done))
	for _, dir := range []capture.Direction{capture.FromClient, capture.FromGateway} {
		kept, cut := 0, false
		for _, f := range filter(frames, sent(dir, capture.Body)) {
			kept += len(f.Data)
			cut = cut || f.Flags.Has(capture.Cut)
		}
		if kept != 100 || !cut {
			t.Errorf("from the %s: %d bytes kept, cut is %v", dir, kept, cut)
		}
	}
	if o := detail[capture.Outcome](t, filter(frames, kind(capture.Done))[0]); o.RequestBytes != 8000 || o.ResponseBytes != 8000 {
		t.Errorf("outcome %+v", o)
	}
}

// R05: a gateway on localhost is found on either family.
func TestLocalhostGateway(t *testing.T) {
	for _, literal := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", literal)
		if err != nil {
			t.Logf("no %s here: %v", literal, err)
			continue
		}
		g := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "here") }))
		g.Listener.Close()
		g.Listener = l
		g.Start()
		address, _ := start(t, fmt.Sprintf("http://localhost:%d", l.Addr().(*net.TCPAddr).Port), nil)
		if _, body := get(t, "http://"+address); body != "here" {
			t.Errorf("only on %s: got %q", literal, body)
		}
		g.Close()
	}
}
