package inspector

import (
	"encoding/json"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"

	"tapedeck/protocol"
)

// addEnvelope folds an envelope in, unless it came before.
func (t *Timeline) addEnvelope(m *Moment, e *protocol.Envelope, replayed bool) {
	run := t.run(m)
	if e.Sequence > 0 {
		sum := checksum(e.Event.Raw)
		if first, seen := run.seen[e.Sequence]; seen && t.again(m, first, sum) {
			return
		}
		defer func() {
			if _, seen := run.seen[e.Sequence]; !seen && len(t.touched) > 0 {
				run.seen[e.Sequence] = delivery{sum, m.Connection(), t.touched[0]}
			}
		}()
	}
	t.addEvent(m, run, &e.Event)
	if len(t.touched) == 0 {
		return
	}
	if r := t.touched[0]; replayed {
		r.Replayed++
	} else {
		r.Envelopes++
	}
	t.countForAgents(run)
	t.settleResumes(m, run)
}

// again deals with an envelope whose number came before, and reports whether
// nothing more is to do. Another socket's delivery is shown only if it differs;
// on the same socket, other bytes under an old number are news.
func (t *Timeline) again(m *Moment, first delivery, sum uint64) bool {
	switch {
	case first.sum == sum && first.connection == m.Connection():
		first.row.Repeats++
		t.note(first.row, m)
		return true
	case first.sum == sum:
		first.row.Copies++
		t.note(first.row, m)
		return true
	case first.connection != m.Connection():
		r := t.row(m, KindCopy, string(m.event().Type), "")
		r.State = Done
		r.Detail = &Note{Said: "differs from what the first socket got in", Text: "#" + first.row.First.String()}
		r.Copies++
		return true
	}
	return false
}

func (t *Timeline) addEvent(m *Moment, run *runFold, e *protocol.Event) {
	switch e.Type {
	case protocol.RunStarted, protocol.RunFinished, protocol.RunCancelled, protocol.RunError, protocol.RunPaused:
		t.addLifecycle(m, run, e)
	case protocol.TextMessageStart, protocol.TextMessageContent, protocol.TextMessageEnd:
		t.addStream(m, run, KindText, "text", e, e.Type == protocol.TextMessageStart, e.Type == protocol.TextMessageEnd)
	case protocol.ReasoningStart, protocol.ReasoningContent, protocol.ReasoningEnd:
		t.addStream(m, run, KindReasoning, "reasoning", e, e.Type == protocol.ReasoningStart, e.Type == protocol.ReasoningEnd)
	case protocol.ToolCallStart, protocol.ToolCallArgs, protocol.ToolCallEnd, protocol.ToolCallResult:
		t.addTool(m, run, e)
	case protocol.Interrupt:
		t.addInterrupt(m, e)
	case protocol.TodosSnapshot:
		t.addTodos(m, e)
	case protocol.SubagentStarted, protocol.SubagentFinished:
		t.addAgent(m, run, e)
	default:
		t.addUnknown(m, run, e)
	}
}

func (t *Timeline) addStream(m *Moment, run *runFold, kind Kind, name string, e *protocol.Event, start, end bool) {
	key := construct{kind, e.MessageID}
	r := run.open[key]
	if r == nil || start {
		r = t.row(m, kind, name, e.MessageID)
		r.Detail = &Stream{Role: e.Role}
		run.open[key] = r
	} else {
		t.extend(r, m)
	}
	switch {
	case end:
		r.State = Done
		delete(run.open, key)
	case !start:
		r.Detail.(*Stream).add(e.Delta, m.At())
	}
}

func (t *Timeline) addTool(m *Moment, run *runFold, e *protocol.Event) {
	thread := t.thread(m.Thread)
	r := thread.calls[e.ToolCallID]
	if r == nil || e.Type == protocol.ToolCallStart {
		r = t.row(m, KindTool, e.ToolCallName, e.ToolCallID)
		r.Detail = &Call{}
		thread.calls[e.ToolCallID] = r
		run.open[construct{KindTool, e.ToolCallID}] = r
	} else {
		t.extend(r, m)
	}
	call := r.Detail.(*Call)
	switch e.Type {
	case protocol.ToolCallArgs:
		call.Args.add(e.Delta, m.At())
	case protocol.ToolCallEnd:
		call.Complete, call.Ended = true, m.At()
		call.Valid = json.Valid(call.Args.joined)
	case protocol.ToolCallResult:
		r.State = Done
		delete(run.open, construct{KindTool, e.ToolCallID})
		if from := t.runs[r.Run]; from != nil {
			delete(from.open, construct{KindTool, e.ToolCallID})
		}
		head, size := valueHead(e.Body)
		call.Result = &Result{At: m.Address(), Bytes: size, Head: head}
		if call.Complete {
			call.Result.Human = t.waited(m.Thread, call.Ended)
			call.Result.After = max(m.At()-call.Ended-call.Result.Human, 0)
		}
		if m.Run != r.Run {
			call.Result.Run = m.Run
		}
	}
}

func (t *Timeline) addLifecycle(m *Moment, run *runFold, e *protocol.Event) {
	if e.Type == protocol.RunFinished && run.paused != nil {
		t.extend(run.paused, m)
		run.paused.State = Done
		t.thread(m.Thread).quiet, t.thread(m.Thread).waiting = m.At(), true
		return
	}
	r := t.row(m, KindLifecycle, string(e.Type), m.Run)
	r.State = Done
	switch e.Type {
	case protocol.RunStarted:
		run.ended = false
		if c := t.settleStart(m); c != nil {
			c.Run = m.Run
			r.Detail = &Note{Said: FormatDuration(m.At()-c.Start) + " after " + c.Name}
		}
		return
	case protocol.RunPaused:
		r.State = Open
		run.paused = r
		t.thread(m.Thread).quiet, t.thread(m.Thread).waiting = m.At(), true
		return
	case protocol.RunError:
		r.State = Failed
		r.Detail = &Note{Text: joinText(e.Code, e.Message)}
	}
	run.ended = true
	t.settleCancel(m, string(e.Type))
	t.closeOpen(run)
}

