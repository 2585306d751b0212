package player

import (
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"

	"tapedeck/player/script"
	"tapedeck/protocol"
)

// Message is a checkpointed message of a thread. Its raw fields are JSON.
type Message struct {
	ID          string
	Role        string
	Content     json.RawMessage
	CreatedAt   string
	Reasoning   json.RawMessage
	Attachments json.RawMessage
	Task        json.RawMessage
	calls       []*call
	raw         json.RawMessage // as the history shows it; nil when it is out of date
	remembered  bool            // it is a recording's
}

// call is a tool call of a message.
type call struct {
	id, name  string
	arguments []byte // the deltas, as they stand between the quotes of JSON strings
	result    json.RawMessage
}

// render writes a message as the history shows it.
func (m *Message) render() json.RawMessage {
	if m.raw != nil {
		return m.raw
	}
	o := object{}.text("id", m.ID).text("role", m.Role).raw("content", m.Content).text("createdAt", m.CreatedAt)
	if len(m.calls) > 0 {
		o = append(o.key("toolCalls"), '[')
		for i, c := range m.calls {
			if i > 0 {
				o = append(o, ',')
			}
			o = append(o, c.render()...)
		}
		o = append(o, ']')
	}
	m.raw = o.some("reasoning", m.Reasoning).some("attachments", m.Attachments).some("task", m.Task).close()
	return m.raw
}

func (c *call) render() json.RawMessage {
	o := object{}.text("id", c.id).text("name", c.name)
	text := closeText(c.arguments)
	if arguments := json.RawMessage(unquote(text)); json.Valid(arguments) {
		o = o.raw("arguments", arguments)
	} else {
		o = o.raw("arguments", text)
	}
	return o.some("result", c.result).close()
}

// history is the checkpointed part of a thread.
type history struct {
	messages []*Message
	turns    []turn
	calls    map[string]*Message // by the tool call's id
}

// turn is one run:start in a history.
type turn struct {
	input string
	first int // the index of its message
}

func (h *history) begin(messages []Message) {
	h.calls = map[string]*Message{}
	for _, m := range messages {
		h.add(m)
	}
}

func (h *history) add(m Message) { h.messages = append(h.messages, &m) }

// remember replaces all messages by those of a recording.
func (h *history) remember(messages []json.RawMessage) {
	h.messages = h.messages[:0:0]
	for _, raw := range messages {
		var m Message
		// What cannot be read has no id, and is shown as it is.
		_ = json.Unmarshal(raw, &struct {
			ID   *string `json:"id"`
			Role *string `json:"role"`
		}{&m.ID, &m.Role})
		m.raw, m.remembered = raw, true
		h.add(m)
	}
}

// remembers reports whether a recording has a message of this id.
func (h *history) remembers(id string) bool {
	at := h.index(id)
	return at >= 0 && h.messages[at].remembered
}

// put adds a message, or replaces what a recording had of it before it was
// whole.
func (h *history) put(m *Message) {
	if h.remembers(m.ID) {
		h.messages[h.index(m.ID)] = m
		return
	}
	h.messages = append(h.messages, m)
}

// index returns where a message stands, -1 if there is none of that id.
func (h *history) index(id string) int {
	for i, m := range h.messages {
		if m.ID == id {
			return i
		}
	}
	return -1
}

// rewind drops a message and all after it.
func (h *history) rewind(to int) {
	h.messages = h.messages[:to]
	for len(h.turns) > 0 && h.turns[len(h.turns)-1].first >= to {
		h.turns = h.turns[:len(h.turns)-1]
	}
}

// inputs returns what opened the runs.
func (h *history) inputs() []string {
	texts := make([]string, 0, len(h.turns))
	for _, t := range h.turns {
		texts = append(texts, t.input)
	}
	return texts
}

// folding is a message of a run while its events are read.
type folding struct {
	message *Message
	content []byte // the deltas as they stand between the quotes of JSON strings
}

