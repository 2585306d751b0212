package engine

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
)

func TestPlain(t *testing.T) {
	h := serve(t, echo())
	ws := h.dial("/ws?token=t", "Origin", "http://elsewhere.test")
	ws.want(`{"event":"auth","data":{}}`)
	s := h.engine.Sockets()[0]
	if s.Namespace() != "" || s.Handshake().Query.Get("token") != "t" {
		t.Errorf("got namespace %q, query %v", s.Namespace(), s.Handshake().Query)
	}
	for _, step := range []struct{ send, want string }{
		{`{"event":"message","data":{"z": 1,"a":12345678901234567890,"s":"<&>\ud800"}}`,
			`{"event":"message-back","data":{"z": 1,"a":12345678901234567890,"s":"<&>\ud800"}}`},
		{`{"event":"message"}`, `{"event":"message-back"}`},
		{`{"event":"message","data":null}`, `{"event":"message-back","data":null}`},
		{` {"id":7,"data":[1],"event":"ask","more":true}`, `{"ack":7,"data":[1]}`},
		{`{"event":"ask","id":99999999999999999999}`, `{"ack":99999999999999999999}`},
	} {
		ws.send(step.send)
		ws.want(step.want)
	}
	s.Join("thread")
	h.engine.Emit("", "thread", "run:event", json.RawMessage(`{"v":1}`))
	h.engine.Emit("", "", "two", json.RawMessage("1"), json.RawMessage("2"))
	h.engine.EmitRaw("", "", json.RawMessage(`["no such form"]`))
	s.EmitRaw(json.RawMessage(`{"event":"raw" }`))
	s.SendPacket([]byte(`{"event":`))
	s.SendFrame(true, []byte{1})
	answered := make(chan []json.RawMessage, 1)
	s.EmitAck("ask", func(args []json.RawMessage, _ error) { answered <- args })
	ws.want(`{"event":"run:event","data":{"v":1}}`, `{"event":"two","data":[1,2]}`,
		`{"event":"raw" }`, `{"event":`, "bAQ==", `{"event":"ask","id":0}`)
	ws.send(`{"ack":0,"data":{"ok":true}}`)
	if got := <-answered; len(got) != 1 || string(got[0]) != `{"ok":true}` {
		t.Errorf("got the answer %s", got)
	}
	ws.send(`{"event":"bye","data":false}`)
	ws.want("closed 1000")
}

func TestPlainFaults(t *testing.T) {
	left := make(chan string, 1)
	c := echo()
	c.Left = func(_ *Socket, reason string) { left <- reason }
	h := serve(t, c)
	for _, test := range []struct {
		send   string
		binary bool
		want   string
	}{
		{`hello`, false, "closed 1007 not a message: "},
		{`{"event":"x"`, false, "closed 1007 not a message: "},
		{`{"event":1}`, false, "closed 1007 not a message: "},
		{`[]`, false, "closed 1007 not a message: "},
		{`{"Event":"x"}`, false, `closed 1008 a message has an "event" or an "ack"`},
		{`{"event":"x"}`, true, "closed 1003 plain JSON sockets take text, not binary messages"},
	} {
		ws := h.dial("/ws/")
		ws.want(`{"event":"auth","data":{}}`)
		if test.binary {
			ws.sendBinary([]byte(test.send))
		} else {
			ws.send(test.send)
		}
		if got := ws.text(); !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: got %q, want %q", test.send, got, test.want)
		}
		if reason := <-left; reason != ReasonParse {
			t.Errorf("%s: left because of %q", test.send, reason)
		}
	}
}

func TestPlainRefused(t *testing.T) {
	reason := "no entry: " + strings.Repeat("é", 100)
	h := serve(t, Config{PlainPath: "/gw/ws/", Connect: func(*Socket) *Refusal { return &Refusal{Message: reason} }})
	want := "closed 1008 no entry: " + strings.Repeat("é", 56)
	h.dial("/gw/ws").want(want)
	off := serve(t, Config{PlainPath: "-"})
	if _, answer, err := off.tryDial("/ws"); err == nil || answer.StatusCode != 404 {
		t.Errorf("with no plain path: got %v, %v, want 404", answer, err)
	}
}

// TestPlainHeartbeat: a plain client is asked by WebSocket pings whether it is
// there.
func TestPlainHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := serve(t, Config{})
		begin := time.Now()
		ws := h.dial("/ws")
		deaf := false
		pings := 0
		ws.SetPingHandler(func(data string) error {
			pings++
			if deaf = pings == 3; deaf {
				return nil
			}
			return ws.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(time.Second))
		})
		ws.want("closed")
		if took := time.Since(begin); pings != 3 || took != 3*25*time.Second+20*time.Second {
			t.Errorf("closed after %d pings and %v", pings, took)
		}
	})
}
