package proxy

import (
	"bufio"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"tapedeck/protocol/capture"
	"tapedeck/protocol/wire"
)

const (
	relaySmall = 4 << 10  // the buffer of a connection that waits
	relayLarge = 64 << 10 // and of one that is full of bytes
)

// piece is a large buffer, to be shared by those that have use for one.
type piece [relayLarge]byte

// socket is an upgraded connection: two ways between two legs.
type socket struct {
	p    *Proxy
	x    *exchange
	conn *connection
	// owner is whether the connection ends with this WebSocket: it began with
	// it, or was taken over by it from polling.
	owner    bool
	packets  bool // Engine.IO packets are in the messages
	up, down way  // from the client, from the gateway

	mu     sync.Mutex // guards ending
	ending *capture.Ending
}

// leg is the connection to one side.
type leg struct {
	net.Conn
	// ahead holds what was read beyond the heads of HTTP, nil once that is used.
	ahead *bufio.Reader
	// body reads what the transport had read ahead, nil on the client's side.
	body io.Reader
}

func (l *leg) Read(p []byte) (int, error) {
	if l.body != nil {
		return l.body.Read(p)
	}
	if l.ahead != nil {
		if n := l.ahead.Buffered(); n > 0 {
			return l.ahead.Read(p[:min(n, len(p))])
		}
		l.ahead = nil
	}
	return l.Conn.Read(p)
}

// closeWrite says that nothing more will come, where the connection can.
func (l *leg) closeWrite() {
	if c, ok := l.Conn.(interface{ CloseWrite() error }); ok {
		c.CloseWrite()
	}
}

// connect makes the two ways between the two legs.
func (s *socket) connect(extensions string) {
	for _, w := range [...]*way{&s.up, &s.down} {
		w.s, w.border = s, true
		w.dir = capture.FromClient
		if w == &s.down {
			w.dir = capture.FromGateway
		}
		w.scan = wire.NewScanner(wire.ScannerOptions{
			Limit: s.p.cfg.BodyLimit, Deflate: wire.NegotiatedDeflate(extensions, w.dir), Hold: s.p.cfg.Gate != nil,
			Large: &s.p.large,
		})
	}
	s.up.dst, s.down.dst = s.down.src, s.up.src
}

// relay passes bytes until both ways have ended.
func (s *socket) relay() {
	done := make(chan struct{})
	go s.down.run(done)
	s.up.run(nil)
	<-done
	s.cut()
}

// leave makes s end: what is under way may end until then.
func (s *socket) leave(until time.Time) {
	s.up.src.SetDeadline(until)
	s.down.src.SetDeadline(until)
	for _, w := range [...]*way{&s.up, &s.down} {
		w.leaving.Store(true)
		w.depart()
	}
}

// cut ends both legs at once.
func (s *socket) cut() {
	s.up.src.Close()
	s.down.src.Close()
}

// closedBy notes the first Close frame.
func (s *socket) closedBy(by capture.Direction, code int, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending == nil {
		s.ending = &capture.Ending{By: by, Code: code, Reason: reason}
	}
}

// ended notes that one side is gone without a Close frame.
func (s *socket) ended(by capture.Direction, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending != nil {
		return
	}
	if errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) {
		s.ending = &capture.Ending{Code: wire.Abnormal, Error: errStopped.Error()}
		return
	}
	s.ending = &capture.Ending{By: by, Code: wire.Abnormal, Error: fault(err)}
}

// appendFrame appends a WebSocket frame of the proxy's own, as the one who sends
// in direction dir would make it.
func appendFrame(b []byte, dir capture.Direction, kind capture.Kind, payload []byte) []byte {
	if dir == capture.FromGateway {
		return wire.AppendServerFrame(b, kind, payload)
	}
	var key [4]byte
	rand.Read(key[:]) // never fails
	return wire.AppendClientFrame(b, kind, payload, key)
}
