package driver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tapedeck/player/engine"
	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

// written is a tape that a test wrote down.
type written struct {
	session capture.Session
	frames  []capture.Frame
}

func (w *written) Sessions(context.Context) ([]capture.Session, error) {
	return []capture.Session{w.session}, nil
}

func (w *written) Frames(_ context.Context, from capture.Position, n int) ([]capture.Frame, error) {
	rest := w.frames[min(int(from)-1, len(w.frames)):]
	return rest[:min(n, len(rest))], nil
}

// write makes a tape of lines "TIME WINDOW WHAT …":
//
//	open [TARGET]        a socket, which the gateway greets; plain JSON if the target has no EIO
//	app TARGET           another application's socket
//	refused              one whose CONNECT is refused
//	> NAME JSON          the client sends a message; with ? in place of >, and asks for an answer
//	= JSON               the gateway answers the latest such question
//	< NAME JSON          the gateway sends a message
//	THREAD RUN TYPE …    the gateway sends an envelope; what follows are the event's other members
//	leave, cut, end      the client leaves, the connection breaks off, the gateway ends it
func write(text string) (*written, error) {
	w := &written{session: capture.Session{ID: 1, First: 1}}
	sockets := map[string]*paper{}
	for line := range strings.Lines(text) {
		fields := strings.SplitN(strings.TrimSpace(line), " ", 3)
		if len(fields) < 3 {
			continue
		}
		at, err := time.ParseDuration(fields[0])
		if err != nil {
			return nil, err
		}
		s := sockets[fields[1]]
		verb, rest, _ := strings.Cut(fields[2], " ")
		if verb == "open" || verb == "app" || verb == "refused" {
			s = &paper{tape: w, connection: capture.Position(len(w.frames) + 1), plain: rest != "" && !strings.Contains(rest, "EIO")}
			sockets[fields[1]] = s
		}
		if s == nil {
			return nil, fmt.Errorf("line %q: that window is not open", line)
		}
		s.at = at
		s.write(verb, rest)
	}
	w.session.Last = capture.Position(len(w.frames))
	return w, nil
}

// paper is a socket that is written down.
type paper struct {
	tape       *written
	connection capture.Position
	plain      bool
	at         time.Duration
	asked      int
	sequences  map[string]int
}

func (s *paper) write(verb, rest string) {
	name, data, _ := strings.Cut(rest, " ")
	switch verb {
	case "open", "app", "refused":
		o := capture.Opening{Transport: capture.SocketIO, EIO: "4", Target: "/socket.io/?EIO=4&transport=websocket"}
		if rest != "" {
			o.Target = rest
		}
		if s.plain {
			o.Transport, o.EIO = capture.WebSocket, ""
		}
		opening, _ := json.Marshal(o) // of strings
		s.add(capture.Open, 0, string(opening))
		if verb == "app" {
			return
		}
		if s.plain {
			s.add(capture.Text, capture.FromGateway, s.event("", "protocol:hello", hello))
			return
		}
		s.add(capture.Text, capture.FromClient, `40{"token":"redacted-00000000-6"}`)
		if verb == "refused" {
			s.add(capture.Text, capture.FromGateway, `44{"message":"unauthorized"}`)
			s.end(capture.FromClient, 1005)
			return
		}
		s.add(capture.Text, capture.FromGateway, `40{"sid":"x"}`)
		s.add(capture.Text, capture.FromGateway, s.event("", "protocol:hello", hello))
	case ">":
		s.add(capture.Text, capture.FromClient, s.event("", name, data))
	case "?":
		s.asked++
		s.add(capture.Text, capture.FromClient, s.event(fmt.Sprint(s.asked), name, data))
	case "=":
		if s.plain {
			s.add(capture.Text, capture.FromGateway, fmt.Sprintf(`{"ack":%d,"data":%s}`, s.asked, rest))
		} else {
			s.add(capture.Text, capture.FromGateway, fmt.Sprintf("43%d[%s]", s.asked, rest))
		}
	case "<":
		s.add(capture.Text, capture.FromGateway, s.event("", name, data))
	case "leave":
		s.end(capture.FromClient, 1005)
	case "cut":
		s.end(capture.FromGateway, 1006)
	case "end":
		s.end(capture.FromGateway, 1000)
	default:
		if s.sequences == nil {
			s.sequences = map[string]int{}
		}
		s.sequences[name]++
		kind, members, _ := strings.Cut(data, " ")
		s.add(capture.Text, capture.FromGateway, s.event("", "run:event", envelope(verb, name, s.sequences[name], kind, members)))
	}
}