// closeOpen marks what a run left open. A call that is complete may be answered
// after its run, so it stays as it is.
func (t *Timeline) closeOpen(run *runFold) {
	left := slices.SortedFunc(maps.Values(run.open), func(a, b *Row) int { return a.Index - b.Index })
	for _, r := range left {
		if call, ok := r.Detail.(*Call); ok && call.Complete {
			r.State = Done
		} else if agent, ok := r.Detail.(*Agent); ok && agent.Detached {
			r.State = Done
		} else {
			r.State = Cut
		}
		t.touched = append(t.touched, r)
	}
	clear(run.open)
	run.lanes = 0
}

func joinText(parts ...string) string {
	var kept []string
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, ": ")
}

func (t *Timeline) addTodos(m *Moment, e *protocol.Event) {
	r := t.row(m, KindTodos, "todos", "")
	r.State = Done
	thread := t.thread(m.Thread)
	items := readTodos(e.Body)
	r.Detail = &Todos{Items: items, Changed: countChanges(thread.todos, items)}
	thread.todos = items
}

// readTodos reads {content, status} or plain strings. The page leaves the shape
// of an item open.
func readTodos(raw []byte) []Todo {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	todos := make([]Todo, 0, len(list))
	for _, item := range list {
		var todo Todo
		if json.Unmarshal(item, &todo) != nil && json.Unmarshal(item, &todo.Content) != nil {
			todo.Content, _ = valueHead(item)
		}
		todos = append(todos, todo)
	}
	return todos
}

func countChanges(before, after []Todo) int {
	status := make(map[string]string, len(before))
	for _, todo := range before {
		status[todo.Content] = todo.Status
	}
	changed := 0
	for _, todo := range after {
		if s, known := status[todo.Content]; !known || s != todo.Status {
			changed++
		}
		delete(status, todo.Content)
	}
	return changed + len(status)
}

func (t *Timeline) addAgent(m *Moment, run *runFold, e *protocol.Event) {
	key := construct{KindSubagent, e.TaskID}
	if e.TaskID == "" {
		key.id = "call " + e.ToolCallID
	}
	r := run.open[key]
	if r == nil || e.Type == protocol.SubagentStarted {
		lane := bits.TrailingZeros64(^(t.lanes(run) | 1))
		r = t.row(m, KindSubagent, e.SubagentName, e.TaskID)
		r.Lane = min(lane, 63)
		r.Detail = &Agent{Task: e.TaskID, Child: e.ChildThreadID, Call: e.ToolCallID}
		run.open[key] = r
		run.lanes |= 1 << r.Lane
		if e.TaskID != "" {
			t.thread(m.Thread).agents[e.TaskID] = r
		}
		if e.ChildThreadID != "" && e.ChildThreadID != m.Thread {
			t.thread(e.ChildThreadID).owner = r
		}
	} else {
		t.extend(r, m)
	}
	if e.Type != protocol.SubagentFinished {
		return
	}
	agent := r.Detail.(*Agent)
	agent.Status, agent.Detached = e.Status, e.Detached
	r.State = Done
	if e.Status == "error" {
		r.State = Failed
	}
	delete(run.open, key)
	run.lanes &^= 1 << r.Lane
	if e.Detached {
		t.settle(m, string(protocol.SubagentFinished), true, func(c *Row) bool { return c.Name == string(protocol.RunDetach) && c.Run == m.Run })
	}
}

// countForAgents counts an envelope for the subagent whose thread it is of.
func (t *Timeline) countForAgents(run *runFold) {
	if owner := t.thread(run.thread).owner; owner != nil {
		owner.Detail.(*Agent).Envelopes++
	}
}

func (t *Timeline) addUnknown(m *Moment, run *runFold, e *protocol.Event) {
	if r := run.unknown[string(e.Type)]; r != nil {
		t.extend(r, m)
		r.Detail.(*Note).Count++
		return
	}
	name := string(e.Type)
	if name == "" {
		name = "no type"
	}
	r := t.row(m, KindUnknown, name, "")
	r.State = Done
	r.Detail = &Note{Count: 1, Bytes: int64(len(e.Raw)), Text: head(e.Raw)}
	run.unknown[string(e.Type)] = r
}

// headBytes is how much of a long value a row keeps: enough for the widest
// terminal.
const headBytes = 2000

// head copies the beginning of some JSON.
func head(raw []byte) string {
	return cutBytes(string(raw[:min(len(raw), headBytes+utf8.UTFMax)]), headBytes)
}

// valueHead copies the beginning of a value, a string's text or JSON, and says
// how long the whole is.
func valueHead(raw []byte) (text string, size int) {
	var s string
	if len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &s) == nil {
		return strings.Clone(cutBytes(s, headBytes)), len(s)
	}
	return head(raw), len(raw)
}

// checksum is a hash of JSON without the white space between its tokens, so
// that it does not matter how an envelope was printed.
func checksum(raw []byte) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211 // FNV-1a
	sum, inString := uint64(offset), false
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		switch {
		case c == '"':
			inString = !inString
		case c == '\\' && i+1 < len(raw):
			sum = (sum ^ uint64(c)) * prime
			i++
			c = raw[i]
		case !inString && (c == ' ' || c == '\n' || c == '\t' || c == '\r'):
			continue
		}
		sum = (sum ^ uint64(c)) * prime
	}
	return sum
}