// fold adds the messages that events make up. A reasoning belongs to what comes
// after it, a tool call to the message before it; where there is no such message
// they make one, with the id of the reasoning or the call.
func (h *history) fold(events []noted, stamp string) {
	f := folder{history: h, stamp: stamp, open: map[string]*folding{}}
	for i := range events {
		e := &events[i]
		f.event(&e.Event)
		for _, d := range e.more {
			f.event(&script.Event{Type: e.Type, ID: e.ID, Delta: d.Text})
		}
	}
	if f.thought != nil {
		f.make(f.thinker, "assistant")
	}
	for _, m := range f.made {
		m.message.Content = closeText(m.content)
		h.put(m.message)
		for _, c := range m.message.calls {
			h.calls[c.id] = m.message
		}
	}
}

type folder struct {
	history *history
	stamp   string
	open    map[string]*folding // by message id
	made    []*folding
	thought []byte // a reasoning that no message has yet
	thinker string // and its id
}

func (f *folder) event(e *script.Event) {
	switch e.Type {
	case protocol.TextMessageStart:
		f.start(e)
	case protocol.TextMessageContent:
		if m := f.open[e.ID]; m != nil {
			m.content = appendText(m.content, e.Delta)
		}
	case protocol.ReasoningContent:
		f.thought = appendText(f.thought, e.Delta)
		f.thinker = e.ID
	case protocol.ToolCallStart:
		f.call(e)
	case protocol.ToolCallArgs:
		if c := f.callOf(e.ID); c != nil {
			c.arguments = appendText(c.arguments, e.Delta)
		}
	case protocol.ToolCallResult:
		f.result(e)
	}
}

func (f *folder) start(e *script.Event) {
	var head struct {
		Role string `json:"role"`
	}
	if json.Unmarshal(e.JSON, &head) != nil || head.Role == "" {
		head.Role = "assistant"
	}
	f.make(e.ID, head.Role)
}

func (f *folder) make(id, role string) {
	m := &folding{message: &Message{ID: id, Role: role, CreatedAt: f.stamp}}
	if f.thought != nil {
		m.message.Reasoning, f.thought = closeText(f.thought), nil
	}
	f.made = append(f.made, m)
	f.open[id] = m
}

func (f *folder) call(e *script.Event) {
	var head struct {
		Name string `json:"toolCallName"`
	}
	// A call whose event cannot be read is one without a name.
	_ = json.Unmarshal(e.JSON, &head)
	if len(f.made) == 0 || f.thought != nil {
		f.make(e.ID, "assistant")
	}
	last := f.made[len(f.made)-1].message
	last.calls = append(last.calls, &call{id: e.ID, name: head.Name})
}

func (f *folder) callOf(id string) *call {
	for i := len(f.made) - 1; i >= 0; i-- {
		if c := f.made[i].message.call(id); c != nil {
			return c
		}
	}
	return nil
}

func (m *Message) call(id string) *call {
	for _, c := range m.calls {
		if c.id == id {
			return c
		}
	}
	return nil
}

// result gives a call its result, which may have been made before a pause.
func (f *folder) result(e *script.Event) {
	var head struct {
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(e.JSON, &head) != nil {
		return
	}
	if c := f.callOf(e.ID); c != nil {
		c.result = head.Content
		return
	}
	if m := f.history.calls[e.ID]; m != nil {
		m.call(e.ID).result, m.raw = head.Content, nil
	}
}

// appendText joins a delta, a JSON string, to others without decoding it: halves
// of a surrogate pair become whole where they meet.
func appendText(text, delta []byte) []byte {
	if len(delta) < 2 {
		return text
	}
	return append(text, delta[1:len(delta)-1]...)
}

func closeText(text []byte) json.RawMessage {
	return append(append([]byte{'"'}, text...), '"')
}

func quote(s string) json.RawMessage {
	// Invalid UTF-8 is an error here, and becomes U+FFFD all the same.
	quoted, _ := jsontext.AppendQuote(nil, s)
	return json.RawMessage(quoted)
}

func unquote(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}
