package proxy

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"tapedeck/protocol/capture"
)

// childUpstream is set for the process that is nothing but a proxy, so that what
// it needs can be told from what the test around it needs.
const childUpstream = "TAPEDECK_TEST_UPSTREAM"

// census is what the proxy's process says of itself, and what passed.
type census struct {
	Memory      uint64 // the most that was ever taken from the system
	Descriptors int
	Goroutines  int
	Sockets     int
	Requests    int
	Opens, Ends int
}

// counting is a Sink that keeps numbers only.
type counting struct {
	mu     sync.Mutex
	frames int
	kinds  [capture.Act + 1]int
}

func newCounting() *counting { return new(counting) }

func (c *counting) Frame(f *capture.Frame) {
	c.mu.Lock()
	c.frames++
	c.kinds[f.Kind]++
	c.mu.Unlock()
}

// serveAsChild runs a proxy until stdin ends. It says its address, and after
// each line of stdin, which is the census to wait for, how things are.
func serveAsChild(upstream string) error {
	u, err := url.Parse(upstream)
	if err != nil {
		return err
	}
	sink := newCounting()
	cfg := Config{Upstream: u, Sink: sink}
	if u.User != nil {
		cfg.Gate, u.User = strict, nil
	}
	p, err := New(cfg)
	if err != nil {
		return err
	}
	ls, _, err := Listen(context.Background(), "127.0.0.1:0")
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	served := make(chan error, 1)
	go func() { served <- p.Serve(ctx, ls...) }()
	fmt.Println(ls[0].Addr())
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var goal census
		if err := json.Unmarshal(in.Bytes(), &goal); err != nil {
			return err
		}
		json.NewEncoder(os.Stdout).Encode(takeCensus(p, sink, goal))
	}
	stop()
	p.Shutdown(context.Background())
	return <-served
}

// takeCensus waits until there is no more of what goal names, unless that takes
// too long.
func takeCensus(p *Proxy, sink *counting, goal census) (c census) {
	for late := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		open, _ := os.ReadDir("/dev/fd")
		p.mu.Lock()
		c = census{Memory: m.Sys, Descriptors: len(open), Goroutines: runtime.NumGoroutine(), Sockets: len(p.sockets)}
		p.mu.Unlock()
		sink.mu.Lock()
		c.Requests, c.Opens, c.Ends = sink.kinds[capture.Request], sink.kinds[capture.Open], sink.kinds[capture.End]
		sink.mu.Unlock()
		reached := c.Descriptors <= goal.Descriptors && c.Goroutines <= goal.Goroutines && c.Ends >= goal.Ends
		if reached || goal == (census{}) || time.Now().After(late) {
			return c
		}
	}
}

// child starts a proxy in a process of its own, which ends with the test, and
// returns its address and how to ask it.
func child(t *testing.T, upstream string) (address string, ask func(goal census) census) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childUpstream+"="+upstream)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReader(stdout)
	t.Cleanup(func() {
		stdin.Close()
		if rest, _ := io.ReadAll(out); len(rest) > 0 {
			t.Errorf("the proxy said %q", rest)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the proxy: %v", err)
		}
	})
	line, err := out.ReadString('\n')
	if err != nil {
		t.Fatalf("the proxy did not say its address: %v", err)
	}
	return strings.TrimSpace(line), func(goal census) (c census) {
		t.Helper()
		if err := json.NewEncoder(stdin).Encode(goal); err != nil {
			t.Fatal(err)
		}
		line, err := out.ReadBytes('\n')
		if err == nil {
			err = json.Unmarshal(line, &c)
		}
		if err != nil {
			t.Fatalf("the proxy's census %q: %v", line, err)
		}
		return c
	}
}

