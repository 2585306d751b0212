package story

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"time"

	"tapedeck/protocol"
)

// WriteAGUI writes the runs of some sessions as AG-UI events, one a line. A run
// that pauses ends with the interrupt outcome, and goes on as another. What is
// left open when a run ends is ended, and what was never begun is begun, since
// AG-UI's tools refuse a stream otherwise; what AG-UI has no event for is RAW.
// About is what the first event says of the file.
func WriteAGUI(w io.Writer, about string, sessions []Session) error {
	buffered := bufio.NewWriterSize(w, 64<<10)
	out := &aguiWriter{out: buffered, about: about, runs: map[string]*aguiRun{}}
	for i := range sessions {
		out.started = sessions[i].Row.Started
		out.asked = map[string]*input{}
		if err := tell(&sessions[i], out); err != nil {
			return err
		}
		if err := out.end(); err != nil {
			return err
		}
	}
	return buffered.Flush()
}

// aguiWriter writes one run after the other: those that come between the events
// of another wait.
type aguiWriter struct {
	out     io.Writer
	about   string // until it was said
	started time.Time
	asked   map[string]*input // by thread
	runs    map[string]*aguiRun
	order   []*aguiRun // that are not over: the first is written, the others wait
}

// aguiRun is a run that is being told.
type aguiRun struct {
	id, thread string
	waiting    bytes.Buffer
	begun      bool
	over       bool
	open       []openItem
	asked      []interrupt
	calls      map[string]string // tool calls without a result, by the tool's name
	subagents  []string
}

// openItem is what has begun and not ended.
type openItem struct {
	id   string
	ends string // the type of the event that ends it
}

func (w *aguiWriter) command(_ time.Duration, c *protocol.Command) error {
	if c.ThreadID == "" {
		return nil
	}
	in := w.asked[c.ThreadID]
	if in == nil {
		in = &input{}
		w.asked[c.ThreadID] = in
	}
	switch c.Name {
	case protocol.RunStart:
		in.messages = append(in.messages, aguiMessage{cmp.Or(c.MessageID, "message"), "user", c.Input})
	case protocol.RunResume:
		in.resume = append(in.resume, aguiResume{c.InterruptID, "resolved", validOr(c.Answer, "null")})
	}
	for _, t := range c.ClientTools {
		in.tools = append(in.tools, aguiTool{t.Name, t.Description, validOr(t.Arguments, "{}")})
	}
	return nil
}

func (w *aguiWriter) event(e *event) error {
	r := w.runs[e.run]
	if r != nil && r.over && (len(r.asked) == 0 || e.Type == protocol.RunStarted) {
		return nil // it comes behind the end, where AG-UI has no place for it
	}
	if r == nil || r.over { // over, and going on under the same id
		r = &aguiRun{id: e.run, thread: e.thread, calls: map[string]string{}}
		w.runs[e.run] = r
		w.order = append(w.order, r)
	}
	if !r.begun {
		if err := w.begin(r, e.at); err != nil {
			return err
		}
	}
	return w.translate(r, e)
}

// begin writes RUN_STARTED.
func (w *aguiWriter) begin(r *aguiRun, at time.Duration) error {
	r.begun = true
	started := aguiEvent{Type: "RUN_STARTED", ThreadID: r.thread, RunID: r.id}
	if in := w.asked[r.thread]; in != nil {
		delete(w.asked, r.thread)
		started.Input = &aguiInput{
			ThreadID: r.thread, RunID: r.id, Messages: append([]aguiMessage{}, in.messages...),
			Tools: append([]aguiTool{}, in.tools...), Context: []struct{}{}, Resume: in.resume,
		}
	}
	if w.about != "" && r == w.order[0] {
		started.RawEvent = map[string]string{"tapedeckRedacted": w.about}
		w.about = ""
	}
	return w.put(r, at, &started)
}

// put writes an event of a run, now or when its turn comes.
func (w *aguiWriter) put(r *aguiRun, at time.Duration, e *aguiEvent) error {
	e.Timestamp = w.started.Add(at).UnixMilli()
	var to io.Writer = &r.waiting
	if r == w.order[0] {
		to = w.out
	}
	line := json.NewEncoder(to)
	line.SetEscapeHTML(false)
	return line.Encode(e)
}

