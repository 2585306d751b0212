package protocol

// envelopeRules are about single envelopes and their numbers.
var envelopeRules = []Rule{
	{
		ID: "envelope-shape", Severity: Error, Provenance: Stated, Section: "Envelopes", Scope: ScopeMessage,
		Title: "an envelope lacks a part, or has it in the wrong type",
		Harm:  "The client cannot tell which thread or run the event belongs to, and drops it: the answer has a hole.",
		Fix:   "Send v, threadId, runId, sequence and event with its type on every envelope.",
	},
	{
		ID: "envelope-version", Severity: Error, Provenance: Derived, Section: "Envelopes", Scope: ScopeConversation,
		Follows: "major is the envelope's v; minClientMajor is the oldest major the gateway still serves",
		Title:   "an envelope's v is no version that the gateway serves",
		Harm:    "The client refuses the envelope, or reads it by rules that do not apply.",
		Fix:     "Write the major of PROTOCOL_VERSION into v.",
	},
	{
		ID: "event-unknown", Severity: Note, Provenance: Stated, Section: "Events", Scope: ScopeMessage,
		Title: "an event's type is none of the nineteen",
		Harm:  "Clients ignore and count it. If the name is mistyped, what it should show is missing.",
		Fix:   "Correct the name, or nothing if the gateway is newer than this tool.",
	},
	{
		ID: "event-field-stated", Severity: Error, Provenance: Stated, Section: "Events", Scope: ScopeMessage,
		Title: "a field that the page names is missing or wrong",
		Harm:  "A known event that fails validation is an error for the client: it drops the event or ends the run on the screen.",
		Fix:   "Send the field as the page says; leave an optional one out instead of sending null.",
	},
	{
		ID: "event-field-inferred", Severity: Warning, Provenance: Inferred, Section: "Events", Scope: ScopeMessage,
		Title: "a field that such events carry is missing or wrong",
		Harm:  "The client may not find the text or the tool call that the event belongs to, or fail to parse it.",
		Fix:   "Compare with the gateway's schemas, or give them to tapedeck by --schemas; leave an optional field out instead of sending null.",
	},
	{
		ID: "ids-disagree", Severity: Error, Provenance: Derived, Section: "Envelopes", Scope: ScopeMessage,
		Follows: "threadId on every envelope, so one is routable on its own",
		Title:   "an id inside the event differs from the envelope's",
		Harm:    "A client that reads the event's id shows the event in another conversation, or never sees its run end.",
		Fix:     "Take both ids from one place, or leave them out of the event.",
	},
	{
		ID: "sequence-not-positive", Severity: Error, Provenance: Stated, Section: "Envelopes", Scope: ScopeMessage,
		Title: "a sequence is no positive integer",
		Harm:  "The client cannot order the event or notice that one is missing.",
		Fix:   "Count each run's envelopes from 1.",
	},
	{
		ID: "sequence-not-increasing", Severity: Error, Provenance: Stated, Section: "Envelopes", Scope: ScopeConversation,
		Title: "a sequence is not above the one before it",
		Harm:  "The client takes the envelope for old and drops it, or shows text twice or in the wrong order.",
		Fix:   "Number envelopes where they are sent, in one place a run.",
	},
	{
		ID: "sequence-repeated", Severity: Warning, Provenance: Inferred, Section: "Envelopes", Scope: ScopeConversation,
		Title: "the same envelope came twice",
		Harm:  "A client that does not compare numbers shows a piece of text twice.",
		Fix:   "Join a socket to a thread's room once; a listener registered at each reconnect does the same.",
	},
	{
		ID: "sequence-gap", Severity: Warning, Provenance: Inferred, Section: "Envelopes", Scope: ScopeConversation,
		Title: "a sequence was skipped",
		Harm:  "A piece of the answer is missing and nothing on the screen says so.",
		Fix:   "Look for envelopes that were numbered and never sent, or sent to another room.",
	},
	{
		ID: "run-start-not-first", Severity: Error, Provenance: Stated, Section: "Envelopes", Scope: ScopeMessage,
		Title: "RUN_STARTED and sequence 1 do not stand together",
		Harm:  "A client that waits for sequence 1 never shows the run, or starts a second bubble in the middle of it.",
		Fix:   "Emit RUN_STARTED first and count from it.",
	},
	{
		ID: "run-two-threads", Severity: Error, Provenance: Derived, Section: "Envelopes", Scope: ScopeConversation,
		Follows: "threadId on every envelope, so one is routable on its own",
		Title:   "one run id stands under two threads",
		Harm:    "The answer is spread over two conversations.",
		Fix:     "Make run ids that never come again, and take the thread from the run.",
	},
	{
		ID: "run-differs-by-socket", Severity: Error, Provenance: Derived, Section: "Envelopes", Scope: ScopeConversation,
		Follows: "the gateway broadcasts to a room keyed on the thread",
		Title:   "two sockets got different envelopes of one number",
		Harm:    "Two windows of the same conversation show different answers.",
		Fix:     "Build an envelope once and broadcast it.",
	},
}
