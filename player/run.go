package player

import (
	"encoding/json"
	"slices"
	"strconv"

	"tapedeck/player/script"
	"tapedeck/protocol"
)

// emitEvent sends an event of a run to its thread's room. The caller holds the
// thread's lock, as of all that follows.
func (g *Gateway) emitEvent(r *run, e script.Event) {
	switch {
	case e.Warp != nil:
		g.emitWarped(r, e)
		return
	case e.Recorded != nil && !r.altered:
		g.emitRecorded(r, e)
		return
	}
	r.altered = true
	r.sequence++
	const rest = `18446744073709551615,"event":}`
	payload := r.open(make([]byte, 0, len(r.head)+len(e.JSON)+len(rest)), r.sequence)
	g.deliver(r, append(append(payload, e.JSON...), '}'))
	g.observe(r, e)
}

// emitDelta sends a delta of a run, as emitEvent does.
func (g *Gateway) emitDelta(r *run, d *script.Delta) {
	r.altered = true
	r.sequence++
	made := kept{r.sequence, d}
	g.keep(r, made)
	r.scratch = made.append(r.scratch[:0], r)
	g.emit(r.thread, protocol.RunEvent, r.scratch)
	if !r.ended {
		r.noteDelta(d)
	}
}

// emitRecorded sends an envelope as it was recorded.
func (g *Gateway) emitRecorded(r *run, e script.Event) {
	switch {
	case e.Recorded.Repeat:
		g.emit(r.thread, protocol.RunEvent, e.Recorded.Envelope)
	case e.Recorded.Stray:
		g.deliver(r, e.Recorded.Envelope)
	default:
		r.sequence = max(r.sequence, e.Recorded.Sequence)
		g.deliver(r, e.Recorded.Envelope)
		g.observe(r, e)
	}
}

// emitWarped sends an envelope with the damage that its script asks for.
func (g *Gateway) emitWarped(r *run, e script.Event) {
	w := e.Warp
	if w.Repeat {
		if n := len(r.envelopes); n > 0 {
			g.emit(r.thread, protocol.RunEvent, r.envelopes[n-1].append(nil, r))
		}
		return
	}
	sequence := w.Sequence
	if sequence == 0 {
		r.sequence += w.Skip + 1
		sequence = r.sequence
	}
	version, thread, id := max(w.Version, protocol.Major), r.thread.id, r.id
	if w.Thread != "" {
		thread = w.Thread
	}
	if w.Run != "" {
		id = w.Run
	}
	o := object{}.raw("v", number(version)).text("threadId", thread).text("runId", id).
		raw("sequence", number(sequence)).raw("event", e.JSON)
	if len(w.Extra) > 2 {
		o = append(append(o, ','), w.Extra[1:len(w.Extra)-1]...)
	}
	g.deliver(r, o.close())
	if w.Thread == "" && w.Run == "" && w.Sequence == 0 {
		g.observe(r, e)
	}
}

func number[N int | int64](n N) json.RawMessage { return strconv.AppendInt(nil, int64(n), 10) }

// deliver sends an envelope and keeps it for replays.
func (g *Gateway) deliver(r *run, payload json.RawMessage) {
	g.keep(r, whole(payload))
	g.emit(r.thread, protocol.RunEvent, payload)
}

// keep keeps an envelope for replays.
func (g *Gateway) keep(r *run, k kept) {
	r.envelopes = append(r.envelopes, k)
	limit := g.config.ReplayBuffer
	if r.thread.setting.Replay > 0 {
		limit = r.thread.setting.Replay
	}
	if limit > 0 && len(r.envelopes) > limit {
		r.envelopes[0] = kept{}
		r.envelopes = r.envelopes[1:]
		r.truncated = true
	}
}

// note keeps an event for the next checkpoint. Deltas that follow each other are
// joined: most of a run are deltas.
func (r *run) note(e script.Event) {
	if len(e.Delta) >= 2 {
		if last := r.lastDelta(e.Type, e.ID); last != nil && last.more == nil {
			last.JSON = nil
			last.Delta = append(last.Delta[:len(last.Delta)-1], e.Delta[1:]...)
			return
		}
		e.Delta = slices.Clone(e.Delta) // it is written to
	}
	r.played = append(r.played, noted{Event: e})
}

// noteDelta is note for a delta of a script, whose text is there anyway.
func (r *run) noteDelta(d *script.Delta) {
	if last := r.lastDelta(d.Of.Type, d.Of.ID); last != nil {
		last.more = append(last.more, d)
		return
	}
	r.played = append(r.played, noted{Event: script.Event{Type: d.Of.Type, ID: d.Of.ID, Delta: slices.Clone(d.Text)}})
}

// lastDelta returns what was noted last, if it is a delta about the same thing.
func (r *run) lastDelta(kind protocol.EventType, id string) *noted {
	if len(r.played) == 0 {
		return nil
	}
	last := &r.played[len(r.played)-1]
	if last.Type != kind || last.ID != id || len(last.Delta) < 2 {
		return nil
	}
	return last
}

