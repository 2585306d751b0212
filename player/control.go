package player

import (
	"cmp"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"tapedeck/player/scenario"
	"tapedeck/player/script"
	"tapedeck/protocol"
)

// Control configures the control API, by which UI tests drive the gateway.
type Control struct {
	Off     bool
	Apart   bool     // Gateway.ControlAPI alone serves it, and not the gateway's own address
	Path    string   // "/__tapedeck" by default
	Token   string   // asked for as a bearer token, if it is not ""
	Hosts   []string // allowed Host names besides loopback ones
	Origins []string // allowed Origins besides the gateway's own
}

func (c Control) path() string {
	return strings.TrimSuffix(cmp.Or(c.Path, "/__tapedeck"), "/")
}

// guard keeps web pages of elsewhere from driving the gateway.
func (c Control) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !c.ownHost(r.Host) {
			problem(w, http.StatusForbidden, "FOREIGN_HOST", "the control API answers on loopback names, not on %q: allow it by --control-host", r.Host)
			return
		}
		if origin := r.Header.Get("Origin"); origin != "" && !slices.Contains(c.Origins, origin) && !ownOrigin(origin, r.Host) {
			problem(w, http.StatusForbidden, "FOREIGN_ORIGIN", "pages of %q may not use the control API: allow them by --control-origin", origin)
			return
		}
		if c.Token != "" && subtle.ConstantTimeCompare([]byte(bearer(r.Header)), []byte(c.Token)) != 1 {
			problem(w, http.StatusUnauthorized, "UNAUTHORIZED", "the control API asks for its own bearer token")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (c Control) ownHost(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.Trim(name, "[]")
	if slices.Contains(c.Hosts, name) || slices.Contains(c.Hosts, host) || strings.EqualFold(name, "localhost") {
		return true
	}
	ip := net.ParseIP(name)
	return ip != nil && ip.IsLoopback()
}

func ownOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Host == host
}

// ControlAPI serves the control API alone, for an address of its own.
func (g *Gateway) ControlAPI() http.Handler {
	mux := http.NewServeMux()
	g.addControl(mux)
	return mux
}

func (g *Gateway) addControl(mux *http.ServeMux) {
	control := g.config.Control
	mux.Handle(control.path()+"/", control.guard(http.StripPrefix(control.path(), g.controls())))
}

// controls are the calls of the control API.
func (g *Gateway) controls() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /state", answer(func(*http.Request, []byte) (any, error) { return g.state(), nil }))
	mux.HandleFunc("GET /scenarios", answer(func(*http.Request, []byte) (any, error) { return scenario.Names(), nil }))
	mux.HandleFunc("POST /scenario", answer(g.controlScenario))
	mux.HandleFunc("POST /pause", answer(func(*http.Request, []byte) (any, error) { g.Pause(true); return nil, nil }))
	mux.HandleFunc("POST /resume", answer(func(*http.Request, []byte) (any, error) { g.Pause(false); return nil, nil }))
	mux.HandleFunc("POST /step", answer(g.controlStep))
	mux.HandleFunc("POST /speed", answer(g.controlSpeed))
	mux.HandleFunc("POST /inject", answer(g.controlInject))
	mux.HandleFunc("POST /drop", answer(g.controlDrop))
	mux.HandleFunc("POST /reset", answer(func(*http.Request, []byte) (any, error) { g.Reset(); return nil, nil }))
	mux.HandleFunc("GET /journal", answer(g.controlJournal))
	mux.HandleFunc("GET /verify", answer(g.controlVerify))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		problem(w, http.StatusNotFound, "NOT_FOUND", "there is no %s %s: there are GET state, scenarios, journal and verify, "+
			"and POST scenario, pause, resume, step, speed, inject, drop and reset", r.Method, r.URL.Path)
	})
	return mux
}

// answer makes a handler of a call: its value becomes JSON, {"ok":true} if there
// is none.
func answer(call func(r *http.Request, body []byte) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			problem(w, http.StatusBadRequest, "INVALID_BODY", "read body: %v", err)
			return
		}
		value, err := call(r, body)
		if err != nil {
			problem(w, http.StatusBadRequest, "INVALID_CALL", "%v", err)
			return
		}
		if value == nil {
			value = map[string]bool{"ok": true}
		}
		out, err := json.Marshal(value)
		if err != nil {
			problem(w, http.StatusInternalServerError, "INTERNAL", "encode answer: %v", err)
			return
		}
		writeJSON(w, http.StatusOK, out)
	}
}

// readCall reads the body of a call strictly. An empty body is {}.
func readCall(body []byte, into any) error {
	if len(body) == 0 {
		return nil
	}
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("read body: %w", err)
	}
	return nil
}

