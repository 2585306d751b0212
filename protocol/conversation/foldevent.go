package conversation

import (
	"bytes"
	"encoding/json"

	"tapedeck/protocol"
)

// envelope folds an envelope in, once, however many sockets got it.
func (f *Fold) envelope(e *protocol.Envelope, size int, live bool) bool {
	if e == nil || e.ThreadID != f.thread || e.RunID == "" {
		return false
	}
	l := f.byRun[e.RunID]
	if l == nil {
		l = f.begin(e)
	}
	s := l.segmentOf(e.RunID)
	if e.Sequence > 0 {
		if live && l.counts(e.RunID, e.Sequence) {
			l.count(f.now, size, f.stall)
		}
		if e.Sequence <= s.top {
			return true
		}
		s.top = e.Sequence
	}
	s.To, s.Ended = f.message.Address, f.now
	if s.Status == Finished && s.paused {
		s.Status, s.paused = Running, false // it goes on under its own id
	}
	f.event(l, s, &e.Event, live)
	return true
}

// begin finds the logical run of a run id that is new.
func (f *Fold) begin(e *protocol.Envelope) *logical {
	id, text := openingMessage(e.Event.Body)
	start := f.startOf(id, e.Event.Type)
	var last *logical
	if n := len(f.runs); n > 0 {
		last = f.runs[n-1]
	}
	if start == nil && last != nil && last.resumable() && f.find(UserBlock, id) == nil {
		last.segments = append(last.segments, f.newSegment(e.RunID))
		f.byRun[e.RunID] = last
		return last
	}
	l := &logical{asked: f.now, firstToken: -1, waitsSince: -1, latest: -1}
	if start != nil {
		start.used, l.asked = true, start.time
		if start.block >= 0 && start.block < len(f.blocks) {
			f.blocks[start.block].Run = e.RunID
		}
	} else if id != "" && f.find(UserBlock, id) == nil {
		f.add(Block{Kind: UserBlock, ID: id, Run: e.RunID, Role: "user", Text: text})
	}
	l.since, l.first = l.asked, len(f.blocks)
	l.segments = append(l.segments, f.newSegment(e.RunID))
	f.runs = append(f.runs, l)
	f.byRun[e.RunID] = l
	return l
}

// startOf returns the command that began a run.
func (f *Fold) startOf(id string, first protocol.EventType) *asked {
	if first != protocol.RunStarted {
		return nil
	}
	if id != "" {
		if a := f.starts[id]; a != nil && !a.used {
			return a
		}
		return nil
	}
	if n := len(f.runs); n > 0 && f.runs[n-1].resumable() {
		return nil
	}
	for _, a := range f.pending {
		if a.Name == protocol.RunStart && !a.used {
			return a
		}
	}
	return nil
}

func (f *Fold) newSegment(run string) *segmentFold {
	return &segmentFold{Segment: Segment{
		Run: run, Status: Running, From: f.message.Address, To: f.message.Address, Started: f.now, Ended: f.now,
	}}
}

// event folds an event in.
func (f *Fold) event(l *logical, s *segmentFold, e *protocol.Event, live bool) {
	switch e.Type {
	case protocol.RunStarted:
	case protocol.RunFinished, protocol.RunCancelled, protocol.RunError:
		f.end(l, s, e)
	case protocol.TextMessageStart:
		f.add(Block{Kind: TextBlock, ID: e.MessageID, Run: s.Run, Role: e.Role, Open: true})
	case protocol.TextMessageContent:
		f.delta(l, s, TextBlock, e.MessageID, e, live)
	case protocol.TextMessageEnd:
		f.close(TextBlock, e.MessageID)
	case protocol.ReasoningStart:
		f.add(Block{Kind: ReasoningBlock, ID: e.MessageID, Run: s.Run, Open: true})
	case protocol.ReasoningContent:
		f.delta(l, s, ReasoningBlock, e.MessageID, e, live)
	case protocol.ReasoningEnd:
		f.close(ReasoningBlock, e.MessageID)
	case protocol.ToolCallStart:
		f.add(Block{Kind: ToolBlock, ID: e.ToolCallID, Run: s.Run, Open: true,
			Tool: &ToolCall{Name: e.ToolCallName, Parent: e.ParentMessageID, Latency: -1}})
	case protocol.ToolCallArgs:
		f.delta(l, s, ToolBlock, e.ToolCallID, e, live)
	case protocol.ToolCallEnd:
		f.argsEnd(e.ToolCallID, live)
	case protocol.ToolCallResult:
		f.result(s, e, live)
	case protocol.Interrupt:
		f.interrupt(l, s, e)
	case protocol.RunPaused:
		s.paused, s.Status = true, Paused
	case protocol.TodosSnapshot:
		f.todos = readTodos(e.Body)
	case protocol.SubagentStarted:
		f.add(Block{Kind: SubagentBlock, ID: subagentID(e), Run: s.Run, Open: true,
			Subagent: &Subagent{Name: e.SubagentName, TaskID: e.TaskID, Thread: e.ChildThreadID}})
	case protocol.SubagentFinished:
		f.subagentEnd(l, e)
	default:
		f.ignored++
	}
}

