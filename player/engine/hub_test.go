package engine

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestRooms(t *testing.T) {
	h := serve(t, Config{Connect: func(*Socket) *Refusal { return nil }})
	a, b, c := h.join(), h.join(), h.join()
	sockets := h.engine.Sockets()
	if len(sockets) != 3 {
		t.Fatalf("got %d sockets, want 3", len(sockets))
	}
	for _, s := range sockets[:2] {
		s.Join("thread")
		s.Join("thread") // twice is once
	}
	other := h.dialEngine()
	other.send("40/other,")
	other.want(`40/other,{"sid":"*"}`)
	h.engine.Sockets()[3].Join("thread")

	h.engine.Emit("/", "thread", "one", json.RawMessage("1"))
	h.engine.Emit("/", "", "all")
	h.engine.Emit("/other", "thread", "two")
	h.engine.Emit("/", "nobody", "lost")
	h.engine.Emit("/nowhere", "", "lost")
	h.engine.Emit("/", sockets[2].ID(), "only you")
	sockets[0].Leave("thread")
	sockets[0].Leave("never entered")
	h.engine.EmitRaw("/", "thread", json.RawMessage(`[ 7, {"a" : 1} ]`), []byte{9})
	h.engine.Emit("/", "", "end")

	a.want(`42["one",1]`, `42["all"]`, `42["end"]`)
	b.want(`42["one",1]`, `42["all"]`, `451-[ 7, {"a" : 1} ]`, "bCQ==", `42["end"]`)
	c.want(`42["all"]`, `42["only you"]`, `42["end"]`)
	other.want(`42/other,["two"]`)

	c.send("41")
	c.send("40") // answered when the first is gone
	c.want(`40{"sid":"*"}`)
	h.engine.Emit("/", sockets[2].ID(), "gone")
	h.engine.Emit("/", "", "last")
	c.want(`42["last"]`)
	sockets[2].Emit("to a socket that left")
	sockets[2].Join("thread")
	h.engine.Emit("/", "thread", "still")
	b.want(`42["last"]`, `42["still"]`)
}

// TestBroadcastOrder: all members of a room get what two emitters send in one
// and the same order.
func TestBroadcastOrder(t *testing.T) {
	h := serve(t, Config{})
	clients := []socket{h.join(), h.join(), h.join()}
	const each = 200
	var emitters sync.WaitGroup
	for e := range 2 {
		emitters.Go(func() {
			for n := range each {
				h.engine.Emit("/", "", "n", json.RawMessage(strconv.Itoa(e*each+n)))
			}
		})
	}
	got := make([][]string, len(clients))
	var readers sync.WaitGroup
	for i, c := range clients {
		readers.Go(func() {
			for range 2 * each {
				got[i] = append(got[i], c.text())
			}
		})
	}
	emitters.Wait()
	readers.Wait()
	if !slices.Equal(got[0], got[1]) || !slices.Equal(got[1], got[2]) {
		t.Error("three members of a room saw three orders")
	}
	if slices.Sort(got[0]); len(slices.Compact(got[0])) != 2*each {
		t.Errorf("got %d different events, want %d", len(slices.Compact(got[0])), 2*each)
	}
}

// TestAcks: ids count for a namespace, and the answer, or the end, comes once.
func TestAcks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := serve(t, Config{})
		a, b := h.join(), h.join()
		sockets := h.engine.Sockets()
		var mu sync.Mutex // the callbacks are those of two connections
		var got []string
		note := func(args []json.RawMessage, err error) {
			mu.Lock()
			defer mu.Unlock()
			text := make([]string, len(args))
			for i, arg := range args {
				text[i] = string(arg)
			}
			if err != nil {
				text = append(text, err.Error())
			}
			got = append(got, strings.Join(text, " "))
		}
		sockets[0].EmitAck("ask", note, json.RawMessage("41"))
		sockets[1].EmitAck("ask", note)
		sockets[0].EmitBinaryAck("ask", [][]byte{{1}}, func(args []json.RawMessage, attachments [][]byte, err error) {
			note(append(args, json.RawMessage(attachments[0])), err)
		}, json.RawMessage(`{"_placeholder":true,"num":0}`))
		sockets[1].EmitAck("never answered", note)
		a.want(`420["ask",41]`, `451-2["ask",{"_placeholder":true,"num":0}]`, "bAQ==")
		b.want(`421["ask"]`, `423["never answered"]`)
		a.send("430[42, {\"a\":1}]")
		a.send("430[43]")                              // a second answer
		a.send("431[44]")                              // another socket's
		a.send(`461-2[{"_placeholder":true,"num":0}]`) // with an attachment
		a.sendBinary([]byte("x"))
		b.send("431")
		b.Close()
		synctest.Wait()
		slices.Sort(got)
		want := []string{"", `42 {"a":1}`, "socket has been disconnected", `{"_placeholder":true,"num":0} x`}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		sockets[1].EmitAck("too late", note)
		if last := got[len(got)-1]; last != "socket has been disconnected" {
			t.Errorf("asking a socket that is gone: got %q", last)
		}
	})
}

// TestCallbacks: they come one at a time, in order, and Left last; and none of
// them keeps its caller from taking a lock.
func TestCallbacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var got []string
		note := func(text string) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, text)
		}
		h := serve(t, Config{
			Connect: func(s *Socket) *Refusal {
				s.Emit("before the reply")
				s.Join("early")
				note("connect")
				return nil
			},
			Joined: func(s *Socket) { note("joined") },
			Event: func(s *Socket, e Event) {
				note(e.Name)
				time.Sleep(time.Second)
			},
			Left: func(s *Socket, reason string) { note(reason) },
		})
		ws := h.dialEngine()
		ws.send("40")
		ws.want(`42["before the reply"]`, `40{"sid":"*"}`)
		ws.send(`42["a"]`)
		ws.send(`42["b"]`)
		synctest.Wait()
		h.engine.Emit("/", "early", "room")
		ws.want(`42["room"]`)
		mu.Lock() // as a gateway's, which Left takes too
		h.engine.Sockets()[0].Disconnect(true)
		h.engine.Emit("/", "early", "nobody is there")
		mu.Unlock()
		ws.want("41", "closed")
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		want := []string{"connect", "joined", "a", "b", ReasonServerDisconnect}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if n := len(h.engine.Sockets()); n != 0 {
			t.Errorf("%d sockets are left", n)
		}
	})
}
