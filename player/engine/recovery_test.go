package engine

import (
	"encoding/json"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// recovering is a server with connection state recovery, and a client that has
// got one event and lost its connection.
func recovering(t *testing.T) (h *host, sid, pid, offset string) {
	joined := make(chan *Socket, 1)
	left := make(chan string, 8)
	h = serve(t, Config{
		Recovery: 2 * time.Minute,
		Joined:   func(s *Socket) { joined <- s },
		Left:     func(_ *Socket, reason string) { left <- reason },
	})
	ws := h.dialEngine()
	ws.send("40")
	var reply struct{ SID, PID string }
	if err := json.Unmarshal([]byte(ws.text()[2:]), &reply); err != nil || reply.PID == "" {
		t.Fatalf("got %+v, %v, want a reply with a pid", reply, err)
	}
	s := <-joined
	if s.Recovered() {
		t.Error("the first connection claims to be a recovered one")
	}
	s.Join("thread")
	s.Emit("run:start", json.RawMessage(`{"run":1}`))
	got := ws.text()
	var event []json.RawMessage
	if err := json.Unmarshal([]byte(got[2:]), &event); err != nil || len(event) != 3 {
		t.Fatalf("got %q, want an event with an offset", got)
	}
	json.Unmarshal(event[2], &offset)
	h.engine.config.Joined = nil
	ws.NetConn().Close()
	<-left
	return h, reply.SID, reply.PID, offset
}

// TestRecovery is capture B: the client's connection breaks, an event is emitted
// to its room, and it comes back.
func TestRecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, sid, pid, offset := recovering(t)
		h.engine.Emit("/", "thread", "run:event", json.RawMessage(`{"seq":2,"missed":true}`))
		h.engine.Emit("/", "another", "not for it")
		h.engine.EmitRaw("/", "", json.RawMessage(`["bin",{"_placeholder":true,"num":0}]`), []byte{1})
		ws := h.dialEngine()
		ws.send(`40{"pid":"` + pid + `","offset":"` + offset + `","token":"t"}`)
		ws.want(`42["run:event",{"seq":2,"missed":true},"*"]`,
			`451-["bin",{"_placeholder":true,"num":0},"*"]`, "bAQ==",
			`40{"sid":"`+sid+`","pid":"`+pid+`"}`)
		s := h.engine.Sockets()[0]
		if !s.Recovered() || s.ID() != sid || string(s.Handshake().Auth) != `{"pid":"`+pid+`","offset":"`+offset+`","token":"t"}` {
			t.Errorf("got socket %q, recovered %v, auth %s", s.ID(), s.Recovered(), s.Handshake().Auth)
		}
		h.engine.Emit("/", "thread", "live")
		ws.want(`42["live","*"]`)
		s.EmitAck("asked", func([]json.RawMessage, error) {}) // never kept, so no offset
		ws.want(`420["asked"]`)
		s.EmitRaw(json.RawMessage(`["raw" ]`))
		ws.want(`42["raw" ,"*"]`)

		again := h.dialEngine() // the session is taken
		again.send(`40{"pid":"` + pid + `","offset":"` + offset + `"}`)
		again.want(`40{"sid":"*","pid":"*"}`)
	})
}

// TestNoRecovery are sessions that are not taken up again: the client gets a new
// one.
func TestNoRecovery(t *testing.T) {
	for _, test := range []struct {
		name string
		auth func(pid, offset string) string
		wait time.Duration
	}{
		{"too late", func(pid, offset string) string { return `{"pid":"` + pid + `","offset":"` + offset + `"}` }, 2*time.Minute + 1},
		{"no offset", func(pid, _ string) string { return `{"pid":"` + pid + `"}` }, 0},
		{"an unknown offset", func(pid, _ string) string { return `{"pid":"` + pid + `","offset":"x"}` }, 0},
		{"an unknown pid", func(_, offset string) string { return `{"pid":"x","offset":"` + offset + `"}` }, 0},
		{"a pid that is no string", func(_, offset string) string { return `{"pid":1,"offset":"` + offset + `"}` }, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, sid, pid, offset := recovering(t)
				time.Sleep(test.wait)
				ws := h.dialEngine()
				ws.send("40" + test.auth(pid, offset))
				ws.want(`40{"sid":"*","pid":"*"}`)
				if s := h.engine.Sockets()[0]; s.Recovered() || s.ID() == sid {
					t.Errorf("got socket %q, recovered %v, want a new one", s.ID(), s.Recovered())
				}
			})
		})
	}
	t.Run("after a goodbye", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h, _, pid, offset := recovering(t)
			auth := `40{"pid":"` + pid + `","offset":"` + offset + `"}`
			ws := h.dialEngine()
			ws.send(auth)
			ws.want(`40{"sid":"*","pid":"*"}`)
			ws.send("41")
			ws.send(auth)
			ws.want(`40{"sid":"*","pid":"*"}`)
			if h.engine.Sockets()[0].Recovered() {
				t.Error("a session that the client had ended was recovered")
			}
		})
	})
}

// TestHistoryIsBounded: what is kept for sessions that may come back has a limit
// in time and in bytes.
func TestHistoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHistory(time.Minute)
		big := []packet{framed(opText, make([]byte, historyLimit/4))}
		for range 10 {
			h.add(h.next(), "", big)
		}
		if h.size > historyLimit || len(h.events) != 3 {
			t.Errorf("%d events of %d bytes are kept, the limit is %d", len(h.events), h.size, historyLimit)
		}
		time.Sleep(time.Minute + 1)
		h.add(h.next(), "", big)
		if len(h.events) != 1 {
			t.Errorf("%d events are kept after the window", len(h.events))
		}
		for n := range 100 {
			h.keep(&Socket{pid: strconv.Itoa(n)})
			time.Sleep(time.Minute)
		}
		if len(h.sessions) > 2 {
			t.Errorf("%d sessions are kept after the window", len(h.sessions))
		}
	})
}