// turn writes what waits, once the first run is over.
func (w *aguiWriter) turn() error {
	for len(w.order) > 0 && w.order[0].over {
		w.order = w.order[1:]
		if len(w.order) > 0 {
			if _, err := w.order[0].waiting.WriteTo(w.out); err != nil {
				return err
			}
		}
	}
	return nil
}

// end writes what is left: runs that never ended stay open.
func (w *aguiWriter) end() error {
	for len(w.order) > 0 {
		w.order[0].over = true
		if err := w.turn(); err != nil {
			return err
		}
	}
	clear(w.runs)
	return nil
}

// translate writes what an event is in AG-UI.
func (w *aguiWriter) translate(r *aguiRun, e *event) error {
	id := cmp.Or(e.MessageID, e.ToolCallID, "none")
	switch e.Type {
	case protocol.RunStarted, protocol.RunPaused:
		return nil
	case protocol.TextMessageStart:
		return w.start(r, e, openItem{id, "TEXT_MESSAGE_END"})
	case protocol.TextMessageContent, protocol.ReasoningContent, protocol.ToolCallArgs:
		return w.delta(r, e, id)
	case protocol.TextMessageEnd:
		return w.close(r, e, openItem{id, "TEXT_MESSAGE_END"})
	case protocol.ReasoningStart:
		return w.start(r, e, openItem{id, "REASONING_MESSAGE_END"})
	case protocol.ReasoningEnd:
		return w.close(r, e, openItem{id, "REASONING_MESSAGE_END"})
	case protocol.ToolCallStart:
		return w.start(r, e, openItem{id, "TOOL_CALL_END"})
	case protocol.ToolCallEnd:
		return w.close(r, e, openItem{id, "TOOL_CALL_END"})
	case protocol.ToolCallResult:
		delete(r.calls, e.ToolCallID)
		text := textOf(e.Body)
		return w.put(r, e.at, &aguiEvent{
			Type: "TOOL_CALL_RESULT", MessageID: cmp.Or(e.MessageID, e.ToolCallID+"-result"), ToolCallID: e.ToolCallID, Content: &text, Role: "tool",
		})
	case protocol.Interrupt:
		r.asked = append(r.asked, r.interrupt(e))
		return nil
	case protocol.TodosSnapshot:
		return w.put(r, e.at, &aguiEvent{Type: "STATE_SNAPSHOT", Snapshot: json.RawMessage(`{"todos":` + string(validOr(e.Body, "[]")) + `}`)})
	case protocol.SubagentStarted, protocol.SubagentFinished:
		return w.subagent(r, e)
	case protocol.RunFinished, protocol.RunCancelled, protocol.RunError:
		return w.finish(r, e)
	}
	return w.put(r, e.at, &aguiEvent{Type: "RAW", Event: validOr(e.Raw, "null")})
}

// start begins a text, a reasoning or a tool call.
func (w *aguiWriter) start(r *aguiRun, e *event, item openItem) error {
	if slices.Contains(r.open, item) {
		return nil
	}
	r.open = append(r.open, item)
	switch item.ends {
	case "TEXT_MESSAGE_END":
		role := e.Role
		if !slices.Contains([]string{"developer", "system", "assistant", "user"}, role) {
			role = "assistant"
		}
		return w.put(r, e.at, &aguiEvent{Type: "TEXT_MESSAGE_START", MessageID: item.id, Role: role})
	case "TOOL_CALL_END":
		r.calls[item.id] = cmp.Or(e.ToolCallName, "unknown")
		return w.put(r, e.at, &aguiEvent{Type: "TOOL_CALL_START", ToolCallID: item.id, ToolCallName: r.calls[item.id], ParentMessageID: e.ParentMessageID})
	}
	if err := w.put(r, e.at, &aguiEvent{Type: "REASONING_START", MessageID: item.id}); err != nil {
		return err
	}
	return w.put(r, e.at, &aguiEvent{Type: "REASONING_MESSAGE_START", MessageID: item.id, Role: "reasoning"})
}

