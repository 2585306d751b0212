package protocol

import "slices"

// Name is the name of a socket message ("Socket messages").
type Name string

// The messages of the protocol.
const (
	Hello          Name = "protocol:hello"
	RunStart       Name = "run:start"
	RunResume      Name = "run:resume"
	RunCancel      Name = "run:cancel"
	RunDetach      Name = "run:detach"
	ThreadMessages Name = "thread:messages"
	RunEvent       Name = "run:event"
	TaskStatus     Name = "task:status"
	ProtocolError  Name = "protocol:error"
)

// Commands are the messages of the client, GatewayMessages those of the gateway.
var (
	commands        = []Name{RunStart, RunResume, RunCancel, RunDetach, ThreadMessages}
	gatewayMessages = []Name{Hello, RunEvent, TaskStatus, ProtocolError}
)

// IsCommand reports whether n is a message that a client sends.
func (n Name) IsCommand() bool { return slices.Contains(commands, n) }

// Known reports whether the protocol has a message of this name.
func (n Name) Known() bool { return n.IsCommand() || slices.Contains(gatewayMessages, n) }

// EventType is the type of an event inside an envelope ("Events").
type EventType string

// The event types of version 1.17.
const (
	RunStarted         EventType = "RUN_STARTED"
	RunFinished        EventType = "RUN_FINISHED"
	RunCancelled       EventType = "RUN_CANCELLED"
	RunError           EventType = "RUN_ERROR"
	TextMessageStart   EventType = "TEXT_MESSAGE_START"
	TextMessageContent EventType = "TEXT_MESSAGE_CONTENT"
	TextMessageEnd     EventType = "TEXT_MESSAGE_END"
	ToolCallStart      EventType = "TOOL_CALL_START"
	ToolCallArgs       EventType = "TOOL_CALL_ARGS"
	ToolCallEnd        EventType = "TOOL_CALL_END"
	ToolCallResult     EventType = "TOOL_CALL_RESULT"
	Interrupt          EventType = "INTERRUPT"
	RunPaused          EventType = "RUN_PAUSED"
	ReasoningStart     EventType = "REASONING_START"
	ReasoningContent   EventType = "REASONING_CONTENT"
	ReasoningEnd       EventType = "REASONING_END"
	TodosSnapshot      EventType = "TODOS_SNAPSHOT"
	SubagentStarted    EventType = "SUBAGENT_STARTED"
	SubagentFinished   EventType = "SUBAGENT_FINISHED"
)

// ErrorCode is a code of protocol:error and of an answer that is not ok ("Errors").
type ErrorCode string

// The five error codes.
const (
	InvalidCommand       ErrorCode = "INVALID_COMMAND"
	UnknownRun           ErrorCode = "UNKNOWN_RUN"
	DuplicateMessage     ErrorCode = "DUPLICATE_MESSAGE"
	ConversationNotFound ErrorCode = "CONVERSATION_NOT_FOUND"
	ForkPointNotFound    ErrorCode = "FORK_POINT_NOT_FOUND"
)

// Limits that the page states ("Commands", "Client tools").
const (
	MaxInput             = 16_000    // characters of run:start's input
	MaxAttachmentsPerRun = 8         // MAX_ATTACHMENTS_PER_RUN
	AttachmentMaxBytes   = 5_242_880 // ATTACHMENT_MAX_BYTES, 5 MiB
	MaxClientTools       = 32        // a command
	MaxClientToolName    = 64        // characters
)

// The version of the protocol that this package knows, PROTOCOL_VERSION.
const (
	Major = 1
	Minor = 17
)

// HelloGraceMS is how long chat-core waits for the gateway's announcement,
// protocolGraceMs in milliseconds, counted from CONNECT.
const HelloGraceMS = 2000
