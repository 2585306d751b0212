package protocol

import (
	"time"

	"tapedeck/protocol/capture"
)

// Message is a message of the protocol, or an answer to one, with where it
// passed. Its bytes are valid as long as those of the packet it was read from.
type Message struct {
	Address    capture.Address
	Last       capture.Position // the frame that completed it
	At         time.Duration    // since the session began
	Connection capture.Position
	Namespace  string
	Direction  capture.Direction

	// Name is the message's name; of an Answer, the name of what it answers.
	Name Name
	// Answer is set if this is an acknowledgement, and Answers says of what.
	Answer  bool
	Answers capture.Address
	// AckID is the acknowledgement id as sent, "" if there is none.
	AckID string
	// Payload is the first argument's JSON, nil if there is none. Extra are the
	// arguments after it.
	Payload []byte
	Extra   [][]byte
	Offset  string // of connection state recovery

	// GatewayMinor is the minor version that the gateway announced on this
	// socket, 0 if it announced none. A command's unknown key may be one that a
	// newer gateway knows.
	GatewayMinor int

	// Envelope is set for run:event, as far as the payload could be read.
	Envelope *Envelope
}

// Envelope is the payload of run:event ("Envelopes"). A field that is missing
// or of the wrong type is zero. Strings are unescaped and may be kept; Raw and
// Body are slices of the payload and live as long as it does.
type Envelope struct {
	V        int
	ThreadID string
	RunID    string
	Sequence int64
	Event    Event
}

// Event is what an envelope carries. Only the fields of its type are set.
type Event struct {
	Type EventType
	// Raw is the event object's JSON.
	Raw []byte

	MessageID       string // TEXT_MESSAGE_*, REASONING_*, TOOL_CALL_RESULT
	Role            string // TEXT_MESSAGE_START
	Delta           string // TEXT_MESSAGE_CONTENT, REASONING_CONTENT, TOOL_CALL_ARGS
	ToolCallID      string // TOOL_CALL_*, SUBAGENT_*
	ToolCallName    string // TOOL_CALL_START
	ParentMessageID string // TOOL_CALL_START
	InterruptID     string // INTERRUPT
	TaskID          string // SUBAGENT_*
	ChildThreadID   string // SUBAGENT_STARTED
	SubagentName    string // SUBAGENT_STARTED
	Status          string // SUBAGENT_FINISHED
	Detached        bool   // SUBAGENT_FINISHED
	Code            string // RUN_ERROR
	// Message is RUN_ERROR's message, unescaped. Of RUN_STARTED, the opening
	// message is in Body.
	Message string
	// Body is the JSON of the part with a shape of its own: INTERRUPT's
	// payload, TODOS_SNAPSHOT's todos, TOOL_CALL_RESULT's content,
	// RUN_STARTED's message.
	Body []byte
}
