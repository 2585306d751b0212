package proxy

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"

	"tapedeck/protocol/capture"
	"tapedeck/protocol/wire"
)

func upgradeRequest(target string, fields ...string) string {
	s := "GET " + target + " HTTP/1.1\r\nHost: p\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
	for _, f := range fields {
		s += f + "\r\n"
	}
	return s + "\r\n"
}

// accept is the 101 that answers a request's head.
func accept(head string, fields ...string) string {
	_, key, _ := strings.Cut(head, "Sec-Websocket-Key: ")
	key, _, _ = strings.Cut(key, "\r\n")
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	s := "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " +
		base64.StdEncoding.EncodeToString(sum[:]) + "\r\n"
	for _, f := range fields {
		s += f + "\r\n"
	}
	return s + "\r\n"
}

var testKey = [4]byte{1, 2, 3, 4}

func fromClient(kind capture.Kind, payload string) []byte {
	return wire.AppendClientFrame(nil, kind, []byte(payload), testKey)
}

func fromGateway(kind capture.Kind, payload string) []byte {
	return wire.AppendServerFrame(nil, kind, []byte(payload))
}

// dialSocket opens a WebSocket by hand and reads the 101.
func dialSocket(t *testing.T, address, target string, fields ...string) (net.Conn, *bufio.Reader, *http.Response) {
	t.Helper()
	conn, r := dialRaw(t, address, upgradeRequest(target, fields...))
	res, err := http.ReadResponse(r, nil)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("upgrade: %v, %v", res, err)
	}
	return conn, r, res
}

func expect(t *testing.T, r io.Reader, want []byte) {
	t.Helper()
	got := make([]byte, len(want))
	if n, err := io.ReadFull(r, got); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("got %q, %v; want %q", got[:n], err, want)
	}
}

