package conversation

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

// Fold makes a transcript of a thread's messages. Give it the messages of a
// session in their order; it takes what belongs to its thread. Use NewFold.
type Fold struct {
	thread string
	stall  time.Duration
	at     capture.Address
	now    time.Duration

	blocks []block
	// reordered is set once some blocks stand elsewhere than where they came.
	reordered bool
	index     map[blockKey]int // the latest block of each id
	runs      []*logical
	byRun     map[string]*logical
	todos     []Todo
	task      json.RawMessage
	tasks     []json.RawMessage
	taskAt    map[string]int

	pending []*asked
	starts  map[string]*asked // the start commands by their message ids
	answers map[capture.Address]struct{}
	ignored int
	lone    []capture.Address
	scratch protocol.Envelope
	reader  *protocol.Validator
	stored  bool // what is being folded comes out of a history
	message *protocol.Message
}

// block is a block that is being made. Its text grows in place.
type block struct {
	Block
	text   []byte
	joiner joiner
	ended  time.Duration // of a tool call's arguments, -1 before
	// rank is where it stands: most stand in the order in which they came, and
	// what a history tells later of what was said before stands before that.
	rank float64
}

type blockKey struct {
	kind BlockKind
	id   string
}

// asked is a command that the gateway has not refused.
type asked struct {
	protocol.Command
	at         capture.Address
	time       time.Duration
	connection capture.Position
	block      int // of what the user wrote, -1
	used       bool
}

const maxPending = 256

// NewFold returns the fold of a thread of which nothing was seen yet. Gaps over
// stall count as stalls; 0 is the default of Pace.
func NewFold(thread string, stall time.Duration) *Fold {
	return &Fold{
		thread:  thread,
		stall:   or(stall, Pace{}.withDefaults().Stall),
		index:   make(map[blockKey]int),
		byRun:   make(map[string]*logical),
		taskAt:  make(map[string]int),
		starts:  make(map[string]*asked),
		answers: make(map[capture.Address]struct{}),
		reader:  protocol.NewValidator(protocol.Options{}),
	}
}

// Clone returns a fold that goes on from here by itself. It copies what can
// still change: texts that are finished are shared.
func (f *Fold) Clone() *Fold {
	c := *f
	c.blocks = slices.Clone(f.blocks)
	for i := range c.blocks {
		b, old := &c.blocks[i], &f.blocks[i]
		old.text = slices.Clip(old.text)
		b.text = old.text
		b.Tool, b.Decision, b.Subagent = copied(b.Tool), copied(b.Decision), copied(b.Subagent)
	}
	c.runs = make([]*logical, len(f.runs))
	c.byRun = make(map[string]*logical, len(f.byRun))
	for i, l := range f.runs {
		c.runs[i] = l.clone()
		for _, s := range l.segments {
			c.byRun[s.Run] = c.runs[i]
		}
	}
	c.pending = make([]*asked, len(f.pending))
	c.starts = make(map[string]*asked, len(f.starts))
	for i, a := range f.pending {
		c.pending[i] = copied(a)
		if f.starts[a.MessageID] == a {
			c.starts[a.MessageID] = c.pending[i]
		}
	}
	c.index, c.taskAt, c.answers = cloned(f.index), cloned(f.taskAt), cloned(f.answers)
	c.tasks, c.lone = slices.Clone(f.tasks), slices.Clone(f.lone)
	c.reader = protocol.NewValidator(protocol.Options{})
	return &c
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

func cloned[K comparable, V any](m map[K]V) map[K]V {
	c := make(map[K]V, len(m))
	for k, v := range m {
		c[k] = v
	}
	return c
}

// Transcript returns what stands there now. It costs a copy of the list of
// blocks, and of the texts that still grow.
func (f *Fold) Transcript() *Transcript {
	t := &Transcript{
		Thread: f.thread, At: f.at, Blocks: make([]Block, len(f.blocks)), Runs: make([]LogicalRun, len(f.runs)),
		Todos: f.todos, Task: f.task, Tasks: slices.Clone(f.tasks), Ignored: f.ignored, Lone: slices.Clone(f.lone),
	}
	for i, at := range f.order() {
		b := &f.blocks[at]
		if len(b.text) != len(b.Text) {
			b.Text = string(b.text)
		}
		t.Blocks[i] = b.Block
		t.Blocks[i].Tool, t.Blocks[i].Decision, t.Blocks[i].Subagent = copied(b.Tool), copied(b.Decision), copied(b.Subagent)
		if d := t.Blocks[i].Decision; d != nil && d.State == "open" {
			d.Waited = f.now - b.At
		}
	}
	for i, l := range f.runs {
		t.Runs[i] = l.summary(f.now)
	}
	return t
}

// order returns the blocks' indexes in the order in which they stand.
func (f *Fold) order() []int {
	order := make([]int, len(f.blocks))
	for i := range order {
		order[i] = i
	}
	if f.reordered {
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(f.blocks[a].rank, f.blocks[b].rank) })
	}
	return order
}

// Add folds the next message in.
func (f *Fold) Add(m *protocol.Message) {
	f.now = max(f.now, m.At)
	f.message = m
	taken := false
	switch {
	case m.Answer:
		taken = f.answer(m)
	case m.Name.IsCommand() && m.Direction == capture.FromClient:
		taken = f.command(m)
	case m.Direction != capture.FromGateway:
	case m.Name == protocol.RunEvent:
		taken = f.envelope(m.Envelope, len(m.Payload), true)
	case m.Name == protocol.ProtocolError:
		taken = f.refusal(m)
	case m.Name == protocol.TaskStatus:
		taken = f.taskStatus(m)
	}
	if taken {
		f.at = m.Address
	}
	f.message = nil
}

