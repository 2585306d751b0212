package scrub

import "tapedeck/protocol"

// place is where in a message a value stands: it decides what its members are.
type place uint8

const (
	free place = iota // all of one group
	inPayload
	inStart
	inResume
	inEnvelope
	inEvent
	inMessage
	inCall
	inHistory
	inReplay
	inPending
	inAsk // an interrupt's payload
	inTask
	inFailure
	inTodo
	inTool
	inSchema
	inSchemas // an object of schemas by name
	inFile
	inKept // all of it is the protocol's
)

// payloads are the places of messages' payloads. What is no message of the
// protocol is other.
func payloadOf(name protocol.Name) (place, group) {
	switch name {
	case protocol.RunStart:
		return inStart, others
	case protocol.RunResume:
		return inResume, others
	case protocol.RunCancel, protocol.RunDetach, protocol.ThreadMessages, protocol.TaskStatus:
		return inTask, others
	case protocol.RunEvent:
		return inEnvelope, others
	case protocol.ProtocolError:
		return inFailure, others
	case protocol.Hello:
		return inKept, keep
	}
	return free, others
}

// how a value is replaced.
type how uint8

const (
	asValue  how = iota // a text as it is, JSON in a text by its values
	asText              // a text as it is
	asJSON              // a text that is JSON, by its values
	asStream            // a piece of a text
	asPieces            // a piece of a text that is JSON
	asFile              // base64, or an address that may be one of data
)

// spot is what a member is.
type spot struct {
	group group
	place place
	how   how
}

// context is what must be known of the object around a member.
type context struct {
	place place
	group group              // of what has no group of its own
	event protocol.EventType // in an event
	role  string             // in a message
}

var (
	kept = spot{keep, inKept, asText}
	ids  = map[string]bool{
		"id": true, "type": true, "status": true, "threadId": true, "runId": true, "messageId": true, "toolCallId": true,
		"taskId": true, "childThreadId": true, "interruptId": true, "parentMessageId": true, "forkFromMessageId": true,
		"toolCallName": true, "kind": true, "role": true, "createdAt": true, "code": true, "detached": true,
	}
)

// member says what a member of an object is.
func member(c context, name string) spot {
	other := spot{c.group, free, asValue}
	if c.place == inKept {
		return kept
	}
	if c.place == free {
		return other
	}
	if found, ok := special(c, name); ok {
		return found
	}
	if ids[name] && c.place != inSchemas {
		return kept
	}
	return other
}

func special(c context, name string) (spot, bool) {
	switch c.place {
	case inStart, inResume:
		return commandMember(name)
	case inEnvelope:
		switch name {
		case "v", "sequence":
			return kept, true
		case "event":
			return spot{others, inEvent, asValue}, true
		}
	case inEvent:
		return eventMember(c.event, name)
	case inMessage, inCall:
		return messageMember(c, name)
	case inHistory, inReplay, inPending:
		return historyMember(name)
	case inAsk:
		switch name {
		case "clientTool":
			return kept, true
		case "arguments":
			return spot{toolArgs, free, asValue}, true
		}
	case inFailure:
		if name == "message" {
			return spot{failures, free, asText}, true
		}
	case inTool, inSchema, inSchemas:
		return toolMember(c, name)
	case inFile:
		switch name {
		case "mediaType", "mimeType", "size":
			return kept, true
		}
		return spot{attachments, free, asFile}, !ids[name]
	}
	return spot{}, false
}

func commandMember(name string) (spot, bool) {
	switch name {
	case "input":
		return spot{inputs, free, asText}, true
	case "answer":
		return spot{toolResults, free, asValue}, true
	case "attachments":
		return spot{attachments, inFile, asFile}, true
	case "clientTools":
		return spot{others, inTool, asValue}, true
	}
	return spot{}, false
}

