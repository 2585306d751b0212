package player

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tapedeck/player/engine"
	"tapedeck/protocol/capture"
)

// world is a gateway whose sockets are fakes, and everything that passed on
// them, as the frames that a proxy would have seen.
type world struct {
	t       *testing.T
	gateway *Gateway
	began   time.Time

	mu      sync.Mutex
	frames  []*capture.Frame
	windows map[capture.Position]int // of the connections
	sockets []*fakeSocket
}

func newWorld(t *testing.T, c Config) *world {
	t.Helper()
	g, err := assemble(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, gateway: g, began: time.Now(), windows: map[capture.Position]int{}}
	g.rooms = w
	t.Cleanup(g.stage.close)
	return w
}

// Emit is the engine's: to the sockets of a room.
func (w *world) Emit(namespace, room, name string, args ...json.RawMessage) {
	w.mu.Lock()
	members := slices.Clone(w.sockets)
	w.mu.Unlock()
	for _, s := range members {
		if s.namespace == namespace && s.in(room) {
			s.Emit(name, args...)
		}
	}
}

// frame records what passed on a connection.
func (w *world) frame(s *fakeSocket, d capture.Direction, kind capture.Kind, data string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := &capture.Frame{Position: capture.Position(len(w.frames) + 1), At: time.Since(w.began), Connection: s.connection,
		Direction: d, Kind: kind, Size: int64(len(data)), Data: []byte(data)}
	if kind == capture.Open {
		s.connection = f.Position
		f.Connection = f.Position
	}
	w.frames = append(w.frames, f)
	w.windows[s.connection] = s.window
}

// lines are the frames for a person.
func (w *world) lines() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var lines []string
	for _, f := range w.frames {
		if line := readable(string(f.Data)); line != "" {
			arrow := map[capture.Direction]string{capture.FromClient: ">", capture.FromGateway: "<"}[f.Direction]
			lines = append(lines, fmt.Sprintf("%9.3f  window %d %s %s", f.At.Seconds(), w.windows[f.Connection], arrow, line))
		}
	}
	return lines
}

// readable is a frame for a golden file: what is not the protocol's is left out.
func readable(data string) string {
	body := strings.TrimLeft(data, "0123456789-")
	kind := strings.TrimPrefix(data, "4")
	switch {
	case strings.HasPrefix(kind, "2") && strings.HasPrefix(body, "["):
		var parts []json.RawMessage
		if json.Unmarshal([]byte(body), &parts) != nil || len(parts) < 2 {
			return body
		}
		return readableMessage(plainText(parts[0]), parts[1])
	case strings.HasPrefix(kind, "3") && strings.HasPrefix(body, "["):
		return "ack " + strings.TrimSuffix(strings.TrimPrefix(body, "["), "]")
	case strings.HasPrefix(kind, "5"):
		return "binary " + body
	}
	return ""
}

// readableMessage writes an envelope as its run, its sequence, its type and the
// rest of its event; what is as it should be is left out.
func readableMessage(name string, payload json.RawMessage) string {
	var e struct {
		V        int
		ThreadID string
		RunID    string
		Sequence json.Number
		Event    json.RawMessage
	}
	if name != "run:event" || json.Unmarshal(payload, &e) != nil || e.V != 1 {
		return name + " " + string(payload)
	}
	event := strings.TrimSuffix(strings.TrimPrefix(string(e.Event), `{"type":"`), "}")
	kind, rest, _ := strings.Cut(event, `"`)
	line := fmt.Sprintf("%s #%s %s {%s}", e.RunID, e.Sequence, kind, strings.TrimPrefix(rest, ","))
	if e.ThreadID != "thread-1" {
		line = e.ThreadID + " " + line
	}
	return line
}

func plainText(v json.RawMessage) string {
	s, err := strconv.Unquote(string(v))
	if err != nil {
		return string(v)
	}
	return s
}

// fakeSocket is a client's socket.
type fakeSocket struct {
	world      *world
	id         string
	window     int
	namespace  string
	connection capture.Position

	mu    sync.Mutex
	rooms []string
	gone  bool
	asked int
	got   []received
}

// received is a message that a client got.
type received struct {
	name    string
	payload string
}

