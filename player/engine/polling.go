package engine

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"
)

// bodyTime is how long a POST may take to send its body.
const bodyTime = 30 * time.Second

// poll is a GET that waits for something to fetch. Whoever takes it out of
// conn.parked sends the one reply.
type poll struct {
	replies chan reply // holds one
}

// reply is the answer to a poll: a payload, a refusal, or the connection's cut.
type reply struct {
	body    []byte
	refused bool // the session speaks WebSocket now
	abort   bool
}

// serveHandshake answers the request that opens a polling session.
func (s *Server) serveHandshake(w http.ResponseWriter, r *http.Request) {
	c := s.open(r, nil, false)
	if c == nil {
		http.Error(w, "the server is shutting down", http.StatusServiceUnavailable)
		return
	}
	if s.config.Cookie != "" {
		w.Header().Add("Set-Cookie", s.config.Cookie+"="+c.id+"; Path=/; HttpOnly; SameSite=Lax")
	}
	c.servePoll(w, r)
}

// servePoll answers a GET with what is queued, or waits for it.
func (c *conn) servePoll(w http.ResponseWriter, r *http.Request) {
	if !c.advance() {
		c.server.refusePoll(w, c.id)
		return
	}
	// A server's write timeout is for answers, not for waiting.
	http.NewResponseController(w).SetWriteDeadline(time.Time{})
	p := &poll{replies: make(chan reply, 1)}
	c.mu.Lock()
	switch {
	case c.state == closed:
		c.mu.Unlock()
		c.server.refusePoll(w, c.id)
		return
	case c.link != nil:
		c.mu.Unlock()
		refuse(w, refuseRequest, false)
		return
	case c.parked != nil:
		c.mu.Unlock()
		c.end(ReasonTransportError, ending{answer: packetClose})
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.parked = p
	over := c.state == closing && len(c.queue) == 0
	c.answer()
	c.mu.Unlock()
	if over {
		c.end(ReasonForced, ending{answer: packetClose})
	}
	c.await(w, r, p)
}

// refusePoll answers a GET for a session that is gone.
func (s *Server) refusePoll(w http.ResponseWriter, sid string) {
	if s.parted(sid) {
		writePayload(w, []byte{packetNoop})
		return
	}
	refuse(w, refuseSession, false)
}

// await writes the reply to a parked GET when it comes.
func (c *conn) await(w http.ResponseWriter, r *http.Request, p *poll) {
	var got reply
	select {
	case got = <-p.replies:
	case <-r.Context().Done():
		// The client dropped the request: the session is broken, whether or not a
		// reply was under way.
		c.mu.Lock()
		if c.parked == p {
			c.parked = nil
		}
		c.mu.Unlock()
		c.end(ReasonTransportError, ending{answer: packetClose})
		return
	}
	switch {
	case got.abort:
		panic(http.ErrAbortHandler)
	case got.refused:
		refuse(w, refuseRequest, false)
	default:
		writePayload(w, got.body)
	}
}

// answer gives what is queued to the GET that waits; c.mu is held.
func (c *conn) answer() {
	if c.parked == nil || len(c.queue) == 0 {
		return
	}
	c.reply(c.queue...)
	clear(c.queue)
	c.queue, c.queued = c.queue[:0], 0
}

// reply answers the GET that waits; c.mu is held.
func (c *conn) reply(packets ...packet) {
	c.parked.replies <- reply{body: polled(packets)}
	c.parked = nil
}

func writePayload(w http.ResponseWriter, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=UTF-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.Write(body)
}

// servePost takes the packets of a POST.
func (c *conn) servePost(w http.ResponseWriter, r *http.Request) {
	if !c.advance() {
		refuse(w, refuseSession, false)
		return
	}
	c.mu.Lock()
	overlap := c.posting
	polling := c.link == nil
	if polling {
		c.posting = true
	}
	c.mu.Unlock()
	if !polling {
		refuse(w, refuseRequest, false)
		return
	}
	if overlap {
		c.end(ReasonTransportError, ending{answer: packetClose})
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	defer func() {
		c.mu.Lock()
		c.posting = false
		c.mu.Unlock()
	}()
	body, status := c.readBody(w, r)
	if status != http.StatusOK {
		c.end(ReasonTransportError, ending{answer: packetClose})
		w.WriteHeader(status)
		return
	}
	c.takePayload(body)
	h := w.Header()
	// Socket.IO says text/html here, so that old browsers do not offer to save it.
	h.Set("Content-Type", "text/html")
	h.Set("Content-Length", "2")
	h.Set("Cache-Control", "no-store")
	io.WriteString(w, "ok")
}

// readBody reads a POST's body, or says with which status to refuse it.
func (c *conn) readBody(w http.ResponseWriter, r *http.Request) ([]byte, int) {
	limit := int64(c.server.config.MaxPayload)
	switch {
	case r.Header.Get("Content-Type") == "application/octet-stream":
		return nil, http.StatusBadRequest
	case r.ContentLength > limit:
		return nil, http.StatusRequestEntityTooLarge
	}
	control := http.NewResponseController(w)
	control.SetReadDeadline(time.Now().Add(bodyTime))
	defer control.SetReadDeadline(time.Time{})
	var body bytes.Buffer
	if r.ContentLength > 0 {
		body.Grow(int(r.ContentLength) + bytes.MinRead)
	}
	_, err := body.ReadFrom(io.LimitReader(r.Body, limit+1))
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		return nil, http.StatusRequestTimeout
	case err != nil:
		return nil, http.StatusBadRequest
	case int64(body.Len()) > limit:
		return nil, http.StatusRequestEntityTooLarge
	}
	// As Node reads it; the packets of a payload are always text.
	return bytes.ToValidUTF8(body.Bytes(), []byte("\uFFFD")), http.StatusOK
}

// takePayload receives the packets of a payload, up to the first that is none.
func (c *conn) takePayload(body []byte) {
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	for text := range bytes.SplitSeq(body, []byte{separator}) {
		if len(text) > 0 && text[0] == packetClose {
			c.end(ReasonTransportClose, ending{answer: packetNoop})
			return
		}
		if !c.receive(text, false) {
			return
		}
	}
}
