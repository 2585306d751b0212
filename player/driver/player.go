package driver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

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

	mu          sync.Mutex        // protects following
	story       *story            // what the live gateway tells
	alias       map[string]string // recorded ids of threads, by live ones
	windows     map[*window]*live
	unanswered  map[*move]bool
	refused     map[*move]bool    // otherwise than in the recording
	broken      map[string]string // threads in which nothing more can be sent, and why
	decisions   map[string]string // live ids by recorded ones
	steps       []Step
	divergences []Divergence
	notes       []string
}

func newPlayer(d *drive, p *party) *player {
	x := &player{
		drive: d, party: p, begun: make(chan struct{}), news: make(chan struct{}, 1), story: newStory(),
		alias: map[string]string{}, windows: map[*window]*live{}, unanswered: map[*move]bool{},
		refused: map[*move]bool{}, broken: map[string]string{}, decisions: map[string]string{},
	}
	for _, id := range p.threads {
		if t := d.recorded.threads[id]; t == nil || t.parent == "" {
			x.alias[d.thread(id)] = id
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
	recorded := p.recorded.find(g.thread.id, g.index)
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
	_ = sleep(ctx, p.thinking(p.party.gap)) // if it ends too early, so does each move
	for _, m := range p.party.moves {
		p.move(ctx, m)
		if m.kind == connect {
			begin()
		}
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		p.diverge(Divergence{Got: fmt.Sprintf("%s: it reached its limit of %v", cutShort, p.Limit)})
	}
	for _, w := range p.windows {
		w.client.Drop()
	}
}

// cutShort is why a move is left out when there is no time left.
const cutShort = "the drive was cut short"

func (p *player) move(ctx context.Context, m *move) {
	lack := p.await(ctx, m)
	if lack == nil {
		_ = sleep(ctx, p.thinking(m.think)) // the next line sees to it if it ends early
	}
	if ctx.Err() != nil {
		p.skip(m, cutShort)
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

// send sends a message.
func (p *player) send(m *move) {
	p.mu.Lock()
	l := p.windows[m.window]
	over := l == nil || l.over
	args := p.rebound(m)
	if !over {
		l.last, l.hears[m.thread] = m, true
		if m.ask {
			p.unanswered[m] = true
		}
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
