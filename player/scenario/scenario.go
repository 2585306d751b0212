package scenario

import (
	"encoding/json"
	"time"

	"tapedeck/protocol"
)

// Scenario is a synthetic conversation: what a gateway answers in a thread,
// what its client is expected to do, and what a validator finds.
type Scenario struct {
	Name     string  `yaml:"-"`
	Title    string  `yaml:"title"`    // one line
	About    string  `yaml:"about"`    // what a chat UI should show
	Seed     uint64  `yaml:"seed"`     // of ids and jitter
	Pace     Pace    `yaml:"pace"`     // of all its runs
	Resume   string  `yaml:"resume"`   // "new-run" (default) or "same-run"
	Gateway  Gateway `yaml:"gateway"`  // what differs around the runs
	Steps    []Step  `yaml:"steps"`    // short for one run of these steps
	Runs     []Run   `yaml:"runs"`     // the n-th answers the n-th run:start; the last answers all after it
	Client   []Move  `yaml:"client"`   // what the client is expected to do, in order
	Findings []Found `yaml:"findings"` // the exact findings, when the client does so
}

// Found is a rule and how often it is broken.
type Found struct {
	Rule  string `yaml:"rule"`
	Times int    `yaml:"times"` // 1 by default
}

// Pace says how deltas are cut and when they come. A zero field is that of the
// enclosing pace; the outermost is 300 ms, 30 a second, jitter 0.2, by word.
type Pace struct {
	TTFT   *time.Duration `yaml:"ttft"`   // from the command to the first event after RUN_STARTED
	Rate   float64        `yaml:"rate"`   // deltas a second; "max" is none between them
	Jitter *float64       `yaml:"jitter"` // 0 to 1: how far a gap may stray from 1/rate
	Chunk  string         `yaml:"chunk"`  // whole, word, char, grapheme, mid-surrogate, or a number of characters
}

// Gateway says how the gateway behaves around the runs.
type Gateway struct {
	// Hello is sent in place of the gateway's own announcement; "none" for none.
	// It, and Refuse, need the scenario to be the whole gateway's.
	Hello Value `yaml:"hello"`
	// Refuse is how many CONNECTs are refused before one is accepted.
	Refuse int `yaml:"refuse"`
	// Replay is how many envelopes a replay holds, 0 for all.
	Replay int `yaml:"replay"`
	// Seam damages where a replay and the live stream meet: "overlap" sends the
	// replay's last envelope again, "hole" leaves it out.
	Seam string `yaml:"seam"`
	// History is how many messages the thread begins with.
	History int `yaml:"history"`
	// Unknown makes the thread one that does not exist.
	Unknown bool `yaml:"unknown"`
}

// Run is what answers one run:start.
type Run struct {
	Refuse *Problem `yaml:"refuse"` // the command is refused, nothing is streamed
	// Start is how long RUN_STARTED takes; "none" leaves it out, and "never"
	// everything.
	Start  string `yaml:"start"`
	Cancel Cancel `yaml:"cancel"`
	Pace   Pace   `yaml:"pace"`
	Steps  []Step `yaml:"steps"`
}

// Cancel says what run:cancel does: "stop" ends the run with RUN_CANCELLED,
// "ignore" accepts the command and goes on, and steps are played instead.
type Cancel struct {
	Mode  string
	Steps []Step
}

// Step is one thing that a run does. Exactly one of its fields is set.
type Step struct {
	Text       *Text          `yaml:"text"`
	Reasoning  *Text          `yaml:"reasoning"`
	Tool       *Tool          `yaml:"tool"`
	Result     *Result        `yaml:"result"`
	ClientTool *ClientTool    `yaml:"clientTool"`
	Interrupt  *Interrupt     `yaml:"interrupt"`
	Answer     []Branch       `yaml:"answer"`
	Todos      *Value         `yaml:"todos"`
	Subagent   *Subagent      `yaml:"subagent"`
	Parallel   [][]Step       `yaml:"parallel"`
	Wait       *time.Duration `yaml:"wait"`
	Error      *Problem       `yaml:"error"`
	Cancel     *bool          `yaml:"cancel"`
	Finish     *bool          `yaml:"finish"`
	Raw        *Raw           `yaml:"raw"`
	Send       *Send          `yaml:"send"`
	Drop       *bool          `yaml:"drop"`
	Close      *bool          `yaml:"close"`
	Forget     *bool          `yaml:"forget"`
	Expect     *Expect        `yaml:"expect"`
	Open       *Open          `yaml:"open"`

	line int
}

// Text is a message or a reasoning, from its START to its END. A string is
// short for its content.
type Text struct {
	Pace    `yaml:",inline"`
	Content string        `yaml:"content"`
	Fill    int           `yaml:"fill"`   // bytes of filler text after the content
	Repeat  int           `yaml:"repeat"` // times the content, 1 by default
	ID      string        `yaml:"id"`
	Role    string        `yaml:"role"` // "assistant" by default
	Stall   time.Duration `yaml:"stall"`
	Steps   []Step        `yaml:"steps"` // halfway, while it is open
	Open    bool          `yaml:"open"`  // it gets no END
}

// Tool is a tool call that the gateway makes, from its START to its RESULT.
type Tool struct {
	Pace      `yaml:",inline"`
	Name      string        `yaml:"name"`
	ID        string        `yaml:"id"`
	Arguments Value         `yaml:"arguments"`
	Text      string        `yaml:"argumentsText"` // in place of arguments, as it is
	Took      time.Duration `yaml:"took"`          // from the END to the RESULT
	Result    Value         `yaml:"result"`
	Fill      int           `yaml:"fill"`     // bytes of filler in place of a result
	NoResult  bool          `yaml:"noResult"` // none comes, or a later step brings it
}