// delta writes a piece; one that is empty AG-UI refuses.
func (w *aguiWriter) delta(r *aguiRun, e *event, id string) error {
	types := map[protocol.EventType][2]string{
		protocol.TextMessageContent: {"TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"},
		protocol.ReasoningContent:   {"REASONING_MESSAGE_CONTENT", "REASONING_MESSAGE_END"},
		protocol.ToolCallArgs:       {"TOOL_CALL_ARGS", "TOOL_CALL_END"},
	}[e.Type]
	if e.Delta == "" {
		return nil
	}
	if err := w.start(r, e, openItem{id, types[1]}); err != nil {
		return err
	}
	out := aguiEvent{Type: types[0], Delta: &e.Delta}
	if out.MessageID = id; e.Type == protocol.ToolCallArgs {
		out.MessageID, out.ToolCallID = "", id
	}
	return w.put(r, e.at, &out)
}

// close ends what has begun.
func (w *aguiWriter) close(r *aguiRun, e *event, item openItem) error {
	i := slices.Index(r.open, item)
	if i < 0 {
		return nil
	}
	r.open = slices.Delete(r.open, i, i+1)
	out := aguiEvent{Type: item.ends, MessageID: item.id}
	if item.ends == "TOOL_CALL_END" {
		out.MessageID, out.ToolCallID = "", item.id
	}
	if err := w.put(r, e.at, &out); err != nil || item.ends != "REASONING_MESSAGE_END" {
		return err
	}
	return w.put(r, e.at, &aguiEvent{Type: "REASONING_END", MessageID: item.id})
}

func (w *aguiWriter) subagent(r *aguiRun, e *event) error {
	id := cmp.Or(e.ToolCallID, e.TaskID, "none")
	known := slices.Index(r.subagents, id)
	if known < 0 {
		r.subagents = append(r.subagents, id)
		if err := w.put(r, e.at, &aguiEvent{Type: "SUBAGENT_STARTED", SubagentRunID: id, Name: cmp.Or(e.SubagentName, "subagent"), ToolCallID: e.ToolCallID}); err != nil {
			return err
		}
		known = len(r.subagents) - 1
	}
	if e.Type == protocol.SubagentStarted {
		return nil
	}
	r.subagents = slices.Delete(r.subagents, known, known+1)
	if e.Status == "error" {
		message := "the subagent failed"
		return w.put(r, e.at, &aguiEvent{Type: "SUBAGENT_ERROR", SubagentRunID: id, Message: &message})
	}
	out := aguiEvent{Type: "SUBAGENT_FINISHED", SubagentRunID: id, Outcome: &outcome{Type: "success"}}
	if e.Detached {
		out.Outcome.Type = "suspended"
	}
	return w.put(r, e.at, &out)
}

// finish ends a run. What is open is ended before it, save by an error, which
// ends everything.
func (w *aguiWriter) finish(r *aguiRun, e *event) error {
	r.over = true
	out := aguiEvent{Type: "RUN_FINISHED", ThreadID: r.thread, RunID: r.id, Outcome: &outcome{Type: "success"}}
	switch {
	case e.Type == protocol.RunError:
		message := cmp.Or(e.Message, "the run failed")
		out = aguiEvent{Type: "RUN_ERROR", Message: &message, Code: e.Code}
	case e.Type == protocol.RunCancelled:
		out.Outcome.Type = "cancelled"
	case len(r.asked) > 0:
		out.Outcome = &outcome{Type: "interrupt", Interrupts: r.asked}
	}
	if e.Type != protocol.RunError {
		for len(r.open) > 0 {
			if err := w.close(r, e, r.open[0]); err != nil {
				return err
			}
		}
		for _, id := range r.subagents {
			if err := w.put(r, e.at, &aguiEvent{Type: "SUBAGENT_FINISHED", SubagentRunID: id, Outcome: &outcome{Type: "suspended"}}); err != nil {
				return err
			}
		}
	}
	if err := w.put(r, e.at, &out); err != nil {
		return err
	}
	return w.turn()
}
