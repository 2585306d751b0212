package protocol

// frameRules are about frames, packets and JSON, whatever they mean.
var frameRules = []Rule{
	{
		ID: "frame-malformed", Severity: Error, Provenance: Derived, Section: "Transport", Scope: ScopePacket,
		Follows: "every transport and environment speaks it: bytes that no transport can parse carry no message",
		Title:   "a frame or packet cannot be parsed",
		Harm:    "The peer drops the connection with a parse error, and the screen falls back to reconnecting.",
		Fix:     "Look at the bytes at the place named and at what wrote them, often something that wraps or cuts the transport's text.",
	},
	{
		ID: "frame-encoding", Severity: Error, Provenance: Derived, Section: "Transport", Scope: ScopeMessage,
		Follows: "its Zod schemas are the single source of truth: what is no JSON can fit none of them",
		Title:   "a text frame is no UTF-8, or a payload is no JSON",
		Harm:    "The client's JSON.parse throws and the message never arrives: a piece of the answer is missing, or the connection is dropped.",
		Fix:     "Write it with a JSON encoder that refuses NaN and Infinity (in Python allow_nan=False), and cut text between characters only.",
	},
	{
		ID: "packet-over-limit", Severity: Error, Provenance: Derived, Section: "Transport", Scope: ScopePacket,
		Follows: "the handshake's maxPayload, which a Socket.IO gateway announces and enforces",
		Title:   "a frame is larger than the gateway's handshake allows",
		Harm:    "The gateway closes the socket with 1009 or answers 413; what the user sent is lost, and the screen shows a disconnect without a reason.",
		Fix:     "Send less, such as an attachment by reference, or raise the gateway's maxHttpBufferSize.",
	},
	{
		ID: "packet-malformed-binary", Severity: Error, Provenance: Derived, Section: "Transport", Scope: ScopePacket,
		Follows: "every transport and environment speaks it: a parser refuses attachments that do not fit their placeholders",
		Title:   "binary attachments are missing, out of range or too many",
		Harm:    "The peer's parser refuses the packet and drops the connection.",
		Fix:     "Let the Socket.IO library number the attachments, at most ten a packet, and send their frames right after their packet.",
	},
	{
		ID: "engine-version", Severity: Warning, Provenance: Inferred, Section: "Transport", Scope: ScopePacket,
		Title: "the client speaks Engine.IO 3",
		Harm:  "A gateway of today answers 400 and the client retries for ever in silence: the chat never connects.",
		Fix:   "Use socket.io-client 3 or later, or set allowEIO3 on the gateway.",
	},
	{
		ID: "json-duplicate-key", Severity: Warning, Provenance: Inferred, Section: "Transport", Scope: ScopeMessage,
		Title: "a JSON object names a key twice",
		Harm:  "JavaScript keeps the last value and other readers may keep the first: two windows can show different things.",
		Fix:   "Write the key once. This judge reads the last one, as a browser does.",
	},
	{
		ID: "json-lone-surrogate", Severity: Warning, Provenance: Inferred, Section: "Transport", Scope: ScopeMessage,
		Title: "a string holds half of a character",
		Harm:  "A replacement mark stands on the screen where an emoji or a rare letter should be.",
		Fix:   "Cut text between code points, never inside a surrogate pair or a UTF-8 sequence; keep the rest of a character for the next delta.",
	},
	{
		ID: "json-number-rounded", Severity: Note, Provenance: Inferred, Section: "Transport", Scope: ScopeMessage,
		Title: "an integer is too large for JavaScript",
		Harm:  "A client rounds it: two different ids become one, or a lookup by id finds nothing.",
		Fix:   "Send integers beyond 2^53 as strings.",
	},
	{
		ID: "json-too-deep", Severity: Note, Provenance: Inferred, Section: "Transport", Scope: ScopeMessage,
		Title: "a payload is nested deeper than 10,000 levels",
		Harm:  "Most clients parse it and some run out of stack. It was relayed and stored, and not judged.",
		Fix:   "Look for a structure that holds itself, often a tool's result written without a limit.",
	},
	{
		ID: "message-unknown", Severity: Note, Provenance: Inferred, Section: "Socket messages", Scope: ScopeMessage,
		Title: "the protocol has no message of this name",
		Harm:  "The other side ignores it: a mistyped name looks like a gateway or a client that does nothing.",
		Fix:   "Compare the name with those of the page; nothing is wrong if the application adds messages of its own.",
	},
	{
		ID: "message-wrong-way", Severity: Error, Provenance: Stated, Section: "Socket messages", Scope: ScopeMessage,
		Title: "a message came from the side that never sends it",
		Harm:  "The receiver has no case for it and nothing happens.",
		Fix:   "Send commands from the client only, and protocol:hello, run:event, task:status and protocol:error from the gateway only.",
	},
	{
		ID: "argument-unexpected", Severity: Warning, Provenance: Inferred, Section: "Socket messages", Scope: ScopeMessage,
		Title: "a message has arguments behind its payload",
		Harm:  "A handler that takes payload and acknowledgement gets the argument in place of its callback, and may throw or never answer.",
		Fix:   "Emit one payload; a trailing undefined is sent as null, so leave it out.",
	},
	{
		ID: "ack-missing", Severity: Warning, Provenance: Inferred, Section: "Thread history and replay", Scope: ScopeConversation,
		Unless: "error (derived from: answered through the acknowledgement) when the connection closed without it",
		Title:  "thread:messages was not acknowledged",
		Harm:   "The conversation stays on its loading screen.",
		Fix:    "Call the acknowledgement on every path of the gateway's handler, errors included.",
	},
	{
		ID: "ack-unexpected", Severity: Error, Provenance: Derived, Section: "Socket messages", Scope: ScopeConversation,
		Follows: "answered through the acknowledgement: one question has one answer",
		Title:   "an acknowledgement that nobody asked for, or a second one",
		Harm:    "Client libraries ignore it, so a second, better answer is never shown.",
		Fix:     "Answer each acknowledgement id once, on the socket and namespace that asked.",
	},
	{
		ID: "command-repeated", Severity: Warning, Provenance: Inferred, Section: "Commands", Scope: ScopeConversation,
		Title: "the same command was sent again on a later socket",
		Harm:  "After a reconnect the user's message may run twice, or come back as DUPLICATE_MESSAGE although it was answered.",
		Fix:   "Ask for the thread's history after a reconnect before anything is sent again; emit with volatile or clear the client's send buffer.",
	},
	{
		ID: "cookie-adapted", Severity: Note, Provenance: Inferred, Section: "HTTP surface", Scope: ScopeProxy,
		Title: "a cookie was changed so that the browser keeps it",
		Harm:  "None: without the change the login would not stick behind the proxy.",
		Fix:   "Nothing. The gateway's own cookie is kept with the exchange.",
	},
}
