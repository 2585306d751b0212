package protocol

// field is a field of a shape: its name, what it may be, whether it may be
// absent, and whether the page names it.
type field struct {
	name     string
	kinds    kind
	optional bool
	from     Provenance
}

// must is a required field, may an optional one.
func must(name string, kinds kind, from Provenance) field { return field{name, kinds, false, from} }
func may(name string, kinds kind, from Provenance) field  { return field{name, kinds, true, from} }

// commandShapes is the table "Commands". That a field exists, and whether it is
// required, is stated; that an id is a string is inferred.
var commandShapes = map[Name][]field{
	RunStart: {
		must("threadId", isString, Inferred),
		must("messageId", isString, Inferred),
		must("input", isString, Derived), // it is counted in characters
		may("attachments", isArray, Inferred),
		may("clientTools", isArray, Inferred),
		may("forkFromMessageId", isString, Inferred),
	},
	RunResume: {
		must("threadId", isString, Inferred),
		must("interruptId", isString, Inferred),
		must("answer", anything, Stated),
		may("clientTools", isArray, Inferred),
	},
	RunCancel: {
		must("runId", isString, Inferred),
	},
	RunDetach: {
		must("runId", isString, Inferred),
		may("toolCallId", isString, Inferred),
	},
	ThreadMessages: {
		must("threadId", isString, Inferred),
	},
}

// eventShapes is the table "Events": the fields of each type, type itself
// aside. The page names few of them; the others are what AG-UI calls them.
var eventShapes = map[EventType][]field{
	RunStarted:   {may("message", notNull, Stated)},
	RunFinished:  {},
	RunCancelled: {},
	RunError:     {must("code", isString|isNumber, Stated), must("message", isString, Stated)},

	TextMessageStart:   {must("messageId", isString, Inferred), may("role", isString, Inferred)},
	TextMessageContent: {must("messageId", isString, Inferred), must("delta", isString, Inferred)},
	TextMessageEnd:     {must("messageId", isString, Inferred)},

	ToolCallStart: {
		must("toolCallId", isString, Inferred),
		must("toolCallName", isString, Inferred),
		may("parentMessageId", isString, Inferred),
	},
	ToolCallArgs: {must("toolCallId", isString, Inferred), must("delta", isString, Inferred)},
	ToolCallEnd:  {must("toolCallId", isString, Inferred)},
	ToolCallResult: {
		must("toolCallId", isString, Inferred),
		must("content", notNull, Inferred),
		may("messageId", isString, Inferred),
	},

	Interrupt: {must("interruptId", isString, Stated), must("payload", anything, Stated)},
	RunPaused: {},

	ReasoningStart:   {must("messageId", isString, Inferred)},
	ReasoningContent: {must("messageId", isString, Inferred), must("delta", isString, Inferred)},
	ReasoningEnd:     {must("messageId", isString, Inferred)},

	TodosSnapshot: {must("todos", isArray, Inferred)},

	SubagentStarted: {
		may("taskId", isString, Stated),
		may("childThreadId", isString, Stated),
		may("toolCallId", isString, Inferred),
		may("name", isString, Inferred),
	},
	SubagentFinished: {
		must("status", isString, Stated),
		may("detached", isBool, Stated),
		may("toolCallId", isString, Inferred),
		may("taskId", isString, Inferred),
	},
}

// eventTypes are the types of eventShapes in the order of the page.
var eventTypes = []EventType{
	RunStarted, RunFinished, RunCancelled, RunError,
	TextMessageStart, TextMessageContent, TextMessageEnd,
	ToolCallStart, ToolCallArgs, ToolCallEnd, ToolCallResult,
	Interrupt, RunPaused,
	ReasoningStart, ReasoningContent, ReasoningEnd,
	TodosSnapshot,
	SubagentStarted, SubagentFinished,
}

// errorCodes are the codes of "Errors".
var errorCodes = []ErrorCode{InvalidCommand, UnknownRun, DuplicateMessage, ConversationNotFound, ForkPointNotFound}
