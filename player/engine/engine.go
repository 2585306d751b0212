package engine

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"
)

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
	// AckBinary is Ack with attachments; args hold their placeholders. It is nil
	// if Ack is, and on a plain socket.
	AckBinary func(attachments [][]byte, args ...json.RawMessage)
}

// Handshake is what a client brought along.
type Handshake struct {
	Auth   json.RawMessage // of its CONNECT, {} if there was none
	Header http.Header
	Query  url.Values
	Remote string
}

// The reasons that Left is given. All but ReasonQueue are socket.io's own words.
const (
	ReasonTransportClose   = "transport close"
	ReasonTransportError   = "transport error"
	ReasonParse            = "parse error"
	ReasonPing             = "ping timeout"
	ReasonClientDisconnect = "client namespace disconnect"
	ReasonServerDisconnect = "server namespace disconnect"
	ReasonForcedServer     = "forced server close"
	ReasonForced           = "forced close"
	ReasonShutdown         = "server shutting down"
	// ReasonQueue: more than MaxQueue bytes waited for the client.
	ReasonQueue = "client does not read"
)

// ErrGone is given to the callback of EmitAck when the socket ended before it
// was answered.
var ErrGone = errors.New("socket has been disconnected")

// Server is an http.Handler. Use New.
type Server struct {
	config Config
	hub    hub
	// work counts the goroutines that are the server's: requests, writers,
	// farewells. It holds one for the server itself until Close.
	work sync.WaitGroup
	// buffers are gorilla's, for frames that it is never asked to write.
	buffers sync.Pool

	mu      sync.Mutex // guards what follows
	conns   map[string]*conn
	links   map[*link]struct{}
	parting map[string]time.Time // see part
	closed  bool
}

// New returns a server that is ready to serve. It panics if c is not valid; see
// [Config.Validate].
func New(c Config) *Server {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	s := &Server{
		config:  c.withDefaults(),
		conns:   make(map[string]*conn),
		links:   make(map[*link]struct{}),
		parting: make(map[string]time.Time),
	}
	s.hub.spaces = make(map[string]*space)
	s.hub.recovery = c.Recovery
	s.work.Add(1)
	return s
}

// Emit sends an event to all sockets of a namespace that are in a room, or to
// all of the namespace if room is "". A socket's id is a room of its own. The
// arguments go out as they are. In the namespace "" are the plain sockets: they
// get the one argument as data, and several as an array.
func (s *Server) Emit(namespace, room, name string, args ...json.RawMessage) {
	s.hub.emit(namespace, room, func(offset string) []packet {
		return encodeEvent(namespace, "", name, nil, args, offset)
	})
}

// EmitRaw sends an event to a room like Emit; array is its JSON array, the name
// first, and goes out byte for byte. Plain sockets, which have no such form, do
// not get it.
func (s *Server) EmitRaw(namespace, room string, array json.RawMessage, attachments ...[]byte) {
	if namespace == plainNamespace {
		return
	}
	s.hub.emit(namespace, room, func(offset string) []packet {
		return encodeArray(namespace, array, attachments, offset)
	})
}

// Sockets returns the sockets that are joined now, each namespace's in the order
// in which they joined.
func (s *Server) Sockets() []*Socket { return s.hub.all() }

// Close ends all sockets, by 1001 where they are WebSockets, and waits for the
// server's goroutines, callbacks included, or for ctx; then it cuts what is left
// and returns ctx's error. Requests that come later are answered 503.
func (s *Server) Close(ctx context.Context) error {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	conns := make([]*conn, 0, len(s.conns))
	for _, c := range s.conns {
		conns = append(conns, c)
	}
	s.mu.Unlock()
	for _, c := range conns {
		c.end(ReasonShutdown, ending{answer: packetClose, close: closePayload(1001, ReasonShutdown)})
	}
	if first {
		s.work.Done()
	}
	done := make(chan struct{})
	go func() {
		s.work.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	links := make([]*link, 0, len(s.links))
	for l := range s.links {
		links = append(links, l)
	}
	s.mu.Unlock()
	for _, l := range links {
		l.cut()
	}
	return ctx.Err()
}

// enter counts a request as work, unless the server is closed.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.work.Add(1)
	return true
}

// add registers a connection; false if the server is closed.
func (s *Server) add(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.conns[c.id] = c
	s.work.Add(1) // until the connection has said farewell
	return true
}

func (s *Server) remove(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c.id)
}

func (s *Server) find(sid string) *conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns[sid]
}

// partingTime is how long a GET may lag behind the POST that closed its session.
const partingTime = time.Second

// part notes that a polling client said goodbye while no GET of it was here. A
// client sends its last GET and its goodbye at once, on two TCP connections; if
// the goodbye overtakes, that GET must still find an end that is no error.
func (s *Server) part(sid string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for id, until := range s.parting {
		if now.After(until) {
			delete(s.parting, id)
		}
	}
	s.parting[sid] = now.Add(partingTime)
}

// parted reports whether a GET of this session is the one that part waits for.
func (s *Server) parted(sid string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	until, ok := s.parting[sid]
	delete(s.parting, sid)
	return ok && time.Now().Before(until)
}

// newID returns an id of the form that Socket.IO uses: 15 random bytes.
func newID() string {
	var b [15]byte
	rand.Read(b[:]) // never fails, by its documentation
	return base64.RawURLEncoding.EncodeToString(b[:])
}
