package protocol

// commandRules are about what a client sends. Commands are strict.
var commandRules = []Rule{
	{
		ID: "command-key-unknown", Severity: Error, Provenance: Stated, Section: "Commands", Scope: ScopeMessage,
		Unless: "warning when the gateway announced a newer minor than this tool knows, and for a key inside a client tool (inferred)",
		Title:  "a command has a key that it does not know",
		Harm:   "The gateway refuses the whole command with INVALID_COMMAND, and nothing starts.",
		Fix:    "Remove the key, or spell it as the page does.",
	},
	{
		ID: "command-key-missing", Severity: Error, Provenance: Stated, Section: "Commands", Scope: ScopeMessage,
		Title: "a command lacks a required key",
		Harm:  "The gateway refuses the command with INVALID_COMMAND, and nothing starts.",
		Fix:   "Set the key; an undefined value is left out by JSON.stringify, which is the usual cause.",
	},
	{
		ID: "command-key-type", Severity: Warning, Provenance: Inferred, Section: "Commands", Scope: ScopeMessage,
		Unless: "error (derived from: input, at most 16,000 characters, and from the table of commands) when the command cannot be read: no object, an input that is no string, or a null where a value is required",
		Title:  "a command's value is of the wrong type",
		Harm:   "The gateway most likely refuses the command with INVALID_COMMAND.",
		Fix:    "Send ids and text as strings and lists as arrays; leave an optional key out instead of sending null.",
	},
	{
		ID: "command-id-empty", Severity: Warning, Provenance: Inferred, Section: "Commands", Scope: ScopeMessage,
		Title: "an identifier is empty",
		Harm:  "The command reaches no thread or run, or all messages without an id become one.",
		Fix:   "Wait for the id before the command is sent, or make one.",
	},
	{
		ID: "input-too-long", Severity: Error, Provenance: Stated, Section: "Commands", Scope: ScopeMessage,
		Unless: "warning (inferred) when only the count of UTF-16 units is over and that of code points is not: versions of Zod differ",
		Title:  "the input is longer than 16,000 characters",
		Harm:   "The gateway refuses what the user wrote, after it was sent.",
		Fix:    "Limit the input field, counting as the gateway's version of Zod does.",
	},
	{
		ID: "input-empty", Severity: Error, Provenance: Stated, Section: "Commands", Scope: ScopeMessage,
		Title: "a run starts with neither text nor an attachment",
		Harm:  "The gateway refuses the command, and the user's message hangs in the transcript without an answer.",
		Fix:   "Keep the send button disabled until there is text or an attachment.",
	},
	{
		ID: "attachments-too-many", Severity: Error, Provenance: Stated, Section: "Commands", Scope: ScopeMessage,
		Title: "more than 8 attachments",
		Harm:  "The gateway refuses the whole run, text included.",
		Fix:   "Limit the picker to MAX_ATTACHMENTS_PER_RUN.",
	},
	{
		ID: "attachment-media-type", Severity: Error, Provenance: Stated, Section: "Commands", Scope: ScopeMessage,
		Title: "an attachment is no PNG, JPEG, WebP or GIF",
		Harm:  "The gateway refuses the whole run, text included.",
		Fix:   "Filter the picker by ATTACHMENT_MEDIA_TYPES and convert others, such as HEIC, before they are sent.",
	},
	{
		ID: "attachment-too-large", Severity: Error, Provenance: Stated, Section: "Commands", Scope: ScopeMessage,
		Title: "an attachment is larger than 5 MiB",
		Harm:  "The gateway refuses the whole run, text included.",
		Fix:   "Check the size against ATTACHMENT_MAX_BYTES when the file is picked, or scale the image down.",
	},
	{
		ID: "client-tools-too-many", Severity: Error, Provenance: Stated, Section: "Commands", Scope: ScopeMessage,
		Title: "more than 32 client tools",
		Harm:  "The gateway refuses the command, and nothing starts.",
		Fix:   "Declare only the tools that this screen can serve.",
	},
	{
		ID: "client-tool-name", Severity: Error, Provenance: Stated, Section: "Client tools", Scope: ScopeMessage,
		Unless: "warning (inferred) for an empty name",
		Title:  "a client tool's name is not allowed",
		Harm:   "The gateway refuses the command, and nothing starts.",
		Fix:    "Use letters, digits, _ and -, at most 64 of them: a dot or a space is the usual cause.",
	},
	{
		ID: "client-tool-kind", Severity: Error, Provenance: Stated, Section: "Client tools", Scope: ScopeMessage,
		Title: "a client tool is neither blocking nor one-way",
		Harm:  "The gateway refuses the command, and nothing starts.",
		Fix:   "Say blocking if the run waits for an answer, else one-way.",
	},
	{
		ID: "client-tool-schema", Severity: Error, Provenance: Stated, Section: "Client tools", Scope: ScopeMessage,
		Unless: "skipped when the schema is one that this tool does not compile, such as one with references out of the document",
		Title:  "a client tool's arguments or result is no JSON Schema",
		Harm:   "The gateway or the model refuses the tool: the assistant says it cannot do what the screen offers.",
		Fix:    "Send the schema itself, an object or a boolean, not a Zod object and not its text.",
	},
	{
		ID: "client-tool-result-one-way", Severity: Warning, Provenance: Inferred, Section: "Client tools", Scope: ScopeMessage,
		Title: "a one-way tool declares a result",
		Harm:  "The screen may wait to send an answer that nobody reads.",
		Fix:   "Make the tool blocking, or remove the result.",
	},
	{
		ID: "client-tool-duplicate", Severity: Warning, Provenance: Inferred, Section: "Client tools", Scope: ScopeMessage,
		Title: "two client tools have one name",
		Harm:  "One hides the other: a call may open the wrong dialog.",
		Fix:   "Give each tool a name of its own; components that register on mount often do it twice.",
	},
	{
		ID: "resume-answer-missing", Severity: Error, Provenance: Stated, Section: "Commands", Scope: ScopeMessage,
		Title: "a decision is answered without an answer",
		Harm:  "The gateway refuses the command and the run goes on waiting, although the dialog is closed.",
		Fix:   "Send answer, null if there is nothing to say: JSON.stringify leaves an undefined answer out.",
	},
}

