package engine

import "time"

// The moments that a connection waits for. One timer serves them all.
const (
	duePing    = iota // send a ping
	duePong           // the pong must have come
	dueConnect        // a namespace must have been joined
	dueProbe          // answer a parked GET while an upgrade is under way
	dueUpgrade        // the upgrade must be done
	dueClose          // a closing connection is given up
	dues
)

// probeEvery is how often a GET is answered while its client should upgrade.
const probeEvery = 100 * time.Millisecond

// arm sets the timer to the earliest moment; c.mu is held.
func (c *conn) arm() {
	var next time.Time
	for _, t := range c.due {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	if next.IsZero() || c.state == closed {
		c.timer.Stop()
		return
	}
	c.timer.Reset(time.Until(next))
}

// tick is called by the timer.
func (c *conn) tick() {
	c.mu.Lock()
	if c.state == closed {
		c.mu.Unlock()
		return
	}
	c.server.work.Add(1) // the connection, not yet closed, still counts as one
	c.mu.Unlock()
	defer c.server.work.Done()
	c.advance()
}

// advance does what is due, however late the timer is. It returns false when the
// connection has ended.
func (c *conn) advance() bool {
	c.mu.Lock()
	now := time.Now()
	reason, how := c.elapse(now)
	alive := c.state != closed && reason == ""
	l, probe := c.link, c.probe
	var expired *link
	if alive && c.passed(dueUpgrade, now) {
		expired, c.probe = probe, nil
		c.due[dueProbe] = time.Time{}
	}
	if alive {
		c.arm()
	}
	c.mu.Unlock()
	if l != nil {
		l.flush()
	}
	if expired != nil {
		expired.finish(nil)
	}
	if reason != "" {
		c.end(reason, how)
	}
	return alive
}

// passed reports whether a moment has come, and forgets it if so; c.mu is held.
func (c *conn) passed(due int, now time.Time) bool {
	if c.due[due].IsZero() || now.Before(c.due[due]) {
		return false
	}
	c.due[due] = time.Time{}
	return true
}

// elapse does what is due at now, save the end of an upgrade, and returns a
// reason to end the connection; c.mu is held. Moments follow from the moments
// before them and not from now: a late timer moves no deadline.
func (c *conn) elapse(now time.Time) (string, ending) {
	if c.state == closing && c.passed(dueClose, now) {
		return ReasonForced, ending{}
	}
	if c.state != open {
		return "", ending{}
	}
	if c.passed(dueConnect, now) && len(c.sockets) == 0 {
		return ReasonForcedServer, ending{answer: packetClose}
	}
	if at := c.due[duePing]; c.passed(duePing, now) {
		c.due[duePong] = at.Add(c.server.config.PingTimeout)
		c.refreshed = false
		c.ping()
	}
	if c.passed(duePong, now) {
		return ReasonPing, ending{answer: packetClose}
	}
	if c.passed(dueProbe, now) {
		c.due[dueProbe] = now.Add(probeEvery)
		if c.parked != nil {
			c.reply(textPacket(string(packetNoop)))
		}
	}
	return "", ending{}
}

// ping queues a ping; c.mu is held.
func (c *conn) ping() {
	if c.plain {
		c.force(framed(opPing, nil))
		return
	}
	c.force(textPacket(string(packetPing)))
	c.answer()
}

// heard moves the heartbeat for a packet from the client, a pong or another. It
// returns false if the connection is no longer open.
func (c *conn) heard(pong bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != open {
		return false
	}
	now := time.Now()
	switch {
	case pong:
		c.due[duePong] = time.Time{}
		c.due[duePing] = now.Add(c.server.config.PingInterval)
	case !c.due[duePong].IsZero() && !c.refreshed:
		c.due[duePong] = now.Add(c.server.config.PingTimeout)
		c.refreshed = true
	default:
		return true
	}
	c.arm()
	return true
}
