package engine

import (
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"
)

// state is how far a connection's life has come.
type state uint8

const (
	open    state = iota
	closing       // over polling: what is queued, then a close packet, is still to be fetched
	closed
)

// conn is an Engine.IO session, or the connection of a plain client.
type conn struct {
	server *Server
	id     string
	plain  bool
	header http.Header
	query  url.Values
	remote string

	// turn is held by the goroutine that runs a callback of this connection: its
	// reader, a POST, or the farewell. What the turn guards: pending.
	turn    chan struct{}
	pending *received // a binary packet that misses attachments

	// mu guards what follows. The hub's lock may be held when it is taken, and it
	// when a link's is.
	mu        sync.Mutex
	state     state
	queue     []packet // polling: what the next GET fetches
	queued    int      // bytes in it
	parked    *poll    // the GET that waits
	posting   bool     // a POST is being read
	link      *link    // nil while the transport is polling
	probe     *link    // the WebSocket that polling is being upgraded to
	refreshed bool     // the wait for a pong was prolonged once
	sockets   []*Socket
	due       [dues]time.Time
	timer     *time.Timer
}

// open makes a connection and registers it. It returns nil if the server is
// closed. l is its WebSocket, or nil for polling.
func (s *Server) open(r *http.Request, l *link, plain bool) *conn {
	c := &conn{
		server: s, id: newID(), plain: plain, link: l,
		header: r.Header, query: r.URL.Query(), remote: r.RemoteAddr,
		turn: make(chan struct{}, 1),
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.due[duePing] = now.Add(s.config.PingInterval)
	if !plain {
		c.due[dueConnect] = now.Add(s.config.ConnectTimeout)
		c.force(s.openPacket(c.id, l == nil))
	}
	if !s.add(c) {
		return nil
	}
	c.timer = time.AfterFunc(s.config.PingInterval, c.tick)
	c.arm()
	s.config.Logger.Info("connection opened", "conn", c.id, "transport", c.transport(), "remote", c.remote)
	return c
}

// transport names how the connection speaks now; c.mu is held.
func (c *conn) transport() string {
	if c.link != nil {
		return "websocket"
	}
	return "polling"
}

// push queues packets, all or none; it does not wait, and flush must follow. It
// reports whether the queue is full: then the connection is to be ended, by a
// caller who holds no locks. The packets of a connection that has ended vanish.
func (c *conn) push(packets []packet) (full bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != open {
		return false
	}
	if c.link != nil {
		return c.link.push(packets...) == errQueueFull
	}
	if c.queued > c.server.config.MaxQueue {
		return true
	}
	c.force(packets...)
	return false
}

// force queues packets whatever the limit, those that are not to be lost; c.mu
// is held.
func (c *conn) force(packets ...packet) {
	if c.link != nil {
		c.link.force(packets...)
		return
	}
	c.queue = append(c.queue, packets...)
	c.queued += weight(packets)
}

// flush hands what is queued to the transport, without waiting.
func (c *conn) flush() {
	c.mu.Lock()
	l := c.link
	if l == nil {
		c.answer()
	}
	c.mu.Unlock()
	if l != nil {
		l.flush()
	}
}

// send is push and flush, and the end of a client that does not read.
func (c *conn) send(packets ...packet) {
	if c.push(packets) {
		c.overflow()
		return
	}
	c.flush()
}

func (c *conn) overflow() {
	c.server.config.Logger.Warn("client does not read, its connection is cut",
		"conn", c.id, "limit", c.server.config.MaxQueue)
	c.end(ReasonQueue, ending{cut: true})
}

// ending is how a connection ends on the wire.
type ending struct {
	answer byte   // what a parked GET gets: a close packet, a noop after the client's goodbye, 0 for a cut
	close  []byte // the close frame's payload
	cut    bool   // no packet and no close frame
	silent bool   // the close frame has been sent
}

// end ends the connection at once: what an unfinished GET did not fetch is lost,
// what is queued for a WebSocket is written. Only the first call does something.
func (c *conn) end(reason string, how ending) {
	c.mu.Lock()
	if c.state == closed {
		c.mu.Unlock()
		return
	}
	c.state = closed
	c.timer.Stop()
	p := c.parked
	if p != nil {
		c.parked = nil
		switch {
		case how.cut || how.answer == 0:
			p.replies <- reply{abort: true}
		case len(c.queue) > 0: // put there since the GET was answered last
			p.replies <- reply{body: polled(append(c.queue, textPacket(string(how.answer))))}
		default:
			p.replies <- reply{body: []byte{how.answer}}
		}
	}
	sockets := c.sockets
	c.sockets, c.queue, c.queued = nil, nil, 0
	l, probe := c.link, c.probe
	c.probe = nil
	c.mu.Unlock()

	if how.answer == packetNoop && p == nil {
		c.server.part(c.id) // first, so that its GET finds the one or the other
	}
	c.server.remove(c)
	c.server.hub.remove(sockets, reason)
	switch {
	case l == nil:
	case how.cut:
		l.cut()
	case how.silent:
		l.mute()
	default:
		l.finish(how.close)
	}
	if probe != nil {
		probe.finish(how.close)
	}
	c.server.config.Logger.Info("connection closed", "conn", c.id, "reason", reason)
	// The count that Server.add took is given back by the farewell.
	go c.farewell(sockets, reason)
}

// farewell calls back for sockets that are gone, in the connection's turn.
func (c *conn) farewell(sockets []*Socket, reason string) {
	defer c.server.work.Done()
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	for _, s := range sockets {
		s.leave(reason)
	}
}

// depart takes sockets out of the connection, which stays; c.mu is held. The
// caller must call the function that is returned once it is not.
func (c *conn) depart(sockets []*Socket, reason string) func() {
	for _, s := range sockets {
		s.parted = true
	}
	c.sockets = slices.DeleteFunc(c.sockets, func(s *Socket) bool { return slices.Contains(sockets, s) })
	c.server.work.Add(1)
	return func() {
		c.server.hub.remove(sockets, reason)
		go c.farewell(sockets, reason)
	}
}

// shut ends the connection when what is queued has left: over polling that is a
// close packet for the GET after the one that fetches the queue. Its sockets go
// at once, each with a DISCONNECT if disconnect is set.
func (c *conn) shut(reason string, disconnect bool, payload []byte) {
	c.mu.Lock()
	if c.state != open {
		c.mu.Unlock()
		return
	}
	sockets := slices.Clone(c.sockets)
	if disconnect && !c.plain {
		for _, s := range sockets {
			c.force(disconnectPacket(s.namespace))
		}
	}
	gone := c.depart(sockets, reason)
	if c.link != nil {
		c.mu.Unlock()
		gone()
		c.end(reason, ending{close: payload})
		return
	}
	c.answer()
	c.state = closing
	c.due = [dues]time.Time{dueClose: time.Now().Add(closingTime)}
	c.arm()
	done := len(c.queue) == 0 && c.parked != nil
	c.mu.Unlock()
	gone()
	if done {
		c.end(reason, ending{answer: packetClose})
	}
}
