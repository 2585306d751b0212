package driver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"tapedeck/player/client"
	"tapedeck/protocol"
)

// live is a window that has been opened.
type live struct {
	window    *window
	client    *client.Client
	hello     chan struct{} // closed when the gateway has announced itself
	announced json.RawMessage
	errors    int
	statuses  int
	last      *move           // that was sent
	hears     map[string]bool // the threads whose room it has joined
	over      bool
}

// largestMessage is what a window takes from the gateway in one message.
const largestMessage = 256 << 20

const (
	// breakage is how long a socket that broke off in the recording is given to
	// do so by itself.
	breakage = time.Second
	redial   = 200 * time.Millisecond
	// announcement is how long chat-core waits for the gateway's.
	announcement = protocol.HelloGraceMS * time.Millisecond
)

// connect opens a window. A client that was connected before tries again while
// the gateway cannot be reached.
func (p *player) connect(ctx context.Context, m *move) {
	dialling, cancel := context.WithTimeout(ctx, p.Patience)
	defer cancel()
	for {
		l, err := p.dial(dialling, m.window)
		switch {
		case ctx.Err() != nil:
			p.skip(m, cutShort)
			return
		case err == nil && m.window.refused:
			p.diverge(Divergence{At: m.at.address, Name: m.title(), Got: "the gateway accepts the connection, and refused it in the recording"})
			fallthrough
		case err == nil:
			p.step(m, true, "")
			p.greet(ctx, l)
			return
		case m.window.refused && errors.Is(err, client.ErrRefused):
			p.step(m, true, "")
			return
		case p.accepted && isAway(err) && sleep(dialling, redial) == nil:
			continue
		}
		p.shut = err
		p.diverge(Divergence{At: m.at.address, Name: m.title(), Got: err.Error()})
		p.skip(m, err.Error())
		return
	}
}

// isAway reports whether the gateway cannot be reached, in contrast to one that
// does not let the window in.
func isAway(err error) bool {
	var answer *client.HandshakeError
	if errors.As(err, &answer) {
		return answer.Status >= http.StatusInternalServerError
	}
	return !errors.Is(err, client.ErrRefused)
}

func (p *player) dial(ctx context.Context, w *window) (*live, error) {
	address, err := p.address(w)
	if err != nil {
		return nil, err
	}
	l := &live{window: w, hello: make(chan struct{}), hears: map[string]bool{}}
	l.client, err = client.Dial(ctx, client.Options{
		URL: address, Auth: p.Auth, Header: p.Header, Namespace: w.namespace, Plain: w.plain, MaxMessage: largestMessage, Dial: p.Dial,
		Event: func(name string, args []json.RawMessage) { p.hear(l, name, args) },
	})
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("the gateway did not let it in within %v: %w", p.Patience, err)
	case err != nil:
		return nil, err
	}
	p.accepted = true
	p.mu.Lock()
	p.windows[w] = l
	p.mu.Unlock()
	p.closing.Go(func() {
		<-l.client.Done()
		p.mu.Lock()
		l.over = true
		p.mu.Unlock()
		p.wake()
	})
	return l, nil
}

// greet waits for the gateway's announcement, if the recorded one made one, as
// long as chat-core does.
func (p *player) greet(ctx context.Context, l *live) {
	if l.window.hello == nil {
		return
	}
	timer := time.NewTimer(announcement)
	defer timer.Stop()
	select {
	case <-l.hello:
	case <-timer.C:
		p.note("the gateway announced nothing on window %d within %v; the recorded one did", l.window.index+1, announcement)
		return
	case <-l.client.Done():
		return
	case <-ctx.Done():
		return
	}
	recorded, _ := protocol.ReadHello(l.window.hello)
	p.mu.Lock()
	announced, _ := protocol.ReadHello(l.announced)
	p.mu.Unlock()
	if announced != recorded {
		p.note("the gateway announces protocol %d.%d, the recorded one %d.%d", announced.Major, announced.Minor, recorded.Major, recorded.Minor)
	}
}

// leave ends a window as the recorded one ended.
func (p *player) leave(ctx context.Context, m *move) {
	p.mu.Lock()
	l := p.windows[m.window]
	delete(p.windows, m.window)
	over := l != nil && l.over
	p.mu.Unlock()
	switch {
	case l == nil:
		return
	case m.kind == drop:
		p.fail(ctx, l)
	default:
		if over && m.kind == leave && !m.window.refused {
			p.note("the gateway had ended window %d when the client left it", m.window.index+1)
		}
		l.client.Close()
	}
	p.step(m, true, "")
}

// fail ends a window as a network does that fails, if it has not failed by
// itself: a gateway that is a player's cuts the same socket again, and would cut
// the next one if this one were gone too early.
func (p *player) fail(ctx context.Context, l *live) {
	timer := time.NewTimer(breakage)
	defer timer.Stop()
	select {
	case <-l.client.Done():
	case <-timer.C:
	case <-ctx.Done():
	}
	l.client.Drop()
}