// connect brings a socket to the gateway, as the engine does.
func (w *world) connect(window int) *fakeSocket {
	w.mu.Lock()
	s := &fakeSocket{world: w, id: "socket-" + strconv.Itoa(len(w.sockets)+1), window: window, namespace: "/"}
	w.sockets = append(w.sockets, s)
	w.mu.Unlock()
	w.frame(s, 0, capture.Open, `{"transport":"socket.io","eio":"4","target":"/socket.io/?EIO=4&transport=websocket","remote":"127.0.0.1:1"}`)
	w.frame(s, capture.FromGateway, capture.Text, `0{"sid":"e`+s.id+`","upgrades":[],"pingInterval":25000,"pingTimeout":20000,"maxPayload":1000000}`)
	w.frame(s, capture.FromClient, capture.Text, "40")
	if refusal := w.gateway.admit(engine.Handshake{}); refusal != nil {
		w.frame(s, capture.FromGateway, capture.Text, "44"+marshal(refusal))
		s.end("refused")
		return nil
	}
	w.frame(s, capture.FromGateway, capture.Text, `40{"sid":"`+s.id+`"}`)
	w.gateway.joined(s)
	return s
}

func marshal(v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(out)
}

func (s *fakeSocket) ID() string { return s.id }

func (s *fakeSocket) Namespace() string { return s.namespace }

func (s *fakeSocket) Emit(name string, args ...json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return
	}
	var payload []byte
	for _, arg := range args {
		payload = append(append(payload, ','), arg...)
	}
	s.got = append(s.got, received{name, strings.TrimPrefix(string(payload), ",")})
	s.world.frame(s, capture.FromGateway, capture.Text, fmt.Sprintf("42[%q%s]", name, payload))
}

func (s *fakeSocket) EmitBinary(name string, attachments [][]byte, args ...json.RawMessage) {
	s.world.frame(s, capture.FromGateway, capture.Text, fmt.Sprintf("45%d-[%q,%s]", len(attachments), name, args[0]))
	for _, a := range attachments {
		s.world.frame(s, capture.FromGateway, capture.Binary, string(a))
	}
}

func (s *fakeSocket) Rooms() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.rooms)
}

func (s *fakeSocket) Behind() bool { return false }

func (s *fakeSocket) Join(room string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rooms = append(s.rooms, room)
}

func (s *fakeSocket) Leave(room string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rooms = slices.DeleteFunc(s.rooms, func(r string) bool { return r == room })
}

func (s *fakeSocket) in(room string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.gone && slices.Contains(s.rooms, room)
}

func (s *fakeSocket) Disconnect(bool) { s.end("io server disconnect") }

func (s *fakeSocket) Cut() { s.end("transport close") }

// end is the end of a connection, by whomever.
func (s *fakeSocket) end(reason string) {
	s.mu.Lock()
	gone := s.gone
	s.gone = true
	s.mu.Unlock()
	if gone {
		return
	}
	by := capture.FromGateway
	if reason == "client left" {
		by = capture.FromClient
	}
	s.world.frame(s, 0, capture.End, marshal(capture.Ending{By: by, Code: 1005}))
	s.world.gateway.left(s, reason)
}

// left reports whether the connection has ended.
func (s *fakeSocket) left() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone
}

// send sends a command and returns its acknowledgement.
func (s *fakeSocket) send(name, payload string) string {
	s.world.frame(s, capture.FromClient, capture.Text, fmt.Sprintf("42%d[%q,%s]", s.asked, name, payload))
	id := s.asked
	s.asked++
	var answer string
	s.world.gateway.event(s, engine.Event{Name: name, Args: []json.RawMessage{json.RawMessage(payload)}, Ack: func(args ...json.RawMessage) {
		answer = string(args[0])
		if !s.left() {
			s.world.frame(s, capture.FromGateway, capture.Text, fmt.Sprintf("43%d[%s]", id, answer))
		}
	}})
	return answer
}

// messages returns what a socket got, and forgets it.
func (s *fakeSocket) messages() []received {
	s.mu.Lock()
	defer s.mu.Unlock()
	got := s.got
	s.got = nil
	return got
}

// envelopes are the envelopes that a socket got so far.
func (s *fakeSocket) envelopes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, m := range s.got {
		if m.name == "run:event" {
			out = append(out, m.payload)
		}
	}
	return out
}

// envelope is what a client reads of an envelope.
type envelope struct {
	V        int
	ThreadID string
	RunID    string
	Sequence int64
	Event    struct {
		Type, MessageID, Delta, ToolCallID, InterruptID, ChildThreadID string
	}
}

func readEnvelope(t *testing.T, payload string) envelope {
	t.Helper()
	var e envelope
	if err := json.Unmarshal([]byte(payload), &e); err != nil {
		t.Fatalf("read envelope %s: %v", payload, err)
	}
	return e
}
