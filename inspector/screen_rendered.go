package inspector

import (
	"strings"

	"tapedeck/protocol/conversation"
)

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
			lines = append(lines, s.todoLine(todo.Content, todo.Status))
		}
		lines = append(lines, Line{})
	}
	lines = append(lines, s.statusLines(t)...)
	if focus == 0 {
		focus = len(lines)
	}
	return lines, focus
}

func (s *Screen) todoLine(content, status string) Line {
	glyph, style := s.look.glyph("☐", "-"), Plain
	switch strings.ToLower(status) {
	case "done", "completed", "complete", "finished":
		glyph, style = s.look.glyph("☑", "x"), Dim
	case "in_progress", "in-progress", "active", "running", "doing":
		glyph, style = s.look.glyph("▸", ">"), Strong
	}
	return bare(Piece{Plain, "   "}, Piece{style, glyph + " " + s.look.fit(content, max(s.width-24, 10), 0)}, Piece{Dim, "  " + Clean(status)})
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
