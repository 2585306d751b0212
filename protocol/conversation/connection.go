package conversation

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

// connection is a client's connection and the sockets on it.
type connection struct {
	position capture.Position // of its Open frame
	opened   time.Duration
	// partial is set if its beginning did not pass here: it was joined in its
	// middle, or its Open frame is not on the tape.
	partial    bool
	maxPayload int64 // bytes that the gateway takes, 0 if it did not say
	sockets    map[string]*socket
	latest     *socket // the socket of the latest packet
	// preamble are the frames that every run of the connection needs to be read
	// by itself: the Open frame, the handshake, CONNECT and protocol:hello.
	preamble []capture.Position
	// parts are the frames of a packet that is not complete yet, by direction.
	parts [3][]capture.Position
	// judged is set once a socket on it is, and held are the findings about its
	// bytes until then: another application's traffic is not ours to judge.
	judged   bool
	held     []protocol.Finding
	oldSpeak bool // it was said that the client speaks Engine.IO 3

	ended  time.Duration
	ending *capture.Ending // nil while it is open
	endAt  capture.Position
}

// socket is a client's place in a namespace, or a plain JSON socket: what the
// gateway calls a socket.
type socket struct {
	conn      *connection
	namespace string
	judged    bool
	asking    bool // the client's CONNECT was seen
	gone      bool
	goneAt    time.Duration

	connectAt capture.Address // of the gateway's CONNECT, of the Open frame if it is plain
	connected time.Duration
	sid, pid  string
	auth      uint64 // what the client's CONNECT carried, hashed; 0 if nothing
	// recovering is the socket that the client asked to have back.
	recovering *socket
	askedPID   string
	recovered  bool
	// parting is a namespace that the client left: what was under way then
	// still comes, and nobody is to blame for it.
	parting bool

	hello     hello
	commands  []*command // latest last
	rooms     map[string]*room
	cursors   map[*run]*cursor
	latest    *run // the run of the latest envelope, and its cursor
	latestCur *cursor
}

// room is a socket's place in the room of a thread.
type room struct {
	asked   capture.Address // of the latest thread:messages
	askedAt time.Duration
	// answered is when the gateway first said yes; zero if it has not yet.
	answered capture.Address
	started  bool // the socket started or resumed a run there
	waiting  bool // the history had a decision to make, of a run that may go on
	strange  bool // it was said that the socket never asked for the thread
}

const (
	maxSockets  = 64      // of a connection
	maxPids     = 1024    // of a session
	maxEnded    = 1024    // connections remembered after their end
	maxRooms    = 1 << 14 // of a socket
	maxCursors  = 4096    // of a socket
	maxHeld     = 16      // findings of a connection that is not judged yet
	maxParts    = 64      // frames of a packet
	maxCommands = 256     // of a socket, remembered for what may answer them
	maxPreamble = 16
)

func (s *State) open(f *capture.Frame) {
	opening, err := capture.Detail[capture.Opening](f)
	c := &connection{
		position: f.Position,
		opened:   s.now,
		partial:  err != nil || opening.Joined,
		sockets:  make(map[string]*socket),
		preamble: []capture.Position{f.Position},
	}
	s.connections[f.Position] = c
	s.forgetConnections()
	if opening.Transport == capture.SocketIO && opening.EIO != "" && opening.EIO != "4" {
		c.oldSpeak = true
		s.oldEngine(f, opening.EIO)
	}
	if opening.Transport == capture.WebSocket {
		k := s.socketOf(c, "")
		k.connectAt, k.connected = capture.Address{Position: f.Position}, s.now
		s.awaitHello(k)
	}
}

// connectionOf returns the connection of a frame, also if its Open frame never
// came.
func (s *State) connectionOf(f *capture.Frame) *connection {
	c := s.connections[f.Connection]
	if c == nil {
		c = &connection{position: f.Connection, opened: s.now, partial: true, sockets: make(map[string]*socket)}
		s.connections[f.Connection] = c
		s.forgetConnections()
	}
	return c
}

// socketOf returns the socket of a namespace, nil if the connection has so many
// that somebody is playing tricks.
func (s *State) socketOf(c *connection, namespace string) *socket {
	if c.latest != nil && c.latest.namespace == namespace {
		return c.latest
	}
	k := c.sockets[namespace]
	if k == nil {
		if len(c.sockets) >= maxSockets {
			return nil
		}
		k = newSocket(c, namespace)
		c.sockets[k.namespace] = k
	}
	c.latest = k
	return k
}

func newSocket(c *connection, namespace string) *socket {
	return &socket{
		conn:      c,
		namespace: namespace,
		rooms:     make(map[string]*room),
		cursors:   make(map[*run]*cursor),
	}
}

// place returns the socket's place in a thread's room, which it makes if it has
// none.
func (k *socket) place(thread string) *room {
	r := k.rooms[thread]
	if r == nil {
		if len(k.rooms) >= maxRooms {
			clear(k.rooms)
		}
		r = &room{}
		k.rooms[thread] = r
	}
	return r
}

// forgetCursors makes the socket start anew with each run: what came before the
// next envelope is not known.
func (k *socket) forgetCursors() {
	clear(k.cursors)
	k.latest, k.latestCur = nil, nil
}

// ended takes the end of a connection.
func (s *State) ended(f *capture.Frame) {
	c := s.connectionOf(f)
	ending, err := capture.Detail[capture.Ending](f)
	if err != nil {
		ending.Error = err.Error()
	}
	c.ending, c.ended, c.endAt = &ending, s.now, f.Position
	for _, namespace := range slices.Sorted(maps.Keys(c.sockets)) {
		s.left(c.sockets[namespace], f.Position)
	}
}

// left takes the end of a socket: its connection ended, or its namespace did.
func (s *State) left(k *socket, at capture.Position) {
	watched := slices.SortedFunc(maps.Keys(k.cursors), func(a, b *run) int { return cmp.Compare(a.First, b.First) })
	for _, r := range watched {
		r.leave()
		if !r.over() && r.watchers == 0 {
			s.post(r, at)
			r.lastLeft = k
			if r.Status == Running {
				s.setStatus(r, Truncated)
			}
		}
	}
	k.gone, k.goneAt = true, s.now
	s.unanswered(k)
	k.hello.awaited = false
}

// forgetConnections drops the connections that ended longest ago once there are
// too many of them.
func (s *State) forgetConnections() {
	if len(s.connections) < 2*maxEnded {
		return
	}
	dropOldest(s.connections, len(s.connections)-maxEnded, func(c *connection) (capture.Position, bool) {
		return c.position, c.ending != nil
	}, nil)
	if len(s.connections) >= 1<<16 { // that many are open: somebody is playing tricks
		s.lossy = true
		clear(s.connections)
	}
}

// expose judges a connection from now on, and says what was held back.
func (s *State) expose(k *socket) {
	k.judged = true
	if k.hello.late {
		s.sayLateHello(k)
	}
	if k.conn.judged {
		return
	}
	k.conn.judged = true
	for _, f := range k.conn.held {
		s.add(f)
	}
	k.conn.held = nil
}
