package conversation

import (
	"bytes"
	"encoding/json"
	"slices"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

// kind is a kind of construct that has a beginning and an end.
type kind uint8

const (
	text kind = iota
	reasoning
	toolCall
	subagent
)

var kindNames = [...]string{"text message", "reasoning", "tool call", "subagent"}

// item is a construct of a run: a text, a reasoning, a tool call or a subagent.
type item struct {
	kind  kind
	id    string
	name  string // of a tool
	start capture.Address
	end   capture.Address // the latest END, or SUBAGENT_FINISHED
	open  bool
	told  bool // its pairing was reported once
	run   *run
	tears int // how many holes the run had when it began

	joiner joiner
	sum    digest // of a text
	args   []byte // of a tool call, until its END
	argful bool   // arguments came that were not kept
	result capture.Address
	// taskID and child name a subagent beside its id, which is its tool call's.
	taskID, child string
	detached      bool
}

type itemKey struct {
	kind kind
	id   string
}

// torn reports whether a part of the item may not have been seen.
func (it *item) torn() bool { return it.tears != it.run.tears }

// items are the constructs of a run.
type items struct {
	byKey  map[itemKey]*item
	latest *item
	order  []*item // as they began
	subs   []*item // the subagents that work, as they began
}

const (
	maxItems   = 10_000  // of a run
	maxArgs    = 1 << 20 // bytes of a tool call's arguments
	maxChain   = 32      // segments of one logical run that are searched
	dearItems  = 8       // what an item costs against the slots of a record
	maxCost    = 1 << 17 // slots of the runs that have ended and are remembered
	namedItems = 3       // open items that a finding names

	maxTasks     = 1 << 12 // whose status is posted to their run
	maxSubagents = 1 << 10 // that work at once and are searched without an id
)

// find returns the run's item, nil if there is none.
func (r *run) find(k kind, id string) *item {
	if i := r.items.latest; i != nil && i.kind == k && i.id == id {
		return i
	}
	i := r.items.byKey[itemKey{k, id}]
	if i != nil {
		r.items.latest = i
	}
	return i
}

// findLinked searches the run and those whose pauses it resumes.
func (r *run) findLinked(k kind, id string) *item {
	for range maxChain {
		if i := r.find(k, id); i != nil {
			return i
		}
		if r = r.before; r == nil {
			return nil
		}
	}
	return nil
}

// whole reports whether all of the run was seen, and all of those whose pauses
// it resumes.
func (r *run) whole() bool {
	for range maxChain {
		if r.tears > 0 {
			return false
		}
		if r.before == nil {
			return r.fresh
		}
		r = r.before
	}
	return false
}

// begin adds an item. The oldest that are closed make room.
func (r *run) begin(k kind, id string, at capture.Address) *item {
	it := &item{kind: k, id: id, start: at, open: true, run: r, tears: r.tears}
	l := &r.items
	if l.byKey == nil {
		l.byKey = make(map[itemKey]*item)
	}
	if len(l.order) >= maxItems {
		kept := l.order[:0]
		for n, old := range l.order {
			if n < maxItems/2 {
				delete(l.byKey, itemKey{old.kind, old.id})
			} else {
				kept = append(kept, old)
			}
		}
		clear(l.order[len(kept):])
		l.order = kept
		r.tear()
	}
	l.byKey[itemKey{k, id}] = it
	l.order = append(l.order, it)
	if l.latest = it; k == subagent && len(l.subs) < maxSubagents {
		l.subs = append(l.subs, it)
	}
	return it
}

// opened takes the START of a text, a reasoning or a tool call.
func (s *State) opened(r *run, k kind, rule, id string) *item {
	if id == "" {
		return nil // the validator misses the id
	}
	at := s.turn.m.Address
	old := r.findLinked(k, id)
	if old != nil && old.open && !old.torn() {
		s.pair(old, rule, old.start, "%s %s was opened at #%s and is opened again before its end", kindNames[k], short(id), old.start)
		return old
	}
	r.newWork = r.newWork || r.cancel != nil
	return r.begin(k, id, at)
}

// pair reports that an item's parts do not pair, once an item.
func (s *State) pair(it *item, rule string, other capture.Address, format string, args ...any) {
	if it.told {
		s.turn.told = true
		return
	}
	it.told = true
	s.report(rule, protocol.Warning, other, format, args...)
}

// within returns the open item that a CONTENT, ARGS or END belongs to.
func (s *State) within(r *run, k kind, rule, id, part string) *item {
	if id == "" {
		return nil
	}
	it := r.findLinked(k, id)
	switch {
	case it != nil && it.open:
	case it != nil && it.torn():
		s.skip(rule, "a part of the run was not seen")
	case it != nil:
		s.pair(it, rule, it.end, "%s of %s %s comes after its end at #%s", part, kindNames[k], short(id), it.end)
	case !r.whole():
		s.skip(rule, "a part of the run was not seen")
	default:
		it = r.begin(k, id, s.turn.m.Address)
		s.pair(it, rule, capture.Address{}, "%s of %s %s, which was never opened", part, kindNames[k], short(id))
	}
	return it
}

// content takes a delta of a text or a reasoning.
func (s *State) content(r *run, k kind, rule string, e *protocol.Event) {
	it := s.within(r, k, rule, e.MessageID, "a delta")
	if it == nil {
		return
	}
	piece := s.joined(it, e)
	if k == text {
		it.sum.add(piece)
	}
}

// joined returns what a delta adds to an item.
func (s *State) joined(it *item, e *protocol.Event) string {
	piece, lone := it.joiner.join(e, s.turn.m.Address)
	if !lone.IsZero() && !it.torn() {
		s.loneHalf(lone)
	}
	return piece
}

// closed takes the END of a text, a reasoning or a tool call.
func (s *State) closed(r *run, k kind, rule, id string) *item {
	it := s.within(r, k, rule, id, "the end")
	if it == nil {
		return nil
	}
	piece, lone := it.joiner.end()
	if !lone.IsZero() && !it.torn() {
		s.loneHalf(lone)
	}
	if k == text {
		it.sum.add(piece)
	}
	it.open, it.end = false, s.turn.m.Address
	return it
}

// loneHalf reports half of a character whose other half never came.
func (s *State) loneHalf(at capture.Address) {
	if s.turn.flags.Has(capture.Injected) || s.turn.replayed {
		return
	}
	f := protocol.Finding{
		Rule: "json-lone-surrogate", Severity: protocol.Warning, At: at, Connection: s.turn.m.Connection,
		Thread: s.turn.thread, Pointer: "/event/delta",
	}
	if s.turn.run != nil {
		f.Run = s.turn.run.ID
	}
	s.blame(f, "half of a surrogate pair whose other half never came: cut text between characters, or send both halves")
}

// args takes a piece of a tool call's arguments.
func (s *State) args(r *run, e *protocol.Event) {
	it := s.within(r, toolCall, "tool-pair", e.ToolCallID, "a piece of the arguments")
	if it == nil {
		return
	}
	piece := s.joined(it, e)
	if it.argful = it.argful || len(it.args)+len(piece) > maxArgs; !it.argful {
		it.args = append(it.args, piece...)
	}
}

// argsEnd takes the END of a tool call.
func (s *State) argsEnd(r *run, e *protocol.Event) {
	it := s.closed(r, toolCall, "tool-pair", e.ToolCallID)
	if it == nil {
		return
	}
	args := bytes.TrimSpace(it.args)
	it.args = nil
	switch {
	case it.argful || it.torn():
		s.skip("tool-args-json", "a part of the arguments was not seen or not kept")
	case len(args) > 0 && !json.Valid(args):
		s.report("tool-args-json", protocol.Warning, it.start, "the arguments of tool call %s join to no JSON: %s", short(it.id), why(args))
	}
}

// why says where JSON text goes wrong.
func why(text []byte) string {
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return err.Error()
	}
	return "unreadable"
}

