package inspector

import (
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

// Kind says what a row of a timeline is.
type Kind uint8

// The kinds of a row.
const (
	KindCommand    Kind = iota + 1 // a command of the client, with the answer to it
	KindHello                      // the gateway's announcement
	KindRefusal                    // a protocol:error of which the command is not known
	KindLifecycle                  // the start, the pause or the end of a run
	KindReasoning                  // reasoning, its deltas joined
	KindText                       // a text message, its deltas joined
	KindTool                       // a tool call, with its arguments and its result
	KindDecision                   // an interrupt, with the answer to it
	KindTodos                      // a list of todos
	KindSubagent                   // a subagent from its start to its end
	KindTask                       // a task:status
	KindReplay                     // envelopes that were sent again
	KindUnknown                    // events of an unknown type, counted
	KindCopy                       // an envelope that two sockets got with different bytes
	KindMessage                    // any other message
	KindPacket                     // a packet that is no message
	KindFrame                      // a frame that holds no packets
	KindExchange                   // an HTTP request and its response
	KindConnection                 // the beginning or the end of a connection
	KindMark                       // what the proxy did, or could not record
)

var kindNames = [...]string{
	KindCommand: "command", KindHello: "hello", KindRefusal: "refusal", KindLifecycle: "lifecycle", KindReasoning: "reasoning",
	KindText: "text", KindTool: "tool", KindDecision: "decision", KindTodos: "todos", KindSubagent: "subagent", KindTask: "task",
	KindReplay: "replay", KindUnknown: "unknown", KindCopy: "copy", KindMessage: "message", KindPacket: "packet", KindFrame: "frame",
	KindExchange: "exchange", KindConnection: "connection", KindMark: "mark",
}

// String returns the kind's name in lower case, such as "tool".
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return ""
}

// MarshalText writes what String does.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// State says how a row stands.
type State uint8

// The states of a row.
const (
	Open   State = iota // more is to come
	Done                // it ended in order
	Failed              // it ended with an error, or was refused
	Cut                 // its run or the recording ended first
)

var stateNames = [...]string{"open", "done", "failed", "cut"}

// String returns "open", "done", "failed" or "cut".
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return ""
}

// MarshalText writes what String does.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Row is one construct of a timeline: what a reader sees as one thing.
type Row struct {
	Index int // in its timeline
	Kind  Kind
	State State
	Where
	Span
	// Name is what it is called on the wire: a message's name, an event's type,
	// a tool's or a subagent's name. ID tells it from its like.
	Name string
	ID   string
	// Lane is the column of the subagent that it is, or that it belongs to; 0
	// is the run itself. Lanes has a bit for each lane that was open when it
	// began.
	Lane  int
	Lanes uint64
	// Detail is what is particular to its kind, nil if nothing is.
	Detail Detail
	// Findings are the rules that were broken in it.
	Findings []protocol.Finding
	// Marks are the user's marks in it.
	Marks []capture.Mark
	// Matched is set if the filter wants a moment of it.
	Matched bool
}

// Where is whom a row belongs to.
type Where struct {
	Connection capture.Position
	Direction  capture.Direction
	Thread     string
	Run        string
}

// Span is what a row covers. Times count from the session's beginning, and End
// may lie before Start where an imported clock ran backwards.
type Span struct {
	First, Last       capture.Address
	FirstSeq, LastSeq int64 // 0 if there is none
	Start, End        time.Duration
	// Envelopes were delivered live, Replayed only in a replay; Copies went to
	// further sockets, and Repeats came again on the same one.
	Envelopes, Replayed, Copies, Repeats int
}

// Took is how long it took, never negative.
func (s *Span) Took() time.Duration { return max(s.End-s.Start, 0) }

// Worst is the severity of the worst finding of a row, Off if it has none.
func (r *Row) Worst() protocol.Severity {
	worst := protocol.Off
	for _, f := range r.Findings {
		worst = max(worst, f.Severity)
	}
	return worst
}

// Streams reports whether the row is built from deltas.
func (r *Row) Streams() bool {
	return r.Kind == KindText || r.Kind == KindReasoning || r.Kind == KindTool
}

