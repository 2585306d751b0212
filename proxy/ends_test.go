package proxy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/gorilla/websocket"

	"tapedeck/protocol/capture"
)

// partWith ends conn without a goodbye.
func partWith(conn net.Conn, reset bool) {
	if reset {
		conn.(*net.TCPConn).SetLinger(0)
	}
	conn.Close()
}

// A WebSocket that ends without a Close frame ends so on the other side too, as
// 1006 in the words of its API, after everything that had been said.
func TestAbnormalEndStaysAbnormal(t *testing.T) {
	whole := fromGateway(capture.Text, "last words")
	half := append(fromGateway(capture.Text, "last words"), fromGateway(capture.Text, "never whole")[:6]...)
	for _, gate := range []Gate{nil, strict} {
		for _, reset := range []bool{false, true} {
			for name, words := range map[string][]byte{"between messages": whole, "in a message": half} {
				t.Run(fmt.Sprintf("gated %v, reset %v, %s", gate != nil, reset, name), func(t *testing.T) {
					read := make(chan struct{})
					upstream := rawGateway(t, func(head string, conn net.Conn, _ *bufio.Reader) {
						io.WriteString(conn, accept(head))
						conn.Write(words)
						<-read // or a reset would take the words along
						partWith(conn, reset)
					})
					address, _ := start(t, upstream, func(c *Config) { c.Gate = gate })
					conn := dialGorilla(t, "ws://"+address+"/", nil)
					if _, message, err := conn.ReadMessage(); err != nil || string(message) != "last words" {
						t.Errorf("got %q, %v", message, err)
					}
					close(read)
					_, _, err := conn.ReadMessage()
					abnormal(t, err)
				})
			}
		}
	}
}

func abnormal(t *testing.T, err error) {
	t.Helper()
	if closed := (*websocket.CloseError)(nil); !errors.As(err, &closed) || closed.Code != websocket.CloseAbnormalClosure {
		t.Errorf("ended with %v, want %d", err, websocket.CloseAbnormalClosure)
	}
}

// A client that goes without a goodbye does so for the gateway too.
func TestClientsAbnormalEnd(t *testing.T) {
	for _, reset := range []bool{false, true} {
		t.Run(fmt.Sprint("reset ", reset), func(t *testing.T) {
			ended := make(chan error, 1)
			g := socketGateway(t, websocket.Upgrader{}, func(conn *websocket.Conn, _ *http.Request) {
				for {
					if _, _, err := conn.ReadMessage(); err != nil {
						ended <- err
						return
					}
					conn.WriteMessage(websocket.TextMessage, []byte("heard"))
				}
			})
			address, _ := start(t, g.URL, nil)
			conn, r, _ := dialSocket(t, address, "/")
			conn.Write(fromClient(capture.Text, "last words"))
			expect(t, r, fromGateway(capture.Text, "heard"))
			partWith(conn, reset)
			abnormal(t, <-ended)
		})
	}
}

// An answer that breaks off is broken for the client too, however its end would
// have been told, and after all of it that had come.
func TestCutAnswersAreBroken(t *testing.T) {
	const sid = pollTarget + "&sid=abc"
	for _, test := range []struct {
		name, answer string
		held         bool // net/http gives what it has read of a chunk at its end, whatever that is
	}{
		{"with a length", "Content-Length: 100\r\n\r\nonly this", false},
		{"in chunks", "Transfer-Encoding: chunked\r\n\r\n9\r\nonly this\r\n", false},
		{"in a chunk", "Transfer-Encoding: chunked\r\n\r\n64\r\nonly this", true},
		{"before the trailer", "Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n9\r\nonly this\r\n0\r\n", true},
	} {
		for _, target := range []string{"/", sid} {
			for _, gate := range []Gate{nil, strict} {
				for _, reset := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s, polling %v, gated %v, reset %v", test.name, target == sid, gate != nil, reset), func(t *testing.T) {
						held := test.held || gate != nil && target == sid // until it is whole
						read := make(chan struct{})
						if held {
							close(read)
						}
						upstream := rawGateway(t, func(_ string, conn net.Conn, _ *bufio.Reader) {
							io.WriteString(conn, "HTTP/1.1 200 OK\r\n"+test.answer)
							<-read
							partWith(conn, reset)
						})
						address, _ := start(t, upstream, func(c *Config) { c.Gate = gate })
						res, err := client(t).Get("http://" + address + target)
						if held && reset {
							// It may take along what was not read yet, even the head.
							if err == nil {
								if rest, err := io.ReadAll(res.Body); err == nil && res.StatusCode == http.StatusOK {
									t.Errorf("got %q: a cut answer looks whole", rest)
								}
								res.Body.Close()
							}
							return
						}
						if err != nil {
							t.Fatal(err)
						}
						defer res.Body.Close()
						got := make([]byte, len("only this"))
						if _, err := io.ReadFull(res.Body, got); err != nil || string(got) != "only this" {
							t.Errorf("got %q, %v", got, err)
						}
						if !held {
							close(read)
						}
						if rest, err := io.ReadAll(res.Body); err == nil || len(rest) > 0 {
							t.Errorf("then %q, %v: a cut answer looks whole", rest, err)
						}
					})
				}
			}
		}
	}
}

// An answer whose end is the end of its connection is whole with that, and
// broken by a reset.
func TestAnswersThatEndWithTheConnection(t *testing.T) {
	for _, reset := range []bool{false, true} {
		t.Run(fmt.Sprint("reset ", reset), func(t *testing.T) {
			read := make(chan struct{})
			upstream := rawGateway(t, func(_ string, conn net.Conn, _ *bufio.Reader) {
				io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\nall of it")
				<-read
				partWith(conn, reset)
			})
			address, _ := start(t, upstream, nil)
			res, err := client(t).Get("http://" + address + "/")
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			got := make([]byte, len("all of it"))
			if _, err := io.ReadFull(res.Body, got); err != nil || string(got) != "all of it" {
				t.Errorf("got %q, %v", got, err)
			}
			close(read)
			if _, err := io.ReadAll(res.Body); (err != nil) != reset {
				t.Errorf("ended with %v", err)
			}
		})
	}
}