// Result brings the result of a tool call by the call's id.
type Result struct {
	Of      string `yaml:"of"`
	Content Value  `yaml:"content"`
}

// ClientTool calls a tool that the client declared. A blocking one pauses the
// run, and the client's answer becomes its result.
type ClientTool struct {
	Name      string `yaml:"name"`
	ID        string `yaml:"id"`
	Kind      string `yaml:"kind"` // "blocking" (default) or "one-way"
	Arguments Value  `yaml:"arguments"`
	Otherwise []Step `yaml:"otherwise"` // when the client declared no such tool
}

// Interrupt asks a human. Neighbouring ones make one pause. A string is short
// for its id.
type Interrupt struct {
	ID      string `yaml:"id"`
	Payload Value  `yaml:"payload"`
}

// Branch is taken when the answer to the last decision holds all that If holds.
type Branch struct {
	If    *Value `yaml:"if"`
	Steps []Step `yaml:"steps"`
}

// Subagent works inside the run, or in the background once it was detached.
type Subagent struct {
	Name   string `yaml:"name"`
	ID     string `yaml:"id"`
	Prompt string `yaml:"prompt"`
	Steps  []Step `yaml:"steps"`
	Status string `yaml:"status"` // "finished" (default) or "error"
	Result Value  `yaml:"result"`
}

// Problem is an error. A string is short for its message.
type Problem struct {
	Code    string `yaml:"code"`
	Message string `yaml:"message"`
}

// Raw is an event as it stands here, in an envelope that may be damaged.
type Raw struct {
	Event    Value  `yaml:"event"`
	JSON     string `yaml:"json"` // in place of event, for what YAML cannot say
	Version  int    `yaml:"version"`
	Thread   string `yaml:"thread"`
	Run      string `yaml:"run"`
	Sequence int64  `yaml:"sequence"`
	Skip     int64  `yaml:"skip"`
	Repeat   bool   `yaml:"repeat"`
	Extra    Value  `yaml:"extra"` // an object whose members join the envelope
}

// Send is a message other than run:event to the thread's room.
type Send struct {
	Message string `yaml:"message"`
	Payload Value  `yaml:"payload"`
	Binary  int    `yaml:"binary"` // bytes of an attachment
}

// Expect holds the run until the client sends a command in its thread. A string
// is short for the command.
type Expect struct {
	Command string        `yaml:"command"`
	Within  time.Duration `yaml:"within"` // goes on after it all the same; 0 waits for ever
}

// Open starts a run that no client asked for, in this thread or in one of its
// own.
type Open struct {
	Thread string `yaml:"thread"` // appended to this thread's id; "" for this thread
	Input  string `yaml:"input"`
	Steps  []Step `yaml:"steps"`
}

// Move is one thing that the client is expected to do. Exactly one of Start,
// Resume, Cancel, Detach, Join, Leave and Await is set.
type Move struct {
	// When is the event that it waits for, such as "RUN_PAUSED", or
	// "TEXT_MESSAGE_CONTENT*5" for the fifth since the last move. Without it the
	// last move's answer is waited for.
	When string `yaml:"when"`
	// After is how long it waits then.
	After  time.Duration `yaml:"after"`
	Window int           `yaml:"window"` // a client of its own, 0 for the first
	// Thread is appended to the thread's id. "task" is the own thread of the
	// last subagent.
	Thread  string       `yaml:"thread"`
	Start   *Start       `yaml:"start"`
	Resume  *Value       `yaml:"resume"`  // the answer
	Which   string       `yaml:"which"`   // the decision's or tool's id; the first open one by default
	Tools   []ClientDecl `yaml:"tools"`   // declared with a start or a resume
	Cancel  *string      `yaml:"cancel"`  // "run", or the id of a run
	Detach  *string      `yaml:"detach"`  // "all", which subagent of the run, counted from 1, or a tool call's id
	Join    bool         `yaml:"join"`    // thread:messages
	Leave   bool         `yaml:"leave"`   // the socket is gone
	Refused string       `yaml:"refused"` // the error code that answers it
	Await   bool         `yaml:"await"`   // nothing but wait for When
}

// Start is a run:start. A string is short for its input.
type Start struct {
	Input       string `yaml:"input"`
	Message     string `yaml:"message"` // the message's name; a new one by default
	Fork        string `yaml:"fork"`    // the name of the message to fork from
	Attachments Value  `yaml:"attachments"`
}

// ClientDecl declares a client tool.
type ClientDecl struct {
	Name        string `yaml:"name"`
	Description string `yaml:"description"`
	Kind        string `yaml:"kind"`
	Arguments   Value  `yaml:"arguments"`
	Result      Value  `yaml:"result"`
}

// Value is JSON, written as YAML. Keys keep their order.
type Value json.RawMessage

// IsZero reports whether nothing was given; null was.
func (v Value) IsZero() bool { return len(v) == 0 }

// Command names what the client is expected to send, "" for none.
func (m Move) Command() protocol.Name {
	switch {
	case m.Start != nil:
		return protocol.RunStart
	case m.Resume != nil:
		return protocol.RunResume
	case m.Cancel != nil:
		return protocol.RunCancel
	case m.Detach != nil:
		return protocol.RunDetach
	case m.Join:
		return protocol.ThreadMessages
	}
	return ""
}
