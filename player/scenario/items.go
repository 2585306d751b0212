package scenario

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"tapedeck/player/script"
	"tapedeck/protocol"
)

// outermost is the pace where a file names none.
var outermost = Pace{TTFT: new(300 * time.Millisecond), Rate: 30, Jitter: new(0.2), Chunk: "word"}

// over fills what p leaves open from the pace around it.
func (p Pace) over(around Pace) Pace {
	if p.TTFT == nil {
		p.TTFT = around.TTFT
	}
	if p.Rate == 0 {
		p.Rate = around.Rate
	}
	if p.Jitter == nil {
		p.Jitter = around.Jitter
	}
	if p.Chunk == "" {
		p.Chunk = around.Chunk
	}
	return p
}

func (p Pace) under(inner Pace) Pace { return inner.over(p) }

// gap moves the clock by one delta.
func (c *compiler) gap() {
	if math.IsInf(c.pace.Rate, 1) {
		return
	}
	stray := 1 + *c.pace.Jitter*(2*c.random.Float64()-1)
	c.at += time.Duration(stray / c.pace.Rate * float64(time.Second))
}

// firstToken waits once a segment, before what comes after RUN_STARTED, unless
// that is itself a wait or ends the run.
func (c *compiler) firstToken(s *Step) {
	if c.waited || s.Answer != nil || s.Wait != nil {
		return
	}
	c.waited = true
	pace := c.pace
	switch {
	case s.Text != nil:
		pace = s.Text.Pace.over(pace)
	case s.Reasoning != nil:
		pace = s.Reasoning.Pace.over(pace)
	case s.Tool != nil:
		pace = s.Tool.Pace.over(pace)
	}
	c.at += *pace.TTFT
}

// kinds are the three events of a text or a reasoning.
type kinds struct{ start, content, end protocol.EventType }

var (
	textEvents      = kinds{protocol.TextMessageStart, protocol.TextMessageContent, protocol.TextMessageEnd}
	reasoningEvents = kinds{protocol.ReasoningStart, protocol.ReasoningContent, protocol.ReasoningEnd}
)

// paced compiles a step under its own pace.
func (c *compiler) paced(p Pace, body func()) {
	around := c.pace
	c.pace = p.over(around)
	body()
	c.pace = around
}

func (c *compiler) text(t *Text, k kinds) {
	id := c.in.ident("msg", c.name(t.ID))
	role := ""
	if k == textEvents {
		role = "assistant"
		if t.Role != "" {
			role = t.Role
		}
	}
	c.add(newEvent(k.start).about("messageId", id).text("role", role).act())
	c.paced(t.Pace, func() {
		deltas := c.deltas(stream(k.content, "messageId", id), t.whole(c))
		for i := range deltas {
			if i == (len(deltas)+1)/2 {
				c.at += t.Stall
				c.steps(t.Steps)
			}
			if c.ended {
				return
			}
			c.add(&deltas[i])
			c.gap()
		}
		if len(deltas) < 2 {
			c.at += t.Stall
			c.steps(t.Steps)
		}
	})
	if !t.Open && !c.ended {
		c.add(newEvent(k.end).about("messageId", id).act())
	}
}

// whole is the text before it is cut.
func (t *Text) whole(c *compiler) string {
	return strings.Repeat(c.fill(t.Content), max(t.Repeat, 1)) + filler(t.Fill)
}

// deltas cuts a text.
func (c *compiler) deltas(of *script.Stream, text string) []script.Delta {
	chunk, err := chunkerNamed(c.pace.Chunk)
	if err != nil {
		panic("scenario: a pace passed Load with " + err.Error())
	}
	pieces := chunk(text)
	deltas := make([]script.Delta, len(pieces))
	for i, piece := range pieces {
		deltas[i] = script.Delta{Of: of, Text: piece}
	}
	c.cues = slices.Grow(c.cues, len(pieces)+1) // and the event that ends them
	return deltas
}

func (c *compiler) call(id, name string, arguments []byte) {
	c.add(newEvent(protocol.ToolCallStart).about("toolCallId", id).text("toolCallName", name).act())
	// JSON has few words: arguments come in pieces as tokens do.
	pieces := Pace{}
	if c.pace.Chunk == "word" {
		pieces.Chunk = "8"
	}
	var deltas []script.Delta
	c.paced(pieces, func() { deltas = c.deltas(stream(protocol.ToolCallArgs, "toolCallId", id), string(arguments)) })
	for i := range deltas {
		c.add(&deltas[i])
		c.gap()
	}
	c.add(newEvent(protocol.ToolCallEnd).about("toolCallId", id).act())
}

func (c *compiler) result(id string, content json.RawMessage) {
	if len(content) == 0 {
		content = json.RawMessage(`""`)
	}
	message := c.in.ident("msg", "result of "+id)
	c.add(newEvent(protocol.ToolCallResult).text("messageId", message).about("toolCallId", id).raw("content", asText(content)).act())
	c.gap()
}

// asText is a result's content as tools give it: text, and JSON as text.
func asText(v json.RawMessage) json.RawMessage {
	if v[0] == '"' {
		return v
	}
	return appendString(nil, string(v))
}