func eventMember(event protocol.EventType, name string) (spot, bool) {
	switch {
	case name == "delta" && event == protocol.TextMessageContent:
		return spot{texts, free, asStream}, true
	case name == "delta" && event == protocol.ReasoningContent:
		return spot{reasonings, free, asStream}, true
	case name == "delta" && event == protocol.ToolCallArgs:
		return spot{toolArgs, free, asPieces}, true
	case name == "content" && event == protocol.ToolCallResult:
		return spot{toolResults, free, asValue}, true
	case name == "payload" && event == protocol.Interrupt:
		return spot{decisions, inAsk, asValue}, true
	case name == "todos" && event == protocol.TodosSnapshot:
		return spot{todos, inTodo, asText}, true
	case name == "message" && event == protocol.RunStarted:
		return spot{inputs, inMessage, asText}, true
	case name == "message" && event == protocol.RunError:
		return spot{failures, free, asText}, true
	case name == "name" && (event == protocol.SubagentStarted || event == protocol.SubagentFinished):
		return kept, true
	}
	return spot{}, false
}

func messageMember(c context, name string) (spot, bool) {
	said := map[string]group{"user": inputs, "tool": toolResults}[c.role]
	if said == 0 {
		said = texts
	}
	if c.place == inCall {
		switch name {
		case "name", "state":
			return kept, true
		case "function":
			return spot{others, inCall, asValue}, true
		case "args", "arguments", "input":
			return spot{toolArgs, free, asJSON}, true
		case "result", "output", "content":
			return spot{toolResults, free, asValue}, true
		}
		return spot{}, false
	}
	switch name {
	case "content", "parts":
		if said == toolResults {
			return spot{said, inMessage, asValue}, true
		}
		return spot{said, inMessage, asText}, true
	case "text":
		return spot{said, free, asText}, true
	case "reasoning":
		return spot{reasonings, free, asText}, true
	case "toolCalls", "tool_calls":
		return spot{others, inCall, asValue}, true
	case "attachments":
		return spot{attachments, inFile, asFile}, true
	case "task":
		return spot{others, inTask, asValue}, true
	}
	return spot{}, false
}

func historyMember(name string) (spot, bool) {
	switch name {
	case "ok", "truncated":
		return kept, true
	case "messages":
		return spot{texts, inMessage, asText}, true
	case "replay":
		return spot{others, inReplay, asValue}, true
	case "envelopes":
		return spot{others, inEnvelope, asValue}, true
	case "pendingInterrupt":
		return spot{others, inPending, asValue}, true
	case "payload":
		return spot{decisions, inAsk, asValue}, true
	case "todos":
		return spot{todos, inTodo, asText}, true
	case "task":
		return spot{others, inTask, asValue}, true
	case "error":
		return spot{others, inFailure, asText}, true
	case "message":
		return spot{failures, free, asText}, true
	}
	return spot{}, false
}

// toolMember is a member of a client tool's declaration. Of the schemas only what
// names values is content; they become what the values become, so that these
// still fit.
func toolMember(c context, name string) (spot, bool) {
	if c.place == inTool {
		switch name {
		case "name":
			return kept, true
		case "arguments":
			return spot{toolArgs, inSchema, asValue}, true
		case "result":
			return spot{toolResults, inSchema, asValue}, true
		}
		return spot{}, false
	}
	if c.place == inSchemas {
		return spot{c.group, inSchema, asValue}, true
	}
	switch name {
	case "enum", "const", "default", "examples":
		return spot{c.group, free, asValue}, true
	case "properties", "$defs", "definitions", "patternProperties", "dependentSchemas":
		return spot{c.group, inSchemas, asValue}, true
	case "title", "description", "$comment":
		return spot{others, free, asText}, true
	case "items", "prefixItems", "anyOf", "oneOf", "allOf", "not", "if", "then", "else", "additionalProperties", "contains", "propertyNames":
		return spot{c.group, inSchema, asValue}, true
	}
	return kept, true
}