func (g *Gateway) controlScenario(_ *http.Request, body []byte) (any, error) {
	var c struct{ Scenario, Thread string }
	if err := readCall(body, &c); err != nil {
		return nil, err
	}
	synthetic, ok := g.source.(*scenarios)
	if !ok {
		return nil, errors.New("this player serves no scenarios")
	}
	if _, err := synthetic.find(c.Scenario); err != nil {
		return nil, err
	}
	if c.Thread == "" {
		g.chosen.chooseNext(c.Scenario)
		return nil, nil
	}
	made := choice{name: c.Scenario}
	if t, err := g.existing(c.Thread); err == nil {
		t.lock()
		made.since = len(t.past.turns)
		t.unlock()
	}
	g.chosen.choose(c.Thread, made)
	return nil, nil
}

func (g *Gateway) controlStep(_ *http.Request, body []byte) (any, error) {
	c := struct{ Steps int }{1}
	if err := readCall(body, &c); err != nil {
		return nil, err
	}
	if _, held, _ := g.stage.pace(); !held {
		return nil, errors.New("the clock runs: pause it before stepping")
	}
	if c.Steps < 1 || c.Steps > 1_000_000 {
		return nil, fmt.Errorf("steps %d is not from 1 to 1000000", c.Steps)
	}
	g.Step(c.Steps)
	return nil, nil
}

func (g *Gateway) controlSpeed(_ *http.Request, body []byte) (any, error) {
	var c struct{ Speed any }
	if err := readCall(body, &c); err != nil {
		return nil, err
	}
	switch speed := c.Speed.(type) {
	case float64:
		return nil, g.SetSpeed(speed)
	case string:
		if speed == "max" {
			return nil, g.SetSpeed(math.Inf(1))
		}
	}
	return nil, fmt.Errorf("speed %v is neither a number above 0 nor \"max\"", c.Speed)
}

// controlInject sends an event in a thread's run in flight, or a message to its
// room.
func (g *Gateway) controlInject(_ *http.Request, body []byte) (any, error) {
	var c struct {
		Thread  string
		Event   json.RawMessage
		Message string
		Payload json.RawMessage
	}
	if err := readCall(body, &c); err != nil {
		return nil, err
	}
	t, err := g.existing(c.Thread)
	if err != nil {
		return nil, err
	}
	t.lock()
	defer t.unlock()
	switch {
	case c.Message != "":
		if c.Payload == nil {
			c.Payload = json.RawMessage("null")
		}
		g.emit(t, protocol.Name(c.Message), c.Payload)
	case c.Event == nil:
		return nil, errors.New("give an event, or a message and its payload")
	case t.run == nil:
		return nil, fmt.Errorf("thread %q has no run in flight to inject into", c.Thread)
	default:
		g.emitEvent(t.run, readEvent(c.Event))
	}
	return nil, nil
}

// readEvent reads of an event what the gateway needs to know.
func readEvent(raw json.RawMessage) script.Event {
	var e struct {
		Type        protocol.EventType `json:"type"`
		MessageID   string             `json:"messageId"`
		ToolCallID  string             `json:"toolCallId"`
		InterruptID string             `json:"interruptId"`
		Delta       json.RawMessage    `json:"delta"`
	}
	// What cannot be read is sent as it is, and counts for nothing.
	_ = json.Unmarshal(raw, &e)
	return script.Event{Type: e.Type, ID: cmp.Or(e.ToolCallID, e.MessageID, e.InterruptID), JSON: raw, Delta: e.Delta}
}

// controlDrop ends sockets: one, those of a thread, or all.
func (g *Gateway) controlDrop(_ *http.Request, body []byte) (any, error) {
	var c struct {
		Socket, Thread string
		Politely       bool
	}
	if err := readCall(body, &c); err != nil {
		return nil, err
	}
	var ends []socket
	g.mu.Lock()
	for s, guest := range g.guests {
		inThread := c.Thread == ""
		for t := range guest.threads {
			inThread = inThread || t.id == c.Thread
		}
		if inThread && (c.Socket == "" || c.Socket == s.ID()) {
			ends = append(ends, s)
		}
	}
	g.mu.Unlock()
	for _, s := range ends {
		if c.Politely {
			s.Disconnect(true)
		} else {
			s.Cut()
		}
	}
	return map[string]int{"dropped": len(ends)}, nil
}

// existing returns a thread that a command or a setting has made.
func (g *Gateway) existing(id string) (*thread, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t := g.threads[id]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("no client has spoken of thread %q yet", id)
}

func (g *Gateway) controlJournal(r *http.Request, _ []byte) (any, error) {
	q := r.URL.Query()
	for key := range q {
		if key != "thread" && key != "command" && key != "refused" {
			return nil, fmt.Errorf("the journal is filtered by thread, command and refused, not by %q", key)
		}
	}
	return g.journal.read(func(e journalEntry) bool {
		return (q.Get("thread") == "" || q.Get("thread") == e.Thread) &&
			(q.Get("command") == "" || q.Get("command") == string(e.Name)) &&
			(q.Get("refused") == "" || q.Get("refused") == "true" == (e.Refused != nil))
	}), nil
}
