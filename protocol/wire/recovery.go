package wire

import "tapedeck/protocol/capture"

// connect follows connection state recovery: a gateway that offers it gives a
// pid in its answer to CONNECT. A client that comes back names its pid and the
// last offset, and what it has missed comes before that answer.
func (c *connection) connect(p *Packet, s *splitter) {
	pid, offset := false, false
	if len(p.Args) == 1 {
		s.reset(p.Args[0], 0)
		s.members(func(name, value []byte) {
			pid = pid || string(name) == `"pid"` && value[0] == '"'
			offset = offset || string(name) == `"offset"` && value[0] == '"'
		})
	}
	recovers := pid && (offset || p.Direction == capture.FromGateway)
	switch {
	case recovers && c.recovers == nil:
		c.recovers = map[string]bool{p.Namespace: true}
	case recovers && len(c.recovers) < maxNames:
		c.recovers[p.Namespace] = true
	case !recovers && p.Direction == capture.FromGateway:
		delete(c.recovers, p.Namespace)
	}
}

// takeOffset moves the offset that the gateway added out of an event's Args.
// Events that ask for an acknowledgement have none, and volatile ones neither:
// what does not look like an offset stays an argument.
func (c *connection) takeOffset(p *Packet) {
	if p.Direction != capture.FromGateway || p.ID != "" || len(p.Args) == 0 || !c.recovers[p.Namespace] {
		return
	}
	last := p.Args[len(p.Args)-1]
	if len(last) < 3 || len(last) > 66 || last[0] != '"' {
		return
	}
	for _, b := range last[1 : len(last)-1] {
		switch {
		case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '0' <= b && b <= '9', b == '-', b == '_':
		default:
			return
		}
	}
	p.Offset, p.Args = string(last[1:len(last)-1]), p.Args[:len(p.Args)-1]
}
