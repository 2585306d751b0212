package engine

import (
	"encoding/json"
	"net"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
)

// TestEndings: how a WebSocket ends for the client, and for the gateway.
func TestEndings(t *testing.T) {
	for _, test := range []struct {
		name   string
		end    func(ws socket, s *Socket)
		want   []string
		reason string
	}{
		{"a namespace", func(_ socket, s *Socket) { s.Disconnect(false); s.Emit("late") },
			[]string{"41", "2"}, ReasonServerDisconnect},
		{"the engine", func(_ socket, s *Socket) { s.Emit("last"); s.Disconnect(true); s.Emit("late") },
			[]string{`42["last"]`, "41", "closed"}, ReasonServerDisconnect},
		{"a close without a code", func(_ socket, s *Socket) { s.Emit("last"); s.Close(0, "") },
			[]string{`42["last"]`, "closed"}, ReasonForcedServer},
		{"W04 a close with a code", func(_ socket, s *Socket) { s.Close(4001, "agent évicted") },
			[]string{"closed 4001 agent évicted"}, ReasonForcedServer},
		{"a cut", func(_ socket, s *Socket) { s.Cut() },
			[]string{"closed by the network"}, ReasonTransportClose},
		{"the client's disconnect", func(ws socket, _ *Socket) { ws.send("41") },
			[]string{"2"}, ReasonClientDisconnect},
		{"the client's close", func(ws socket, _ *Socket) { ws.WriteMessage(websocket.CloseMessage, nil) },
			[]string{"closed"}, ReasonTransportClose},
		{"W04 the client's close with a code", func(ws socket, _ *Socket) {
			ws.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(4002, "bye"))
		}, []string{"closed 4002"}, ReasonTransportClose},
		{"the client's network", func(ws socket, _ *Socket) { ws.NetConn().Close() },
			[]string{"closed by the network"}, ReasonTransportClose},
		{"no pong", func(socket, *Socket) {}, []string{"2", "closed"}, ReasonPing},
		{"W09 no UTF-8", func(ws socket, _ *Socket) { ws.send("42[\"\xff\"]") },
			[]string{"closed 1007"}, ReasonTransportError},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				left := make(chan string, 2)
				h := serve(t, Config{Left: func(_ *Socket, reason string) { left <- reason }})
				ws := h.join()
				test.end(ws, h.engine.Sockets()[0])
				ws.want(test.want...)
				ws.Close()
				time.Sleep(time.Minute)
				if got := <-left; got != test.reason {
					t.Errorf("left because of %q, want %q", got, test.reason)
				}
				if len(left) > 0 {
					t.Errorf("left twice, again because of %q", <-left)
				}
			})
		})
	}
}

// TestOversize is E04 on a WebSocket: the client hears 1009, though it is still
// sending when the server has enough.
func TestOversize(t *testing.T) {
	left := make(chan string, 8)
	h := serveTCP(t, Config{MaxPayload: 1000, Left: func(_ *Socket, reason string) { left <- reason }})
	for _, size := range []int{1010, 4 << 20} {
		ws := h.join()
		ws.send(`42["x","` + strings.Repeat("a", 990) + `"]`) // at the limit
		go ws.WriteMessage(websocket.TextMessage, []byte(strings.Repeat("a", size)))
		ws.want("closed 1009")
		if got := <-left; got != ReasonTransportError {
			t.Errorf("%d bytes: left because of %q", size, got)
		}
	}
}

// TestBigMessages is W02 for the player: no size is a limit but MaxPayload.
func TestBigMessages(t *testing.T) {
	c := echo()
	c.PingInterval, c.PingTimeout, c.MaxPayload = 0, 0, 20<<20
	h := serveTCP(t, c)
	ws := h.join()
	ws.want(`42["auth",{}]`)
	for _, size := range []int{125, 126, 32_768, 32_769, 65_535, 65_536, 1 << 20, 16 << 20} {
		text := strings.Repeat("é", size/2)
		ws.send(`42["message","` + text + `"]`)
		if got := ws.text(); got != `42["message-back","`+text+`"]` {
			t.Errorf("%d bytes came back as %d", size, len(got))
		}
	}
}

// TestSlowReader is W11 for the player: a client that never reads is dropped at
// the limit, and nobody waits for it.
func TestSlowReader(t *testing.T) {
	left := make(chan string, 1)
	h := serveTCP(t, Config{MaxQueue: 1 << 20, Left: func(_ *Socket, reason string) { left <- reason }})
	deaf, reader := h.join(), h.join()
	deaf.NetConn().(*net.TCPConn).SetReadBuffer(4096)
	big := json.RawMessage(`"` + strings.Repeat("x", 64<<10) + `"`)
	sent := 0
	for reason := ""; reason == ""; sent++ {
		if sent > 10_000 {
			t.Fatal("640 MB were queued for a client that does not read")
		}
		h.engine.Emit("/", "", "big", big)
		if got := reader.text(); len(got) != len(big)+len(`42["big",]`) {
			t.Fatalf("the other client got %d bytes", len(got))
		}
		select {
		case reason = <-left:
			if reason != ReasonQueue {
				t.Errorf("left because of %q, want %q", reason, ReasonQueue)
			}
		default:
		}
	}
	h.engine.Emit("/", "", "still here")
	reader.want(`42["still here"]`)
	if n := len(h.engine.Sockets()); n != 1 {
		t.Errorf("%d sockets are joined, want the one that reads", n)
	}
}

// TestLastWords: a client that reads late still gets what was said before the
// gateway disconnected it.
func TestLastWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := serve(t, Config{})
		ws := h.join()
		s := h.engine.Sockets()[0]
		for n := range 100 {
			s.Emit("n", json.RawMessage(strconv.Itoa(n)))
		}
		s.Disconnect(true)
		time.Sleep(closingTime - time.Second)
		for n := range 100 {
			ws.want(`42["n",` + strconv.Itoa(n) + "]")
		}
		ws.want("41", "closed")
	})
}

// TestDisconnectPassesTheLimit: a full queue takes the DISCONNECT all the same, or
// the client would come back.
func TestDisconnectPassesTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := serve(t, Config{MaxQueue: 100})
		ws := h.join()
		s := h.engine.Sockets()[0]
		s.Emit("big", json.RawMessage(`"`+strings.Repeat("x", 1000)+`"`))
		s.Disconnect(true)
		ws.want(`42["big","`+strings.Repeat("x", 1000)+`"]`, "41", "closed")
	})
}

// TestNobodyAnswersTheClose: a peer that answers no close frame is given up after
// closeGrace.
func TestNobodyAnswersTheClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := serve(t, Config{})
		ws := h.join()
		ws.SetCloseHandler(func(int, string) error { return nil })
		h.engine.Sockets()[0].Disconnect(true)
		ws.want("41", "closed")
		begin := time.Now()
		if _, err := ws.NetConn().Read(make([]byte, 1)); err == nil || time.Since(begin) != closeGrace {
			t.Errorf("got %v after %v, want the end after %v", err, time.Since(begin), closeGrace)
		}
	})
}

// TestOnePacketMayBeLarge: the limit of the queue is for what gathers, not for
// one packet, such as a long history.
func TestOnePacketMayBeLarge(t *testing.T) {
	h := serveTCP(t, Config{MaxQueue: 1000})
	ws := h.join()
	h.engine.Sockets()[0].Emit("big", json.RawMessage(`"`+strings.Repeat("x", 1<<20)+`"`))
	if got := ws.text(); len(got) < 1<<20 {
		t.Errorf("got %.100q", got)
	}
}
