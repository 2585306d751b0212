package engine

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestNpmClient runs testdata/client.cjs: npm's socket.io-client against engines
// on loopback, over polling, over WebSocket, and over the upgrade. The client is
// looked for in TAPEDECK_NODE_MODULES, or in testdata/node_modules.
func TestNpmClient(t *testing.T) {
	modules := nodeModules(t)
	var gateway npmGateway
	engines := map[string]string{}
	for name, c := range map[string]Config{
		"main":       {},
		"small":      {MaxPayload: 1000},
		"quick":      {PingInterval: 200 * time.Millisecond, PingTimeout: 500 * time.Millisecond},
		"recovering": {Recovery: time.Minute},
	} {
		gateway.configure(&c)
		h := serveTCP(t, c)
		engines[name] = "http://" + h.addr
	}
	addresses, err := json.Marshal(engines)
	if err != nil {
		t.Fatal(err)
	}
	node := exec.CommandContext(t.Context(), "node", filepath.Join("testdata", "client.cjs"))
	node.Env = append(os.Environ(), "TAPEDECK_NODE_MODULES="+modules, "ENGINES="+string(addresses))
	node.Stderr = os.Stderr
	out, err := node.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	passed, done := 0, ""
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "ok "):
			passed++
		case strings.HasPrefix(line, "done "):
			done = line
		default:
			t.Error(line)
		}
	}
	if err := node.Wait(); err != nil {
		t.Error(err)
	}
	if want := "done " + strconv.Itoa(passed); done != want || passed == 0 {
		t.Errorf("%d checks passed, and the client said %q at its end", passed, done)
	}
	gateway.trickles.Wait()
	t.Logf("%d checks passed", passed)
}

// nodeModules finds the client, or skips the test, which CI does not let it.
func nodeModules(t *testing.T) string {
	modules := os.Getenv("TAPEDECK_NODE_MODULES")
	if modules == "" {
		modules = filepath.Join("testdata", "node_modules")
	}
	modules, err := filepath.Abs(modules)
	if err == nil {
		_, err = os.Stat(filepath.Join(modules, "socket.io-client", "package.json"))
	}
	if err == nil {
		_, err = exec.LookPath("node")
	}
	switch {
	case err == nil:
		return modules
	case os.Getenv("CI") == "true":
		t.Fatalf("%v: CI needs node, and npm's socket.io-client 4.8 where TAPEDECK_NODE_MODULES says", err)
	}
	t.Skipf("%v: for this test install node, and socket.io-client 4.8 by npm, and let TAPEDECK_NODE_MODULES name the node_modules folder", err)
	return ""
}

// npmGateway does for testdata/client.cjs what its events ask for.
type npmGateway struct {
	mu         sync.Mutex
	why        map[string]string // sockets that left, and their reasons
	unanswered map[string]string // sockets that were asked, and why they did not answer
	trickles   sync.WaitGroup
}

func (g *npmGateway) configure(c *Config) {
	if g.why == nil {
		g.why, g.unanswered = map[string]string{}, map[string]string{}
	}
	c.Connect = func(s *Socket) *Refusal {
		switch s.Namespace() {
		case "/", "/custom":
			return nil
		case "/admin":
			if string(s.Handshake().Auth) == `{"token":"good"}` {
				return nil
			}
			return &Refusal{Message: "not authorized", Data: json.RawMessage(`{"code":401}`)}
		}
		return &Refusal{Message: "Invalid namespace"}
	}
	c.Joined = func(s *Socket) {
		query := s.Handshake().Query
		if query.Has("greet") {
			s.Emit("greeting")
		}
		if query.Has("trickle") {
			g.trickles.Go(func() {
				for n := range 40 {
					s.Emit("number", json.RawMessage(strconv.Itoa(n)))
					time.Sleep(5 * time.Millisecond)
				}
			})
		}
	}
	c.Left = func(s *Socket, reason string) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.why[s.ID()] = reason
	}
	c.Event = g.event
}

func (g *npmGateway) event(s *Socket, e Event) {
	var text string
	var number int
	if len(e.Args) > 0 {
		json.Unmarshal(e.Args[0], &text)
		json.Unmarshal(e.Args[0], &number)
	}
	switch e.Name {
	case "echo":
		all := []byte{'['}
		all = append(appendValues(all, e.Args), ']')
		e.AckBinary(e.Attachments, all)
	case "nothing":
		e.Ack()
	case "back":
		s.EmitBinary("came back", e.Attachments, e.Args...)
	case "whoami":
		h := s.Handshake()
		e.Ack(marshal(map[string]any{
			"id": s.ID(), "namespace": s.Namespace(), "connection": s.Connection(), "transport": s.Transport(),
			"auth": h.Auth, "tenant": h.Query.Get("tenant"), "header": h.Header.Get("X-Run"),
		}))
	case "ask me":
		s.EmitBinaryAck("question", nil, func(args []json.RawMessage, attachments [][]byte, err error) {
			if err != nil {
				g.mu.Lock()
				defer g.mu.Unlock()
				g.unanswered[s.ID()] = err.Error()
				return
			}
			s.EmitBinary("answered", attachments, args...)
		}, e.Args...)
	case "unanswered", "why left":
		g.mu.Lock()
		found := g.why[text]
		if e.Name == "unanswered" {
			found = g.unanswered[text]
		}
		g.mu.Unlock()
		e.Ack(marshal(found))
	case "count", "count and bye":
		for n := range number {
			s.Emit("number", json.RawMessage(strconv.Itoa(n)))
		}
		if e.Name != "count" {
			s.Disconnect(true)
		}
	case "raw":
		s.EmitRaw(json.RawMessage(text))
	case "packet":
		s.SendPacket([]byte(text))
	case "frame":
		s.SendFrame(false, []byte(text))
	case "big":
		s.Emit("bulk", marshal(strings.Repeat("x", number)))
	case "enter":
		s.Join(text)
		e.Ack()
	case "leave":
		s.Leave(text)
		e.Ack()
	case "say":
		g.say(s, text, e.Args[1])
		e.Ack()
	case "bye":
		s.Disconnect(string(e.Args[0]) == "true")
	case "close":
		s.Close(number, "as you asked")
	case "cut":
		s.Cut()
	case "cut and say":
		s.Cut()
		g.say(s, text, e.Args[1])
	}
}

// say emits to a room of the socket's engine.
func (g *npmGateway) say(s *Socket, room string, what json.RawMessage) {
	s.conn.server.Emit(s.Namespace(), room, "said", what)
}

func marshal(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // the test's own values
	}
	return b
}
