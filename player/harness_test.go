package player

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tapedeck/player/engine"
	"tapedeck/player/scenario"
	"tapedeck/protocol"
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

func (s *fakeSocket) ID() string        { return s.id }
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
func (s *fakeSocket) Cut()            { s.end("transport close") }

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

// driver is a client that does what a scenario expects of it.
type driver struct {
	*world
	scenario *scenario.Scenario
	thread   string
	windows  map[int]*fakeSocket
	seen     int      // envelopes, of all that window 0 and others saw, looked at
	runs     []string // by RUN_STARTED
	open     []string // decisions
	subs     []string
	task     string // the own thread of the last subagent
	messages int
	said     map[string]string
}

// drive plays a scenario against its gateway, inside a bubble of synctest.
func drive(t *testing.T, w *world, s *scenario.Scenario, thread string) {
	t.Helper()
	d := &driver{world: w, scenario: s, thread: thread, windows: map[int]*fakeSocket{}, said: map[string]string{}}
	for i, m := range s.Client {
		if err := d.move(m); err != nil {
			lines := w.lines()
			t.Fatalf("client move %d: %v\n%s", i+1, err, strings.Join(lines[max(0, len(lines)-10):], "\n"))
		}
	}
	time.Sleep(time.Minute)
	synctest.Wait()
}

func (d *driver) move(m scenario.Move) error {
	if err := d.waitFor(m); err != nil {
		return err
	}
	time.Sleep(m.After)
	window := d.windows[m.Window]
	if m.Leave {
		window.end("client left")
		delete(d.windows, m.Window)
		return nil
	}
	for tries := 0; window == nil || window.left(); tries++ {
		if tries > 10 {
			return fmt.Errorf("no connection after %d tries", tries)
		}
		if window = d.connect(m.Window); window == nil {
			time.Sleep(time.Second)
		}
		d.windows[m.Window] = window
	}
	name := m.Command()
	if name == "" {
		return nil
	}
	payload, err := d.payload(m)
	if err != nil {
		return err
	}
	answer := window.send(string(name), payload)
	synctest.Wait() // what it leads to at once comes before the next move
	var a struct {
		OK    bool
		Error struct{ Code string }
	}
	if err := json.Unmarshal([]byte(answer), &a); err != nil {
		return fmt.Errorf("%s %s was answered %q", name, payload, answer)
	}
	if a.Error.Code != m.Refused || a.OK != (m.Refused == "") {
		return fmt.Errorf("%s %s was answered %s, expected %q", name, payload, answer, m.Refused)
	}
	return nil
}

// waitFor waits until the event came that a move waits for.
func (d *driver) waitFor(m scenario.Move) error {
	kind, count, err := m.Trigger()
	if err != nil {
		return err
	}
	deadline := time.Now().Add(10 * time.Minute)
	for kind != "" {
		synctest.Wait()
		if d.look(kind, &count) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s never came", m.When)
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

// look reads the frames that came, up to the count-th of a kind.
func (d *driver) look(kind string, count *int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.seen < len(d.frames) {
		f := d.frames[d.seen]
		d.seen++
		data, ok := strings.CutPrefix(string(f.Data), `42["`)
		if f.Direction != capture.FromGateway || !ok {
			if f.Kind == capture.End && kind == "end" {
				if *count--; *count == 0 {
					return true
				}
			}
			continue
		}
		name, payload, _ := strings.Cut(strings.TrimSuffix(data, "]"), `",`)
		event := name
		if name == "run:event" {
			var e envelope
			// An envelope that is damaged on purpose has no type here.
			_ = json.Unmarshal([]byte(payload), &e)
			event = e.Event.Type
			d.note(e)
		}
		if event == kind {
			if *count--; *count == 0 {
				return true
			}
		}
	}
	return false
}

func (d *driver) note(e envelope) {
	switch e.Event.Type {
	case "RUN_STARTED":
		d.runs = append(d.runs, e.RunID)
	case "INTERRUPT":
		if !slices.Contains(d.open, e.Event.InterruptID) {
			d.open = append(d.open, e.Event.InterruptID)
		}
	case "SUBAGENT_STARTED":
		d.subs, d.task = append(d.subs, e.Event.ToolCallID), e.Event.ChildThreadID
	}
}

func (d *driver) payload(m scenario.Move) (string, error) {
	thread := quote(d.thread + m.Thread)
	if m.Thread == "task" {
		thread = quote(d.task)
	}
	o := object{}
	switch m.Command() {
	case protocol.RunStart:
		d.messages++
		id := "message-" + strconv.Itoa(d.messages)
		if m.Start.Message != "" {
			id = m.Start.Message
		}
		o = o.raw("threadId", thread).text("messageId", id).text("input", m.Start.Input).
			some("attachments", json.RawMessage(m.Start.Attachments))
		if m.Start.Fork != "" {
			o = o.text("forkFromMessageId", m.Start.Fork)
		}
	case protocol.RunResume:
		id, err := pick(&d.open, m.Which)
		if err != nil {
			return "", err
		}
		o = o.raw("threadId", thread).text("interruptId", id).raw("answer", json.RawMessage(*m.Resume))
	case protocol.RunCancel:
		id := *m.Cancel
		if id == "run" {
			if len(d.runs) == 0 {
				return "", fmt.Errorf("there is no run to cancel")
			}
			id = d.runs[len(d.runs)-1]
		}
		o = o.text("runId", id)
	case protocol.RunDetach:
		o = o.text("runId", d.runs[len(d.runs)-1])
		if *m.Detach != "all" {
			subs := slices.Clone(d.subs)
			id, err := pick(&subs, *m.Detach)
			if err != nil {
				return "", err
			}
			o = o.text("toolCallId", id)
		}
	case protocol.ThreadMessages:
		o = o.raw("threadId", thread)
	}
	if len(m.Tools) > 0 {
		o = o.raw("clientTools", declare(m.Tools))
	}
	return string(o.close()), nil
}

// pick takes the n-th of a list, or an id as it is.
func pick(list *[]string, which string) (string, error) {
	n := 1
	if which != "" {
		var err error
		if n, err = strconv.Atoi(which); err != nil {
			return which, nil
		}
	}
	if n > len(*list) {
		return "", fmt.Errorf("there is no number %d of %v", n, *list)
	}
	id := (*list)[n-1]
	*list = slices.Delete(slices.Clone(*list), n-1, n)
	return id, nil
}

func declare(tools []scenario.ClientDecl) json.RawMessage {
	out := []byte{'['}
	for i, t := range tools {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, object{}.text("name", t.Name).text("description", t.Description).text("kind", t.Kind).
			some("arguments", json.RawMessage(t.Arguments)).some("result", json.RawMessage(t.Result)).close()...)
	}
	return append(out, ']')
}
