package actor

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"tapedeck/player/scenario"
	"tapedeck/protocol"
)

// Part is what a client must remember to play its part in a scenario: the runs,
// decisions and subagents that it heard of. The zero value is ready to use, for
// a thread.
type Part struct {
	Thread string // the thread's id

	runs     []string // in the order of their RUN_STARTED
	open     []string // decisions that nobody has answered here
	calls    []string // tool calls of the subagents
	task     string   // the latest subagent's own thread
	messages int
}

// Hear takes a message of the gateway, and returns what a move waits for by: the
// type of an envelope's event, or the message's name.
func (p *Part) Hear(name string, payload []byte) string {
	if protocol.Name(name) != protocol.RunEvent {
		return name
	}
	var e struct {
		RunID string
		Event struct {
			Type                                   protocol.EventType
			ToolCallID, InterruptID, ChildThreadID string
		}
	}
	// An envelope that is damaged on purpose has no type here.
	_ = json.Unmarshal(payload, &e)
	switch e.Event.Type {
	case protocol.RunStarted:
		p.runs = append(p.runs, e.RunID)
	case protocol.Interrupt:
		if !slices.Contains(p.open, e.Event.InterruptID) {
			p.open = append(p.open, e.Event.InterruptID)
		}
	case protocol.SubagentStarted:
		p.calls, p.task = append(p.calls, e.Event.ToolCallID), e.Event.ChildThreadID
	}
	return string(e.Event.Type)
}

// command is the payload of any command. A field that is nil is left out.
type command struct {
	ThreadID    *string         `json:"threadId,omitempty"`
	MessageID   *string         `json:"messageId,omitempty"`
	Input       *string         `json:"input,omitempty"`
	Attachments json.RawMessage `json:"attachments,omitempty"`
	Fork        string          `json:"forkFromMessageId,omitempty"`
	InterruptID *string         `json:"interruptId,omitempty"`
	Answer      json.RawMessage `json:"answer,omitempty"`
	RunID       *string         `json:"runId,omitempty"`
	ToolCallID  *string         `json:"toolCallId,omitempty"`
	ClientTools []clientTool    `json:"clientTools,omitempty"`
}

type clientTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Kind        string          `json:"kind"`
	Arguments   json.RawMessage `json:"arguments,omitempty"`
	Result      json.RawMessage `json:"result,omitempty"`
}

// Say returns the payload of the command that a move sends.
func (p *Part) Say(m scenario.Move) ([]byte, error) {
	thread := p.Thread + m.Thread
	if m.Thread == "task" {
		thread = p.task
	}
	c := command{}
	switch m.Command() {
	case protocol.RunStart:
		p.messages++
		id := "message-" + strconv.Itoa(p.messages)
		if m.Start.Message != "" {
			id = m.Start.Message
		}
		c.ThreadID, c.MessageID, c.Input = &thread, &id, &m.Start.Input
		c.Attachments, c.Fork = json.RawMessage(m.Start.Attachments), m.Start.Fork
	case protocol.RunResume:
		id, err := pick(&p.open, m.Which)
		if err != nil {
			return nil, fmt.Errorf("answer a decision: %w", err)
		}
		c.ThreadID, c.InterruptID, c.Answer = &thread, &id, json.RawMessage(*m.Resume)
	case protocol.RunCancel:
		id := *m.Cancel
		if id == "run" {
			var err error
			if id, err = p.latest(); err != nil {
				return nil, err
			}
		}
		c.RunID = &id
	case protocol.RunDetach:
		if err := p.detach(&c, *m.Detach); err != nil {
			return nil, err
		}
	case protocol.ThreadMessages:
		c.ThreadID = &thread
	}
	for _, t := range m.Tools {
		c.ClientTools = append(c.ClientTools, clientTool{t.Name, t.Description, t.Kind, json.RawMessage(t.Arguments), json.RawMessage(t.Result)})
	}
	return json.Marshal(c)
}

func (p *Part) detach(c *command, which string) error {
	run, err := p.latest()
	if err != nil {
		return err
	}
	c.RunID = &run
	if which == "all" {
		return nil
	}
	calls := slices.Clone(p.calls)
	id, err := pick(&calls, which)
	if err != nil {
		return fmt.Errorf("detach a subagent: %w", err)
	}
	c.ToolCallID = &id
	return nil
}

// latest is the run that began last.
func (p *Part) latest() (string, error) {
	if len(p.runs) == 0 {
		return "", fmt.Errorf("no run has begun")
	}
	return p.runs[len(p.runs)-1], nil
}

// pick takes the n-th out of a list, the first by default, or an id as it is.
func pick(list *[]string, which string) (string, error) {
	n := 1
	if which != "" {
		var err error
		if n, err = strconv.Atoi(which); err != nil {
			return which, nil
		}
	}
	if n < 1 || n > len(*list) {
		return "", fmt.Errorf("there is no number %d of %d", n, len(*list))
	}
	id := (*list)[n-1]
	*list = slices.Delete(*list, n-1, n)
	return id, nil
}
