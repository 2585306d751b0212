package protocol

// roomRules are about history, rooms and errors.
var roomRules = []Rule{
	{
		ID: "history-shape", Severity: Error, Provenance: Stated, Section: "Thread history and replay", Scope: ScopeMessage,
		Title: "an answer to thread:messages lacks a part",
		Harm:  "The conversation does not load, or messages are missing from it.",
		Fix:   "Answer {ok: true, messages} with id, role, content and createdAt on each, or {ok: false, error: {code, message}}.",
	},
	{
		ID: "task-status-shape", Severity: Error, Provenance: Stated, Section: "Socket messages", Scope: ScopeMessage,
		Title: "a task:status lacks threadId or task",
		Harm:  "The client cannot tell which background task moved, and its badge stays as it was.",
		Fix:   "Send {threadId, task}.",
	},
	{
		ID: "protocol-error-shape", Severity: Error, Provenance: Stated, Section: "Errors", Scope: ScopeMessage,
		Title: "a protocol:error lacks code or message",
		Harm:  "The user sees an empty error, or none.",
		Fix:   "Send {code, message}, both of them strings.",
	},
	{
		ID: "error-code-unknown", Severity: Note, Provenance: Inferred, Section: "Errors", Scope: ScopeMessage,
		Title: "an error's code is none of the five",
		Harm:  "The client shows a general message, since it has no text for the code.",
		Fix:   "Use one of the page's codes; a run's failure belongs into RUN_ERROR, whose code is free.",
	},
	{
		ID: "history-unasked", Severity: Warning, Provenance: Derived, Section: "Thread history and replay", Scope: ScopeConversation,
		Follows: "answered through the acknowledgement",
		Title:   "thread:messages was sent without an acknowledgement id",
		Harm:    "The history can never be answered: the conversation stays empty.",
		Fix:     "Emit it with a callback, or with emitWithAck.",
	},
	{
		ID: "replay-seam", Severity: Error, Provenance: Stated, Section: "Thread history and replay", Scope: ScopeConversation,
		Title: "the live stream does not go on where the replay ended",
		Harm:  "After a reload a piece of the answer is missing, or stands there twice.",
		Fix:   "Take the replay and join the room in one step, with no await between.",
	},
	{
		ID: "replay-differs", Severity: Error, Provenance: Derived, Section: "Thread history and replay", Scope: ScopeConversation,
		Follows: "the replay is the envelopes themselves",
		Title:   "a replayed envelope is not the one that was delivered",
		Harm:    "The answer changes when the page is reloaded.",
		Fix:     "Keep what was sent, byte for byte, and replay that.",
	},
	{
		ID: "replay-undeclared-cut", Severity: Error, Provenance: Stated, Section: "Thread history and replay", Scope: ScopeConversation,
		Title: "a replay lacks its beginning and does not say so",
		Harm:  "After a reload the answer begins in the middle and looks whole.",
		Fix:   "Set truncated when the buffer has dropped the beginning.",
	},
	{
		ID: "history-text-differs", Severity: Warning, Provenance: Inferred, Section: "Thread history and replay", Scope: ScopeConversation,
		Title: "a stored message is not what was streamed",
		Harm:  "The answer changes when the page is reloaded.",
		Fix:   "Store what the deltas joined to, or stream what is stored.",
	},
	{
		ID: "interrupt-reopened", Severity: Warning, Provenance: Inferred, Section: "Thread history and replay", Scope: ScopeConversation,
		Title: "history offers a decision that was already answered",
		Harm:  "After a reload the dialog is back, and a second answer is refused or done twice.",
		Fix:   "Take the decision off the thread when its answer is accepted.",
	},
	{
		ID: "message-id-reused", Severity: Error, Provenance: Stated, Section: "Errors", Scope: ScopeConversation,
		Title: "the gateway accepted a message id that the thread already has",
		Harm:  "One message replaces another, or both share one bubble.",
		Fix:   "Answer DUPLICATE_MESSAGE on the gateway, and make a new id for each message on the client.",
	},
	{
		ID: "error-then-events", Severity: Warning, Provenance: Inferred, Section: "Errors", Scope: ScopeConversation,
		Title: "a command was refused and its run streamed all the same",
		Harm:  "The user sees an error and then an answer.",
		Fix:   "Check a command before its run starts, and report later failures as RUN_ERROR.",
	},
	{
		ID: "room-not-joined", Severity: Note, Provenance: Inferred, Section: "Envelopes", Scope: ScopeConversation,
		Title: "a socket got envelopes of a thread that it never asked for",
		Harm:  "None on a screen that filters by thread; otherwise another conversation's text.",
		Fix:   "Check that rooms are keyed on the thread and left when they should be.",
	},
}

// paceRules are about time and size. Their thresholds are settings.
var paceRules = []Rule{
	{
		ID: "first-token-slow", Severity: Note, Provenance: Inferred, Section: "Pace", Scope: ScopeConversation,
		Title: "the first text came late",
		Harm:  "The user stares at an empty bubble.",
		Fix:   "Emit reasoning or a tool call early, or look at the model's queue.",
	},
	{
		ID: "stall", Severity: Note, Provenance: Inferred, Section: "Pace", Scope: ScopeConversation,
		Title: "a live run was silent for long",
		Harm:  "The answer looks as if it hung.",
		Fix:   "Look at what ran at that time, often a tool without progress events.",
	},
	{
		ID: "chatty", Severity: Note, Provenance: Inferred, Section: "Pace", Scope: ScopeConversation,
		Title: "a run sends very many events a second",
		Harm:  "Screens that render each event stutter.",
		Fix:   "Join deltas for some tens of milliseconds before they are sent.",
	},
	{
		ID: "envelope-large", Severity: Note, Provenance: Inferred, Section: "Pace", Scope: ScopeConversation,
		Title: "an envelope is very large",
		Harm:  "Everything behind it on the socket waits, and a phone stutters.",
		Fix:   "Send large results by reference, or shortened for the screen.",
	},
}
