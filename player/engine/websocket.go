package engine

import (
	"errors"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/gorilla/websocket"
)

// readBuffer is the buffer of a socket's reader, in bytes. What is longer is read
// past it.
const readBuffer = 1 << 10

// upgradeSocket answers a WebSocket handshake, from whatever origin. It returns
// nil if there is no WebSocket to serve.
func (s *Server) upgradeSocket(w http.ResponseWriter, r *http.Request, headers http.Header) *link {
	upgrader := websocket.Upgrader{
		CheckOrigin: func(*http.Request) bool { return true },
		// Nothing of the request's buffers is to live as long as the socket: a
		// client says little, and gorilla writes nothing but close frames.
		ReadBufferSize: readBuffer, WriteBufferPool: &s.buffers,
	}
	ws, err := upgrader.Upgrade(w, r, headers)
	if err != nil { // answered already
		s.config.Logger.Debug("websocket handshake refused", "remote", r.RemoteAddr, "err", err)
		return nil
	}
	ws.SetReadLimit(int64(s.config.MaxPayload))
	l := newLink(ws, s.config.MaxQueue, &s.work)
	s.mu.Lock()
	s.links[l] = struct{}{}
	s.mu.Unlock()
	return l
}

func (s *Server) forget(l *link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.links, l)
}

// serveWebSocket begins to serve a WebSocket: a connection of its own, or the
// upgrade of c. It is read on a goroutine of its own, so that the request's, with
// its stack and its buffers, can go.
func (s *Server) serveWebSocket(w http.ResponseWriter, r *http.Request, transport string, c *conn, headers http.Header) {
	l := s.upgradeSocket(w, r, headers)
	if l == nil {
		return
	}
	switch {
	case c != nil:
		s.work.Go(func() {
			defer s.forget(l)
			if !c.tryUpgrade(l) {
				l.dismiss(nil)
			}
		})
	case transport == "websocket":
		s.begin(s.open(r, l, false), l, (*conn).greet)
	default:
		s.work.Go(func() {
			defer s.forget(l)
			l.dismiss(nil)
		})
	}
}

// begin reads a new connection's WebSocket to its end, after hello. There is no
// connection, c is nil, if the server is closed.
func (s *Server) begin(c *conn, l *link, hello func(*conn, *link)) {
	s.work.Go(func() {
		defer s.forget(l)
		if c == nil {
			l.dismiss(closePayload(1001, ReasonShutdown))
			return
		}
		hello(c, l)
		c.read(l)
	})
}

// greet sends the handshake that opening the connection has queued.
func (c *conn) greet(l *link) { l.flush() }

// read receives a connection's WebSocket messages until it ends.
func (c *conn) read(l *link) {
	for {
		kind, data, err := l.ws.ReadMessage()
		if err == nil && kind == websocket.TextMessage && !utf8.Valid(data) {
			c.end(ReasonTransportError, ending{close: closePayload(1007, "")})
			err = l.discard()
		}
		if err != nil {
			c.lost(l, err)
			return
		}
		c.turn <- struct{}{}
		if c.plain {
			c.receivePlain(kind == websocket.BinaryMessage, data)
		} else {
			c.receive(data, kind == websocket.BinaryMessage)
		}
		<-c.turn
	}
}

// lost ends the connection whose WebSocket has ended with err.
func (c *conn) lost(l *link, err error) {
	reason := ReasonTransportClose
	var closed *websocket.CloseError
	how := ending{}
	if !errors.As(err, &closed) && !broken(err) {
		// Gorilla has told the peer which rule it broke, by a close frame.
		reason, how.silent = ReasonTransportError, true
		c.server.config.Logger.Warn("websocket broken off", "conn", c.id, "err", err)
	}
	c.end(reason, how)
	l.hangUp(err)
}

// tryUpgrade moves a polling connection to a WebSocket: the client probes it,
// lets its last GET end, and says that it is ready. It returns false if the
// connection is not to be upgraded, and else when the WebSocket is done with.
func (c *conn) tryUpgrade(l *link) bool {
	c.mu.Lock()
	if c.state == closed || c.link != nil || c.probe != nil {
		c.mu.Unlock()
		return false
	}
	c.probe = l
	c.due[dueUpgrade] = time.Now().Add(c.server.config.UpgradeTimeout)
	c.arm()
	c.mu.Unlock()
	err := c.readProbe(l)
	c.mu.Lock()
	upgraded := c.link == l
	if c.probe == l {
		c.probe = nil
		c.due[dueProbe], c.due[dueUpgrade] = time.Time{}, time.Time{}
	}
	c.mu.Unlock()
	switch {
	case upgraded && err == nil:
		l.flush()
		c.read(l)
	case err == nil: // not what a probe says
		l.finish(nil)
		l.hangUp(l.discard())
	default:
		l.hangUp(err)
	}
	return true
}

// readProbe reads until the upgrade is done or has failed.
func (c *conn) readProbe(l *link) error {
	for {
		_, data, err := l.ws.ReadMessage()
		if err != nil {
			return err
		}
		switch string(data) {
		case "2probe":
			l.force(textPacket("3probe"))
			l.flush()
			c.mu.Lock()
			c.due[dueProbe] = time.Now().Add(probeEvery)
			c.arm()
			c.mu.Unlock()
		case "5":
			c.switchTo(l)
			return nil
		default:
			return nil
		}
	}
}

// switchTo makes a WebSocket the transport; what polling has not fetched leaves
// by it first. A GET that came with the client's last word on the old transport
// is answered as if it had come after.
func (c *conn) switchTo(l *link) {
	c.mu.Lock()
	if c.state == closed || c.probe != l {
		c.mu.Unlock()
		return
	}
	c.link, c.probe = l, nil
	c.due[dueProbe], c.due[dueUpgrade] = time.Time{}, time.Time{}
	c.arm()
	l.force(c.queue...)
	c.queue, c.queued = nil, 0
	if p := c.parked; p != nil {
		c.parked = nil
		p.replies <- reply{refused: true}
	}
	over := c.state == closing
	c.mu.Unlock()
	c.server.config.Logger.Debug("connection upgraded", "conn", c.id)
	if over {
		c.end(ReasonForced, ending{})
	}
}
