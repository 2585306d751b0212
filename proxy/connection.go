package proxy

import (
	"log/slog"
	"time"

	"tapedeck/protocol/capture"
)

const (
	// defaultPatience is pingInterval + pingTimeout where no handshake was seen,
	// by the defaults of Socket.IO.
	defaultPatience = 45 * time.Second
	// pollingSlack is how much later than the gateway the tap gives up a session
	// that is silent: the gateway's own verdict may still come.
	pollingSlack = 5 * time.Second
)

// connection is a client socket on the tape. A Socket.IO session is one, however
// many requests and WebSockets carry it; it is found by its sid.
type connection struct {
	position capture.Position
	sid      string
	opened   time.Time

	// What follows is guarded by tap.mu.

	patience  time.Duration
	exchanges int             // requests and WebSockets under way
	upgraded  bool            // a WebSocket carries it now, and decides its end
	ending    *capture.Ending // it was said to end, and will when no exchange is left
	ended     bool            // kept for a while, so that late requests revive nothing
	cut       capture.Direction
	timer     *time.Timer
	armed     int // how often timer was set, to tell a late one

	gate gateState
}

// open begins a connection. If o has a sid, requests with that sid belong to it
// from now on, and one exchange of it is under way.
func (t *tap) open(o *capture.Opening, exchange capture.Position, patience time.Duration) *connection {
	t.mu.Lock()
	c := t.begin(o, exchange, patience)
	t.mu.Unlock()
	t.logOpen(c, o)
	return c
}

func (t *tap) begin(o *capture.Opening, exchange capture.Position, patience time.Duration) *connection {
	data := encode(o)
	c := &connection{sid: o.SID, opened: time.Now(), patience: patience, exchanges: 1}
	c.position = t.add(capture.Frame{Kind: capture.Open, Exchange: exchange, Data: data, Size: int64(len(data))})
	if c.sid != "" && !t.closed {
		t.sessions[c.sid] = c
	}
	return c
}

// join finds the connection of o's sid, or begins it as one that had begun
// before, and counts one more exchange of it. It returns nil if the session has
// ended: what still comes under its sid is plain HTTP.
func (t *tap) join(o *capture.Opening) *connection {
	t.mu.Lock()
	c, known := t.sessions[o.SID]
	if !known {
		o.Joined = true
		c = t.begin(o, 0, defaultPatience)
		t.mu.Unlock()
		t.logOpen(c, o)
		return c
	}
	defer t.mu.Unlock()
	if c.ended {
		return nil
	}
	c.exchanges++
	t.disarm(c)
	return c
}

// leave counts one exchange less. By is who cut it short, zero if it was whole.
// When none is left, the connection ends if it was said to; else it has as long
// as the gateway gives it for the next request.
func (t *tap) leave(c *connection, by capture.Direction) {
	t.mu.Lock()
	c.exchanges--
	c.cut = by
	ended := false
	switch {
	case c.exchanges > 0 || c.ended:
	case c.ending != nil:
		ended = t.finish(c, *c.ending)
	case !c.upgraded:
		t.arm(c)
	}
	t.mu.Unlock()
	t.logEnd(c, ended)
}

// ends says that a packet, or the gateway's refusal, has ended c. Its End frame
// waits for the exchanges under way, which still belong to it.
func (t *tap) ends(c *connection, e capture.Ending) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.ending == nil {
		c.ending = &e
	}
}

// upgrade says that a WebSocket carries c from now on.
func (t *tap) upgrade(c *connection) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.upgraded = true
}

// end ends c at once.
func (t *tap) end(c *connection, e capture.Ending) {
	t.mu.Lock()
	ended := t.finish(c, e)
	t.mu.Unlock()
	t.logEnd(c, ended)
}

// finish writes c's End frame unless there is one, and keeps the sid for as long
// as late requests may come.
func (t *tap) finish(c *connection, e capture.Ending) bool {
	if c.ended {
		return false
	}
	if q := c.gate.end(); q != nil {
		t.giveUp(c, q)
	}
	c.ended, c.ending = true, &e
	data := encode(&e)
	t.add(capture.Frame{Kind: capture.End, Connection: c.position, Direction: e.By, Data: data, Size: int64(len(data))})
	if t.sessions[c.sid] == c {
		t.disarm(c)
		t.arm(c)
	}
	return true
}

// arm starts c's timer, and disarm stops it.
func (t *tap) arm(c *connection) {
	if t.closed || c.sid == "" {
		return
	}
	t.timers.Add(1)
	c.armed++
	turn := c.armed
	c.timer = time.AfterFunc(c.patience+pollingSlack, func() {
		defer t.timers.Done()
		t.expire(c, turn)
	})
}

func (t *tap) disarm(c *connection) {
	if c.timer != nil && c.timer.Stop() {
		t.timers.Done()
	}
	c.timer = nil
}

// expire ends a session that has been silent, or forgets one that had ended.
// It does nothing if c's timer was stopped or set anew after this turn.
func (t *tap) expire(c *connection, turn int) {
	t.mu.Lock()
	if c.timer == nil || c.armed != turn || t.closed {
		t.mu.Unlock()
		return
	}
	c.timer = nil
	if c.ended {
		delete(t.sessions, c.sid)
		t.mu.Unlock()
		return
	}
	by := c.cut
	if by == 0 {
		by = capture.FromClient // whose turn it was
	}
	ended := t.finish(c, capture.Ending{By: by, Error: "no request for " + (c.patience + pollingSlack).String()})
	t.mu.Unlock()
	t.logEnd(c, ended)
}

func (t *tap) logOpen(c *connection, o *capture.Opening) {
	t.log.Info("connection opened", "conn", uint64(c.position), "transport", string(o.Transport), "sid", c.sid, "remote", o.Remote)
}

func (t *tap) logEnd(c *connection, ended bool) {
	if !ended {
		return
	}
	e := c.ending // not changed after the end
	t.log.Info("connection ended", "conn", uint64(c.position), "by", e.By.String(), "code", e.Code, slog.String("err", e.Error))
}
