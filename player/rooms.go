package player

import (
	"encoding/json"

	"tapedeck/player/script"
	"tapedeck/protocol"
)

// messages answers thread:messages: the socket joins the room and gets the
// history, and, while a run is in flight, what it has streamed so far. Both
// happen under the thread's lock, so the next envelope of the room is the one
// after the replay's last.
func (g *Gateway) messages(o order) error {
	t, err := g.thread(o.ThreadID)
	if err != nil {
		return err
	}
	t.lock()
	defer t.unlock()
	g.prelude(t)
	g.enter(o.from, t)
	if o.ack != nil {
		o.ack(t.snapshot())
	}
	t.heard(o.Name)
	if last := t.lastEnvelope(); t.setting.Seam == "overlap" && last != nil {
		o.from.Emit(string(protocol.RunEvent), last)
	}
	return nil
}

func (t *thread) lastEnvelope() json.RawMessage {
	if t.run == nil || len(t.run.envelopes) == 0 {
		return nil
	}
	return t.run.envelopes[len(t.run.envelopes)-1].append(nil, t.run)
}

// snapshot is the answer to thread:messages.
func (t *thread) snapshot() json.RawMessage {
	o := object{}.raw("ok", json.RawMessage("true"))
	o = append(o.key("messages"), '[')
	for i, m := range t.past.messages {
		if i > 0 {
			o = append(o, ',')
		}
		o = append(o, m.render()...)
	}
	o = append(o, ']')
	if t.run != nil {
		o = o.raw("replay", t.run.replay(t.setting.Seam))
	}
	task := t.taskSeen
	if t.task != nil {
		task = t.task.render()
	}
	return o.some("pendingInterrupt", t.pause.pending()).some("todos", t.todos).some("task", task).close()
}

// replay is what a run has streamed so far, as far as it is kept.
func (r *run) replay(seam string) json.RawMessage {
	envelopes := r.envelopes
	if seam == "hole" && len(envelopes) > 1 {
		envelopes = envelopes[:len(envelopes)-1]
	}
	o := append(object{}.key("envelopes"), '[')
	for i, e := range envelopes {
		if i > 0 {
			o = append(o, ',')
		}
		o = e.append(o, r)
	}
	o = append(o, ']')
	truncated := json.RawMessage("false")
	if r.truncated {
		truncated = json.RawMessage("true")
	}
	return o.raw("truncated", truncated).close()
}

// cancelled ends a run at once.
func cancelled() []script.Cue {
	return []script.Cue{{Act: script.Event{Type: protocol.RunCancelled, JSON: json.RawMessage(`{"type":"RUN_CANCELLED"}`)}}}
}
