package story

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"
)

// aguiEvent is an event of AG-UI, as far as any has it.
type aguiEvent struct {
	Type            string          `json:"type"`
	ThreadID        string          `json:"threadId,omitempty"`
	RunID           string          `json:"runId,omitempty"`
	SubagentRunID   string          `json:"subagentRunId,omitempty"`
	Name            string          `json:"name,omitempty"`
	MessageID       string          `json:"messageId,omitempty"`
	Role            string          `json:"role,omitempty"`
	ToolCallID      string          `json:"toolCallId,omitempty"`
	ToolCallName    string          `json:"toolCallName,omitempty"`
	ParentMessageID string          `json:"parentMessageId,omitempty"`
	Delta           *string         `json:"delta,omitempty"`
	Content         *string         `json:"content,omitempty"`
	Snapshot        json.RawMessage `json:"snapshot,omitempty"`
	Event           json.RawMessage `json:"event,omitempty"`
	Message         *string         `json:"message,omitempty"`
	Code            string          `json:"code,omitempty"`
	Input           *aguiInput      `json:"input,omitempty"`
	Outcome         *outcome        `json:"outcome,omitempty"`
	Timestamp       int64           `json:"timestamp"` // milliseconds since 1970
	RawEvent        any             `json:"rawEvent,omitempty"`
}

type outcome struct {
	Type       string      `json:"type"`
	Interrupts []interrupt `json:"interrupts,omitempty"`
}

type interrupt struct {
	ID         string         `json:"id"`
	Reason     string         `json:"reason"`
	Message    string         `json:"message,omitempty"`
	ToolCallID string         `json:"toolCallId,omitempty"`
	Metadata   map[string]any `json:"metadata,omitempty"`
}

// aguiInput is what a run was asked, as RUN_STARTED may echo it.
type aguiInput struct {
	ThreadID       string        `json:"threadId"`
	RunID          string        `json:"runId"`
	State          struct{}      `json:"state"`
	Messages       []aguiMessage `json:"messages"`
	Tools          []aguiTool    `json:"tools"`
	Context        []struct{}    `json:"context"`
	ForwardedProps struct{}      `json:"forwardedProps"`
	Resume         []aguiResume  `json:"resume,omitempty"`
}

type aguiMessage struct {
	ID      string `json:"id"`
	Role    string `json:"role"`
	Content string `json:"content"`
}

type aguiTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

type aguiResume struct {
	InterruptID string          `json:"interruptId"`
	Status      string          `json:"status"`
	Payload     json.RawMessage `json:"payload,omitempty"`
}

// input is what a thread was asked since its latest run began.
type input struct {
	messages []aguiMessage
	tools    []aguiTool
	resume   []aguiResume
}

// validOr returns a copy of JSON, or another one if it is none.
func validOr(raw []byte, other string) json.RawMessage {
	if !json.Valid(raw) {
		return json.RawMessage(other)
	}
	return bytes.Clone(raw)
}

// textOf is a result's text: what a string says, or the JSON.
func textOf(body []byte) string {
	var text string
	if json.Unmarshal(body, &text) == nil {
		return text
	}
	return string(body)
}

// interrupt is a decision. A blocking call of a client tool names the call.
func (r *aguiRun) interrupt(e *event) interrupt {
	out := interrupt{ID: cmp.Or(e.InterruptID, "none"), Reason: "decision"}
	if json.Unmarshal(e.Body, &out.Metadata) != nil {
		out.Metadata = nil
		if json.Valid(e.Body) {
			out.Metadata = map[string]any{"payload": validOr(e.Body, "null")}
		}
	}
	for _, name := range []string{"question", "message", "title"} {
		if text, ok := out.Metadata[name].(string); ok && out.Message == "" {
			out.Message = text
		}
	}
	if tool, ok := out.Metadata["clientTool"].(string); ok {
		out.Reason = "tool_call"
		for id, name := range r.calls {
			if name == tool && (out.ToolCallID == "" || id > out.ToolCallID) {
				out.ToolCallID = id
			}
		}
	}
	return out
}

// oneLine is text in one line.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