const hello = `{"protocol":{"major":1,"minor":17},"minClientMajor":1}`

// event is a message in the form that the socket speaks.
func (s *paper) event(id, name, data string) string {
	switch {
	case !s.plain:
		return fmt.Sprintf("42%s[%q,%s]", id, name, data)
	case id != "":
		return fmt.Sprintf(`{"event":%q,"data":%s,"id":%s}`, name, data, id)
	}
	return fmt.Sprintf(`{"event":%q,"data":%s}`, name, data)
}

func (s *paper) end(by capture.Direction, code int) {
	ending, _ := json.Marshal(capture.Ending{By: by, Code: code}) // of numbers
	s.add(capture.End, 0, string(ending))
}

func (s *paper) add(kind capture.Kind, direction capture.Direction, data string) {
	s.tape.frames = append(s.tape.frames, capture.Frame{
		Position: capture.Position(len(s.tape.frames) + 1), At: s.at, Connection: s.connection,
		Kind: kind, Direction: direction, Data: []byte(data), Size: int64(len(data)),
	})
}

func envelope(thread, run string, sequence int, kind, members string) string {
	if members != "" {
		members = "," + strings.TrimSuffix(strings.TrimPrefix(members, "{"), "}")
	}
	return fmt.Sprintf(`{"v":1,"threadId":%q,"runId":%q,"sequence":%d,"event":{"type":%q%s}}`, thread, run, sequence, kind, members)
}

// memory is a listener whose connections are pipes, so that a fake clock sees
// that everybody waits.
type memory struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (m *memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.conns:
		return c, nil
	case <-m.done:
		return nil, net.ErrClosed
	}
}

func (m *memory) Close() error {
	m.once.Do(func() { close(m.done) })
	return nil
}

func (m *memory) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "memory"} }

func (m *memory) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case m.conns <- server:
		return client, nil
	case <-m.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// serveMemory serves h until the function that it returns is called.
func serveMemory(h http.Handler) (*memory, func() error) {
	m := &memory{conns: make(chan net.Conn), done: make(chan struct{})}
	server := &http.Server{Handler: h}
	served := make(chan error, 1)
	go func() { served <- server.Serve(m) }()
	return m, func() error {
		err := server.Close()
		<-served
		return err
	}
}

// gateway is a live gateway that does what a test wrote down: to each command it
// does what stands below the next "on COMMAND" that nothing came for yet.
type gateway struct {
	engine *engine.Server
	began  time.Time
	refuse int // so many CONNECTs first

	mu     sync.Mutex // protects following
	on     map[string][][]string
	log    []string
	window map[string]int // by the sockets' ids
	runs   int
	doing  sync.WaitGroup
}

// newGateway reads what a gateway does; "refuse N" refuses N sockets first.
func newGateway(text string) *gateway {
	g := &gateway{began: time.Now(), on: map[string][][]string{}, window: map[string]int{}}
	var command string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		verb, rest, _ := strings.Cut(line, " ")
		switch blocks := g.on[command]; {
		case verb == "refuse":
			fmt.Sscan(rest, &g.refuse)
		case verb == "on":
			command = rest
			g.on[command] = append(g.on[command], nil)
		case line != "" && len(blocks) > 0:
			blocks[len(blocks)-1] = append(blocks[len(blocks)-1], line)
		}
	}
	g.engine = engine.New(engine.Config{Connect: g.connect, Joined: g.joined, Event: g.event, Left: g.left})
	return g
}

func (g *gateway) connect(*engine.Socket) *engine.Refusal {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refuse--; g.refuse >= 0 {
		g.note("refused")
		return &engine.Refusal{Message: "unauthorized"}
	}
	return nil
}

func (g *gateway) joined(s *engine.Socket) {
	g.mu.Lock()
	g.window[s.ID()] = len(g.window) + 1
	query := s.Handshake().Query
	query.Del("EIO")
	query.Del("transport")
	g.note("window %d %s", g.window[s.ID()], strings.TrimSpace(string(s.Handshake().Auth)+" "+query.Encode()))
	g.mu.Unlock()
	s.Emit(string(protocol.Hello), json.RawMessage(hello))
}

