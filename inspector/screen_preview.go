package inspector

import "strings"

// previewFrom is the height from which on a timeline has room for a preview.
const previewFrom = 38

// preview shows what the chosen row holds, below the rows, where there is room
// to spare.
func (s *Screen) preview(height int) []Line {
	it, ok := s.chosenItem()
	if !ok || height < previewFrom {
		return nil
	}
	height /= 4
	r := it.row
	label := append([]Piece{{Dim, s.look.glyph("── ", "-- ")}}, r.Label(&s.look)...)
	label = append(label, Piece{Plain, " "})
	rest := strings.Repeat(s.look.glyph("─", "-"), max(s.width-columns(label), 0))
	lines := []Line{bare(append(label, Piece{Dim, rest})...)}
	body := s.previewBody(r)
	if len(body) > height-1 {
		if r.State == Open { // the newest words are those to watch
			body = body[len(body)-height+1:]
		} else {
			body = append(body[:height-2:height-2], bare(Piece{Dim, " " + s.look.glyph("↓ ", "v ") + FormatCount(len(body)-height+2, "more line") + ": Enter shows all"}))
		}
	}
	lines = append(lines, body...)
	for len(lines) < height { // it stays in its place
		lines = append(lines, Line{})
	}
	return lines
}

func (s *Screen) previewBody(r *Row) []Line {
	value := func(text string, total int64) []Line {
		if total > int64(len(text)) {
			return wrapped(Plain, s.look.fit(text, headBytes, total), 1, s.width)
		}
		return s.prettyLines([]byte(text), 1)
	}
	switch d := r.Detail.(type) {
	case *Stream:
		return s.textLines(r.style(), d.Text(), 1)
	case *Call:
		lines := value(d.Args.Text(), 0)
		if d.Result != nil {
			lines = append(lines, bare(Piece{Dim, " " + s.look.glyph("→", "->")}))
			lines = append(lines, value(d.Result.Head, int64(d.Result.Bytes))...)
		}
		return lines
	case *Talk:
		if d.Answer != "" {
			return value(d.Answer, 0)
		}
		return s.textLines(Strong, d.Input, 1)
	case *Decision:
		lines := value(d.Payload, int64(d.Bytes))
		if d.Reply != nil {
			lines = append(lines, bare(Piece{Client, " " + s.look.glyph("›", ">")}))
			lines = append(lines, value(d.Reply.Value, int64(d.Reply.Bytes))...)
		}
		return lines
	case *Todos:
		var lines []Line
		for _, todo := range d.Items {
			lines = append(lines, s.todoLine(todo.Content, todo.Status))
		}
		return lines
	case *Note:
		if d.Text != "" {
			return value(d.Text, d.Bytes)
		}
	}
	return nil
}
