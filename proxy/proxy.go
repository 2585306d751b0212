package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"tapedeck/protocol/capture"
)

// grace is how long a stop waits for the other sides before it cuts them.
const grace = time.Second

// errStopped is why a request was cut when the proxy stops.
var errStopped = errors.New("the proxy was stopped")

// Proxy is the way between clients and one gateway. It is an http.Handler. Use
// New, and end it with Shutdown.
type Proxy struct {
	cfg     Config
	gateway url.URL
	tap     *tap
	adapt   adapter
	log     *slog.Logger
	server  *http.Server
	roads   roads
	pieces  sync.Pool // of *piece
	large   sync.Pool // of *[]byte, for long messages

	polls context.Context // done once parked polls are to be cut
	cut   context.Context // done once everything is
	stop  context.CancelFunc
	kill  context.CancelFunc

	mu      sync.Mutex // guards what follows
	closing bool
	sockets map[*socket]struct{}
	serving sync.WaitGroup // requests, and polls that outlast theirs; no request is added once closing
}

// New returns a proxy that is ready to serve.
func New(c Config) (*Proxy, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.BodyLimit == 0 {
		c.BodyLimit = DefaultBodyLimit
	}
	if c.Start.IsZero() {
		c.Start = time.Now()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	p := &Proxy{cfg: c, gateway: c.gateway(), log: c.Logger, sockets: make(map[*socket]struct{})}
	p.tap = newTap(c.Sink, c.FirstPosition, c.Start, c.Logger)
	p.adapt = adapter{gateway: p.gateway, cookies: !c.KeepCookies}
	p.roads = newRoads(&p.cfg)
	p.pieces.New = func() any { return new(piece) }
	p.polls, p.stop = context.WithCancel(context.Background())
	p.cut, p.kill = context.WithCancel(context.Background())
	p.server = &http.Server{
		Handler:                      p,
		DisableGeneralOptionsHandler: true, // OPTIONS * is the gateway's to answer
		ErrorLog:                     slog.NewLogLogger(c.Logger.Handler(), slog.LevelDebug),
	}
	return p, nil
}

// Serve accepts connections on all of ls until ctx is done, and returns nil
// then; what was accepted goes on until Shutdown. It closes them. An error says
// which of them failed.
func (p *Proxy) Serve(ctx context.Context, ls ...net.Listener) error {
	failed := make(chan error, len(ls))
	for _, l := range ls {
		go p.accept(l, failed)
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
		failed <- nil // in place of what was taken
	}
	for _, l := range ls {
		l.Close()
	}
	for range ls {
		<-failed
	}
	return err
}

// accept serves one listener, and says in failed how it ended: nil is in order.
func (p *Proxy) accept(l net.Listener, failed chan<- error) {
	err := p.server.Serve(l)
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	} else {
		err = fmt.Errorf("accept connections on %s: %w", l.Addr(), err)
	}
	failed <- err
}

// Shutdown ends the proxy. It accepts nothing more, cuts parked polls, sends
// Close 1001 to both sides of every WebSocket at a border of frames, gives all
// of them a second, and cuts the rest; when ctx is done, it cuts at once. It
// returns when nothing passes any more and every End frame is with the Sink.
// A second call does nothing.
func (p *Proxy) Shutdown(ctx context.Context) {
	p.mu.Lock()
	if p.closing {
		p.mu.Unlock()
		return
	}
	p.closing = true
	open := make([]*socket, 0, len(p.sockets))
	for s := range p.sockets {
		open = append(open, s)
	}
	p.mu.Unlock()

	now, cancel := context.WithCancel(context.Background())
	cancel()
	p.server.Shutdown(now) // closes the listeners, and waits for nobody
	p.stop()
	until := time.Now().Add(grace)
	for _, s := range open {
		s.leave(until)
	}
	p.drain(ctx, open)

	// The requests are done, so all connections are idle, or their clients have
	// not sent one.
	p.server.Close()
	p.roads.close()
	p.tap.close()
}

// drain waits for the requests under way, and cuts them when their time is up.
func (p *Proxy) drain(ctx context.Context, open []*socket) {
	done := make(chan struct{})
	go func() {
		p.serving.Wait()
		close(done)
	}()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	case <-ctx.Done():
	}
	p.kill()
	for _, s := range open {
		s.cut()
	}
	<-done
}

// enter counts a request, unless the proxy is closing.
func (p *Proxy) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing {
		return false
	}
	p.serving.Add(1)
	return true
}

// ServeHTTP passes r on to the gateway, and the answer back.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !p.enter() {
		w.Header().Set("Connection", "close")
		http.Error(w, "tapedeck: the proxy is stopping", http.StatusServiceUnavailable)
		return
	}
	defer p.serving.Done()
	x := p.tap.exchange(r, p.cfg.BodyLimit)
	var broken bool
	switch {
	case r.Method == http.MethodConnect:
		p.refuse(w, x, http.StatusMethodNotAllowed, "CONNECT is for forward proxies: point the client at this address as if it were the gateway")
	case r.ProtoMajor != 1:
		p.refuse(w, x, http.StatusHTTPVersionNotSupported, "HTTP/2 without TLS is not spoken here: use HTTP/1.1")
	case wantsWebSocket(r):
		broken = p.upgrade(w, r, x)
	case p.cfg.Gate != nil && x.polls():
		broken = p.gatedPoll(w, r, x)
	default:
		broken = p.pass(w, r, x)
	}
	if broken {
		// What was cut short must not look like an end: this drops the client.
		panic(http.ErrAbortHandler)
	}
}

// bound returns ctx, which also ends when the proxy cuts what is under way, or
// parked polls if it is one's.
func (p *Proxy) bound(ctx context.Context, poll bool) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	end := p.cut
	if poll {
		end = p.polls
	}
	stop := context.AfterFunc(end, func() { cancel(errStopped) })
	return ctx, func() { stop(); cancel(nil) }
}

// refuse answers for the gateway.
func (p *Proxy) refuse(w http.ResponseWriter, x *exchange, status int, text string) {
	p.answer(w, x, status, "text/plain; charset=utf-8", "tapedeck: "+text+"\n", 0, "")
}

// answer answers for the gateway and finishes x: by and fault say why, if it is
// not because the proxy chose to.
func (p *Proxy) answer(w http.ResponseWriter, x *exchange, status int, contentType, text string, by capture.Direction, fault string) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(text)))
	x.response(&capture.ResponseHead{Status: status, Proto: "HTTP/1.1", Header: h.Clone(), Made: true}, -1)
	x.add(capture.FromGateway, []byte(text))
	x.finish(by, fault)
	w.WriteHeader(status)
	if x.head.Method != http.MethodHead {
		io.WriteString(w, text) // a client that has left needs no answer
	}
}
