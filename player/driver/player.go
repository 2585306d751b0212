package driver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"tapedeck/player/client"
	"tapedeck/protocol"
)

// player plays one party. Its moves are made by one goroutine, in their order;
// what the gateway sends is heard by the goroutines that read the sockets.
type player struct {
	*drive
	party *party
	begun chan struct{} // closed when its first window has connected, or has not
	news  chan struct{} // there is something new to wait for

	// Of the goroutine that plays:
	accepted bool           // a window was let in
	shut     error          // why one was not
	closing  sync.WaitGroup // those who wait for the ends of sockets

	mu          sync.Mutex // protects following
	story       *story
	alias       map[string]string // recorded ids of threads, by live ones
	windows     map[*window]*live
	answered    map[*move]bool
	asked       map[*move]bool
	refused     map[*move]bool    // otherwise than in the recording
	broken      map[string]string // threads in which nothing more can be sent, and why
	decisions   map[string]string // live ids by recorded ones
	steps       []Step
	divergences []Divergence
	notes       []string
}

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

func newPlayer(d *drive, p *party) *player {
	x := &player{
		drive: d, party: p, begun: make(chan struct{}), news: make(chan struct{}, 1), story: newStory(),
		alias: map[string]string{}, windows: map[*window]*live{}, answered: map[*move]bool{}, asked: map[*move]bool{},
		refused: map[*move]bool{}, broken: map[string]string{}, decisions: map[string]string{},
	}
	for _, id := range p.threads {
		if t := d.story.threads[id]; t == nil || t.parent == "" {
			x.alias[d.fresh.id(id)] = id
		}
	}
	x.story.name = func(id string) (string, bool) {
		recorded, ok := x.alias[id]
		return recorded, ok
	}
	x.story.born = x.bear
	return x
}

// bear takes note of which recorded thread a subagent's own one stands for.
func (p *player) bear(g *segment, child string) {
	recorded := p.drive.story.find(g.thread.id, g.index)
	if n := len(g.ids[aChild]) - 1; recorded != nil && n >= 0 && n < len(recorded.ids[aChild]) {
		if id := recorded.ids[aChild][n]; id != "" {
			p.alias[child] = id
		}
	}
}

// play makes all moves, when it is the party's turn.
func (p *player) play(ctx context.Context, turn <-chan struct{}) {
	defer p.closing.Wait()
	begin := sync.OnceFunc(func() { close(p.begun) })
	defer begin()
	select {
	case <-turn:
	case <-ctx.Done():
	}
	if sleep(ctx, p.thinking(p.party.gap)) == nil {
		for _, m := range p.party.moves {
			p.move(ctx, m)
			if m.kind == connect {
				begin()
			}
			if ctx.Err() != nil {
				break
			}
		}
	}
	if ctx.Err() != nil {
		p.diverge(Divergence{Got: fmt.Sprintf("the drive was cut short: %v", ctx.Err())})
	}
	for _, w := range p.windows {
		w.client.Drop()
	}
}

func (p *player) move(ctx context.Context, m *move) {
	lack := p.await(ctx, m)
	if ctx.Err() != nil {
		return
	}
	if lack == nil && sleep(ctx, p.thinking(m.think)) != nil {
		return
	}
	if lack != nil && !lack.known {
		p.diverge(Divergence{Thread: m.thread, At: m.at.address, Name: m.title(), Waited: lack.what, Cause: lack.at, Got: lack.got})
	}
	switch m.kind {
	case connect:
		p.connect(ctx, m)
	case send:
		if lack == nil || p.goesOn(m, lack) {
			p.send(m)
		}
	default:
		p.leave(ctx, m)
	}
}

// goesOn decides whether a message is sent though what it waited for did not
// come, and takes note of why not. A thread of which nothing comes any more, or
// in which a run is not begun, is given up.
func (p *player) goesOn(m *move, lack *lack) bool {
	if lack.over && !lack.known && !lack.unnamed && protocol.Name(m.name) != protocol.RunCancel && protocol.Name(m.name) != protocol.RunDetach {
		return true
	}
	p.skip(m, lack.got)
	if !lack.over || opens(m) {
		p.give(m.thread, lack.got)
	}
	return false
}

// opens reports whether a message begins a segment.
func opens(m *move) bool {
	return protocol.Name(m.name) == protocol.RunStart || protocol.Name(m.name) == protocol.RunResume
}

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

// send sends a message.
func (p *player) send(m *move) {
	p.mu.Lock()
	l := p.windows[m.window]
	over := l == nil || l.over
	args := p.rebound(m)
	if !over {
		l.last, l.hears[m.thread] = m, true
		p.asked[m] = m.ask
	}
	p.mu.Unlock()
	var err error
	switch {
	case over:
		err = fmt.Errorf("window %d is not connected", m.window.index+1)
		if l != nil {
			err = fmt.Errorf("%w any more: %w", err, l.client.Err())
		}
	case m.ask:
		err = l.client.Request(func(args []json.RawMessage) { p.hearAnswer(m, args) }, m.name, args...)
	default:
		err = l.client.Emit(m.name, args...)
	}
	if err != nil {
		p.diverge(Divergence{Thread: m.thread, At: m.at.address, Name: m.title(), Got: err.Error()})
		p.skip(m, err.Error())
		p.give(m.thread, err.Error())
		return
	}
	p.step(m, true, "")
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