// delta appends to a block, which is made if its START was not seen.
func (f *Fold) delta(l *logical, s *segmentFold, kind BlockKind, id string, e *protocol.Event, live bool) {
	b := f.find(kind, id)
	if b == nil {
		b = f.add(Block{Kind: kind, ID: id, Run: s.Run, Open: true})
		if kind == ToolBlock {
			b.Tool = &ToolCall{Latency: -1}
		}
	}
	piece, lone := b.joiner.join(e, f.message.Address)
	if !lone.IsZero() {
		f.lone = append(f.lone, lone)
	}
	b.text = append(b.text, piece...)
	b.Deltas++
	f.touch(b)
	if live && l.firstToken < 0 {
		l.firstToken = max(f.now-l.asked, 0)
	}
}

// close ends a block.
func (f *Fold) close(kind BlockKind, id string) *block {
	b := f.find(kind, id)
	if b == nil {
		return nil
	}
	f.flush(b)
	b.Open = false
	f.touch(b)
	return b
}

// flush shows half of a character that nothing will complete.
func (f *Fold) flush(b *block) {
	piece, lone := b.joiner.end()
	if !lone.IsZero() {
		f.lone = append(f.lone, lone)
		b.text = append(b.text, piece...)
	}
}

func (f *Fold) argsEnd(id string, live bool) {
	b := f.close(ToolBlock, id)
	if b == nil {
		return
	}
	args := bytes.TrimSpace(b.text)
	b.Tool.Parsed = len(args) == 0 || json.Valid(args)
	if live {
		b.ended = f.now
	}
}

func (f *Fold) result(s *segmentFold, e *protocol.Event, live bool) {
	b := f.find(ToolBlock, e.ToolCallID)
	if b == nil {
		b = f.add(Block{Kind: ToolBlock, ID: e.ToolCallID, Run: s.Run, Tool: &ToolCall{Latency: -1}})
	}
	b.Tool.Result = bytes.Clone(e.Body)
	if live && b.ended >= 0 {
		b.Tool.Latency = f.now - b.ended
	}
	f.touch(b)
}

func (f *Fold) interrupt(l *logical, s *segmentFold, e *protocol.Event) {
	if b := f.find(DecisionBlock, e.InterruptID); b != nil && b.Decision.State == "open" {
		f.touch(b) // asked again
		return
	}
	f.add(Block{Kind: DecisionBlock, ID: e.InterruptID, Run: s.Run,
		Decision: &Decision{Payload: bytes.Clone(e.Body), State: "open"}})
	l.waits(f.now)
}

func (f *Fold) subagentEnd(l *logical, e *protocol.Event) {
	b := f.find(SubagentBlock, subagentID(e))
	for i := min(l.first, len(f.blocks)); b == nil && i < len(f.blocks); i++ {
		o := &f.blocks[i]
		if o.Kind == SubagentBlock && o.Open && (e.TaskID == "" || o.Subagent.TaskID == e.TaskID) {
			b = o
		}
	}
	if b == nil {
		return
	}
	b.Open = false
	b.Subagent.Status, b.Subagent.Detached = e.Status, e.Detached
	f.touch(b)
}

// end takes the end of a run. What is open then will not go on, save of a run
// that pauses.
func (f *Fold) end(l *logical, s *segmentFold, e *protocol.Event) {
	if e.Type == protocol.RunFinished && s.paused {
		s.Status = Finished
		return
	}
	if s.ended {
		return
	}
	s.ended, s.Status = true, statusOf(e.Type)
	for i := min(l.first, len(f.blocks)); i < len(f.blocks); i++ {
		b := &f.blocks[i]
		if f.byRun[b.Run] != l {
			continue
		}
		f.flush(b)
		if b.Kind != SubagentBlock || !b.Subagent.Detached {
			b.Open = false
		}
		if b.Decision != nil && b.Decision.State == "open" {
			b.Decision.State, b.Decision.Waited = "closed", f.now-b.At
		}
	}
	l.answered(f.now, false)
	if e.Type == protocol.RunError {
		f.add(Block{Kind: ErrorBlock, ID: e.Code, Run: s.Run, Text: e.Message})
	}
}

// readTodos reads a plan: items are objects or plain strings.
func readTodos(body []byte) []Todo {
	var items []json.RawMessage
	if json.Unmarshal(body, &items) != nil {
		return nil
	}
	todos := make([]Todo, 0, len(items))
	for _, item := range items {
		var todo Todo
		if json.Unmarshal(item, &todo.Content) != nil {
			_ = json.Unmarshal(item, &todo) // what cannot be read is an empty item
		}
		todos = append(todos, todo)
	}
	return todos
}