// helloRules are about the announcement and versions.
var helloRules = []Rule{
	{
		ID: "hello-unreadable", Severity: Warning, Provenance: Stated, Section: "Versioning", Scope: ScopeMessage,
		Title: "the gateway's announcement cannot be read",
		Harm:  "chat-core warns in the console and follows the gateway as compatible, so a client that is too old finds out by breaking.",
		Fix:   "Send {protocol: {major, minor}, minClientMajor}, all of them integers.",
	},
	{
		ID: "hello-repeated", Severity: Error, Provenance: Stated, Section: "Socket messages", Scope: ScopeConversation,
		Title: "the gateway announced itself twice on one socket",
		Harm:  "A client may run its start-up again, and send again what it had queued.",
		Fix:   "Emit protocol:hello once, when the connection is identified.",
	},
	{
		ID: "hello-absent", Severity: Warning, Provenance: Stated, Section: "Versioning", Scope: ScopeConversation,
		Title: "the gateway announced nothing within 2 s",
		Harm:  "Every connection of chat-core waits two seconds before its first command, and then goes on as if all were well.",
		Fix:   "Update the gateway, or emit protocol:hello before slow work is done on connection.",
	},
	{
		ID: "hello-differs", Severity: Error, Provenance: Stated, Section: "Versioning", Scope: ScopeConversation,
		Title: "GET /protocol answered another version than the socket",
		Harm:  "Clients that look before they connect decide otherwise than those that listen; often two builds run behind one address.",
		Fix:   "Serve both from one object, and finish the roll-out.",
	},
	{
		ID: "command-before-hello", Severity: Warning, Provenance: Stated, Section: "Versioning", Scope: ScopeConversation,
		Title: "a command was sent before the announcement",
		Harm:  "A client that does not fit the gateway has already started something when it learns so.",
		Fix:   "Wait for protocol:hello, two seconds at most, as chat-core does.",
	},
	{
		ID: "command-after-incompatible", Severity: Warning, Provenance: Stated, Section: "Versioning", Scope: ScopeConversation,
		Title: "a command was sent although the versions do not fit",
		Harm:  "Messages mean something else to each side: the screen shows wrong things instead of asking for an update.",
		Fix:   "Stop the session with an error that names both versions, and stay stopped after a reconnect.",
	},
	{
		ID: "version-newer", Severity: Note, Provenance: Stated, Section: "Versioning", Scope: ScopeMessage,
		Title: "the gateway is newer than this tool",
		Harm:  "None: a minor only adds. What this tool does not know it notes, and unknown keys of commands are warnings.",
		Fix:   "Update tapedeck to have the additions judged too.",
	},
}
