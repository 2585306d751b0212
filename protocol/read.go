package protocol

// Command is what a client asks ("Commands"). Fields that the command does not
// have, or that are of another type, are zero.
type Command struct {
	Name              Name
	ThreadID          string
	MessageID         string // run:start
	Input             string // run:start
	RunID             string // run:cancel, run:detach
	InterruptID       string // run:resume
	ToolCallID        string // run:detach
	ForkFromMessageID string // run:start
	// Answer is the JSON of run:resume's answer, nil if there is none; null is
	// an answer.
	Answer []byte
	// Attachments is the JSON of run:start's attachments, nil if there are none.
	Attachments []byte
	// ClientTools are the tools that the command declares.
	ClientTools []ClientTool
}

// ClientTool is one declaration of clientTools ("Client tools").
type ClientTool struct {
	Name        string
	Description string
	Kind        string // Blocking or OneWay
	// Arguments and Result are the JSON Schemas, nil if there is none.
	Arguments []byte
	Result    []byte
}

// The kinds of a client tool.
const (
	Blocking = "blocking"
	OneWay   = "one-way"
)

// ReadCommand reads the fields of a command. ok is false if m is no command or
// its payload no object. Raw fields are slices of the payload.
func ReadCommand(m *Message) (c Command, ok bool) {
	if m.Answer || !m.Name.IsCommand() {
		return c, false
	}
	o, ok := readObject(trim(m.Payload))
	if !ok {
		return c, false
	}
	c = Command{
		Name:              m.Name,
		ThreadID:          o.text("threadId"),
		MessageID:         o.text("messageId"),
		Input:             o.text("input"),
		RunID:             o.text("runId"),
		InterruptID:       o.text("interruptId"),
		ToolCallID:        o.text("toolCallId"),
		ForkFromMessageID: o.text("forkFromMessageId"),
		Answer:            o.get("answer"),
		Attachments:       o.get("attachments"),
	}
	tools, _ := readArray(o.get("clientTools"))
	for _, raw := range tools {
		tool, _ := readObject(raw)
		c.ClientTools = append(c.ClientTools, ClientTool{
			Name:        tool.text("name"),
			Description: tool.text("description"),
			Kind:        tool.text("kind"),
			Arguments:   tool.get("arguments"),
			Result:      tool.get("result"),
		})
	}
	return c, true
}

// Announcement is the payload of protocol:hello, and what GET /protocol answers
// ("Versioning").
type Announcement struct {
	Major          int `json:"major"`
	Minor          int `json:"minor"`
	MinClientMajor int `json:"minClientMajor"`
}

// ReadHello reads an announcement. ok is false if it is unreadable: chat-core
// then goes on as if there had been none.
func ReadHello(payload []byte) (a Announcement, ok bool) {
	o, _ := readObject(trim(payload))
	version, _ := readObject(o.get("protocol"))
	for _, field := range []struct {
		to    *int
		value []byte
	}{{&a.Major, version.get("major")}, {&a.Minor, version.get("minor")}, {&a.MinClientMajor, o.get("minClientMajor")}} {
		n, is := integerOf(field.value)
		if !is || n < 0 || n > maxVersion {
			return Announcement{}, false
		}
		*field.to = int(n)
	}
	return a, true
}

// maxVersion is where a major or minor stops being one.
const maxVersion = 1 << 30

// Failure is what protocol:error and an answer that is not ok carry ("Errors").
type Failure struct {
	Code    ErrorCode `json:"code"`
	Message string    `json:"message"`
}

// ReadError reads the payload of protocol:error. ok is false if it has neither
// a code nor a message.
func ReadError(payload []byte) (f Failure, ok bool) {
	o, _ := readObject(trim(payload))
	f = Failure{ErrorCode(o.text("code")), o.text("message")}
	return f, f != Failure{}
}
