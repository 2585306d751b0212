// Package engine is a Socket.IO 5 server over Engine.IO 4 for a player: long
// polling, WebSocket and the upgrade between them, namespaces, rooms,
// acknowledgements and binary attachments, and the plain JSON form beside it.
// Payloads go out byte for byte as they were given, and whoever uses it decides
// when a socket ends and how.
package engine

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"time"
)

// Config configures a Server. The zero value of a field means its default.
type Config struct {
	Path           string        // of Socket.IO, "/socket.io/" by default
	PlainPath      string        // of plain JSON sockets, "/ws" by default; "-" for none
	PingInterval   time.Duration // 25 s
	PingTimeout    time.Duration // 20 s
	ConnectTimeout time.Duration // 45 s, in which a CONNECT must come
	UpgradeTimeout time.Duration // 10 s
	MaxPayload     int           // bytes, 1,000,000; Socket.IO's maxHttpBufferSize
	// Origins are the origins that cross-origin requests may come from; "*" for
	// all, none for no CORS headers at all.
	Origins []string
	// Cookie is the name of a session cookie, "" for none.
	Cookie string

	// Connect is asked before a namespace is joined; a Refusal is sent as
	// CONNECT_ERROR. Nil accepts "/" and no other namespace.
	Connect func(s *Socket) *Refusal
	// Joined is called when the CONNECT reply is on its way; what it emits
	// follows the reply.
	Joined func(s *Socket)
	// Event is called for each event, one at a time for a socket, in order.
	Event func(s *Socket, e Event)
	// Left is called once when a joined socket is gone.
	Left func(s *Socket, reason string)

	Logger *slog.Logger // nil discards
}

// Refusal is a CONNECT_ERROR.
type Refusal struct {
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Event is an event that a client sent.
type Event struct {
	Name        string
	Args        []json.RawMessage // after the name, as sent
	Attachments [][]byte
	// Ack answers the event; nil if no acknowledgement was asked for. A second
	// call does nothing.
	Ack func(args ...json.RawMessage)
}

// Handshake is what a client brought along.
type Handshake struct {
	Auth   json.RawMessage // of its CONNECT, {} if there was none
	Header http.Header
	Query  url.Values
	Remote string
}

// Server is an http.Handler. Use New.
type Server struct{}

// New returns a server that is ready to serve.
func New(c Config) *Server { return &Server{} }

// ServeHTTP serves the two paths, and answers 404 elsewhere.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {}

// Emit sends an event to all sockets of a namespace that are in a room. The
// arguments go out as they are.
func (s *Server) Emit(namespace, room, name string, args ...json.RawMessage) {}

// Sockets returns the sockets that are joined now.
func (s *Server) Sockets() []*Socket { return nil }

// Close ends all sockets, by 1001 where they are WebSockets, and waits for the
// server's goroutines, or for ctx.
func (s *Server) Close(ctx context.Context) error { return nil }

// Socket is a client's place in a namespace, or a plain JSON socket.
type Socket struct{}

// ID returns the Socket.IO session id.
func (s *Socket) ID() string { return "" }

// Namespace returns the namespace, "" for a plain socket.
func (s *Socket) Namespace() string { return "" }

// Handshake returns what the client brought along.
func (s *Socket) Handshake() Handshake { return Handshake{} }

// Emit sends an event to this socket. The arguments go out as they are.
func (s *Socket) Emit(name string, args ...json.RawMessage) {}

// EmitBinary sends an event with attachments; args hold their placeholders.
func (s *Socket) EmitBinary(name string, attachments [][]byte, args ...json.RawMessage) {}

// EmitAck sends an event and calls done with the client's answer, or with an
// error when the socket ends first.
func (s *Socket) EmitAck(name string, done func(args []json.RawMessage, err error), args ...json.RawMessage) {
}

// Join and Leave enter and leave a room of the socket's namespace.
func (s *Socket) Join(room string)  {}
func (s *Socket) Leave(room string) {}

// Disconnect sends a DISCONNECT. With engine it ends the connection too.
func (s *Socket) Disconnect(engine bool) {}

// Cut drops the connection as a broken network does: no packet, no close frame.
func (s *Socket) Cut() {}
