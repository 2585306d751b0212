package protocol

// runRules are about the life of a run.
var runRules = []Rule{
	{
		ID: "run-not-started", Severity: Error, Provenance: Stated, Section: "Envelopes", Scope: ScopeConversation,
		Title: "a run has events and no start",
		Harm:  "The client has no bubble to put them in: the answer is not shown, or shown without its question.",
		Fix:   "Emit RUN_STARTED as sequence 1, before anything else of the run.",
	},
	{
		ID: "run-end-twice", Severity: Error, Provenance: Derived, Section: "Events", Scope: ScopeConversation,
		Follows: "RUN_CANCELLED is separate from RUN_ERROR: a run that has ended cannot end again",
		Title:   "a run ended twice",
		Harm:    "The screen flips from one outcome to another: a failure looks like a success, or the other way round.",
		Fix:     "Let one place end the run; a finally block that also emits RUN_FINISHED is the usual cause.",
	},
	{
		ID: "event-after-end", Severity: Error, Provenance: Derived, Section: "Events", Scope: ScopeConversation,
		Follows: "RUN_PAUSED is then followed by RUN_FINISHED, so older clients still see the run settle: a settled run does not go on",
		Title:   "an event came after the run's end",
		Harm:    "The client has closed the run: the text is lost, or it appears under a finished answer.",
		Fix:     "Drain what still streams before the end is emitted. A detached subagent may go on.",
	},
	{
		ID: "run-unfinished", Severity: Error, Provenance: Derived, Section: "Events", Scope: ScopeConversation,
		Follows: "so older clients still see the run settle: every run settles",
		Unless:  "note when the client left or the recording stopped first",
		Title:   "a run never ended",
		Harm:    "The answer looks as if it were still being written, or half an answer is taken for the whole.",
		Fix:     "Emit RUN_ERROR when the gateway gives up; look for a crash or a restart at this moment.",
	},
	{
		ID: "run-open-items", Severity: Warning, Provenance: Inferred, Section: "Events", Scope: ScopeConversation,
		Unless: "note after a cancel or an error",
		Title:  "a run finished with something still open",
		Harm:   "A spinner turns for ever beside a text, a tool call or a subagent.",
		Fix:    "Emit the END or the result before the run's end.",
	},
	{
		ID: "thread-two-runs", Severity: Warning, Provenance: Inferred, Section: "Envelopes", Scope: ScopeConversation,
		Title: "two runs of one thread are in flight at once",
		Harm:  "Their texts interleave in one transcript.",
		Fix:   "Refuse the second run:start with INVALID_COMMAND, or queue it.",
	},
	{
		ID: "text-pair", Severity: Warning, Provenance: Inferred, Section: "Events", Scope: ScopeConversation,
		Title: "a text's START, CONTENT and END do not pair",
		Harm:  "Text is dropped for want of a bubble, or two texts run into one.",
		Fix:   "Use one messageId from START to END, and open it once.",
	},
	{
		ID: "reasoning-pair", Severity: Warning, Provenance: Inferred, Section: "Events", Scope: ScopeConversation,
		Title: "a reasoning's START, CONTENT and END do not pair",
		Harm:  "The thinking panel stays open, or its text is missing.",
		Fix:   "Use one messageId from START to END, and open it once.",
	},
	{
		ID: "tool-pair", Severity: Warning, Provenance: Inferred, Section: "Events", Scope: ScopeConversation,
		Title: "a tool call's START, ARGS and END do not pair",
		Harm:  "The tool's card is missing, or shows another call's arguments.",
		Fix:   "Use one toolCallId from START to END, and open it once.",
	},
	{
		ID: "delta-empty", Severity: Note, Provenance: Inferred, Section: "Events", Scope: ScopeMessage,
		Title: "a delta is empty",
		Harm:  "None on most screens; clients whose schema asks for a letter refuse the event.",
		Fix:   "Leave deltas without text out.",
	},
	{
		ID: "tool-args-json", Severity: Warning, Provenance: Inferred, Section: "Events", Scope: ScopeConversation,
		Title: "the pieces of a tool's arguments do not join to JSON",
		Harm:  "The tool's card shows raw text or nothing, and a client tool cannot run.",
		Fix:   "Emit every piece as the model wrote it, in order; look for a piece that was lost or escaped twice.",
	},
	{
		ID: "tool-result-orphan", Severity: Warning, Provenance: Inferred, Section: "Events", Scope: ScopeConversation,
		Title: "a tool result belongs to no call",
		Harm:  "The result has no card to stand in and is not shown.",
		Fix:   "Send the toolCallId of the call's START.",
	},
	{
		ID: "tool-result-early", Severity: Warning, Provenance: Inferred, Section: "Events", Scope: ScopeConversation,
		Title: "a tool result came before the call's END",
		Harm:  "The card shows a result under arguments that still grow.",
		Fix:   "Emit TOOL_CALL_END before the tool runs.",
	},
	{
		ID: "tool-result-twice", Severity: Warning, Provenance: Inferred, Section: "Events", Scope: ScopeConversation,
		Title: "a tool call got two results",
		Harm:  "The second replaces the first on the screen, or stands beside it.",
		Fix:   "Emit one result a call; a retry of the tool is a call of its own.",
	},
	{
		ID: "todos-shape", Severity: Warning, Provenance: Inferred, Section: "Events", Scope: ScopeMessage,
		Title: "an item of a todo list cannot be read",
		Harm:  "The plan shows an empty line, or the whole list is dropped.",
		Fix:   "Send each item as a string or as {content, status}.",
	},
	{
		ID: "subagent-pair", Severity: Warning, Provenance: Inferred, Section: "Events", Scope: ScopeConversation,
		Title: "a subagent finished without a start, or started twice",
		Harm:  "Its lane never closes, or closes one that was never drawn.",
		Fix:   "Send the same toolCallId or taskId with both events.",
	},
	{
		ID: "subagent-status", Severity: Error, Provenance: Stated, Section: "Events", Scope: ScopeMessage,
		Title: "a subagent's status is neither finished nor error",
		Harm:  "The client refuses the event, and the subagent looks as if it were still at work.",
		Fix:   "Send finished or error; say detached: true if it goes on as a background task.",
	},
	{
		ID: "run-cancel-ignored", Severity: Warning, Provenance: Inferred, Section: "Events", Scope: ScopeConversation,
		Title: "a run was cancelled and finished all the same",
		Harm:  "The user pressed stop and the answer went on.",
		Fix:   "Check for the cancel between steps, and end with RUN_CANCELLED. If the run was ending anyway, nothing.",
	},
}

