package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
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

// TestCrossfire is W10 for the player: events, attachments, acknowledgements,
// pings of both kinds and broadcasts from many goroutines on one socket, both
// ways, and an end in the middle of it.
func TestCrossfire(t *testing.T) {
	const events = 3000
	var echoed atomic.Int64
	c := Config{PingInterval: time.Millisecond, MaxQueue: 64 << 20}
	c.Event = func(s *Socket, e Event) {
		echoed.Add(1)
		s.EmitBinary("back", e.Attachments, e.Args...)
	}
	h := serveTCP(t, c)
	ws := h.join()
	s := h.engine.Sockets()[0]
	done := make(chan struct{})
	var senders sync.WaitGroup
	for sender := range 3 {
		senders.Go(func() {
			for n := range events {
				switch sender {
				case 0:
					s.Emit("n", json.RawMessage(itoa(n)))
				case 1:
					h.engine.EmitRaw("/", "", json.RawMessage(`["pair",{"_placeholder":true,"num":0}]`), []byte{byte(n)})
				default:
					s.EmitAck("ask", func([]json.RawMessage, error) {})
				}
			}
		})
	}
	go func() { // the client: gorilla wants one writer
		defer close(done)
		for n := range events {
			err := ws.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, `451-["m",%d,{"_placeholder":true,"num":0}]`, n))
			if err == nil {
				err = ws.WriteMessage(websocket.BinaryMessage, []byte{byte(n)})
			}
			if err == nil && n%100 == 0 {
				err = ws.WriteMessage(websocket.PingMessage, []byte("x"))
			}
			if err == nil {
				err = ws.WriteMessage(websocket.TextMessage, []byte("3"))
			}
			if err != nil {
				t.Errorf("send event %d: %v", n, err)
				return
			}
		}
	}()
	next := map[string]int{}
	for next["n"] < events || next["pair"] < events || next["back"] < events || next["ask"] < events {
		got := ws.text()
		var kind string
		switch {
		case got == "2":
			continue
		case strings.HasPrefix(got, `42["n",`):
			kind = "n"
			if want := fmt.Sprintf(`42["n",%d]`, next[kind]); got != want {
				t.Fatalf("got %q, want %q", got, want)
			}
		case strings.HasPrefix(got, `451-["pair"`), strings.HasPrefix(got, `451-["back"`):
			kind = got[6:10]
			if want := `451-["back",` + itoa(next[kind]) + `,{"_placeholder":true,"num":0}]`; kind == "back" && got != want {
				t.Fatalf("got %q, want %q", got, want)
			}
			_, data, err := ws.ReadMessage()
			if err != nil || len(data) != 1 || data[0] != byte(next[kind]) {
				t.Fatalf("after %q got %q %v, want its attachment", got, data, err)
			}
		case strings.HasPrefix(got, "42") && strings.HasSuffix(got, `["ask"]`):
			kind = "ask"
			if want := fmt.Sprintf(`42%d["ask"]`, next[kind]); got != want {
				t.Fatalf("got %q, want %q", got, want)
			}
		default:
			t.Fatalf("got %q", got)
		}
		next[kind]++
	}
	senders.Wait()
	<-done
	senders.Go(func() {
		for range events {
			s.Emit("n", json.RawMessage("0"))
		}
	})
	s.Disconnect(true)
	senders.Wait()
	for {
		if _, _, err := ws.ReadMessage(); err != nil {
			var closed *websocket.CloseError
			if !errors.As(err, &closed) || closed.Code != websocket.CloseNoStatusReceived {
				t.Errorf("ended by %v, want a close frame", err)
			}
			break
		}
	}
	if echoed.Load() != events {
		t.Errorf("the gateway saw %d events of %d", echoed.Load(), events)
	}
}

// TestThousand: a thousand sockets of all kinds join, hear a broadcast and are
// told when the server closes; no goroutine is left (TestMain looks).
func TestThousand(t *testing.T) {
	const clients = 1000
	var joined sync.WaitGroup
	joined.Add(clients)
	var left atomic.Int64
	h := serve(t, Config{
		Joined: func(*Socket) { joined.Done() },
		Left: func(_ *Socket, reason string) {
			if reason == ReasonShutdown {
				left.Add(1)
			}
		},
	})
	var done sync.WaitGroup
	heard := make(chan struct{}, clients)
	for n := range clients {
		done.Go(func() {
			if n%2 == 0 {
				ws, _, err := h.tryDial("/socket.io/?EIO=4&transport=websocket")
				if err != nil {
					t.Error(err)
					return
				}
				defer ws.Close()
				s := socket{t, ws}
				s.text()
				s.send("40")
				s.text()
				s.want(`42["hello"]`)
				heard <- struct{}{}
				s.want("closed 1001 server shutting down")
				return
			}
			target := h.open("")
			h.do("POST", target, "40")
			body := ""
			for !strings.HasSuffix(body, `42["hello"]`) {
				body = h.do("GET", target, "").body
			}
			heard <- struct{}{}
			got, err := h.try(context.Background(), "GET", target, "")
			if err != nil || got.status != 503 && got.body != "1" {
				t.Errorf("polling at the end: got %d %q, %v", got.status, got.body, err)
			}
		})
	}
	joined.Wait()
	if n := len(h.engine.Sockets()); n != clients {
		t.Errorf("%d sockets are joined, want %d", n, clients)
	}
	h.engine.Emit("/", "", "hello")
	for range clients {
		<-heard
	}
	if err := h.engine.Close(t.Context()); err != nil {
		t.Error(err)
	}
	done.Wait()
	if n := left.Load(); n != clients {
		t.Errorf("%d sockets left because of the shutdown, want %d", n, clients)
	}
	if got := h.do("GET", "/socket.io/?EIO=4&transport=polling", ""); got.status != 503 {
		t.Errorf("after Close: got %d, want 503", got.status)
	}
}

// TestStorm is E12: 300 clients are cut and come back three times, and nothing of
// the old connections is left.
func TestStorm(t *testing.T) {
	const clients, rounds = 300, 3
	var left atomic.Int64
	h := serve(t, Config{Left: func(*Socket, string) { left.Add(1) }})
	for range rounds {
		sockets := make([]socket, clients)
		var dials sync.WaitGroup
		for n := range clients {
			dials.Go(func() { sockets[n] = h.join() })
		}
		dials.Wait()
		for _, s := range h.engine.Sockets() {
			s.Cut()
		}
		for _, ws := range sockets {
			ws.want("closed by the network")
		}
	}
	if err := h.engine.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := h.engine
	if left.Load() != clients*rounds || len(s.conns) != 0 || len(s.links) != 0 || len(s.hub.spaces["/"].rooms) != 0 {
		t.Errorf("%d of %d left; %d connections, %d links, %d rooms remain",
			left.Load(), clients*rounds, len(s.conns), len(s.links), len(s.hub.spaces["/"].rooms))
	}
}

// TestCloseDoesNotWaitForever: Close gives up with its context, and cuts clients
// that do not answer its close frame.
func TestCloseDoesNotWaitForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := serve(t, Config{})
		ws := h.join()
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := h.engine.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != time.Second {
			t.Errorf("got %v after %v", err, time.Since(begin))
		}
		ws.want("closed by the network")
		if err := h.engine.Close(t.Context()); err != nil { // again, and now all are gone
			t.Error(err)
		}
	})
}