// W11: a client that never reads stops its own gateway and nobody else, and what
// the gateway has is not gathered in the proxy.
func TestClientThatNeverReads(t *testing.T) {
	const chunk, offered, most = 64 << 10, 192 << 20, 64 << 20
	messages := fromGateway(capture.Binary, strings.Repeat("x", chunk))
	for _, test := range []struct {
		name   string
		gated  bool
		before string // what the gateway says first
		chunk  []byte
	}{
		{"messages", false, "", messages},
		{"messages at a gate", true, "", messages},
		{"one message", false, "\x82\x7f\x00\x00\x00\x00\x0c\x00\x00\x00", messages[len(messages)-chunk:]},
		{"an answer", false, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", offered), messages},
		{"an answer at a gate", true, "HTTP/1.1 200 OK\r\n\r\n", messages},
	} {
		t.Run(test.name, func(t *testing.T) {
			stuck := make(chan int64, 1)
			upstream := rawGateway(t, func(head string, conn net.Conn, r *bufio.Reader) {
				if strings.Contains(head, "websocket") {
					io.WriteString(conn, accept(head))
				}
				if !strings.Contains(head, "/deaf") {
					io.Copy(conn, r)
					return
				}
				io.WriteString(conn, test.before)
				passed := int64(0)
				for passed < offered {
					// Too short a time proves less, and fails nothing.
					conn.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
					n, err := conn.Write(test.chunk)
					passed += int64(n)
					if err != nil {
						break
					}
				}
				stuck <- passed
				io.Copy(io.Discard, r)
			})
			if test.gated {
				upstream = strings.Replace(upstream, "://", "://gated@", 1)
			}
			address, ask := child(t, upstream)
			conn, r, _ := dialSocket(t, address, "/other")
			before := ask(census{})
			var deaf net.Conn
			if strings.HasPrefix(test.before, "HTTP") {
				deaf, _ = dialRaw(t, address, "GET /deaf HTTP/1.1\r\nHost: p\r\n\r\n")
			} else {
				deaf, _ = dialRaw(t, address, upgradeRequest("/deaf"))
			}
			if passed := <-stuck; passed >= offered {
				t.Errorf("all of %d bytes went where nobody reads", passed)
			}
			for range 10 {
				ping := fromClient(capture.Text, "a")
				conn.Write(ping)
				expect(t, r, ping)
			}
			if grown := ask(census{}).Memory - before.Memory; grown >= most {
				t.Errorf("the proxy grew by %d MiB", grown>>20)
			}
			deaf.Close()
			conn.Close()
		})
	}
}

// mortal is a gateway that can be killed, and started again at its address.
type mortal struct {
	mu    sync.Mutex
	conns []net.Conn
	l     net.Listener
	all   sync.WaitGroup
}

func (g *mortal) start(t *testing.T, address string) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	g.l = l
	g.all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			g.mu.Lock()
			g.conns = append(g.conns, conn)
			g.mu.Unlock()
			g.all.Go(func() {
				defer conn.Close()
				r := bufio.NewReader(conn)
				head, _ := readHead(r)
				io.WriteString(conn, accept(head))
				io.Copy(io.Discard, r)
			})
		}
	})
}

func (g *mortal) kill() {
	g.l.Close()
	g.mu.Lock()
	for _, conn := range g.conns {
		conn.(*net.TCPConn).SetLinger(0)
		conn.Close()
	}
	g.conns = nil
	g.mu.Unlock()
	g.all.Wait()
}

// E12: hundreds of clients whose gateway is restarted again and again come back
// and are counted, and nothing is left of them.
func TestReconnectStorm(t *testing.T) {
	const clients, restarts = 500, 3
	g := new(mortal)
	g.start(t, "127.0.0.1:0")
	t.Cleanup(g.kill)
	at := g.l.Addr().String()
	address, ask := child(t, "http://"+at)
	before := ask(census{})

	conns := make([]net.Conn, clients)
	everyone := func(do func(i int) error) {
		t.Helper()
		var all sync.WaitGroup
		failed := make(chan error, clients)
		for i := range clients {
			all.Go(func() {
				if err := do(i); err != nil {
					failed <- err
				}
			})
		}
		all.Wait()
		select {
		case err := <-failed:
			t.Fatalf("%d clients failed, one of them so: %v", len(failed)+1, err)
		default:
		}
	}
	t.Cleanup(func() {
		for _, conn := range conns {
			if conn != nil {
				conn.Close()
			}
		}
	})
	connect := func(want int) func(i int) error {
		return func(i int) (err error) {
			if conns[i], err = net.Dial("tcp", address); err != nil {
				return err
			}
			conns[i].SetDeadline(time.Now().Add(patience))
			io.WriteString(conns[i], upgradeRequest("/"))
			res, err := http.ReadResponse(bufio.NewReader(conns[i]), nil)
			if err == nil && res.StatusCode != want {
				err = fmt.Errorf("got %d, want %d", res.StatusCode, want)
			}
			return err
		}
	}
	for range restarts {
		everyone(connect(http.StatusSwitchingProtocols))
		if c := ask(census{}); c.Sockets != clients || c.Descriptors > before.Descriptors+2*clients+64 {
			t.Errorf("at its height the proxy had %+v", c)
		}
		g.kill()
		everyone(func(i int) error {
			n, err := conns[i].Read(make([]byte, 1))
			conns[i].Close()
			if n > 0 || !errors.Is(err, io.EOF) {
				return fmt.Errorf("when the gateway died: %d bytes, %v", n, err)
			}
			return connect(http.StatusBadGateway)(i)
		})
		everyone(func(i int) error { return conns[i].Close() })
		g.start(t, at)
	}
	everyone(connect(http.StatusSwitchingProtocols))
	everyone(func(i int) error { return conns[i].Close() })

	const sockets = (restarts + 1) * clients
	after := ask(census{Descriptors: before.Descriptors, Goroutines: before.Goroutines + 10, Ends: sockets})
	if after.Descriptors > before.Descriptors || after.Goroutines > before.Goroutines+10 || after.Sockets > 0 {
		t.Errorf("before the storm %+v, and after it %+v", before, after)
	}
	if after.Requests != sockets+restarts*clients || after.Opens != sockets || after.Ends != sockets {
		t.Errorf("of %d WebSockets and %d refusals, the tape has %+v", sockets, restarts*clients, after)
	}
}