// decisionRules are about what people are asked and what they answer.
var decisionRules = []Rule{
	{
		ID: "interrupt-not-paused", Severity: Error, Provenance: Stated, Section: "Events", Scope: ScopeConversation,
		Unless: "warning (inferred) when RUN_PAUSED comes later and another event stands between",
		Title:  "an INTERRUPT has no RUN_PAUSED",
		Harm:   "The dialog is shown while the run seems to be at work: it may be disabled, or the answer refused.",
		Fix:    "Emit RUN_PAUSED right after the last INTERRUPT of the segment.",
	},
	{
		ID: "paused-without-interrupt", Severity: Warning, Provenance: Inferred, Section: "Events", Scope: ScopeConversation,
		Title: "a run paused without asking anything",
		Harm:  "The conversation waits and shows nothing to answer.",
		Fix:   "Emit an INTERRUPT for each decision before RUN_PAUSED.",
	},
	{
		ID: "paused-not-finished", Severity: Error, Provenance: Stated, Section: "Events", Scope: ScopeConversation,
		Unless: "warning (inferred) when RUN_FINISHED comes later and another event stands between",
		Title:  "a paused run has no RUN_FINISHED",
		Harm:   "Older clients never see the run settle: the input field stays locked.",
		Fix:    "Emit RUN_FINISHED with the same run id after RUN_PAUSED.",
	},
	{
		ID: "interrupt-id-reused", Severity: Error, Provenance: Derived, Section: "Events", Scope: ScopeConversation,
		Follows: "one INTERRUPT each, and each is answered by its own run:resume",
		Title:   "two decisions have one id",
		Harm:    "An answer to the second closes the first, or is refused as already given.",
		Fix:     "Make a new interruptId for every decision.",
	},
	{
		ID: "interrupt-unanswered", Severity: Note, Provenance: Inferred, Section: "Events", Scope: ScopeConversation,
		Title: "a decision was still waited for when the recording stopped",
		Harm:  "None: a person may answer later.",
		Fix:   "Nothing, unless the dialog was never shown.",
	},
	{
		ID: "resume-unknown", Severity: Error, Provenance: Stated, Section: "Errors", Scope: ScopeConversation,
		Title: "an answer names a decision that nobody asked for",
		Harm:  "The user's answer disappears: the gateway took it and should have answered UNKNOWN_RUN.",
		Fix:   "Send the interruptId of the INTERRUPT, and refuse unknown ones on the gateway.",
	},
	{
		ID: "resume-twice", Severity: Error, Provenance: Stated, Section: "Errors", Scope: ScopeConversation,
		Title: "a decision was answered twice and both were accepted",
		Harm:  "What was approved once is done twice.",
		Fix:   "Answer the second run:resume with UNKNOWN_RUN, and disable the dialog once it was sent.",
	},
	{
		ID: "client-tool-undeclared", Severity: Warning, Provenance: Inferred, Section: "Client tools", Scope: ScopeConversation,
		Title: "the run calls a client tool that its command did not declare",
		Harm:  "The client has no dialog for it and the run waits for ever.",
		Fix:   "Declare the tools with every run:start and run:resume: nothing about them is stored.",
	},
	{
		ID: "client-tool-arguments", Severity: Warning, Provenance: Inferred, Section: "Client tools", Scope: ScopeConversation,
		Title: "a client tool's arguments do not fit its schema",
		Harm:  "The dialog opens with missing or wrong values, or fails to open.",
		Fix:   "Check the model's arguments on the gateway before the INTERRUPT is emitted.",
	},
	{
		ID: "answer-not-result", Severity: Warning, Provenance: Derived, Section: "Client tools", Scope: ScopeConversation,
		Follows: "the client's answer becomes the tool result",
		Title:   "a tool's result is not the answer that was given",
		Harm:    "The model goes on with something else than what the person decided.",
		Fix:     "Pass the answer through as the tool's result, unchanged.",
	},
	{
		ID: "client-tool-answer", Severity: Warning, Provenance: Inferred, Section: "Client tools", Scope: ScopeConversation,
		Title: "an answer does not fit the tool's result schema",
		Harm:  "The model gets a value that it was not told to expect, or the gateway refuses the answer.",
		Fix:   "Send what result declares, or correct the declaration.",
	},
}
