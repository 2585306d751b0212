package story

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"tapedeck/protocol"
)

func (w *scenarioWriter) write(out io.Writer, about string, sessions []Session) error {
	y := &yamlWriter{}
	title, comment := "What was recorded", ""
	for i := range sessions {
		if n := sessions[i].Row.Notes; n != nil && n.Title != "" {
			title = oneLine(n.Title)
			comment = n.Comment
		}
	}
	fmt.Fprintf(&y.b, "# redacted: %s\n", oneLine(about))
	y.text(0, "title", title)
	y.text(0, "about", comment)
	w.pace(y)
	y.open(0, "runs")
	for _, r := range w.runs {
		if len(r.steps) == 0 {
			y.b.WriteString("  - steps: []\n")
			continue
		}
		y.b.WriteString("  - steps:\n")
		w.steps(y, 3, r.steps)
	}
	if len(w.runs) == 0 {
		return fmt.Errorf("there is no run in it that a scenario could be made of")
	}
	w.client(y)
	_, err := out.Write(y.b.Bytes())
	return err
}

// pace tells how deltas were cut and when they came, on the whole.
func (w *scenarioWriter) pace(y *yamlWriter) {
	if w.deltas < 2 || w.spent <= 0 {
		return
	}
	rate := float64(w.deltas) / w.spent.Seconds()
	fmt.Fprintf(&y.b, "pace: {ttft: %v, rate: %.3g, chunk: %d}\n",
		max(w.first, 0).Round(10*time.Millisecond), min(max(rate, 0.1), 1000), max(1, w.units/w.deltas))
}

func (w *scenarioWriter) steps(y *yamlWriter, indent int, steps []*step) {
	for _, s := range steps {
		fmt.Fprintf(&y.b, "%*s- ", 2*indent, "")
		w.one(y, indent+1, s)
	}
}

// one writes a step behind its dash.
func (w *scenarioWriter) one(y *yamlWriter, indent int, s *step) {
	switch s.kind {
	case "text", "reasoning":
		if !s.open && (s.role == "" || s.role == "assistant") && s.text.Len() > 0 {
			fmt.Fprintf(&y.b, "%s: ", s.kind)
			y.scalar(indent, s.text.String())
			return
		}
		fmt.Fprintf(&y.b, "%s:\n", s.kind)
		y.key(indent+1, "content")
		y.scalar(indent+1, s.text.String())
		y.text(indent+1, "role", s.role)
		if s.open {
			fmt.Fprintf(&y.b, "%*sopen: true\n", 2*indent+2, "")
		}
	case "tool":
		w.tool(y, indent, s)
	case "clientTool":
		y.b.WriteString("clientTool:\n")
		y.text(indent+1, "name", cmp.Or(s.name, "unknown"))
		y.value(indent+1, "arguments", arguments(s))
	case "subagent":
		y.b.WriteString("subagent:\n")
		y.text(indent+1, "name", s.name)
		var asks struct {
			Prompt string `json:"prompt"`
		}
		if json.Unmarshal([]byte(s.text.String()), &asks) != nil || asks.Prompt == "" {
			asks.Prompt = s.text.String()
		}
		y.text(indent+1, "prompt", asks.Prompt)
		if s.status == "error" {
			y.text(indent+1, "status", s.status)
		}
		y.value(indent+1, "result", s.value)
		if len(s.steps) > 0 {
			y.open(indent+1, "steps")
			w.steps(y, indent+2, s.steps)
		}
	case "interrupt":
		y.b.WriteString("interrupt:\n")
		y.value(indent+1, "payload", s.value)
	case "todos":
		y.b.WriteString("todos: ")
		y.flow(s.value)
		y.b.WriteByte('\n')
	case "wait":
		fmt.Fprintf(&y.b, "wait: %v\n", s.took.Round(100*time.Millisecond))
	case "error":
		fmt.Fprintf(&y.b, "error: {code: %s, message: %s}\n", quoted(s.name), quoted(s.status))
	case "raw":
		y.b.WriteString("raw:\n")
		y.value(indent+1, "event", s.value)
	}
}

func (w *scenarioWriter) tool(y *yamlWriter, indent int, s *step) {
	if w.tools[s.name] == protocol.OneWay && s.value == nil {
		y.b.WriteString("clientTool:\n")
		y.text(indent+1, "name", s.name)
		y.text(indent+1, "kind", protocol.OneWay)
		y.value(indent+1, "arguments", arguments(s))
		return
	}
	y.b.WriteString("tool:\n")
	y.text(indent+1, "name", cmp.Or(s.name, "unknown"))
	if raw := arguments(s); raw != nil {
		y.value(indent+1, "arguments", raw)
	} else {
		y.text(indent+1, "argumentsText", s.text.String())
	}
	if s.value == nil {
		fmt.Fprintf(&y.b, "%*snoResult: true\n", 2*indent+2, "")
		return
	}
	y.duration(indent+1, "took", s.took)
	y.value(indent+1, "result", s.value)
}

// arguments are those of a call, nil if they are no JSON.
func arguments(s *step) json.RawMessage {
	if text := s.text.String(); json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return nil
}

// client writes the moves.
func (w *scenarioWriter) client(y *yamlWriter) {
	y.open(0, "client")
	y.b.WriteString("  - join: true\n")
	for i := range w.moves {
		m := &w.moves[i]
		y.b.WriteString("  - ")
		if m.when != "" {
			fmt.Fprintf(&y.b, "when: %s\n    ", m.when)
		}
		if m.after > 0 {
			fmt.Fprintf(&y.b, "after: %v\n    ", m.after.Round(10*time.Millisecond))
		}
		switch {
		case m.cancel:
			y.b.WriteString("cancel: run\n")
		case m.start != nil && len(m.start.Attachments) > 0:
			y.b.WriteString("start:\n")
			y.key(3, "input")
			y.scalar(3, m.start.Input)
			y.value(3, "attachments", validOr(m.start.Attachments, "[]"))
		case m.start != nil:
			y.b.WriteString("start: ")
			y.scalar(2, m.start.Input)
		default:
			y.b.WriteString("resume: ")
			y.flow(m.resume)
			y.b.WriteByte('\n')
		}
		w.declare(y, m.declare)
	}
	if w.ends != "" {
		fmt.Fprintf(&y.b, "  - when: %s\n    await: true\n", w.ends)
	}
}

func (w *scenarioWriter) declare(y *yamlWriter, tools []protocol.ClientTool) {
	if len(tools) == 0 {
		return
	}
	y.open(2, "tools")
	for _, t := range tools {
		fmt.Fprintf(&y.b, "      - name: %s\n", quoted(t.Name))
		y.text(4, "description", t.Description)
		y.text(4, "kind", t.Kind)
		if json.Valid(t.Arguments) {
			y.value(4, "arguments", t.Arguments)
		}
		if json.Valid(t.Result) {
			y.value(4, "result", t.Result)
		}
	}
}