// observe keeps the state of the run and its thread.
func (g *Gateway) observe(r *run, e script.Event) {
	if r.ended {
		return // a scenario that goes on after the end: nothing of it counts
	}
	r.note(e)
	switch e.Type {
	case protocol.Interrupt:
		var asked struct {
			Payload json.RawMessage `json:"payload"`
		}
		if json.Unmarshal(e.JSON, &asked) == nil {
			r.asked = append(r.asked, decision{e.ID, asked.Payload})
		}
	case protocol.RunPaused:
		r.paused = true
		r.thread.pause = &pause{run: r, open: slices.Clone(r.asked), answers: map[string]json.RawMessage{}}
	case protocol.TodosSnapshot:
		var list struct {
			Todos json.RawMessage `json:"todos"`
		}
		if json.Unmarshal(e.JSON, &list) == nil {
			r.thread.todos = list.Todos
		}
	case protocol.RunFinished, protocol.RunCancelled, protocol.RunError:
		g.end(r)
	}
}

// end takes a run off the books: what it streamed is history now.
func (g *Gateway) end(r *run) {
	r.ended = true
	g.checkpoint(r)
	if r.thread.run == r {
		r.thread.run = nil
	}
	g.mu.Lock()
	if g.runs[r.id] == r {
		delete(g.runs, r.id)
	}
	g.mu.Unlock()
}

// checkpoint turns what a run has streamed into messages of its thread.
func (g *Gateway) checkpoint(r *run) {
	if r.chain.message.ID != "" {
		if !r.thread.past.remembers(r.chain.message.ID) {
			r.thread.past.add(r.chain.message)
		}
		r.chain.message = Message{}
	}
	r.thread.past.fold(r.played, g.stamp())
	r.played = nil
}

// stamp is the time as messages carry it.
func (g *Gateway) stamp() string { return g.config.Now().UTC().Format("2006-01-02T15:04:05.000Z") }

// played is told when a play has come to the end of its script.
func (g *Gateway) played(p *play) {
	delete(p.thread.plays, p)
	if p.task != nil {
		g.taskDone(p)
	}
}

// forget makes a thread's run unknown, as the restart of a gateway does. What
// was checkpointed stays; the room is told nothing.
func (g *Gateway) forget(r *run) {
	if r == nil {
		return
	}
	r.played, r.chain.message = nil, Message{}
	if !r.ended {
		g.end(r)
	}
	r.thread.pause = nil
}

// send sends a message that is no envelope to the thread's room.
func (g *Gateway) send(t *thread, s script.Send) {
	if len(s.Attachments) == 0 {
		g.emit(t, protocol.Name(s.Name), s.Payload)
		return
	}
	args := s.Args
	if args == nil {
		args = []json.RawMessage{json.RawMessage(`{"_placeholder":true,"num":0}`)}
	}
	for member := range t.sockets {
		member.EmitBinary(s.Name, s.Attachments, args...)
	}
}

// cut ends the sockets in a thread's room, once its lock is free.
func (g *Gateway) cut(t *thread, politely bool) {
	for member := range t.sockets {
		end := member.Cut
		if politely {
			end = func() { member.Disconnect(true) }
		}
		t.later = append(t.later, end)
	}
}

// openUnasked starts a run that no client asked for. In another thread it is
// started once this one's lock is free.
func (g *Gateway) openUnasked(t *thread, o script.Open) {
	if o.Thread == "" {
		g.openIn(t, o)
		return
	}
	t.later = append(t.later, func() {
		other, err := g.thread(o.Thread)
		if err != nil {
			return
		}
		other.lock()
		defer other.unlock()
		g.openIn(other, o)
	})
}

func (g *Gateway) openIn(t *thread, o script.Open) {
	t.opened++
	c := &chain{segments: o.Next, opened: t.opened}
	if o.Message != nil {
		c.message = g.userMessage(o.Message)
	}
	r := g.newRun(t, o.Run, c)
	r.truncated = o.Truncated
	for _, e := range o.Streamed {
		if e.Recorded != nil {
			r.sequence = max(r.sequence, e.Recorded.Sequence)
			g.keep(r, whole(e.Recorded.Envelope))
		}
		g.observe(r, e)
	}
	g.begin(r, o.Script)
}

// prelude plays what went on in a thread before any client asked for something
// in it. The caller holds the thread's lock.
func (g *Gateway) prelude(t *thread) {
	cues := t.setting.Prelude
	if len(cues) == 0 {
		return
	}
	t.setting.Prelude = nil
	p := &play{gateway: g, thread: t, cues: cues, due: g.stage.now()}
	t.plays[p] = true
	for len(p.cues) > 0 && p.cues[0].At <= 0 {
		p.act()
	}
	if len(p.cues) > 0 {
		p.next()
	}
}

// remember makes the history of a thread what a recording says that it is.
func (t *thread) remember(r script.Remember) {
	if r.Messages != nil {
		t.past.remember(r.Messages)
	}
	if r.Todos != nil {
		t.todos = r.Todos
	}
	if r.Task != nil {
		t.taskSeen = r.Task
	}
}