func (c *compiler) tool(t *Tool) {
	id := c.in.ident("call", c.name(t.ID))
	c.paced(t.Pace, func() {
		arguments := []byte(t.Text)
		if t.Text == "" {
			arguments = orEmpty(c.fillJSON(t.Arguments))
		}
		c.call(id, t.Name, arguments)
		if t.NoResult {
			return
		}
		c.at += t.Took
		if t.Fill > 0 {
			c.result(id, appendString(nil, filler(t.Fill)))
			return
		}
		c.result(id, c.fillJSON(t.Result))
	})
}

func orEmpty(v json.RawMessage) json.RawMessage {
	if len(v) == 0 {
		return json.RawMessage("{}")
	}
	return v
}

// pauses reports whether a step waits for the client, which a blocking client
// tool does only where the client has the tool.
func (s *Step) pauses(tools []string) bool {
	return s.Interrupt != nil || s.ClientTool != nil && s.ClientTool.Kind != "one-way" && s.ClientTool.declared(tools)
}

func (t *ClientTool) declared(tools []string) bool {
	for _, name := range tools {
		if name == t.Name {
			return true
		}
	}
	return false
}

// stable names a step that asks by its line, so that it has the same id in each
// segment.
func (c *compiler) stable(id string, line int) string {
	if id == "" {
		return "line " + strconv.Itoa(line)
	}
	return id
}

func (c *compiler) interrupt(name string, payload json.RawMessage) {
	c.add(newEvent(protocol.Interrupt).about("interruptId", c.in.ident("ask", name)).raw("payload", orEmpty(payload)).act())
}

// blockingCall calls a tool of the client and asks for its answer.
func (c *compiler) blockingCall(t *ClientTool, line int) {
	name := c.stable(t.ID, line)
	arguments := orEmpty(c.fillJSON(t.Arguments))
	c.call(c.in.ident("call", name), t.Name, arguments)
	payload := appendString([]byte(`{"clientTool":`), t.Name)
	payload = append(append(append(payload, `,"arguments":`...), arguments...), '}')
	c.interrupt(name, payload)
}

// clientTool compiles a one-way call, and the way out where the client has no
// such tool.
func (c *compiler) clientTool(t *ClientTool) {
	if t.Kind == "one-way" && t.declared(c.tools()) {
		c.call(c.in.ident("call", c.name(t.ID)), t.Name, orEmpty(c.fillJSON(t.Arguments)))
		return
	}
	if t.Otherwise != nil {
		c.steps(t.Otherwise)
		return
	}
	c.text(&Text{Content: "This client declared no tool called " + t.Name + ", so the run goes on without it."}, textEvents)
}

func (c *compiler) subagent(s *Subagent) {
	name := c.name(s.ID)
	id := c.in.ident("call", name)
	arguments := appendString([]byte(`{"prompt":`), c.fill(s.Prompt))
	c.call(id, "task", append(arguments, '}'))
	around := c.lane
	if c.lane != "" {
		c.lane += "/"
	}
	c.lane += id
	task, child := c.in.ident("task", name), c.in.ident("thread", name)
	c.add(newEvent(protocol.SubagentStarted).about("toolCallId", id).text("name", s.Name).
		text("taskId", task).text("childThreadId", child).act())
	c.steps(s.Steps)
	status := "finished"
	if s.Status != "" {
		status = s.Status
	}
	if c.ended {
		return
	}
	c.add(newEvent(protocol.SubagentFinished).about("toolCallId", id).text("taskId", task).text("status", status).act())
	c.lane = around
	c.result(id, c.fillJSON(s.Result))
}

func (c *compiler) raw(r *Raw) {
	object := c.fillJSON(r.Event)
	if r.JSON != "" {
		object = json.RawMessage(c.fill(r.JSON))
	}
	var head struct{ Type protocol.EventType }
	if object != nil {
		// What cannot be read has no type: it is sent as it is.
		_ = json.Unmarshal(object, &head)
	}
	e := script.Event{Type: head.Type, JSON: object}
	warp := script.Warp{Version: r.Version, Thread: c.fill(r.Thread), Run: c.fill(r.Run), Sequence: r.Sequence,
		Skip: r.Skip, Repeat: r.Repeat, Extra: c.fillJSON(r.Extra)}
	if !reflect.ValueOf(warp).IsZero() {
		e.Warp = &warp
	}
	c.add(e)
	c.gap()
}

func (s *Send) attachments() [][]byte {
	if s.Binary == 0 {
		return nil
	}
	return [][]byte{bytes.Repeat([]byte{0x7d}, s.Binary)}
}

// holds reports whether a JSON value has all that pattern has: an object the
// same members, everything else the same value.
func holds(value, pattern json.RawMessage) bool {
	var v, p any
	if json.Unmarshal(value, &v) != nil || json.Unmarshal(pattern, &p) != nil {
		return false
	}
	return contains(v, p)
}

func contains(v, p any) bool {
	want, ok := p.(map[string]any)
	if !ok {
		return reflect.DeepEqual(v, p)
	}
	have, ok := v.(map[string]any)
	if !ok {
		return false
	}
	for key, value := range want {
		if given, there := have[key]; !there || !contains(given, value) {
			return false
		}
	}
	return true
}
