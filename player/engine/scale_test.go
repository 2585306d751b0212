package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
)

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
					s.Emit("n", json.RawMessage(strconv.Itoa(n)))
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
			if want := `451-["back",` + strconv.Itoa(next[kind]) + `,{"_placeholder":true,"num":0}]`; kind == "back" && got != want {
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
