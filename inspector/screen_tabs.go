package inspector

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// Bounds of what a tab lays out. More than this nobody reads in a terminal, and
// laying it out would make a key wait; what is left out is told.
const (
	prettyBytes = 256 << 10 // of JSON that is laid out
	plainBytes  = 32 << 10  // of what is shown as it passed
	blockBytes  = 32 << 10  // of one text in the Rendered tab
	valueLines  = 40        // of one field in the Event tab
)

// momentLines draw the Event, Raw and Wire tabs.
func (s *Screen) momentLines() []Line {
	d := &s.item
	switch {
	case d.err != nil:
		return wrapped(Bad, Clean(d.err.Error()), 1, s.width)
	case d.moment == nil:
		return []Line{bare(Piece{Dim, " reading" + s.look.ellipsis()})}
	case d.tab == eventTab:
		return s.eventLines(d.moment)
	case d.tab == rawTab:
		return s.rawLines(d.moment)
	}
	return s.wireLines(d.moment)
}

// bodyLook is the look of a tab's body, which is indented by one.
func (s *Screen) bodyLook() *Look {
	look := s.look
	look.Width = s.width - 2
	return &look
}

// eventLines are the fields of a message, read.
func (s *Screen) eventLines(m *Moment) []Line {
	facts := wireFacts(m)
	var lines []Line
	if len(facts) > 0 && m.Message != nil {
		lines = append(lines, wrapped(Dim, facts[0], 1, s.width-1)...)
		lines = append(lines, Line{})
	}
	bodies := packetBodies(m)
	if len(bodies) == 0 {
		return append(lines, bare(Piece{Dim, " It carries no values. Wire shows its bytes."}))
	}
	for i, body := range bodies {
		if i > 0 {
			lines = append(lines, Line{})
		}
		lines = append(lines, s.fieldLines(body, 1)...)
	}
	return lines
}

// jsonField is a member of an object, as it was sent.
type jsonField struct {
	name  string
	value json.RawMessage
}

// jsonFields reads the members of an object in their order.
func jsonFields(raw []byte) (fields []jsonField, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return nil, false
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return fields, false
		}
		f := jsonField{name: name.(string)}
		if dec.Decode(&f.value) != nil {
			return fields, false
		}
		fields = append(fields, f)
	}
	return fields, true
}

func (s *Screen) fieldLines(raw []byte, indent int) []Line {
	fields, ok := jsonFields(raw)
	if !ok {
		return s.prettyLines(raw, indent)
	}
	names := 0
	for _, f := range fields {
		names = max(names, min(Width(Clean(f.name)), 24))
	}
	var lines []Line
	for _, f := range fields {
		name := Piece{Key, strings.Repeat(" ", indent) + pad(s.look.fit(f.name, 24, 0), names) + "  "}
		if f.name == "event" && f.value[0] == '{' {
			lines = append(lines, bare(Piece{Key, strings.Repeat(" ", indent) + "event"}))
			lines = append(lines, s.fieldLines(f.value, indent+2)...)
			continue
		}
		value := s.valueLines(f.value, indent+names+2)
		if len(value) > 0 { // the first stands beside its name
			value[0].Pieces = append([]Piece{name}, value[0].Pieces[1:]...)
		} else {
			value = []Line{bare(name)}
		}
		if len(value) > valueLines {
			hidden := len(value) - valueLines
			value = append(value[:valueLines], bare(Piece{Dim, strings.Repeat(" ", indent+names+2) + s.look.ellipsis() + "+" + FormatCount(hidden, "line") + ": y copies it all"}))
		}
		lines = append(lines, value...)
	}
	return lines
}

// valueLines lay one value out. Each line begins with its indentation.
func (s *Screen) valueLines(raw json.RawMessage, indent int) []Line {
	var text string
	if raw[0] != '"' || json.Unmarshal(raw, &text) != nil {
		return s.prettyLines(raw, indent)
	}
	if text == "" {
		return []Line{bare(Piece{Plain, strings.Repeat(" ", indent)}, Piece{Dim, `""`})}
	}
	return s.textLines(Plain, text, indent)
}

