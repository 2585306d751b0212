package conversation

import (
	"encoding/json"
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

// Transcript is what a reader of a thread sees at one moment, as a correct
// client would show it. It is a value of its own: folding on does not change it.
type Transcript struct {
	Thread string          `json:"thread"`
	At     capture.Address `json:"at"` // of the latest message in it
	// Blocks are what stands on the screen, from the top.
	Blocks []Block `json:"blocks"`
	// Runs are the thread's runs, the segments of each folded into one.
	Runs  []LogicalRun `json:"runs"`
	Todos []Todo       `json:"todos,omitempty"`
	// Task is set when the thread is a background task's own conversation.
	Task json.RawMessage `json:"task,omitempty"`
	// Tasks are the background tasks of the thread, as task:status told.
	Tasks []json.RawMessage `json:"tasks,omitempty"`
	// Ignored counts events of types that a client has no case for.
	Ignored int `json:"ignored,omitempty"`
	// Lone are the deltas that left half of a character behind. U+FFFD stands
	// in its place.
	Lone []capture.Address `json:"lone,omitempty"`
}

// BlockKind says what a block of a transcript is.
type BlockKind string

// The kinds of a block.
const (
	UserBlock      BlockKind = "user"      // what the user wrote
	TextBlock      BlockKind = "text"      // a text message
	ReasoningBlock BlockKind = "reasoning" // the model's reasoning
	ToolBlock      BlockKind = "tool"      // a tool call and its result
	DecisionBlock  BlockKind = "decision"  // a question to a human
	SubagentBlock  BlockKind = "subagent"  // a subagent at work
	ErrorBlock     BlockKind = "error"     // a run's failure
)

// Block is one thing that a reader sees.
type Block struct {
	Kind BlockKind `json:"kind"`
	ID   string    `json:"id,omitempty"`
	Run  string    `json:"run,omitempty"`
	Role string    `json:"role,omitempty"`
	// Text is what is to be read: the message, or the arguments of a tool call
	// joined.
	Text string `json:"text,omitempty"`
	// Open is set while more may come.
	Open bool `json:"open,omitempty"`
	// Stored is set for what is known from a history or a replay only.
	Stored bool `json:"stored,omitempty"`
	Deltas int  `json:"deltas,omitempty"`
	// From and To are the first and the latest message that it is made of.
	From  capture.Address `json:"from"`
	To    capture.Address `json:"to"`
	At    time.Duration   `json:"at"`
	Until time.Duration   `json:"until"`

	// Refused is the code with which the gateway refused what the user sent.
	Refused  protocol.ErrorCode `json:"refused,omitempty"`
	Tool     *ToolCall          `json:"tool,omitempty"`
	Decision *Decision          `json:"decision,omitempty"`
	Subagent *Subagent          `json:"subagent,omitempty"`
}

// ToolCall is what a ToolBlock has besides its arguments, which are its Text.
type ToolCall struct {
	Name   string `json:"name,omitempty"`
	Parent string `json:"parent,omitempty"` // the message that it belongs to
	// Parsed is set once the arguments are whole and join to JSON.
	Parsed bool            `json:"parsed,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	// Latency is from the end of the arguments to the result, -1 before it, and
	// where either is known from a replay only.
	Latency time.Duration `json:"latency"`
}

// Decision is a question to a human.
type Decision struct {
	Payload json.RawMessage `json:"payload,omitempty"`
	State   string          `json:"state"` // "open", "answered" or "closed"
	Answer  json.RawMessage `json:"answer,omitempty"`
	By      capture.Address `json:"by,omitzero"` // the run:resume that answered
	// Waited is how long it took, so far for one that is open.
	Waited time.Duration `json:"waited"`
}

// Subagent is a subagent of a run.
type Subagent struct {
	Name     string `json:"name,omitempty"`
	TaskID   string `json:"taskId,omitempty"`
	Thread   string `json:"childThreadId,omitempty"`
	Status   string `json:"status,omitempty"`
	Detached bool   `json:"detached,omitempty"`
}

// Todo is an item of a plan.
type Todo struct {
	Content string `json:"content"`
	Status  string `json:"status,omitempty"`
}

// LogicalRun is a run and what went on after its pauses.
type LogicalRun struct {
	Segments []Segment `json:"segments"`
	Status   Status    `json:"status"`
	Figures  Figures   `json:"figures"`
}

// Segment is a run up to its pause or end.
type Segment struct {
	Run     string          `json:"run"`
	Status  Status          `json:"status"`
	From    capture.Address `json:"from"`
	To      capture.Address `json:"to"`
	Started time.Duration   `json:"started"`
	Ended   time.Duration   `json:"ended"`
}

// Figures are what was measured of a logical run. What came by a replay or a
// history counts in none of them.
type Figures struct {
	Events int   `json:"events"`
	Bytes  int64 `json:"bytes"`
	// Wall is from the command, or the first event if none was seen, to the
	// latest event. It is the sum of Human, in which decisions were waited for,
	// and Model.
	Wall  time.Duration `json:"wall"`
	Model time.Duration `json:"model"`
	Human time.Duration `json:"human"`
	// FirstToken is from the command to the first delta, -1 before one.
	FirstToken time.Duration `json:"firstToken"`
	// Gaps are between the events of a segment.
	GapMedian time.Duration `json:"gapMedian"`
	Gap95     time.Duration `json:"gap95"`
	GapMax    time.Duration `json:"gapMax"`
	Stalls    int           `json:"stalls,omitempty"` // gaps over the stall threshold
}
