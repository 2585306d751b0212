package player

import (
	"slices"
	"time"

	"tapedeck/player/script"
	"tapedeck/protocol"
)

// play is a script on its way. The lock of its thread protects it.
type play struct {
	gateway *Gateway
	thread  *thread
	run     *run
	cues    []script.Cue // what is left
	half    int          // when no more of them are left, the others are let go of
	cancel  script.Cancel
	turn    uint64        // counts how often it was scheduled: older entries are void
	due     time.Duration // when its next act is due, by the stage's clock
	from    time.Duration // and by its script's
	await   protocol.Name // the command that it stands still for
	task    *task         // the background task that it is, nil for a run of its own
}

// begin puts a script on the stage. The caller holds the thread's lock.
func (g *Gateway) begin(r *run, s script.Script) *play {
	p := &play{gateway: g, thread: r.thread, run: r, cancel: s.OnCancel, due: g.stage.now()}
	p.own(s.Cues)
	r.play = p
	if len(p.cues) > 0 {
		r.thread.plays[p] = true
	}
	p.next()
	return p
}

// own makes cues what is left. They are copied, since those that are over are let
// go of.
func (p *play) own(cues []script.Cue) {
	p.cues, p.half = slices.Clone(cues), len(cues)/2
}

// next schedules the next cue. The caller holds the thread's lock. A history
// that a recording shows is no act of its own: it goes with the one before.
func (p *play) next() {
	p.turn++
	for len(p.cues) > 0 && p.cues[0].At <= p.from {
		past, ok := p.cues[0].Act.(script.Remember)
		if !ok {
			break
		}
		p.thread.remember(past)
		p.cues = p.cues[1:]
	}
	if len(p.cues) == 0 {
		return
	}
	gap := p.cues[0].At - p.from
	p.from = p.cues[0].At
	p.due = p.gateway.stage.schedule(p, p.due, gap)
}

// position is where a play stands in its script: as long before its next cue as
// that is away.
func (p *play) position() time.Duration {
	return p.from - max(p.due-p.gateway.stage.now(), 0)
}

// replace plays cues from now on, and nothing of what was left.
func (p *play) replace(cues []script.Cue) {
	p.own(cues)
	p.from, p.due, p.await = 0, p.gateway.stage.now(), ""
	p.next()
}

// perform does what is due, unless the play was rescheduled since.
func (p *play) perform(turn uint64) {
	p.thread.lock()
	defer p.thread.unlock()
	if turn != p.turn {
		return
	}
	if p.await != "" {
		p.release(p.await)
		return
	}
	switch {
	case len(p.cues) == 0:
	case p.tooFast():
		p.gateway.stage.wait(p, slowClient)
	default:
		p.act()
	}
}

// slowClient is how long a run without pauses waits for clients that are behind.
const slowClient = time.Millisecond

// tooFast reports whether somebody in the room cannot keep up with a run that is
// played without pauses. At any other speed a slow client is its own problem, and
// not that of the others in the room.
func (p *play) tooFast() bool {
	if !p.gateway.stage.unbounded() {
		return false
	}
	for member := range p.thread.sockets {
		if member.Behind() {
			return true
		}
	}
	return false
}

// act does the next cue and schedules the one after. The caller holds the
// thread's lock.
func (p *play) act() {
	cue := p.cues[0]
	p.cues[0] = script.Cue{}
	if p.cues = p.cues[1:]; len(p.cues) == p.half {
		p.own(p.cues)
	}
	turn := p.turn
	switch act := cue.Act.(type) {
	case script.Event:
		p.gateway.emitEvent(p.run, act)
	case *script.Delta:
		p.gateway.emitDelta(p.run, act)
	case script.Send:
		p.gateway.send(p.thread, act)
	case script.Cut:
		p.gateway.cut(p.thread, act.Politely)
		if p.standsNext() { // before a client that was cut can come back
			p.act()
			return
		}
	case script.Forget:
		p.gateway.forget(p.run)
	case script.Open:
		p.gateway.openUnasked(p.thread, act)
	case script.Remember:
		p.thread.remember(act)
	case script.Await:
		p.await = act.Command
		p.turn++
		if act.Within > 0 {
			p.gateway.stage.wait(p, act.Within)
		}
		return
	}
	if p.turn == turn {
		p.next()
	}
	if len(p.cues) == 0 {
		p.gateway.played(p)
	}
}

// standsNext reports whether the next cue, due now, is a wait for a command.
func (p *play) standsNext() bool {
	if len(p.cues) == 0 || p.cues[0].At > p.from {
		return false
	}
	_, ok := p.cues[0].Act.(script.Await)
	return ok
}

// release goes on with a play that stood still for a command.
func (p *play) release(command protocol.Name) {
	if p.await != command {
		return
	}
	p.await = ""
	p.due = p.gateway.stage.now()
	p.next()
	if len(p.cues) == 0 {
		p.gateway.played(p)
	}
}

// awaits reports whether a play stands still for a command, or is going to.
func (p *play) awaits(command protocol.Name) bool {
	return p != nil && (p.await == command || p.ahead(command) >= 0)
}

// ahead is how many cues are left before it stands still for a command, -1 if it
// is not going to.
func (p *play) ahead(command protocol.Name) int {
	return slices.IndexFunc(p.cues, func(c script.Cue) bool {
		await, ok := c.Act.(script.Await)
		return ok && await.Command == command
	})
}

// reach does at once all that is left before the play stands still for a
// command. It is the caller's to let it go on.
func (p *play) reach(command protocol.Name) {
	if p.await == command {
		return
	}
	for n := p.ahead(command); n >= 0; n-- {
		p.await = ""
		p.act()
	}
}

// finish does at once all that is left.
func (p *play) finish() {
	for len(p.cues) > 0 {
		p.await = ""
		p.act()
	}
}