// textLines wrap a text from the wire, and keep its line breaks. Of a long text
// the end is shown.
func (s *Screen) textLines(style Style, text string, indent int) []Line {
	var lines []Line
	if over := len(text) - blockBytes; over > 0 {
		for over < len(text) && text[over]&0xc0 == 0x80 {
			over++
		}
		lines = append(lines, bare(Piece{Plain, strings.Repeat(" ", indent)}, Piece{Dim, s.look.ellipsis() + "+" + FormatSize(int64(over)) + " before this"}))
		text = text[over:]
	}
	for _, part := range strings.Split(text, "\n") {
		part = strings.TrimSuffix(part, "\r")
		if part == "" {
			lines = append(lines, Line{Pieces: []Piece{{Plain, strings.Repeat(" ", indent)}}})
			continue
		}
		lines = append(lines, wrapped(style, Clean(strings.ReplaceAll(part, "\t", "    ")), indent, s.width-1)...)
	}
	return lines
}

// prettyLines lay JSON out. What is too long for that is shown as it passed.
func (s *Screen) prettyLines(raw []byte, indent int) []Line {
	if len(raw) > prettyBytes {
		return s.plainLines(raw, indent)
	}
	var lines []Line
	for i, line := range strings.Split(prettyJSON(s.bodyLook(), raw, indent), "\n") {
		if i == 0 {
			line = strings.Repeat(" ", indent) + line
		}
		depth := len(line) - len(strings.TrimLeft(line, " "))
		for j, part := range wrap(line[depth:], max(s.width-depth-1, 8)) {
			if j == 0 {
				pieces := jsonLine(strings.Repeat(" ", depth) + part)
				lines = append(lines, bare(pieces...))
				continue
			}
			lines = append(lines, bare(Piece{Plain, strings.Repeat(" ", min(depth+2, s.width/2))}, Piece{Plain, part}))
		}
	}
	return lines
}

// plainLines show bytes as they passed.
func (s *Screen) plainLines(raw []byte, indent int) []Line {
	shown := cutBytes(string(raw[:min(len(raw), plainBytes)]), plainBytes)
	lines := wrapped(Plain, Clean(shown), indent, s.width-1)
	if hidden := len(raw) - len(shown); hidden > 0 {
		lines = append(lines, bare(Piece{Dim, strings.Repeat(" ", indent) + s.look.ellipsis() + "+" + FormatSize(int64(hidden)) + ": y copies it all"}))
	}
	return lines
}

// rawLines are the payload, laid out.
func (s *Screen) rawLines(m *Moment) []Line {
	var lines []Line
	for i, body := range packetBodies(m) {
		if i > 0 {
			lines = append(lines, Line{})
		}
		lines = append(lines, s.prettyLines(body, 1)...)
	}
	if len(lines) == 0 {
		return s.wireLines(m)
	}
	return lines
}

// wireLines are how it passed: where, in what, and its bytes.
func (s *Screen) wireLines(m *Moment) []Line {
	title := packetTitle(m, s.startOf(m.Address()), &s.look)
	lines := []Line{bare(append([]Piece{{Plain, " "}}, title...)...)}
	for _, fact := range wireFacts(m) {
		lines = append(lines, wrapped(Dim, fact, 1, s.width-1)...)
	}
	lines = append(lines, Line{})
	if m.Packet != nil {
		lines = append(lines, s.plainLines(m.Packet.Raw, 1)...)
		for i, a := range m.Packet.Attachments {
			lines = append(lines, Line{}, bare(Piece{Dim, fmt.Sprintf(" attachment %d, %s", i, FormatSize(int64(len(a))))}))
			lines = append(lines, s.hexLines(a)...)
		}
		return lines
	}
	return append(lines, s.hexLines(m.Frame.Data)...)
}

func (s *Screen) hexLines(data []byte) []Line {
	var b bytes.Buffer
	out := bufio.NewWriter(&b)
	writeHex(out, data, s.bodyLook())
	out.Flush()
	var lines []Line
	for line := range strings.Lines(b.String()) {
		lines = append(lines, bare(Piece{Plain, Clean(strings.TrimRight(line, "\n"))}))
	}
	return lines
}