// Detail is what is particular to the kind of a row: a *Talk, *Stream, *Call,
// *Decision, *Todos, *Agent, *Replay, *Note or *Exchange.
type Detail interface {
	// summary says it in a few pieces, in at most width columns.
	summary(r *Row, look *Look, width int) []Piece
}

// Talk is the detail of a command, and what was answered.
type Talk struct {
	// Input and Answer are the beginnings of what the user said or decided.
	Input       string
	InputBytes  int
	Answer      string
	About       string        // the run, the decision or the call that it names
	Waited      time.Duration // how long the decision was waited for
	Fork        string
	Attachments int
	Tools       []string
	AckID       string
	Reply       *Reply // nil while nothing answered
}

// Reply is what answered a command.
type Reply struct {
	At      capture.Address
	By      string // "ack", "protocol:error", or the type of the event that shows that it worked
	OK      bool
	Code    protocol.ErrorCode
	Message string
	After   time.Duration
	History *History
}

// History is what an answer to thread:messages held.
type History struct {
	Messages  int  `json:"messages"`
	Replayed  int  `json:"replayed"`
	Truncated bool `json:"truncated"`
	Pending   bool `json:"pendingInterrupt"` // a decision is waited for
	Todos     bool `json:"todos"`
	Task      bool `json:"task"`
}

// Stream is the detail of a text or a reasoning: its deltas, joined.
type Stream struct {
	Role        string
	Deltas      int
	First, Last time.Duration // of the deltas
	Stall       time.Duration // the longest silence between two of them
	joined      []byte
}

// Text is what the deltas join to.
func (s *Stream) Text() string { return string(s.joined) }

// Rate is the number of deltas a second, 0 if there are too few to say.
func (s *Stream) Rate() float64 {
	if took := s.Last - s.First; took > 0 && s.Deltas > 2 {
		return float64(s.Deltas-1) / took.Seconds()
	}
	return 0
}

func (s *Stream) add(delta string, at time.Duration) {
	if s.Deltas == 0 {
		s.First = at
	}
	if s.Deltas > 0 {
		s.Stall = max(s.Stall, at-s.Last)
	}
	s.Last = at
	s.Deltas++
	s.joined = append(s.joined, delta...)
}

// Call is the detail of a tool call.
type Call struct {
	Args Stream
	// Complete is set once the arguments ended, and Valid if they are JSON.
	Complete, Valid bool
	Ended           time.Duration
	Result          *Result // nil while there is none
}

// Result is what a tool returned.
type Result struct {
	At    capture.Address
	Bytes int
	Head  string        // its beginning
	After time.Duration // since the arguments ended, waits for a person aside
	Human time.Duration // those waits
	Run   string        // the run that it came in, if that is another
}

// Decision is the detail of an interrupt.
type Decision struct {
	Tool    string // the client tool that it calls, if it does
	Payload string // its beginning, JSON
	Bytes   int
	Reply   *Answer // nil while it is waited for
}

// Answer is how a person decided.
type Answer struct {
	At         capture.Address
	Connection capture.Position
	Value      string // its beginning, JSON
	Bytes      int
	After      time.Duration
}

// Todos is the detail of a list of todos.
type Todos struct {
	Items []Todo
	// Changed is how many were added, taken away or have another status than
	// in the list before.
	Changed int
}

// Todo is one item of a list.
type Todo struct {
	Content string `json:"content"`
	Status  string `json:"status"`
}

// Agent is the detail of a subagent.
type Agent struct {
	Task, Child, Call string // the ids of its task, its thread and the call that began it
	Status            string // as sent
	Detached          bool
	Envelopes         int // of its own thread
}

// Replay is the detail of envelopes that were sent again.
type Replay struct {
	Envelopes int
	New       int // not seen live
	Different int // seen live, with other bytes
	Truncated bool
}

// Note is the detail of a row that has one line to say.
type Note struct {
	Count int    // of alike things, if more than one
	Text  string // from the wire: to be cleaned
	Bytes int64  // of what Text is the beginning of, 0 if it is the whole
	Said  string // ours
}

// Exchange is the detail of an HTTP exchange.
type Exchange struct {
	Method, Target                string
	Status                        int // 0 until the response came
	RequestBytes, ResponseBytes   int64
	Made                          bool // the proxy answered itself
	Error                         string
	RequestPieces, ResponsePieces int
}
