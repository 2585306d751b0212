package driver

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

// lack is something that a move waits for and that has not come.
type lack struct {
	what    string
	at      capture.Address // where it came in the recording
	got     string          // what came instead
	over    bool            // it cannot come any more
	unnamed bool            // it is an id, and without it the message cannot be sent
	known   bool            // that the thread diverged has been said
}

// await waits until all has come that a move waits for. It returns what does not
// come, nil if nothing is missing.
func (p *player) await(ctx context.Context, m *move) *lack {
	timer := time.NewTimer(p.Patience)
	defer timer.Stop()
	for ctx.Err() == nil {
		lack := p.lacks(m)
		if lack == nil || lack.over {
			return lack
		}
		select {
		case <-p.news:
			timer.Reset(p.Patience)
		case <-timer.C:
			lack.got = fmt.Sprintf("nothing more came within %v", p.Patience) + p.standing(cmp.Or(m.thread, m.window.latest()))
			return lack
		case <-ctx.Done():
		}
	}
	return nil
}

// lacks returns the first thing that a move waits for and that has not come.
func (p *player) lacks(m *move) *lack {
	p.mu.Lock()
	defer p.mu.Unlock()
	if why := p.broken[m.thread]; why != "" && m.kind == send {
		return &lack{got: "the thread had diverged: " + why, over: true, known: true}
	}
	l := p.windows[m.window]
	if m.kind == ended {
		if l == nil || l.over || slices.ContainsFunc(m.window.threads, func(id string) bool { return p.broken[id] != "" }) {
			return nil
		}
		return &lack{what: "the gateway's end of the connection", at: m.at.address}
	}
	if l != nil && !l.over {
		if lack := p.lacksWord(m, l); lack != nil {
			return lack
		}
	}
	for i := range m.cause.marks {
		if lack := p.lacksMark(m, &m.cause.marks[i], l); lack != nil {
			return lack
		}
	}
	for i := range m.refs {
		if _, lack := p.live(&m.refs[i]); lack != nil {
			return lack
		}
	}
	return nil
}

// lacksWord returns what the window itself was told in the recording.
func (p *player) lacksWord(m *move, l *live) *lack {
	for _, a := range m.cause.answers {
		if p.unanswered[a] {
			return &lack{what: "the answer to " + a.title(), at: a.at.address}
		}
	}
	if p.broken[m.thread] != "" {
		return nil
	}
	switch {
	case l.errors < m.cause.errors:
		return &lack{what: fmt.Sprintf("the %s protocol:error", ordinal(m.cause.errors))}
	case l.statuses < m.cause.statuses && p.whole(m.window):
		return &lack{what: fmt.Sprintf("the %s task:status", ordinal(m.cause.statuses))}
	}
	return nil
}

// whole reports whether nothing went wrong in the threads of a window.
func (p *player) whole(w *window) bool {
	return !slices.ContainsFunc(w.threads, func(id string) bool { return p.broken[id] != "" })
}

// lacksMark returns what is missing of a thread. Whoever leaves does not mind
// that more had come in the recording, and what nobody listens for does not come.
func (p *player) lacksMark(m *move, k *mark, l *live) *lack {
	reached, over := p.story.reached(k)
	switch {
	case reached, p.broken[k.thread] != "", over && (m.kind == leave || m.kind == drop), m.kind == drop && (l == nil || l.over):
		return nil
	case over:
		return &lack{what: k.String(), at: k.address, got: p.story.find(k.thread, k.segment).String(), over: true}
	case !p.listens(k.thread):
		return nil
	}
	return &lack{what: k.String(), at: k.address}
}

// listens reports whether a window is connected that has joined a thread's room.
func (p *player) listens(thread string) bool {
	for _, l := range p.windows {
		if !l.over && l.hears[thread] {
			return true
		}
	}
	return false
}

// live returns the live id that a reference stands for. The mutex is held.
func (p *player) live(r *ref) (string, *lack) {
	g := p.story.find(r.thread, r.segment)
	missing := &lack{what: fmt.Sprintf("the %s %s of %s", ordinal(r.n+1), classNames[r.class], runName(r.segment)), unnamed: true}
	if recorded := p.recorded.find(r.thread, r.segment); recorded != nil && r.class < classes {
		missing.at = recorded.places[r.class][r.n]
	}
	switch {
	case g == nil:
		missing.what = runName(r.segment)
		return "", missing
	case r.class == aRun:
		return g.run, nil
	case r.class == aDecision:
		if id := p.decision(g, r); id != "" {
			return id, nil
		}
	case r.n < len(g.ids[r.class]) && g.ids[r.class][r.n] != "":
		return g.ids[r.class][r.n], nil
	}
	if g.end != "" {
		missing.over, missing.got = true, g.String()
	}
	return "", missing
}

// decision returns the decision that the recorded one stands for: the one that
// asks the same, or once all are known, the one at the same place.
func (p *player) decision(g *segment, r *ref) string {
	if id := p.decisions[r.id]; id != "" {
		return id
	}
	taken := func(id string) bool {
		for _, other := range p.decisions {
			if other == id {
				return true
			}
		}
		return false
	}
	found := ""
	for i, id := range g.ids[aDecision] {
		if i < len(g.asked) && g.asked[i] == r.payload && !taken(id) {
			found = id
			break
		}
	}
	if found == "" && g.end != "" && r.n < len(g.ids[aDecision]) && !taken(g.ids[aDecision][r.n]) {
		found = g.ids[aDecision][r.n]
	}
	if found != "" {
		p.decisions[r.id] = found
	}
	return found
}

// standing says how far a thread has come.
func (p *player) standing(thread string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.story.threads[thread]; t != nil && t.latest != nil {
		return "; " + t.latest.String()
	}
	return "; of the thread nothing has come"
}

// String says where a live segment stands.
func (g *segment) String() string {
	state := "is at " + string(g.last)
	if g.end != "" {
		state = "ended with " + string(g.end)
	}
	return fmt.Sprintf("%s, live %q, %s at sequence %d", runName(g.index), g.run, state, g.sequence)
}

// String names a mark: "the 20th TEXT_MESSAGE_CONTENT of the 2nd run".
func (k *mark) String() string {
	return fmt.Sprintf("the %s of %s", cmp.Or(ordinalOf(k.n, k.event), "end"), runName(k.segment))
}

func ordinalOf(n int, event protocol.EventType) string {
	if event == "" {
		return ""
	}
	return ordinal(n) + " " + string(event)
}

func runName(index int) string { return "the " + ordinal(index+1) + " run" }

func ordinal(n int) string {
	switch {
	case n%100 >= 11 && n%100 <= 13:
		return fmt.Sprintf("%dth", n)
	case n%10 == 1:
		return fmt.Sprintf("%dst", n)
	case n%10 == 2:
		return fmt.Sprintf("%dnd", n)
	case n%10 == 3:
		return fmt.Sprintf("%drd", n)
	}
	return fmt.Sprintf("%dth", n)
}