func (s *Screen) startOf(a capture.Address) time.Time {
	return sessionStart(s.runs.sessions, a.Position)
}

// renderedLines are what a client would show after this message, and the line
// that it last changed.
func (s *Screen) renderedLines() (lines []Line, focus int) {
	d := &s.item
	switch {
	case d.readErr != nil:
		return wrapped(Bad, Clean(d.readErr.Error()), 1, s.width), 0
	case d.transcript == nil:
		return []Line{bare(Piece{Dim, " folding the run up to here" + s.look.ellipsis()})}, 0
	}
	t := d.transcript
	for i := range t.Blocks {
		b := &t.Blocks[i]
		from := len(lines)
		lines = append(lines, s.blockLines(b)...)
		if b.From.Compare(t.At) <= 0 && samePlace(b.To, t.At) {
			for j := from; j < len(lines); j++ {
				lines[j].Pieces[0] = Piece{Notice, s.look.glyph("▌", "|") + strings.Repeat(" ", max(Width(lines[j].Pieces[0].Text)-1, 0))}
			}
			focus = len(lines)
		}
		lines = append(lines, Line{})
	}
	if len(t.Blocks) == 0 {
		lines = append(lines, bare(Piece{Dim, " A client would show nothing yet."}), Line{})
	}
	if len(t.Todos) > 0 {
		lines = append(lines, bare(Piece{Dim, " todos"}))
		for _, todo := range t.Todos {
			lines = append(lines, s.todoLine(todo))
		}
		lines = append(lines, Line{})
	}
	lines = append(lines, s.statusLines(t)...)
	if focus == 0 {
		focus = len(lines)
	}
	return lines, focus
}

func (s *Screen) todoLine(todo conversation.Todo) Line {
	glyph, style := s.look.glyph("☐", "-"), Plain
	switch strings.ToLower(todo.Status) {
	case "done", "completed", "complete", "finished":
		glyph, style = s.look.glyph("☑", "x"), Dim
	case "in_progress", "in-progress", "active", "running", "doing":
		glyph, style = s.look.glyph("▸", ">"), Strong
	}
	return bare(Piece{Plain, "   "}, Piece{style, glyph + " " + s.look.fit(todo.Content, max(s.width-24, 10), 0)}, Piece{Dim, "  " + Clean(todo.Status)})
}

// statusLines say how the run stands, and whom it waits for.
func (s *Screen) statusLines(t *conversation.Transcript) []Line {
	if len(t.Runs) == 0 {
		return nil
	}
	last := &t.Runs[len(t.Runs)-1]
	glyph, plain := statusGlyph(last.Status)
	pieces := []Piece{{Plain, " "}, {statusStyle(last.Status), s.look.glyph(glyph, plain) + " " + string(last.Status)}}
	pieces = append(pieces, Piece{Dim, "  " + FormatCount(last.Figures.Events, "event") + ", " + FormatDuration(last.Figures.Model) + " model"})
	if last.Figures.Human > 0 {
		pieces = append(pieces, Piece{Human, ", " + FormatDuration(last.Figures.Human) + " human"})
	}
	if t.Ignored > 0 {
		pieces = append(pieces, Piece{Dim, ", " + FormatCount(t.Ignored, "event") + " ignored"})
	}
	return []Line{bare(pieces...)}
}