func (g *gateway) left(s *engine.Socket, reason string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.note("window %d left: %s", g.window[s.ID()], reason)
}

// note writes down what came, and when. The mutex is held.
func (g *gateway) note(format string, args ...any) {
	g.log = append(g.log, fmt.Sprintf("%v ", time.Since(g.began))+fmt.Sprintf(format, args...))
}

func (g *gateway) event(s *engine.Socket, e engine.Event) {
	if len(e.Args) == 0 {
		return
	}
	var c struct{ ThreadID, RunID string }
	json.Unmarshal(e.Args[0], &c) // what it does not have is empty
	g.mu.Lock()
	defer g.mu.Unlock()
	g.note("window %d %s %s", g.window[s.ID()], e.Name, e.Args[0])
	if c.ThreadID != "" {
		s.Join(c.ThreadID)
	}
	blocks := g.on[e.Name]
	if len(blocks) == 0 {
		return
	}
	g.on[e.Name] = blocks[1:]
	if opensRun := e.Name == string(protocol.RunStart) || e.Name == string(protocol.RunResume); opensRun {
		g.runs++
	}
	run := fmt.Sprintf("live-%d", g.runs)
	g.doing.Go(func() { g.do(s, e, c.ThreadID, run, blocks[0]) })
}

// do does what stands below a command:
//
//	wait TIME, = JSON (answers), < NAME JSON, cut, end, thread ID, run ID, after SEQUENCE
//	TYPE [JSON]    an envelope of the run, whose other members follow
func (g *gateway) do(s *engine.Socket, e engine.Event, thread, run string, lines []string) {
	sequence := 0
	for _, line := range lines {
		verb, rest, _ := strings.Cut(line, " ")
		switch verb {
		case "wait":
			d, _ := time.ParseDuration(rest) // a wrong one does not wait, and fails its test
			time.Sleep(d)
		case "=":
			if e.Ack != nil {
				e.Ack(json.RawMessage(rest))
			}
		case "<":
			name, data, _ := strings.Cut(rest, " ")
			s.Emit(name, json.RawMessage(data))
		case "cut":
			s.Cut()
		case "end":
			s.Disconnect(true)
		case "thread":
			thread = rest
		case "run":
			run = rest
		case "after":
			fmt.Sscan(rest, &sequence) // what is no number stays 0
		default:
			sequence++
			g.engine.Emit(s.Namespace(), thread, string(protocol.RunEvent), json.RawMessage(envelope(thread, run, sequence, verb, rest)))
		}
	}
}

// close ends the gateway, once it has done all that it does.
func (g *gateway) close() error {
	g.doing.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return g.engine.Close(ctx)
}

// driveAgainst drives the client of a tape against a gateway, and tells what
// came of it. It is called in a bubble.
func driveAgainst(ctx context.Context, tape *written, g *gateway, o Options) (lines []string, err error) {
	recording, err := Load(ctx, tape, LoadOptions{})
	if err != nil {
		return nil, err
	}
	m, stop := serveMemory(g.engine)
	o.URL, o.Dial, o.Suffix = "http://gateway.test", m.dial, "x"
	result, undriven := recording.Drive(ctx, o)
	synctest.Wait() // for the gateway to hear the farewells
	err = errors.Join(g.close(), stop())
	lines = append(lines, g.log...)
	for _, remark := range recording.Remarks() {
		lines = append(lines, "not driven: "+remark)
	}
	if undriven != nil {
		lines = append(lines, "error: "+undriven.Error())
	}
	if result == nil {
		return lines, err
	}
	for _, d := range result.Divergences {
		lines = append(lines, "parted: "+d.String())
	}
	for _, s := range result.Steps {
		if !s.Done {
			lines = append(lines, fmt.Sprintf("left out: #%s %s: %s", s.At, s.Name, s.Why))
		}
	}
	for _, note := range result.Notes {
		lines = append(lines, "note: "+note)
	}
	for _, r := range result.Runs {
		lines = append(lines, fmt.Sprintf("run: %s %s %s | %s %s %s", r.Thread, orNone(r.ID), r.End, r.LiveThread, orNone(r.LiveID), r.LiveEnd))
	}
	return lines, err
}

func orNone(id string) string {
	if id == "" {
		return "none"
	}
	return id
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
