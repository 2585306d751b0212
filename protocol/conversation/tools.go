package conversation

import (
	"bytes"
	"encoding/json"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

// clientTool is a tool that a command declared. Its schemas are compiled when
// they are first needed.
type clientTool struct {
	name              string
	arguments, result schema
	at                capture.Address
}

// schema is a JSON Schema as it came, and compiled.
type schema struct {
	raw      []byte
	compiled *protocol.Schema
	broken   bool
}

// maxSchema bounds a schema that is kept, in bytes.
const maxSchema = 64 << 10

// declared returns a command's tools by name. Their raw parts are copied.
func (s *State) declared(tools []protocol.ClientTool) map[string]*clientTool {
	byName := make(map[string]*clientTool, len(tools))
	for _, t := range tools {
		if len(byName) >= protocol.MaxClientTools {
			break
		}
		byName[t.Name] = &clientTool{
			name: t.Name, arguments: schema{raw: clip(t.Arguments)}, result: schema{raw: clip(t.Result)},
			at: s.turn.m.Address,
		}
	}
	return byName
}

// clip copies a value, nil if it is too long to keep.
func clip(raw []byte) []byte {
	if len(raw) > maxSchema {
		return nil
	}
	return bytes.Clone(raw)
}

// declare adds the tools of a command to those of a run that it resumes: each
// declares its own set, and a run that several answers resume has them all.
func (r *run) declare(tools map[string]*clientTool) {
	if r.tools == nil {
		r.tools = make(map[string]*clientTool, len(tools))
	}
	for name, t := range tools {
		if len(r.tools) < 2*protocol.MaxClientTools {
			r.tools[name] = t
		}
	}
}

// misfit says how a value does not fit the schema, "" if it does or if the
// schema cannot say.
func (c *schema) misfit(value []byte) (pointer, text string) {
	if c.raw == nil || c.broken {
		return "", ""
	}
	if c.compiled == nil {
		var err error
		if c.compiled, err = protocol.CompileSchema(c.raw); err != nil {
			c.broken = true // the validator says so, where the tool is declared
			return "", ""
		}
	}
	if misfits := c.compiled.Check(value); len(misfits) > 0 {
		return misfits[0].Pointer, misfits[0].Text
	}
	return "", ""
}

// clientToolCall judges an INTERRUPT that calls a client tool.
func (s *State) clientToolCall(r *run, d *decision, e *protocol.Event) {
	var payload struct {
		ClientTool json.RawMessage `json:"clientTool"`
		Arguments  json.RawMessage `json:"arguments"`
		ToolCallID string          `json:"toolCallId"`
	}
	if json.Unmarshal(e.Body, &payload) != nil || payload.ClientTool == nil {
		return
	}
	if json.Unmarshal(payload.ClientTool, &d.tool) != nil {
		var named struct {
			Name string `json:"name"`
		}
		_ = json.Unmarshal(payload.ClientTool, &named) // of any other shape it names none
		d.tool = named.Name
	}
	d.callID = payload.ToolCallID
	if d.tool == "" {
		return
	}
	if r.tools == nil {
		s.skip("client-tool-undeclared", "the command that the run belongs to was not seen")
		return
	}
	if d.call = r.tools[d.tool]; d.call == nil {
		s.reportAt("client-tool-undeclared", protocol.Warning, "/event/payload/clientTool", r.causeAt(),
			"the run calls client tool %s, which its command did not declare", short(d.tool))
		return
	}
	if payload.Arguments == nil {
		return
	}
	if pointer, text := d.call.arguments.misfit(payload.Arguments); text != "" {
		s.reportAt("client-tool-arguments", protocol.Warning, "/event/payload/arguments"+pointer, d.call.at,
			"the arguments do not fit the schema of %s: %s", short(d.tool), text)
	}
}

// causeAt is where the command that the run belongs to passed.
func (r *run) causeAt() capture.Address {
	if r.cause == nil {
		return capture.Address{}
	}
	return r.cause.at
}

// answerFits judges an answer to the call of a client tool.
func (s *State) answerFits(d *decision, c *command) {
	if d.call == nil || c.Answer == nil {
		return
	}
	if pointer, text := d.call.result.misfit(c.Answer); text != "" {
		s.reportAt("client-tool-answer", protocol.Warning, "/answer"+pointer, d.call.at,
			"the answer does not fit the result of %s: %s", short(d.tool), text)
	}
}

// answerGiven judges a tool result against the answer that the client gave, if
// the call was a blocking one of a client tool.
func (s *State) answerGiven(r *run, it *item, e *protocol.Event) {
	if e.Body == nil {
		return
	}
	var asked []*decision
	for n := 0; r != nil && n < maxChain; n++ {
		for _, d := range r.decisions {
			if d.tool != "" && d.result.IsZero() && (d.callID == it.id || d.callID == "" && it.name != "" && it.name == d.tool) {
				asked = append(asked, d)
			}
		}
		r = r.before
	}
	if len(asked) == 0 {
		return
	}
	for _, d := range asked {
		if d.answer != nil && sameAnswer(d.answer.Answer, e.Body) {
			d.result = s.turn.m.Address
			return
		}
	}
	switch {
	case asked[0].answer == nil || s.lossy:
		return
	case len(asked) > 1:
		s.skip("answer-not-result", "several calls of one tool were answered, and their results do not say which is whose")
		return
	}
	d := asked[0]
	d.result = s.turn.m.Address
	s.reportAt("answer-not-result", protocol.Warning, "/event/content", d.answer.at,
		"the result of client tool %s is not what the client answered at #%s", short(d.tool), d.answer.at)
}

// sameAnswer reports whether a tool result says what was answered: as it is, as
// its JSON in a string, or as the text of a message's parts.
func sameAnswer(answer, content []byte) bool {
	want := canonical(answer)
	if bytes.Equal(want, canonical(content)) {
		return true
	}
	var text string
	if json.Unmarshal(content, &text) == nil {
		return bytes.Equal(want, canonical([]byte(text)))
	}
	var parts []struct {
		Text *string `json:"text"`
	}
	if json.Unmarshal(content, &parts) == nil && len(parts) > 0 {
		for _, p := range parts {
			if p.Text == nil {
				return false
			}
			text += *p.Text
		}
		quoted, err := json.Marshal(text)
		return err == nil && (bytes.Equal(want, canonical(quoted)) || bytes.Equal(want, canonical([]byte(text))))
	}
	return false
}