// add puts a block at the end.
func (f *Fold) add(b Block) *block {
	b.From, b.To, b.At, b.Until, b.Stored = f.message.Address, f.message.Address, f.now, f.now, f.stored
	f.blocks = append(f.blocks, block{Block: b, text: []byte(b.Text), ended: -1, rank: float64(len(f.blocks))})
	if b.ID != "" {
		f.index[blockKey{b.Kind, b.ID}] = len(f.blocks) - 1
	}
	return &f.blocks[len(f.blocks)-1]
}

// find returns the latest block of an id, nil if there is none.
func (f *Fold) find(kind BlockKind, id string) *block {
	if i, is := f.index[blockKey{kind, id}]; is {
		return &f.blocks[i]
	}
	return nil
}

// touch takes note that a message belongs to a block.
func (f *Fold) touch(b *block) {
	b.To, b.Until = f.message.Address, f.now
}

// command takes what the client sent.
func (f *Fold) command(m *protocol.Message) bool {
	c, ok := protocol.ReadCommand(m)
	if !ok || c.ThreadID != f.thread && f.byRun[c.RunID] == nil {
		return false
	}
	c.ClientTools, c.Attachments, c.Answer = nil, nil, bytes.Clone(c.Answer)
	a := &asked{Command: c, at: m.Address, time: f.now, connection: m.Connection, block: -1}
	switch c.Name {
	case protocol.ThreadMessages:
		f.answers[m.Address] = struct{}{}
		return true
	case protocol.RunStart:
		f.started(a)
	case protocol.RunResume:
		f.decided(a)
	}
	if len(f.pending) >= maxPending {
		f.pending = slices.Delete(f.pending, 0, maxPending/2)
	}
	f.pending = append(f.pending, a)
	return true
}

// started shows what the user wrote.
func (f *Fold) started(a *asked) {
	if old := f.starts[a.MessageID]; old != nil && a.MessageID != "" && old.block >= 0 && f.blocks[old.block].Refused == "" {
		a.block = old.block // sent again
		return
	}
	if a.ForkFromMessageID != "" {
		f.fork(a.ForkFromMessageID)
	}
	f.add(Block{Kind: UserBlock, ID: a.MessageID, Role: "user", Text: a.Input})
	a.block = len(f.blocks) - 1
	if a.MessageID != "" {
		f.starts[a.MessageID] = a
	}
}

// fork drops what stands from a message on: the run starts anew from there.
func (f *Fold) fork(from string) {
	i, is := f.index[blockKey{UserBlock, from}]
	if !is {
		if i, is = f.index[blockKey{TextBlock, from}]; !is {
			return
		}
	}
	f.blocks = slices.Clip(f.blocks[:i])
	for key, at := range f.index {
		if at >= i {
			delete(f.index, key)
		}
	}
	for _, a := range f.pending {
		if a.block >= i {
			a.block = -1
		}
	}
}

// decided answers a decision.
func (f *Fold) decided(a *asked) {
	b := f.find(DecisionBlock, a.InterruptID)
	if b == nil || b.Decision.State != "open" {
		return
	}
	d := b.Decision
	d.State, d.Answer, d.By, d.Waited = "answered", a.Answer, a.at, f.now-b.At
	f.touch(b)
	if l := f.byRun[b.Run]; l != nil {
		l.answered(f.now, f.waiting(l))
		l.asked = f.now
	}
}

// waiting reports whether a decision of the run is still open.
func (f *Fold) waiting(l *logical) bool {
	return slices.ContainsFunc(f.blocks[min(l.first, len(f.blocks)):], func(b block) bool {
		return b.Kind == DecisionBlock && b.Decision.State == "open" && f.byRun[b.Run] == l
	})
}

// refusal takes protocol:error: the oldest command of the socket that fits the
// code was refused.
func (f *Fold) refusal(m *protocol.Message) bool {
	failure, ok := protocol.ReadError(m.Payload)
	if !ok {
		return false
	}
	for i, a := range f.pending {
		if a.connection != m.Connection || a.used || !canBe(&a.Command, failure.Code) {
			continue
		}
		f.pending = slices.Delete(f.pending, i, i+1)
		if a.block >= 0 && a.block < len(f.blocks) {
			f.blocks[a.block].Refused = failure.Code
			f.touch(&f.blocks[a.block])
		}
		if b := f.find(DecisionBlock, a.InterruptID); b != nil && b.Decision.By == a.at {
			b.Decision.State, b.Decision.Answer, b.Decision.By, b.Decision.Waited = "open", nil, capture.Address{}, 0
			if l := f.byRun[b.Run]; l != nil {
				l.waits(a.time)
			}
		}
		return true
	}
	return false
}

// taskStatus keeps the latest status of each background task.
func (f *Fold) taskStatus(m *protocol.Message) bool {
	var body struct {
		ThreadID string          `json:"threadId"`
		Task     json.RawMessage `json:"task"`
	}
	if json.Unmarshal(m.Payload, &body) != nil || body.ThreadID != f.thread {
		return false
	}
	var id struct {
		ID     string `json:"id"`
		TaskID string `json:"taskId"`
	}
	_ = json.Unmarshal(body.Task, &id) // without an id it is one more task
	if id.ID == "" {
		id.ID = id.TaskID
	}
	if i, is := f.taskAt[id.ID]; is && id.ID != "" {
		f.tasks[i] = body.Task
		return true
	}
	f.taskAt[id.ID] = len(f.tasks)
	f.tasks = append(f.tasks, body.Task)
	return true
}
