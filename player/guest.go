package player

import (
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"tapedeck/player/engine"
	"tapedeck/protocol"
)

// guest is what the gateway knows of a socket.
type guest struct {
	threads map[*thread]bool // whose rooms it is in; Gateway.mu protects it
}

// admit decides whether a socket may join a namespace.
func (g *Gateway) admit(h engine.Handshake) *engine.Refusal {
	var auth struct {
		Token string `json:"token"`
	}
	// Auth of another shape has no token.
	_ = json.Unmarshal(h.Auth, &auth)
	if !g.allowed(auth.Token) && !g.allowed(h.Query.Get("token")) && !g.allowed(bearer(h.Header)) {
		return &engine.Refusal{Message: "unauthorized: auth.token is missing or wrong", Data: json.RawMessage(`{"code":401}`)}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if greeter, ok := g.source.(Greeter); ok && g.refused >= 0 {
		refusal := greeter.Refuse(g.refused)
		if g.refused++; refusal == nil {
			g.refused = -1
		}
		return refusal
	}
	if g.house == nil {
		return nil
	}
	if g.refused < g.house.Gateway.Refuse {
		g.refused++
		return &engine.Refusal{Message: "unauthorized: this scenario refuses the first attempts", Data: json.RawMessage(`{"code":401}`)}
	}
	return nil
}

func (g *Gateway) allowed(token string) bool {
	return g.config.Token == "" || subtle.ConstantTimeCompare([]byte(token), []byte(g.config.Token)) == 1
}

func bearer(h http.Header) string {
	scheme, token, _ := strings.Cut(h.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// joined announces the protocol to a new socket. One that took up a lost session
// is in its threads' rooms again.
func (g *Gateway) joined(s socket) {
	g.mu.Lock()
	g.guests[s] = &guest{threads: map[*thread]bool{}}
	g.mu.Unlock()
	for _, room := range s.Rooms() {
		if t, err := g.existing(room); err == nil {
			t.lock()
			g.enter(s, t)
			t.unlock()
		}
	}
	g.config.Logger.Info("socket joined", "socket", s.ID(), "namespace", s.Namespace())
	if hello := g.announcement(); hello != nil {
		s.Emit(string(protocol.Hello), hello)
	}
}

// announcement is what protocol:hello says, nil for nothing.
func (g *Gateway) announcement() json.RawMessage {
	if greeter, ok := g.source.(Greeter); ok {
		return greeter.Hello()
	}
	g.mu.Lock()
	house := g.house
	g.mu.Unlock()
	if house == nil || house.Gateway.Hello.IsZero() {
		return defaultHello()
	}
	if string(house.Gateway.Hello) == `"none"` {
		return nil
	}
	return json.RawMessage(house.Gateway.Hello)
}

// left forgets a socket.
func (g *Gateway) left(s socket, reason string) {
	g.mu.Lock()
	var threads []*thread
	if guest := g.guests[s]; guest != nil {
		for t := range guest.threads {
			threads = append(threads, t)
		}
	}
	delete(g.guests, s)
	g.mu.Unlock()
	g.config.Logger.Info("socket left", "socket", s.ID(), "reason", reason)
	for _, t := range threads {
		t.lock()
		delete(t.sockets, s)
		t.unlock()
	}
}

// enter puts a socket into a thread's room. The caller holds the thread's lock.
func (g *Gateway) enter(s socket, t *thread) {
	g.mu.Lock()
	guest := g.guests[s]
	if guest != nil {
		guest.threads[t] = true
	}
	g.mu.Unlock()
	if guest == nil || t.sockets[s] {
		return
	}
	s.Join(t.id)
	t.sockets[s] = true
	if !slices.Contains(t.namespaces, s.Namespace()) {
		t.namespaces = append(t.namespaces, s.Namespace())
	}
}

// emit sends a message to a thread's room. The caller holds the thread's lock.
func (g *Gateway) emit(t *thread, name protocol.Name, payload json.RawMessage) {
	for _, namespace := range t.namespaces {
		g.rooms.Emit(namespace, t.id, string(name), payload)
	}
}