// toolResult takes a result.
func (s *State) toolResult(r *run, e *protocol.Event) {
	if e.ToolCallID == "" {
		return
	}
	it := r.findLinked(toolCall, e.ToolCallID)
	if it == nil {
		if !r.whole() {
			s.skip("tool-result-orphan", "the call may stand in a part that was not seen")
			return
		}
		s.report("tool-result-orphan", protocol.Warning, capture.Address{}, "a result of tool call %s, which was never opened", short(e.ToolCallID))
		it = r.begin(toolCall, e.ToolCallID, s.turn.m.Address)
		it.open, it.told = false, true
	} else if !it.result.IsZero() {
		s.report("tool-result-twice", protocol.Warning, it.result, "tool call %s had a result, at #%s", short(it.id), it.result)
	} else if it.open && !it.torn() {
		s.report("tool-result-early", protocol.Warning, it.start, "the result of tool call %s comes before the end of its arguments", short(it.id))
	}
	it.result = s.turn.m.Address
	s.answerGiven(r, it, e)
}

// subagentStarted takes SUBAGENT_STARTED.
func (s *State) subagentStarted(r *run, e *protocol.Event) {
	id := subagentID(e)
	if id != "" {
		if it := r.subagent(e); it != nil && it.open && !it.detached && !it.torn() && it.taskID == e.TaskID {
			s.pair(it, "subagent-pair", it.start, "subagent %s was started at #%s and is started again before its end", short(id), it.start)
			return
		}
	}
	r.newWork = r.newWork || r.cancel != nil
	it := r.begin(subagent, id, s.turn.m.Address)
	it.taskID, it.child, it.name = e.TaskID, e.ChildThreadID, e.SubagentName
	if e.TaskID != "" {
		if len(s.tasks) >= maxTasks {
			clear(s.tasks)
		}
		s.tasks[e.TaskID] = r
	}
}

