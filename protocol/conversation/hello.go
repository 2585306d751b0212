package conversation

import (
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

// hello is what a socket knows of the gateway's announcement.
type hello struct {
	awaited   bool // CONNECT was seen, and the grace is running or over
	late      bool // the grace is over and there was none
	seen      bool
	readable  bool
	announced protocol.Announcement
	at        capture.Address

	earlyTold, unfitTold bool
}

// greetings are the announcements of a session.
type greetings struct {
	waiting []*socket // in the order of their CONNECTs
	// latest is the latest announcement that could be read, and asked the
	// latest answer to GET /protocol.
	latest, asked     protocol.Announcement
	latestAt, askedAt capture.Address
	// unfit are the clients, by what they connect with, that were told that the
	// versions do not fit.
	unfit map[uint64]capture.Address
}

const (
	grace    = protocol.HelloGraceMS * time.Millisecond
	maxUnfit = 1024
)

// awaitHello starts the grace of a socket.
func (s *State) awaitHello(k *socket) {
	if k.recovered || k.conn.partial {
		return
	}
	k.hello.awaited = true
	s.greeting.waiting = append(s.greeting.waiting, k)
}

// greeted looks for sockets whose grace is over.
func (s *State) greeted() {
	w := s.greeting.waiting
	for len(w) > 0 && s.now-w[0].connected > grace {
		s.lateHello(w[0])
		w[0] = nil
		w = w[1:]
	}
	s.greeting.waiting = w
}

func (s *State) lateHello(k *socket) {
	if !k.hello.awaited || k.hello.seen || k.hello.late {
		return
	}
	k.hello.late = true
	if k.judged {
		s.sayLateHello(k)
	}
}

func (s *State) sayLateHello(k *socket) {
	s.blame(protocol.Finding{
		Rule: "hello-absent", Severity: protocol.Warning, At: k.connectAt, Connection: k.conn.position,
	}, "no protocol:hello within 2 s of CONNECT: the gateway predates it, and chat-core goes on as if it fitted")
}

// hello takes the gateway's announcement.
func (s *State) hello(k *socket, m *protocol.Message) {
	k.conn.keep(m.Last)
	h := &k.hello
	if h.seen {
		s.report("hello-repeated", protocol.Error, h.at,
			"a second protocol:hello on this socket; the first came at #%s", h.at)
		return
	}
	h.seen, h.at = true, m.Address
	h.announced, h.readable = protocol.ReadHello(m.Payload)
	if !h.readable {
		return
	}
	g := &s.greeting
	if !g.askedAt.IsZero() && g.asked != h.announced && g.latest != h.announced {
		s.report("hello-differs", protocol.Error, g.askedAt,
			"protocol:hello announces %s, GET /protocol answered %s at #%s", version(h.announced), version(g.asked), g.askedAt)
	}
	g.latest, g.latestAt = h.announced, m.Address
	if !fits(h.announced) && k.auth != 0 {
		if g.unfit == nil || len(g.unfit) >= maxUnfit {
			g.unfit = make(map[uint64]capture.Address)
		}
		g.unfit[k.auth] = m.Address
	}
}

// fits reports whether chat-core of the major known here goes on.
func fits(a protocol.Announcement) bool {
	return a.Major == protocol.Major && a.MinClientMajor <= protocol.Major
}

// beforeCommand judges that a command is sent at all.
func (s *State) beforeCommand(k *socket, m *protocol.Message) {
	h := &k.hello
	unfit := s.greeting.unfit[k.auth]
	switch {
	case h.readable && !fits(h.announced) && !h.unfitTold:
		h.unfitTold = true
		s.report("command-after-incompatible", protocol.Warning, h.at,
			"the gateway announced %s: a client of major %d sends no command", version(h.announced), protocol.Major)
	case !h.seen && k.auth != 0 && !unfit.IsZero() && !h.unfitTold:
		h.unfitTold, h.earlyTold = true, true
		s.report("command-after-incompatible", protocol.Warning, unfit,
			"at #%s the gateway told this client that the versions do not fit: it sends no command after a reconnect either", unfit)
	case !h.seen && h.awaited && !h.late && !h.earlyTold && s.now-k.connected <= grace:
		h.earlyTold = true
		s.report("command-before-hello", protocol.Warning, k.connectAt,
			"%s was sent %s after CONNECT, before protocol:hello: wait for it, 2 s at most", m.Name, brief(s.now-k.connected))
	}
}

// envelopeVersion judges an envelope's v against the announcement.
func (s *State) envelopeVersion(k *socket, e *protocol.Envelope) {
	if !k.hello.readable || e.V <= 0 {
		return
	}
	switch a := k.hello.announced; {
	case e.V > a.Major:
		s.reportAt("envelope-version", protocol.Error, "/v", k.hello.at, "v is %d, and the gateway announced major %d", e.V, a.Major)
	case e.V < a.MinClientMajor:
		s.reportAt("envelope-version", protocol.Error, "/v", k.hello.at, "v is %d, and the gateway serves majors from %d on", e.V, a.MinClientMajor)
	}
}

// sameAnnouncement judges what GET /protocol answered.
func (s *State) sameAnnouncement(at capture.Address, a protocol.Announcement) {
	g := &s.greeting
	if !g.latestAt.IsZero() && g.latest != a && g.asked != a {
		s.blame(protocol.Finding{Rule: "hello-differs", Severity: protocol.Error, At: at, Other: g.latestAt},
			"GET /protocol answered %s, protocol:hello announced %s at #%s", version(a), version(g.latest), g.latestAt)
	}
	g.asked, g.askedAt = a, at
}