// dialGorilla opens a WebSocket with gorilla's client.
func dialGorilla(t *testing.T, url string, header http.Header) *websocket.Conn {
	t.Helper()
	conn, res, err := websocket.DefaultDialer.Dial(url, header)
	if err != nil {
		t.Fatalf("dial %s: %v, %v", url, err, res)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetReadDeadline(time.Now().Add(patience))
	return conn
}

// socketGateway upgrades every request with gorilla's server.
func socketGateway(t *testing.T, up websocket.Upgrader, serve func(*websocket.Conn, *http.Request)) *httptest.Server {
	var all sync.WaitGroup
	up.CheckOrigin = func(*http.Request) bool { return true }
	t.Cleanup(all.Wait) // when the server is closed, which does not wait for sockets
	return gateway(t, func(w http.ResponseWriter, r *http.Request) {
		all.Add(1)
		defer all.Done()
		conn, err := up.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer conn.Close()
		serve(conn, r)
	})
}

func echo(conn *websocket.Conn, _ *http.Request) {
	for {
		kind, message, err := conn.ReadMessage()
		if err != nil || conn.WriteMessage(kind, message) != nil {
			return
		}
	}
}

// W01: nothing is lost that is glued to the 101, or to the request.
func TestBytesGluedToHandshake(t *testing.T) {
	hello, early := fromGateway(capture.Text, `0{"sid":"a"}`), fromClient(capture.Text, "40")
	got := make(chan error, 100)
	upstream := rawGateway(t, func(head string, conn net.Conn, r *bufio.Reader) {
		conn.Write(append([]byte(accept(head)), hello...))
		b := make([]byte, len(early))
		_, err := io.ReadFull(r, b)
		if err == nil && !bytes.Equal(b, early) {
			err = fmt.Errorf("got %q", b)
		}
		got <- err
	})
	address, tape := start(t, upstream, nil)
	const rounds = 100
	for range rounds {
		conn, r := dialRaw(t, address, upgradeRequest("/socket.io/?EIO=4&transport=websocket")+string(early))
		if res, err := http.ReadResponse(r, nil); err != nil || res.StatusCode != 101 {
			t.Fatalf("%v, %v", res, err)
		}
		expect(t, r, hello)
		if err := <-got; err != nil {
			t.Fatal(err)
		}
		conn.Close()
	}
	frames := tape.wait(t, rounds, kind(capture.End))
	opened := map[capture.Position][]string{}
	for _, f := range filter(frames, kind(capture.Text)) {
		opened[f.Connection] = append(opened[f.Connection], f.Direction.String()+" "+string(f.Data))
	}
	if len(opened) != rounds {
		t.Errorf("%d connections have messages, want %d", len(opened), rounds)
	}
	for c, messages := range opened {
		if len(messages) != 2 {
			t.Errorf("connection %d: %q", c, messages)
		}
	}
}

// W02: messages of any length pass, whatever is kept of them.
func TestLongMessages(t *testing.T) {
	g := socketGateway(t, websocket.Upgrader{}, echo)
	address, tape := start(t, g.URL, func(c *Config) { c.BodyLimit = 1 << 20 })
	conn := dialGorilla(t, "ws://"+address+"/", nil)
	for _, size := range []int{0, 1, 125, 126, 32768, 32769, 65535, 65536, 1 << 20, 16 << 20} {
		message := bytes.Repeat([]byte("abcdefg"), size/7+1)[:size]
		if err := conn.WriteMessage(websocket.BinaryMessage, message); err != nil {
			t.Fatal(err)
		}
		if _, got, err := conn.ReadMessage(); err != nil || !bytes.Equal(got, message) {
			t.Fatalf("%d bytes: %d came back, %v", size, len(got), err)
		}
		frames := filter(first(tape.all()), kind(capture.Binary))
		for _, f := range frames[len(frames)-2:] {
			if f.Size != int64(size) || len(f.Data) != min(size, 1<<20) || f.Flags.Has(capture.Cut) != (size > 1<<20) {
				t.Errorf("%d bytes from the %s: size %d, %d kept, %v", size, f.Direction, f.Size, len(f.Data), f.Flags.Names())
			}
		}
	}
}

// W03: headers and subprotocols pass on the WebSocket's leg.
func TestUpgradeHeaders(t *testing.T) {
	seen := make(chan http.Header, 1)
	g := socketGateway(t, websocket.Upgrader{Subprotocols: []string{"b.v2"}}, func(_ *websocket.Conn, r *http.Request) { seen <- r.Header })
	address, tape := start(t, g.URL, nil)
	conn := dialGorilla(t, "ws://"+address+"/", http.Header{
		"Origin": {"http://localhost:5173"}, "Cookie": {"a=1; b=2"}, "Authorization": {"Bearer x"}, "Sec-Websocket-Protocol": {"a.v1,b.v2"},
	})
	h := <-seen
	if conn.Subprotocol() != "b.v2" {
		t.Errorf("subprotocol %q", conn.Subprotocol())
	}
	if h.Get("Origin") != "http://localhost:5173" || h.Get("Cookie") != "a=1; b=2" || h.Get("Authorization") != "Bearer x" {
		t.Errorf("the gateway saw %v", h)
	}
	open := filter(tape.wait(t, 1, kind(capture.Open)), kind(capture.Open))[0]
	if o := detail[capture.Opening](t, open); o.Protocol != "b.v2" || o.Transport != capture.WebSocket || o.Target != "/" {
		t.Errorf("opening %+v", o)
	}
}

// W04: whoever closes, the other side sees the code and the reason, and the tape
// says who it was.
func TestCloseCodes(t *testing.T) {
	for _, test := range []struct {
		name    string
		by      capture.Direction
		payload []byte
		want    capture.Ending
	}{
		{"gateway", capture.FromGateway, wire.AppendClose(nil, 4001, "agent évicted"), capture.Ending{By: capture.FromGateway, Code: 4001, Reason: "agent évicted"}},
		{"client", capture.FromClient, wire.AppendClose(nil, 4002, "bye"), capture.Ending{By: capture.FromClient, Code: 4002, Reason: "bye"}},
		{"too large", capture.FromGateway, wire.AppendClose(nil, 1009, ""), capture.Ending{By: capture.FromGateway, Code: 1009}}, // E04
		{"no code", capture.FromGateway, nil, capture.Ending{By: capture.FromGateway, Code: 1005}},
	} {
		t.Run(test.name, func(t *testing.T) {
			down := wire.AppendServerFrame(nil, capture.Close, test.payload)
			up := wire.AppendClientFrame(nil, capture.Close, test.payload, testKey)
			upstream := rawGateway(t, func(head string, conn net.Conn, r *bufio.Reader) {
				io.WriteString(conn, accept(head))
				if test.by == capture.FromGateway {
					conn.Write(down)
				}
				if got, _ := io.ReadAll(io.LimitReader(r, int64(len(up)))); !bytes.Equal(got, up) {
					t.Errorf("the gateway got %q, want %q", got, up)
				}
				if test.by == capture.FromClient {
					conn.Write(down)
				}
			})
			address, tape := start(t, upstream, nil)
			conn, r, _ := dialSocket(t, address, "/")
			if test.by == capture.FromClient {
				conn.Write(up)
			}
			expect(t, r, down)
			if test.by == capture.FromGateway {
				conn.Write(up)
			}
			if rest, err := io.ReadAll(r); err != nil || len(rest) > 0 {
				t.Errorf("after the close: %q, %v", rest, err)
			}
			end := filter(tape.wait(t, 1, kind(capture.End)), kind(capture.End))[0]
			if diff := cmp.Diff(test.want, detail[capture.Ending](t, end)); diff != "" {
				t.Errorf("ending (-want +got):\n%s", diff)
			}
		})
	}
}

// W05: a side that is gone takes its socket with it and no other, and no Close
// frame is invented for it.
func TestDrops(t *testing.T) {
	for _, test := range []struct {
		name  string
		by    capture.Direction
		reset bool
		fault string
	}{
		{"gateway ends", capture.FromGateway, false, "ended without a word"},
		{"gateway resets", capture.FromGateway, true, "connection reset"},
		{"client ends", capture.FromClient, false, "ended without a word"},
		{"client resets", capture.FromClient, true, "connection reset"},
	} {
		t.Run(test.name, func(t *testing.T) {
			last := fromGateway(capture.Text, "last words")
			drop, gone := make(chan struct{}), make(chan struct{})
			var once sync.Once
			g := rawGateway(t, func(head string, conn net.Conn, r *bufio.Reader) {
				io.WriteString(conn, accept(head))
				if !strings.Contains(head, "/victim") {
					io.Copy(conn, r)
					return
				}
				if conn.Write(last); test.by == capture.FromGateway {
					<-drop
					if test.reset {
						conn.(*net.TCPConn).SetLinger(0)
					}
					return
				}
				io.Copy(io.Discard, r)
				once.Do(func() { close(gone) })
			})
			address, tape := start(t, g, nil)
			others := [2]*bufio.Reader{}
			conns := [2]net.Conn{}
			for i := range others {
				conns[i], others[i], _ = dialSocket(t, address, "/other")
			}
			victim, r, _ := dialSocket(t, address, "/victim")
			expect(t, r, last)
			if test.by == capture.FromGateway {
				close(drop)
				if rest, _ := io.ReadAll(r); len(rest) > 0 {
					t.Errorf("the client got %q after the end", rest)
				}
			} else {
				if test.reset {
					victim.(*net.TCPConn).SetLinger(0)
				}
				victim.Close()
				<-gone
			}
			victim.Close()
			end := filter(tape.wait(t, 1, kind(capture.End)), kind(capture.End))[0]
			want := capture.Ending{By: test.by, Code: 1006, Error: test.fault}
			if diff := cmp.Diff(want, detail[capture.Ending](t, end)); diff != "" {
				t.Errorf("ending (-want +got):\n%s", diff)
			}
			for i := range others {
				ping := fromClient(capture.Text, "still here")
				conns[i].Write(ping)
				expect(t, others[i], ping)
				conns[i].Close()
			}
		})
	}
}

// A side that has said all may still listen: what the other sends then arrives.
func TestHalfClose(t *testing.T) {
	long := fromGateway(capture.Binary, strings.Repeat("z", 1<<20))
	upstream := rawGateway(t, func(head string, conn net.Conn, r *bufio.Reader) {
		io.WriteString(conn, accept(head))
		io.Copy(io.Discard, r) // until the client has ended
		conn.Write(long)
	})
	address, _ := start(t, upstream, nil)
	conn, r, _ := dialSocket(t, address, "/")
	conn.(*net.TCPConn).CloseWrite()
	expect(t, r, long)
}

// W06, W07, W09 and trap 20: frames pass as they were cut, and are one message
// on the tape; empty, ill-formed and foreign bytes pass too.
func TestBytesPassAsTheyAre(t *testing.T) {
	face := "😀"
	fragments := []byte{0x01, 6}
	fragments = append(fragments, `42["a"`...)
	fragments = append(fragments, 0x89, 1, 'x')
	fragments = append(fragments, 0x00, 4)
	fragments = append(append(fragments, `,"`...), face[:2]...)
	fragments = append(fragments, 0x80, 4)
	fragments = append(append(fragments, face[2:]...), `"]`...)
	bad := fromGateway(capture.Text, "42[\"\xff\"]")
	for _, test := range []struct {
		name string
		sent []byte
		want string
	}{
		{"fragments", fragments, `ping [] "x"; text [fragmented] "42[\"a\",\"😀\"]"; `},
		{"empty", append(fromGateway(capture.Text, ""), fromGateway(capture.Binary, "")...), `text [] ""; binary [] ""; `},
		{"no UTF-8", append(bad, fromGateway(capture.Text, "42[1]")...), `text [] "42[\"\xff\"]"; text [] "42[1]"; `},
		{"raw HTTP", []byte("HTTP/1.1 400 Bad Request\r\n\r\nno"), `stream [] "HTTP/1.1 400 Bad Request\r\n\r\nno"; `},
		{"half a message", []byte{0x81, 10, 'h', 'a', 'l', 'f'}, `text [partial] "half"; `},
	} {
		t.Run(test.name, func(t *testing.T) {
			upstream := rawGateway(t, func(head string, conn net.Conn, r *bufio.Reader) {
				conn.Write(append([]byte(accept(head)), test.sent...))
			})
			address, tape := start(t, upstream, nil)
			conn, r, _ := dialSocket(t, address, "/socket.io/?EIO=4&transport=websocket")
			if got, _ := io.ReadAll(r); !bytes.Equal(got, test.sent) {
				t.Errorf("got  %q\nwant %q", got, test.sent)
			}
			conn.Close()
			got := ""
			for _, f := range tape.wait(t, 1, kind(capture.End)) {
				if f.Direction == capture.FromGateway && f.Kind < capture.Request && f.Kind > capture.End {
					got += fmt.Sprintf("%s %v %q; ", f.Kind, f.Flags.Names(), f.Data)
				}
			}
			if got != test.want {
				t.Errorf("on the tape: %s\nwant:        %s", got, test.want)
			}
		})
	}
}

// W08: with compression kept off both legs, messages arrive; with it kept on,
// they do too, and are plain on the tape.
func TestCompression(t *testing.T) {
	for _, keep := range []bool{false, true} {
		for _, offer := range []string{"", "permessage-deflate", "permessage-deflate; client_no_context_takeover; server_no_context_takeover"} {
			t.Run(fmt.Sprintf("keep %v offer %s", keep, offer), func(t *testing.T) {
				g := socketGateway(t, websocket.Upgrader{EnableCompression: true}, echo)
				address, tape := start(t, g.URL, func(c *Config) { c.KeepCompression = keep })
				d := websocket.Dialer{EnableCompression: strings.Contains(offer, "no_context")}
				var header http.Header
				if !d.EnableCompression && offer != "" {
					header = http.Header{"Sec-Websocket-Extensions": {offer}}
				}
				if keep && header != nil {
					t.Skip("gorilla's client cannot speak what this offers")
				}
				if header != nil {
					// By hand, since gorilla refuses a header of its own.
					_, _, res := dialSocket(t, address, "/", "Sec-WebSocket-Extensions: "+offer)
					if e := res.Header.Get("Sec-Websocket-Extensions"); e != "" {
						t.Errorf("extensions %q were negotiated", e)
					}
					return
				}
				conn, res, err := d.Dial("ws://"+address+"/", nil)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				if negotiated := res.Header.Get("Sec-Websocket-Extensions") != ""; negotiated != (keep && offer != "") {
					t.Errorf("compression negotiated: %v", negotiated)
				}
				for i := range 200 {
					message := fmt.Sprintf(`42["run:event",{"sequence":%d,"text":"the same words again and again"}]`, i)
					conn.WriteMessage(websocket.TextMessage, []byte(message))
					if _, got, err := conn.ReadMessage(); err != nil || string(got) != message {
						t.Fatalf("message %d: %q, %v", i, got, err)
					}
				}
				for i, f := range filter(tape.wait(t, 400, kind(capture.Text)), kind(capture.Text)) {
					if want := fmt.Sprintf(`42["run:event",{"sequence":%d,"text":"the same words again and again"}]`, i/2); string(f.Data) != want {
						t.Errorf("on the tape: %q, want %q", f.Data, want)
					}
				}
			})
		}
	}
}

// W10: both ways at once, with pings between, in order and whole.
func TestManyMessagesBothWays(t *testing.T) {
	const n = 5000
	g := socketGateway(t, websocket.Upgrader{}, func(conn *websocket.Conn, _ *http.Request) {
		var all sync.WaitGroup
		all.Go(func() {
			for i := range n {
				if i%100 == 0 {
					conn.WriteControl(websocket.PingMessage, []byte("p"), time.Now().Add(patience))
				}
				conn.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, "down %d", i))
			}
		})
		for i := range n {
			if _, got, err := conn.ReadMessage(); err != nil || string(got) != fmt.Sprintf("up %d", i) {
				t.Errorf("message %d: %q, %v", i, got, err)
				break
			}
		}
		all.Wait()
		conn.ReadMessage() // the client's close
	})
	address, tape := start(t, g.URL, nil)
	conn := dialGorilla(t, "ws://"+address+"/", nil)
	var all sync.WaitGroup
	all.Go(func() {
		for i := range n {
			conn.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, "up %d", i))
		}
	})
	for i := range n {
		if _, got, err := conn.ReadMessage(); err != nil || string(got) != fmt.Sprintf("down %d", i) {
			t.Fatalf("message %d: %q, %v", i, got, err)
		}
	}
	all.Wait()
	conn.Close()
	frames := tape.wait(t, 1, kind(capture.End))
	for dir, word := range map[capture.Direction]string{capture.FromClient: "up", capture.FromGateway: "down"} {
		messages := filter(frames, sent(dir, capture.Text))
		if len(messages) != n {
			t.Errorf("%d messages from the %s on the tape, want %d", len(messages), dir, n)
		}
		for i, f := range messages {
			if string(f.Data) != fmt.Sprintf("%s %d", word, i) {
				t.Fatalf("message %d from the %s is %q", i, dir, f.Data)
			}
		}
	}
}