// subagentFinished takes SUBAGENT_FINISHED.
func (s *State) subagentFinished(r *run, e *protocol.Event) {
	it := r.subagent(e)
	if it == nil {
		if !r.whole() {
			s.skip("subagent-pair", "the subagent may have started in a part that was not seen")
			return
		}
		s.report("subagent-pair", protocol.Warning, capture.Address{}, "subagent %s finished and was never started", short(subagentID(e)))
		return
	}
	it.open, it.end = false, s.turn.m.Address
	if e.Detached {
		it.detached, r.detached = true, true
		return
	}
	for b := r; b != nil; b = b.before {
		if i := slices.Index(b.items.subs, it); i >= 0 {
			b.items.subs = slices.Delete(b.items.subs, i, i+1)
			return
		}
	}
}

func subagentID(e *protocol.Event) string {
	switch {
	case e.ToolCallID != "":
		return e.ToolCallID
	case e.TaskID != "":
		return e.TaskID
	}
	return e.ChildThreadID
}

// subagent returns the subagent that an event is of, by whichever id it shares.
// An event without ids is of the oldest open one: the page requires none.
func (r *run) subagent(e *protocol.Event) *item {
	if id := subagentID(e); id != "" {
		if it := r.findLinked(subagent, id); it != nil {
			return it
		}
	}
	for range maxChain {
		for _, it := range r.items.subs {
			byTask := e.TaskID != "" && it.taskID != ""
			byCall := e.ToolCallID != "" && it.id != "" && it.id != it.taskID && it.id != it.child
			if e.TaskID != "" && it.taskID == e.TaskID || !byTask && !byCall && it.open {
				return it
			}
		}
		if r = r.before; r == nil {
			return nil
		}
	}
	return nil
}

// openItems returns what is still open when a run ends.
func (r *run) openItems() (open []*item) {
	for n := 0; r != nil && n < maxChain; n++ {
		for _, it := range r.items.order {
			if it.open && !it.torn() && (it.kind != subagent || r.tears == 0) {
				open = append(open, it)
			}
		}
		r = r.before
	}
	return open
}
