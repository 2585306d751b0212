package proxy

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tapedeck/protocol/capture"
)

func TestMain(m *testing.M) {
	if upstream := os.Getenv(childUpstream); upstream != "" {
		if err := serveAsChild(upstream); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// patience is how long a test waits for what must come; nothing is measured by
// it.
const patience = 20 * time.Second

// memory is a Sink that keeps all it is given.
type memory struct {
	mu     sync.Mutex
	frames []capture.Frame
	more   chan struct{} // closed and replaced at each frame
}

func newMemory() *memory { return &memory{more: make(chan struct{})} }

func (m *memory) Frame(f *capture.Frame) {
	kept := *f
	kept.Data = bytes.Clone(f.Data)
	m.mu.Lock()
	m.frames = append(m.frames, kept)
	close(m.more)
	m.more = make(chan struct{})
	m.mu.Unlock()
}

func (m *memory) all() ([]capture.Frame, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.frames[:len(m.frames):len(m.frames)], m.more
}

// wait returns the frames once they hold n of those that match.
func (m *memory) wait(t *testing.T, n int, match func(*capture.Frame) bool) []capture.Frame {
	t.Helper()
	late := time.After(patience)
	for {
		frames, more := m.all()
		if len(filter(frames, match)) >= n {
			return frames
		}
		select {
		case <-more:
		case <-late:
			t.Fatalf("waited in vain for %d frames, have %d:\n%s", n, len(filter(frames, match)), list(frames))
		}
	}
}

func kind(k capture.Kind) func(*capture.Frame) bool {
	return func(f *capture.Frame) bool { return f.Kind == k }
}

func sent(dir capture.Direction, kinds ...capture.Kind) func(*capture.Frame) bool {
	return func(f *capture.Frame) bool {
		for _, k := range kinds {
			if f.Kind == k && f.Direction == dir {
				return true
			}
		}
		return false
	}
}

func filter(frames []capture.Frame, match func(*capture.Frame) bool) (found []capture.Frame) {
	for i := range frames {
		if match(&frames[i]) {
			found = append(found, frames[i])
		}
	}
	return found
}

// list writes frames as a person reads them, one a line, without what differs
// from run to run.
func list(frames []capture.Frame) string {
	var b strings.Builder
	for i := range frames {
		f := &frames[i]
		data := string(f.Data)
		switch f.Kind {
		case capture.Open, capture.Request, capture.Response:
			data = ""
		}
		if len(data) > 200 {
			data = fmt.Sprintf("%.60s… (%d bytes)", data, len(data))
		}
		fmt.Fprintf(&b, "%d c%d x%d %s %s %v %q\n", f.Position, f.Connection, f.Exchange, f.Direction, f.Kind, f.Flags.Names(), data)
	}
	return b.String()
}

func detail[T capture.Opening | capture.Ending | capture.RequestHead | capture.ResponseHead | capture.Outcome | capture.Loss | capture.Deed](t *testing.T, f capture.Frame) T {
	t.Helper()
	d, err := capture.Detail[T](&f)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// checkTape holds what is true of every tape: positions are dense, times do not
// run backwards, and whatever a frame names came before it.
func checkTape(t *testing.T, frames []capture.Frame) {
	t.Helper()
	var last capture.Frame
	for _, f := range frames {
		if f.Position != last.Position+1 {
			t.Errorf("position %d follows %d", f.Position, last.Position)
		}
		if f.At < last.At {
			t.Errorf("frame %d is at %v, before the one before it, %v", f.Position, f.At, last.At)
		}
		if f.Connection > f.Position || f.Exchange > f.Position {
			t.Errorf("frame %d names what comes after it: connection %d, exchange %d", f.Position, f.Connection, f.Exchange)
		}
		if int64(len(f.Data)) != f.Size && !f.Flags.Has(capture.Cut) {
			t.Errorf("frame %d has %d bytes, and its size is %d", f.Position, len(f.Data), f.Size)
		}
		last = f
	}
}

// start runs a proxy in front of upstream until the test ends, and returns its
// address, host:port.
func start(t *testing.T, upstream string, change func(*Config)) (address string, tape *memory) {
	t.Helper()
	p, tape := build(t, upstream, change)
	ls, _, err := Listen(context.Background(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	run(t, p, ls)
	return ls[0].Addr().String(), tape
}

func build(t *testing.T, upstream string, change func(*Config)) (*Proxy, *memory) {
	t.Helper()
	tape := newMemory()
	cfg := Config{Upstream: parse(t, upstream), Sink: tape}
	if change != nil {
		change(&cfg)
	}
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p, tape
}

// run serves p and, when the test ends, stops it and checks its tape.
func run(t *testing.T, p *Proxy, ls []net.Listener) (stop context.CancelFunc) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Serve(ctx, ls...) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
		p.Shutdown(context.Background())
		if tape, ok := p.cfg.Sink.(*memory); ok {
			frames, _ := tape.all()
			checkTape(t, frames)
		}
	})
	return stop
}

// gateway runs an HTTP server until the test ends.
func gateway(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// rawGateway accepts connections, reads a request's head from each, and hands
// both to serve, which may do as it likes.
func rawGateway(t *testing.T, serve func(head string, conn net.Conn, r *bufio.Reader)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer conn.Close()
				r := bufio.NewReader(conn)
				if head, err := readHead(r); err == nil {
					serve(head, conn, r)
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		all.Wait()
	})
	return "http://" + l.Addr().String()
}

func readHead(r *bufio.Reader) (string, error) {
	var head strings.Builder
	for {
		line, err := r.ReadString('\n')
		head.WriteString(line)
		if err != nil || line == "\r\n" {
			return head.String(), err
		}
	}
}

// dialRaw connects to address and writes request.
func dialRaw(t *testing.T, address, request string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	return conn, bufio.NewReader(conn)
}

// client returns an HTTP client whose connections do not outlive the test.
func client(t *testing.T) *http.Client {
	t.Helper()
	tr := &http.Transport{DisableCompression: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, Timeout: patience}
}

func get(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	res, err := client(t).Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(body)
}

func parse(t *testing.T, address string) *url.URL {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
