package protocol

import (
	"strconv"
	"strings"
)

// History is an answer to thread:messages ("Thread history and replay"). Raw
// fields are slices of the payload, nil where there is none.
type History struct {
	OK bool
	// Error is set if the answer is not ok, wherever it nests code and message.
	Error Failure

	Messages []HistoryMessage
	// Replaying is set if the answer has a replay, as it has while a run is in
	// flight. Envelopes are the JSON of the envelopes in it and EnvelopesAt the
	// pointer of the array that they stand in, such as /replay/envelopes.
	Replaying   bool
	Envelopes   [][]byte
	EnvelopesAt string
	Truncated   bool

	PendingInterrupt []byte
	Todos            []byte
	Task             []byte
}

// HistoryMessage is one message of a thread's history.
type HistoryMessage struct {
	ID        string
	Role      string
	CreatedAt string // "" if it is no string
	Raw       []byte
	Content   []byte
	ToolCalls []byte
	Reasoning []byte
}

// ReadHistory reads an answer to thread:messages. ok is false if it is no
// object with a boolean ok: such an answer says nothing. A null in an optional
// field is read as its absence.
func ReadHistory(payload []byte) (h History, ok bool) {
	o, _ := readObject(trim(payload))
	if kindOf(o.get("ok")) != isBool {
		return h, false
	}
	if h.OK = string(o.get("ok")) == "true"; !h.OK {
		h.Error, _ = readFailure(o)
		return h, true
	}
	messages, _ := readArray(o.get("messages"))
	for _, raw := range messages {
		m, _ := readObject(raw)
		h.Messages = append(h.Messages, HistoryMessage{
			ID:        m.text("id"),
			Role:      m.text("role"),
			CreatedAt: m.text("createdAt"),
			Raw:       raw,
			Content:   m.get("content"),
			ToolCalls: m.get("toolCalls"),
			Reasoning: m.get("reasoning"),
		})
	}
	if replay, is := readObject(o.get("replay")); is {
		h.Replaying = true
		h.Truncated = string(replay.get("truncated")) == "true"
		h.Envelopes, h.EnvelopesAt = readReplay(replay)
	}
	h.PendingInterrupt = present(o.get("pendingInterrupt"))
	h.Todos = present(o.get("todos"))
	h.Task = present(o.get("task"))
	return h, true
}

// readFailure reads code and message of an answer that is not ok, and where
// they stand: {ok, error: {code, message}} or {ok, code, message}. The page
// leaves the nesting open.
func readFailure(o object) (f Failure, pointer string) {
	if nested, is := readObject(o.get("error")); is {
		o, pointer = nested, "/error"
	}
	return Failure{ErrorCode(o.text("code")), o.text("message")}, pointer
}

// readReplay finds the envelopes of a replay: the array called envelopes, else
// the first array that it has. That name is not stated. Pointer is "" if there
// is no array.
func readReplay(replay object) (envelopes [][]byte, pointer string) {
	if envelopes, ok := readArray(replay.get("envelopes")); ok {
		return envelopes, "/replay/envelopes"
	}
	for _, m := range replay {
		if envelopes, ok := readArray(m.value); ok {
			return envelopes, "/replay" + pointerTo(m.name)
		}
	}
	return nil, ""
}

// present returns value, nil if it is null.
func present(value []byte) []byte {
	if kindOf(value) == isNull {
		return nil
	}
	return value
}

// pointerTo returns the JSON pointer's step to a member.
func pointerTo(name string) string { return "/" + pointerEscapes.Replace(name) }

// pointerAt returns the JSON pointer's step to an item.
func pointerAt(i int) string { return "/" + strconv.Itoa(i) }

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")
