package player

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"tapedeck/player/script"
	"tapedeck/protocol"
)

// task is a subagent that goes on in the background.
type task struct {
	id, call, name, child string
	status                string // running, finished, error or cancelled
	result                string // how it ends, as far as is known
}

func (t *task) render() json.RawMessage {
	if t == nil {
		return nil
	}
	return object{}.text("id", t.id).text("toolCallId", t.call).text("name", t.name).
		text("childThreadId", t.child).text("status", t.status).close()
}

// detach answers run:detach: the run's subagents, or that of one tool call, go
// on in the background, each in a thread of its own, and the run goes on
// without them.
func (g *Gateway) detach(r *run, o order) error {
	if r.play.awaits(o.Name) {
		o.accept()
		r.play.reach(o.Name)
		return nil
	}
	lanes := r.lanes()
	if o.ToolCallID != "" {
		lanes = slices.DeleteFunc(lanes, func(l string) bool { return lastOf(l) != o.ToolCallID })
	}
	if len(lanes) == 0 {
		return refuse(protocol.InvalidCommand, "run %q has no subagent at work that could be detached", r.id)
	}
	o.accept()
	for _, lane := range lanes {
		g.detachLane(r, lane)
	}
	return nil
}

// lanes returns the outermost subagents that have started and not finished.
func (r *run) lanes() []string {
	var open []string
	for _, e := range r.played {
		switch e.Type {
		case protocol.SubagentStarted:
			open = append(open, e.ID)
		case protocol.SubagentFinished:
			open = slices.DeleteFunc(open, func(id string) bool { return id == e.ID })
		}
	}
	if r.play == nil {
		return nil
	}
	var lanes []string
	for _, cue := range r.play.cues {
		lane := cue.Lane
		e, ok := cue.Act.(script.Event)
		if ok && e.Type == protocol.SubagentFinished && lastOf(lane) == e.ID && slices.Contains(open, e.ID) {
			lanes = append(lanes, lane)
		}
	}
	// One that works inside another goes with it.
	return slices.DeleteFunc(slices.Clone(lanes), func(l string) bool {
		return slices.ContainsFunc(lanes, func(outer string) bool { return strings.HasPrefix(l, outer+"/") })
	})
}

func lastOf(lane string) string { return lane[strings.LastIndexByte(lane, '/')+1:] }

func inLane(cue script.Cue, lane string) bool {
	return cue.Lane == lane || strings.HasPrefix(cue.Lane, lane+"/")
}

// detachLane moves one subagent to the background. What it had begun, a message
// or a tool call, is finished at once in the run; the rest is its own.
func (g *Gateway) detachLane(r *run, lane string) {
	p := r.play
	begun := r.begun()
	var now, moved, kept []script.Cue
	here := p.position()
	end := here
	for _, cue := range p.cues {
		e, isEvent := script.EventOf(cue.Act)
		switch {
		case !inLane(cue, lane):
			kept = append(kept, cue)
		case isEvent && begun[e.ID] && e.ID != lastOf(lane):
			now = append(now, cue)
		default:
			moved = append(moved, cue)
			end = max(end, cue.At)
		}
	}
	t := g.newTask(r, lane, moved)
	for _, cue := range now {
		e, _ := script.EventOf(cue.Act)
		g.emitEvent(r, e)
	}
	g.emitEvent(r, script.Event{Type: protocol.SubagentFinished, ID: t.call, JSON: object{}.
		raw("type", quote(string(protocol.SubagentFinished))).text("toolCallId", t.call).text("taskId", t.id).
		text("status", "finished").raw("detached", json.RawMessage("true")).close()})
	p.cues = sooner(kept, here, end, t.call)
	p.from, p.due = here, g.stage.now()
	p.next()
	g.goBackground(r.thread, t, moved, here)
}

// begun tells which messages and tool calls have begun and not ended.
func (r *run) begun() map[string]bool {
	open := map[string]bool{}
	for _, e := range r.played {
		switch e.Type {
		case protocol.TextMessageStart, protocol.ReasoningStart, protocol.ToolCallStart:
			open[e.ID] = true
		case protocol.TextMessageEnd, protocol.ReasoningEnd, protocol.ToolCallResult:
			delete(open, e.ID)
		}
	}
	return open
}

