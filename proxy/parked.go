package proxy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"tapedeck/protocol/capture"
)

// poll is a client's poll that the gateway holds, or has answered. It outlasts
// its client's request where the gate has answered that: the gateway ends a
// session that polls twice at once, so the client's next poll takes this one
// over.
type poll struct {
	of     capture.Position // the request that it was sent for
	ctx    context.Context  // ends with cancel, and with the proxy's parked polls
	cancel context.CancelFunc

	done  chan struct{} // closed when what follows is set
	res   *http.Response
	err   error
	data  []byte // its body, as far as a gate may see it
	whole bool   // data is all of it
}

// park sends a client's poll to the gateway.
func (p *Proxy) park(r *http.Request, x *exchange) *poll {
	q := &poll{of: x.position, done: make(chan struct{})}
	q.ctx, q.cancel = p.bound(context.Background(), true)
	r.Header.Del("Accept-Encoding") // what is judged must be readable
	out := p.outgoing(q.ctx, r, x)
	p.serving.Go(func() { q.ask(&p.roads, out, p.cfg.BodyLimit) })
	return q
}

// ask waits for the gateway's answer.
func (q *poll) ask(roads *roads, out *http.Request, limit int) {
	defer close(q.done)
	q.res, q.err = roads.pass(out, true)
	if q.err != nil || q.res.StatusCode != http.StatusOK || coding(q.res.Header) != 0 {
		return
	}
	data, err := io.ReadAll(io.LimitReader(q.res.Body, int64(limit)+1))
	q.data, q.whole = data, err == nil && len(data) <= limit
	q.res.Body = restOf(data, q.res.Body) // which repeats its error, if it had one
}

// answered reports whether q is done.
func (q *poll) answered() bool {
	select {
	case <-q.done:
		return true
	default:
		return false
	}
}

// gatedGet answers a client's poll with what the gate has for it, or else with
// what the gateway says, whichever comes first.
func (p *Proxy) gatedGet(w http.ResponseWriter, r *http.Request, x *exchange) (broken bool) {
	gate := &x.conn.gate
	q, answers := gate.next()
	if answers != nil {
		p.answerPoll(w, x, answers)
		return false
	}
	if q == nil {
		q = p.park(r, x)
	}
	// A client that leaves takes its poll along, or the gateway would take its
	// next one for a second.
	stay := context.AfterFunc(r.Context(), q.cancel)
	defer stay()
	for !q.answered() {
		answers, changed := gate.leave(q, stay)
		if answers != nil {
			p.answerPoll(w, x, answers)
			return false
		}
		select {
		case <-q.done:
		case <-changed:
		}
	}
	return p.deliver(w, r, x, q)
}

// answerPoll answers a client's poll with what the gate has for it.
func (p *Proxy) answerPoll(w http.ResponseWriter, x *exchange, answers []answer) {
	x.answers = answers
	x.conn.gate.borrow(w.Header())
	p.answer(w, x, http.StatusOK, "text/plain; charset=UTF-8", string(joinAnswers(nil, answers)), 0, "")
}

// deliver asks the gate about each packet of the gateway's answer, and passes it
// on. What the gate has for the client is added.
func (p *Proxy) deliver(w http.ResponseWriter, r *http.Request, x *exchange, q *poll) (broken bool) {
	defer q.cancel()
	if q.of != x.position {
		x.act(capture.Deed{Did: "adapted", Of: x.position, Text: fmt.Sprintf(
			"not sent on: the gateway's answer to the poll at #%d is for this one, since tapedeck had answered that", q.of)})
	}
	if q.err != nil {
		return p.failed(q.ctx, w, r, x, q.err)
	}
	defer q.res.Body.Close()
	var j judged
	if q.whole {
		j = p.judgeBody(x, capture.FromGateway, q.data)
		if x.conn.gate.free(capture.FromGateway) {
			j.answers = x.conn.gate.take()
		}
	}
	if !j.changed && j.answers == nil {
		p.head(w, r, x, q.res)
		by, cause := p.copyBody(q.ctx, w, r, x, q.res)
		x.finish(by, cause)
		return cause != ""
	}
	p.sendJudged(w, r, x, q.res, q.data, &j)
	return false
}

// next returns what a client's new poll is answered with: the spare poll, if
// there is one, else the answers that wait. The gateway need not be asked for
// those, so it holds no poll that another would be a second one to.
func (g *gateState) next() (*poll, []answer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if q := g.spare; q != nil {
		g.spare = nil
		g.wake()
		return q, nil
	}
	if !g.border(capture.FromGateway) || len(g.answers) == 0 {
		return nil, nil
	}
	a := g.answers
	g.answers = nil
	return nil, a
}

// leave returns the answers that wait, for a client whose poll q the gateway
// holds, and makes q the spare one. Stay is called before, and says whether the
// client is still there. If there is nothing to answer or the poll cannot be
// spared, leave returns a channel that is closed when that may have changed.
func (g *gateState) leave(q *poll, stay func() bool) ([]answer, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.changed == nil {
		g.changed = make(chan struct{})
	}
	// A client that is changing over to a WebSocket may not poll again.
	busy := g.over || g.sockets > 0 || g.spare != nil || !g.border(capture.FromGateway)
	if busy || len(g.answers) == 0 || !stay() {
		return nil, g.changed
	}
	a := g.answers
	g.answers, g.spare = nil, q
	return a, nil
}

// enter tells of a WebSocket that may take the session over, and exit of its
// end. Before it can make the client cease to poll, it waits for the client to
// fetch what answers the spare poll, but no longer than the gateway would.
func (g *gateState) enter(ctx context.Context, patience time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sockets++
	for g.spare != nil && ctx.Err() == nil {
		if g.changed == nil {
			g.changed = make(chan struct{})
		}
		changed := g.changed
		g.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		g.mu.Lock()
	}
}

func (g *gateState) exit() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sockets--
	g.wake()
}

// end says that the session has ended, and returns the spare poll, if there is
// one.
func (g *gateState) end() *poll {
	g.mu.Lock()
	defer g.mu.Unlock()
	q := g.spare
	g.over, g.spare = true, nil
	g.wake()
	return q
}

// wake is called with mu held.
func (g *gateState) wake() {
	if g.changed != nil {
		close(g.changed)
		g.changed = nil
	}
}

// giveUp cancels a poll that no client asked for any more. If the gateway has
// answered it, that is put on the tape. It is called with mu held.
func (t *tap) giveUp(c *connection, q *poll) {
	q.cancel()
	if !q.answered() || !q.whole || len(q.data) == 0 {
		return
	}
	f := capture.Frame{Connection: c.position, Exchange: q.of}
	f.Kind, f.Direction, f.Flags = capture.Polling, capture.FromGateway, capture.Withheld
	f.Data, f.Size = q.data, int64(len(q.data))
	deed := encode(&capture.Deed{Did: "held back", Of: t.add(f), Text: "the client did not poll again"})
	f.Kind, f.Direction, f.Flags = capture.Act, 0, 0
	f.Data, f.Size = deed, int64(len(deed))
	t.add(f)
}