// A refusal of an upgrade passes as the HTTP that it is.
func TestUpgradeRefused(t *testing.T) {
	g := gateway(t, func(w http.ResponseWriter, r *http.Request) { http.Error(w, "Session ID unknown", 400) })
	address, tape := start(t, g.URL, nil)
	_, r := dialRaw(t, address, upgradeRequest("/"))
	res, err := http.ReadResponse(r, nil)
	if err != nil || res.StatusCode != 400 {
		t.Fatalf("got %v, %v", res, err)
	}
	if body, _ := io.ReadAll(res.Body); string(body) != "Session ID unknown\n" {
		t.Errorf("got %q", body)
	}
	if frames := tape.wait(t, 1, kind(capture.Done)); len(filter(frames, kind(capture.Open))) > 0 {
		t.Errorf("a connection was opened:\n%s", list(frames))
	}
}

// W12: over TLS, a WebSocket is upgraded on HTTP/1.1 even if the gateway prefers
// HTTP/2; and the proxy itself may speak TLS to its clients.
func TestSocketsOverTLS(t *testing.T) {
	up := websocket.Upgrader{}
	g := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if conn, err := up.Upgrade(w, r, nil); err == nil {
			echo(conn, r)
			conn.Close()
		}
	}))
	g.EnableHTTP2 = true
	g.StartTLS()
	defer g.Close()
	p, _ := build(t, "wss"+strings.TrimPrefix(g.URL, "https"), func(c *Config) { c.Insecure = true })
	ls, _, err := Listen(context.Background(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	config, err := SelfSigned("proxy.test")
	if err != nil {
		t.Fatal(err)
	}
	run(t, p, WithTLS(ls, config))
	d := websocket.Dialer{TLSClientConfig: trusting(t, config, "proxy.test")}
	conn, _, err := d.Dial("wss://"+ls[0].Addr().String()+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	conn.WriteMessage(websocket.TextMessage, []byte("over both"))
	if _, got, err := conn.ReadMessage(); err != nil || string(got) != "over both" {
		t.Errorf("got %q, %v", got, err)
	}
	conn.Close()
}