// sooner brings forward what waited for a subagent that ended at end: by the
// time in which nothing else happens. Its tool call's result is told at once.
func sooner(kept []script.Cue, now, end time.Duration, call string) []script.Cue {
	busy := now
	for _, cue := range kept {
		if cue.At < end {
			busy = max(busy, cue.At)
		}
	}
	shift := end - busy
	out := make([]script.Cue, 0, len(kept))
	for _, cue := range kept {
		if cue.At >= end {
			cue.At -= shift
		}
		if e, ok := cue.Act.(script.Event); ok && e.Type == protocol.ToolCallResult && e.ID == call {
			e.JSON = object{}.text("type", string(protocol.ToolCallResult)).text("toolCallId", call).
				text("content", "The task goes on in the background.").close()
			cue.Act, cue.At = e, now
		}
		out = append(out, cue)
	}
	slices.SortStableFunc(out, func(a, b script.Cue) int { return cmp.Compare(a.At, b.At) })
	return out
}

// newTask reads what the run has told about a subagent.
func (g *Gateway) newTask(r *run, lane string, moved []script.Cue) *task {
	t := &task{call: lastOf(lane), status: "running", result: "finished"}
	for _, e := range r.played {
		if e.Type != protocol.SubagentStarted || e.ID != t.call {
			continue
		}
		var started struct{ TaskID, ChildThreadID, Name string }
		// What it does not name is made up below.
		_ = json.Unmarshal(e.JSON, &started)
		t.id, t.child, t.name = started.TaskID, started.ChildThreadID, started.Name
	}
	t.id = cmp.Or(t.id, g.ident("task", r.thread.id, t.call))
	t.child = cmp.Or(t.child, g.ident("thread", r.thread.id, t.call))
	t.name = cmp.Or(t.name, "subagent")
	for _, cue := range moved {
		if e, ok := cue.Act.(script.Event); ok && e.Type == protocol.SubagentFinished && e.ID == t.call {
			var finished struct{ Status string }
			if json.Unmarshal(e.JSON, &finished) == nil {
				t.result = cmp.Or(finished.Status, "finished")
			}
		}
	}
	return t
}

// goBackground plays what a subagent has left as a run of its own thread, and
// tells the room of its parent how it stands. The parent's lock is held; the
// child's is taken once that is free.
func (g *Gateway) goBackground(parent *thread, t *task, moved []script.Cue, from time.Duration) {
	g.emit(parent, protocol.TaskStatus, taskStatus(parent.id, t.render()))
	cues := []script.Cue{{Act: script.Event{Type: protocol.RunStarted, JSON: json.RawMessage(`{"type":"RUN_STARTED"}`)}}}
	for _, cue := range moved {
		cue.At = max(cue.At-from, 0)
		cue.Lane = strings.TrimPrefix(strings.TrimPrefix(cue.Lane, lanePath(moved, t.call)), "/")
		if e, ok := cue.Act.(script.Event); ok && e.Type == protocol.SubagentFinished && e.ID == t.call {
			cue.Act = taskEnd(t.result)
		}
		cues = append(cues, cue)
	}
	status := *t
	parent.later = append(parent.later, func() {
		child := newThread(t.child, Setting{})
		child.parent, child.task = parent, &status
		child = g.adopt(child)
		child.lock()
		defer child.unlock()
		child.opened++
		p := g.begin(g.newRun(child, g.ident("run", child.id, child.opened), &chain{opened: child.opened}), script.Script{Cues: cues})
		p.task = &status
	})
}

// lanePath is the lane of a subagent as its cues name it.
func lanePath(cues []script.Cue, call string) string {
	for _, cue := range cues {
		if lastOf(cue.Lane) == call {
			return cue.Lane
		}
	}
	return ""
}

func taskEnd(status string) script.Event {
	if status == "error" {
		return script.Event{Type: protocol.RunError, JSON: json.RawMessage(`{"type":"RUN_ERROR","code":"TASK_FAILED","message":"The task failed."}`)}
	}
	return script.Event{Type: protocol.RunFinished, JSON: json.RawMessage(`{"type":"RUN_FINISHED"}`)}
}

func taskStatus(thread string, state json.RawMessage) json.RawMessage {
	return object{}.text("threadId", thread).raw("task", state).close()
}

// taskDone tells the parent's room that a background task has ended. The
// child's lock is held; the parent's is taken once that is free.
func (g *Gateway) taskDone(p *play) {
	p.task.status = p.task.result
	state, parent := p.task.render(), p.thread.parent
	p.thread.later = append(p.thread.later, func() {
		parent.lock()
		defer parent.unlock()
		g.emit(parent, protocol.TaskStatus, taskStatus(parent.id, state))
	})
}