// blockLines draw one thing that a reader sees. Each line begins with a piece of
// at least one column, where the mark of what changed goes.
func (s *Screen) blockLines(b *conversation.Block) []Line {
	head := func(style Style, text string, more ...Piece) Line {
		return bare(append([]Piece{{Plain, " "}, {style, text}}, more...)...)
	}
	cursor := ""
	if b.Open {
		cursor = s.look.glyph("▏", "_")
	}
	var lines []Line
	switch b.Kind {
	case conversation.UserBlock:
		lines = append(lines, head(Client, "you"))
		lines = append(lines, s.textLines(Strong, b.Text, 3)...)
		if b.Refused != "" {
			lines = append(lines, bare(Piece{Plain, "   "}, Piece{Bad, "refused: " + Clean(string(b.Refused))}))
		}
	case conversation.TextBlock:
		role := b.Role
		if role == "" {
			role = "assistant"
		}
		lines = append(lines, head(Said, Clean(role)))
		lines = append(lines, s.textLines(Plain, b.Text+cursor, 3)...)
	case conversation.ReasoningBlock:
		lines = append(lines, head(Thought, s.look.glyph("~ ", "~ ")+"thinking"))
		lines = append(lines, s.textLines(Thought, b.Text+cursor, 3)...)
	case conversation.ToolBlock:
		lines = s.toolLines(b, head)
	case conversation.DecisionBlock:
		lines = s.decisionLines(b, head)
	case conversation.SubagentBlock:
		lines = append(lines, s.subagentLine(b, head))
	case conversation.ErrorBlock:
		lines = append(lines, head(Bad, s.look.glyph("✖ ", "x ")+"error"))
		lines = append(lines, s.textLines(Bad, b.Text, 3)...)
	}
	return lines
}

func (s *Screen) toolLines(b *conversation.Block, head func(Style, string, ...Piece) Line) []Line {
	tool := b.Tool
	if tool == nil {
		tool = &conversation.ToolCall{Latency: -1}
	}
	state := Piece{Worked, "  running"}
	switch {
	case tool.Result != nil && tool.Latency >= 0:
		state = Piece{Dim, "  " + FormatDuration(tool.Latency)}
	case tool.Result != nil:
		state = Piece{}
	case b.Open:
		state = Piece{Dim, "  arguments" + s.look.ellipsis()}
	}
	lines := []Line{head(Worked, s.look.glyph("⚙ ", "* ")+s.look.fit(tool.Name, 40, 0), Piece{Dim, " " + s.look.fit(b.ID, 24, 0)}, state)}
	room := max(s.width-6, 10)
	if b.Text != "" {
		lines = append(lines, bare(Piece{Plain, "   "}, Piece{Plain, s.look.fit(b.Text, room, 0)}))
	}
	if tool.Result != nil {
		text, size := valueHead(tool.Result)
		lines = append(lines, bare(Piece{Plain, "   "}, Piece{Dim, s.look.glyph("→ ", "> ")}, Piece{Plain, s.look.fit(text, room-2, int64(size))}))
	}
	return lines
}

func (s *Screen) decisionLines(b *conversation.Block, head func(Style, string, ...Piece) Line) []Line {
	x := b.Decision
	if x == nil {
		return nil
	}
	state := Piece{Human, "  waiting for a person"}
	if x.State != "open" {
		state = Piece{Dim, "  " + Clean(x.State) + " after " + FormatDuration(x.Waited)}
	}
	lines := []Line{head(Human, "? decision", Piece{Dim, " " + s.look.fit(b.ID, 24, 0)}, state)}
	lines = append(lines, bare(Piece{Plain, "   "}, Piece{Plain, s.look.fit(string(x.Payload), max(s.width-6, 10), 0)}))
	if x.Answer != nil {
		lines = append(lines, bare(Piece{Plain, "   "}, Piece{Client, s.look.glyph("› ", "> ")}, Piece{Strong, s.look.fit(string(x.Answer), max(s.width-8, 10), 0)}))
	}
	return lines
}

func (s *Screen) subagentLine(b *conversation.Block, head func(Style, string, ...Piece) Line) Line {
	x := b.Subagent
	if x == nil {
		x = &conversation.Subagent{}
	}
	state := Piece{Key, "  at work"}
	switch {
	case x.Detached:
		state = Piece{Warn, "  detached"}
	case x.Status != "":
		state = Piece{Dim, "  " + s.look.fit(x.Status, 20, 0)}
	}
	return head(Key, s.look.glyph("◆ ", "& ")+"subagent "+s.look.fit(x.Name, 30, 0), state)
}
