package engine

import (
	"encoding/json"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// TestUpgrade is what happens between a client's probe and its last word on
// polling (E02). Every flow begins with a joined polling session.
func TestUpgrade(t *testing.T) {
	type flow func(t *testing.T, h *host, target string)
	for _, test := range []struct {
		name string
		flow flow
	}{
		{"everything leaves once and in order", func(t *testing.T, h *host, target string) {
			number := 0
			emit := func() {
				h.engine.Emit("/", "", "n", json.RawMessage(strconv.Itoa(number)))
				number++
			}
			parked := h.get(t.Context(), target)
			synctest.Wait()
			ws := h.dial(socketTarget(target))
			emit()
			if got := <-parked; got.body != `42["n",0]` {
				t.Errorf("GET parked before the probe: got %q", got.body)
			}
			ws.send("2probe")
			ws.want("3probe")
			emit()
			emit()
			if got := h.do("GET", target, ""); got.body != "42[\"n\",1]\x1e42[\"n\",2]" {
				t.Errorf("GET after the probe: got %q, want what polling still carries", got.body)
			}
			emit() // nobody fetches it from polling any more
			ws.send("5")
			ws.want(`42["n",3]`)
			emit()
			ws.want(`42["n",4]`)
			if got := h.engine.Sockets()[0].Transport(); got != "websocket" {
				t.Errorf("got transport %s after the upgrade", got)
			}
		}},
		{"a parked GET is answered every 100 ms until the upgrade", func(t *testing.T, h *host, target string) {
			ws := h.dial(socketTarget(target))
			ws.send("2probe")
			ws.want("3probe")
			begin := time.Now()
			for n := range 3 { // a client may ask again before it has read 3probe
				if got := h.do("GET", target, ""); got.status != 200 || got.body != "6" {
					t.Errorf("GET %d: got %d %q, want 200 6", n, got.status, got.body)
				}
				if took, want := time.Since(begin), time.Duration(n+1)*100*time.Millisecond; took != want {
					t.Errorf("GET %d was answered after %v, want %v", n, took, want)
				}
			}
			ws.send("5")
			ws.send(`42["message"]`)
			ws.want(`42["message-back"]`)
		}},
		{"a GET is not answered before the probe", func(t *testing.T, h *host, target string) {
			ws := h.dial(socketTarget(target))
			parked := h.get(t.Context(), target)
			time.Sleep(time.Second)
			select {
			case got := <-parked:
				t.Errorf("got %q with no probe", got.body)
			default:
			}
			ws.send("2probe")
			ws.want("3probe")
			if got := <-parked; got.body != "6" {
				t.Errorf("got %q, want 6", got.body)
			}
		}},
		{"polling is refused afterwards", func(t *testing.T, h *host, target string) {
			upgrade(h, target)
			for _, method := range []string{"GET", "POST"} {
				got := h.do(method, target, "3")
				if got.status != 400 || got.body != `{"code":3,"message":"Bad request"}` {
					t.Errorf("%s: got %d %q, want 400, bad request", method, got.status, got.body)
				}
			}
		}},
		{"a GET that comes with the last word", func(t *testing.T, h *host, target string) {
			ws := h.dial(socketTarget(target))
			ws.send("2probe")
			ws.want("3probe")
			parked := h.get(t.Context(), target)
			synctest.Wait()
			ws.send("5")
			if got := <-parked; got.status != 400 {
				t.Errorf("got %d %q, want 400 as just after it", got.status, got.body)
			}
		}},
		{"a second WebSocket while upgrading", func(t *testing.T, h *host, target string) {
			ws := h.dial(socketTarget(target))
			ws.send("2probe")
			ws.want("3probe")
			h.dial(socketTarget(target)).want("closed")
			ws.send("5")
			ws.send(`42["message"]`)
			ws.want(`42["message-back"]`)
		}},
		{"a second WebSocket afterwards", func(t *testing.T, h *host, target string) {
			ws := upgrade(h, target)
			h.dial(socketTarget(target)).want("closed")
			ws.send(`42["message"]`)
			ws.want(`42["message-back"]`)
		}},
		{"no probe in time", func(t *testing.T, h *host, target string) {
			ws := h.dial(socketTarget(target))
			begin := time.Now()
			ws.want("closed")
			if took := time.Since(begin); took != 10*time.Second {
				t.Errorf("closed after %v, want the 10 s of UpgradeTimeout", took)
			}
			stillPolling(t, h, target)
		}},
		{"something else than a probe", func(t *testing.T, h *host, target string) {
			ws := h.dial(socketTarget(target))
			ws.send(`42["message"]`)
			ws.want("closed")
			stillPolling(t, h, target)
		}},
		{"a probe that breaks off, and another", func(t *testing.T, h *host, target string) {
			ws := h.dial(socketTarget(target))
			ws.send("2probe")
			ws.want("3probe")
			ws.NetConn().Close()
			synctest.Wait()
			stillPolling(t, h, target)
			ws = upgrade(h, target)
			ws.send(`42["message"]`)
			ws.want(`42["message-back"]`)
		}},
		{"the session ends while probing", func(t *testing.T, h *host, target string) {
			ws := h.dial(socketTarget(target))
			ws.send("2probe")
			ws.want("3probe")
			h.do("POST", target, "1")
			ws.want("closed")
		}},
		{"the gateway disconnects while probing", func(t *testing.T, h *host, target string) {
			ws := h.dial(socketTarget(target))
			ws.send("2probe")
			ws.want("3probe")
			h.engine.Sockets()[0].Disconnect(true)
			ws.send("5")
			ws.want("41", "closed")
		}},
		{"an attachment after the upgrade, its header before", func(t *testing.T, h *host, target string) {
			h.do("POST", target, `451-["message",{"_placeholder":true,"num":0}]`)
			ws := upgrade(h, target)
			ws.sendBinary([]byte{1, 2, 3})
			ws.want(`451-["message-back",{"_placeholder":true,"num":0}]`, "bAQID")
		}},
		{"the heartbeat goes on", func(t *testing.T, h *host, target string) {
			begin := time.Now()
			ws := upgrade(h, target)
			for n := range 3 {
				ws.want("2")
				if took, want := time.Since(begin), time.Duration(n+1)*25*time.Second; took != want {
					t.Errorf("ping %d came after %v, want %v", n, took, want)
				}
				ws.send("3")
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := echo()
				c.PingInterval, c.PingTimeout, c.ConnectTimeout = 0, 0, 0
				h := serve(t, c)
				target := h.open("")
				h.do("POST", target, "40")
				if got := h.do("GET", target, ""); !matches("40{\"sid\":\"*\"}\x1e42[\"auth\",{}]", got.body) {
					t.Fatalf("got %q, want a CONNECT reply and what follows", got.body)
				}
				test.flow(t, h, target)
			})
		})
	}
}

// socketTarget is the target of the WebSocket that upgrades a polling session.
func socketTarget(target string) string {
	sid := target[len("/socket.io/?EIO=4&transport=polling"):]
	return "/socket.io/?EIO=4&transport=websocket" + sid
}

func upgrade(h *host, target string) socket {
	h.t.Helper()
	ws := h.dial(socketTarget(target))
	ws.send("2probe")
	ws.want("3probe")
	ws.send("5")
	synctest.Wait()
	return ws
}

func stillPolling(t *testing.T, h *host, target string) {
	t.Helper()
	h.do("POST", target, `42["message","here"]`)
	if got := h.do("GET", target, ""); got.body != `42["message-back","here"]` {
		t.Errorf("polling afterwards: got %d %q", got.status, got.body)
	}
}
