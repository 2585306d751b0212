package inspector

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// stallAfter is the silence that is worth a word.
const stallAfter = 2 * time.Second

func (s *Stream) summary(r *Row, look *Look, width int) []Piece {
	var pieces []Piece
	if width >= 44 {
		pieces = append(pieces, Piece{Dim, FormatCount(s.Deltas, "delta")})
		if rate := s.Rate(); rate > 0 {
			pieces = append(pieces, Piece{Dim, " " + formatRate(rate)})
		}
		pieces = append(pieces, Piece{Plain, "  "})
	}
	if s.Stall > stallAfter {
		pieces = append(pieces, Piece{Warn, look.glyph("┄ ", "- ") + FormatDuration(s.Stall) + " silent"}, Piece{Plain, "  "})
	}
	room := width - columns(pieces)
	if r.State == Open { // the newest words are those to watch
		if tail := lastColumns(s.Text(), max(room-2, 0), look.ellipsis()); s.Deltas > 0 {
			pieces = append(pieces, Piece{r.style(), `"` + tail + `"`})
		}
		return pieces
	}
	if s.Deltas == 0 {
		return append(pieces, Piece{Dim, "(empty)"})
	}
	return append(pieces, Piece{r.style(), look.quote(s.Text(), room, 0)})
}

func formatRate(perSecond float64) string {
	if perSecond >= 10 {
		return groupDigits(int(perSecond+0.5)) + "/s"
	}
	return strconv.FormatFloat(perSecond, 'f', 1, 64) + "/s"
}

func (c *Call) summary(r *Row, look *Look, width int) []Piece {
	var pieces []Piece
	size := int64(len(c.Args.joined))
	arrow, after := look.glyph(" → ", " -> "), c.after(width)
	switch {
	case c.Complete && !c.Valid:
		pieces = append(pieces, Piece{Bad, look.glyph("✖", "x") + " no JSON "})
	case !c.Complete:
		pieces = append(pieces, Piece{Dim, FormatCount(c.Args.Deltas, "delta") + " "})
	}
	room := width - columns(pieces) - Width(after)
	if c.Result == nil {
		return append(pieces, Piece{Plain, look.fit(c.Args.Text(), max(room, 4), size)}, c.waiting(r))
	}
	room -= Width(arrow)
	pieces = append(pieces, Piece{Plain, look.fit(c.Args.Text(), max(room*2/5, 4), size)}, Piece{Dim, arrow})
	room = width - columns(pieces) - Width(after)
	result := look.fit(c.Result.Head, max(room, 4), max(int64(c.Result.Bytes), int64(len(c.Result.Head))))
	return append(pieces, Piece{Plain, result}, Piece{Dim, after})
}

// waiting says that there is no result, or not yet.
func (c *Call) waiting(r *Row) Piece {
	switch {
	case c.Complete && r.State == Open:
		return Piece{Worked, "  running"}
	case c.Complete:
		return Piece{Dim, "  no result"}
	}
	return Piece{}
}

// after says how long the result took, as far as a third of the width allows.
func (c *Call) after(width int) string {
	if c.Result == nil {
		return "  no result" // as long as anything that stands there
	}
	text := ""
	if c.Complete {
		text = "  " + FormatDuration(c.Result.After)
	}
	if c.Result.Human > 0 {
		text += " + " + FormatDuration(c.Result.Human) + " human"
	}
	if in := " (in run " + shortID(c.Result.Run) + ")"; c.Result.Run != "" && Width(text+in) <= width/3 {
		text += in
	}
	return text
}

func (d *Decision) summary(_ *Row, look *Look, width int) []Piece {
	var reply []Piece
	if d.Reply == nil {
		reply = []Piece{{Human, "  waiting for a person"}}
	} else {
		value := look.fit(d.Reply.Value, max(width/3, 8), int64(d.Reply.Bytes))
		reply = []Piece{{Dim, "  " + look.glyph("‹", "<") + " "}, {Strong, value}, {Human, " after " + FormatDuration(d.Reply.After)}}
	}
	return append([]Piece{{Plain, look.fit(d.Payload, max(width-columns(reply), 8), int64(d.Bytes))}}, reply...)
}

func (t *Talk) summary(r *Row, look *Look, width int) []Piece {
	reply, extras := t.replyPieces(r, look, width), t.extras()
	if columns(reply)+columns(extras)+12 > width {
		extras = nil
	}
	room := max(width-columns(reply)-columns(extras), 8)
	var pieces []Piece
	switch {
	case t.InputBytes > 0:
		pieces = []Piece{{Strong, look.quote(t.Input, room, int64(t.InputBytes))}}
	case t.Answer != "":
		after := ""
		if t.Waited > 0 {
			after = " after " + FormatDuration(t.Waited)
		}
		kept := min(Width(Clean(t.About))+1, 7) // of a long id, its beginning
		answer := look.fit(t.Answer, max(room-Width(after)-kept, 4), 0)
		about := look.fit(t.About, max(room-Width(after)-Width(answer)-1, 4), 0) + " "
		pieces = []Piece{{Dim, about}, {Strong, answer}, {Human, after}}
	case t.About != "":
		pieces = []Piece{{Dim, look.fit(t.About, room, 0)}}
	default:
		pieces = []Piece{{Dim, look.fit(r.Thread, room, 0)}}
	}
	return append(append(pieces, extras...), reply...)
}

// extras are what a command brings along.
func (t *Talk) extras() []Piece {
	var pieces []Piece
	if t.Attachments > 0 {
		pieces = append(pieces, Piece{Key, "  " + FormatCount(t.Attachments, "attachment")})
	}
	if n := len(t.Tools); n > 0 {
		pieces = append(pieces, Piece{Key, "  " + FormatCount(n, "client tool")})
	}
	if t.Fork != "" {
		pieces = append(pieces, Piece{Key, "  forks from " + Clean(t.Fork)})
	}
	return pieces
}

func (t *Talk) replyPieces(r *Row, look *Look, width int) []Piece {
	arrow := "  " + look.glyph("‹", "<") + " "
	switch a := t.Reply; {
	case a == nil && r.State == Cut:
		return []Piece{{Warn, arrow + "no answer"}}
	case a == nil:
		return []Piece{{Dim, arrow + look.glyph("…", "...")}}
	case !a.OK && a.Code != "":
		text := look.glyph("✖", "x") + " " + Clean(string(a.Code))
		if a.Message != "" {
			text += " " + look.quote(a.Message, max(width/2-Width(text), 8), 0)
		}
		return []Piece{{Dim, arrow}, {Bad, text}, {Dim, " " + FormatDuration(a.After)}}
	case a.History != nil:
		return []Piece{{Dim, arrow}, {Plain, a.History.describe(look)}, {Dim, " " + FormatDuration(a.After)}}
	case a.By == "ack":
		return []Piece{{Dim, arrow}, {Good, "ok"}, {Dim, " " + FormatDuration(a.After)}}
	case !a.OK:
		return []Piece{{Dim, arrow}, {Warn, "too late: " + Clean(a.By)}, {Dim, " " + FormatDuration(a.After)}}
	}
	return []Piece{{Dim, arrow + FormatDuration(t.Reply.After)}}
}

func (h *History) describe(look *Look) string {
	parts := []string{FormatCount(h.Messages, "message")}
	if h.Replayed > 0 {
		replay := look.glyph("↻ ", "replay of ") + FormatCount(h.Replayed, "envelope")
		if h.Truncated {
			replay += ", beginning dropped"
		}
		parts = append(parts, replay)
	}
	if h.Pending {
		parts = append(parts, "a decision waits")
	}
	if h.Todos {
		parts = append(parts, "todos")
	}
	if h.Task {
		parts = append(parts, "a task")
	}
	return strings.Join(parts, ", ")
}

func (t *Todos) summary(_ *Row, look *Look, width int) []Piece {
	done, current := 0, ""
	for _, item := range t.Items {
		switch strings.ToLower(item.Status) {
		case "done", "completed", "complete", "finished":
			done++
		case "in_progress", "in-progress", "active", "running", "doing":
			current = item.Content
		}
	}
	pieces := []Piece{{Plain, fmt.Sprintf("%d of %d done", done, len(t.Items))}, {Dim, fmt.Sprintf(", %d changed", t.Changed)}}
	if current == "" && len(t.Items) > 0 && done < len(t.Items) {
		current = t.Items[0].Content
	}
	if current != "" {
		pieces = append(pieces, Piece{Dim, "  " + look.glyph("▸", ">") + " "})
		pieces = append(pieces, Piece{Plain, look.fit(current, max(width-columns(pieces), 4), 0)})
	}
	return pieces
}

func (a *Agent) summary(r *Row, look *Look, width int) []Piece {
	var pieces []Piece
	switch {
	case a.Detached:
		pieces = append(pieces, Piece{Warn, "detached"}, Piece{Dim, " after " + FormatDuration(r.Took()) + ", goes on in the background"})
	case r.State == Open:
		pieces = append(pieces, Piece{Key, "at work"})
	case r.State == Failed:
		pieces = append(pieces, Piece{Bad, look.glyph("✖", "x") + " " + Clean(a.Status)}, Piece{Dim, " " + FormatDuration(r.Took())})
	case a.Status != "":
		pieces = append(pieces, Piece{Good, Clean(a.Status)}, Piece{Dim, " " + FormatDuration(r.Took())})
	}
	if a.Envelopes > 0 {
		pieces = append(pieces, Piece{Dim, ", " + FormatCount(a.Envelopes, "envelope") + " of its own"})
	}
	if a.Child != "" {
		pieces = append(pieces, Piece{Dim, "  thread " + look.fit(a.Child, max(width-columns(pieces)-9, 6), 0)})
	}
	return pieces
}

func (p *Replay) summary(r *Row, _ *Look, _ int) []Piece {
	pieces := []Piece{{Dim, fmt.Sprintf("%s, seq %s", FormatCount(p.Envelopes, "envelope"), r.sequences())}}
	switch p.New {
	case 0:
		pieces = append(pieces, Piece{Dim, ", all seen before"})
	case p.Envelopes:
		pieces = append(pieces, Piece{Dim, ", none seen live"})
	default:
		pieces = append(pieces, Piece{Dim, fmt.Sprintf(", %d not seen live", p.New)})
	}
	if p.Different > 0 {
		pieces = append(pieces, Piece{Bad, fmt.Sprintf(", %d differ from what came live", p.Different)})
	}
	if p.Truncated {
		pieces = append(pieces, Piece{Warn, ", beginning dropped"})
	}
	return pieces
}

func (n *Note) summary(r *Row, look *Look, width int) []Piece {
	var pieces []Piece
	if n.Count > 1 {
		pieces = append(pieces, Piece{Strong, groupDigits(n.Count) + look.glyph("× ", "x ")})
	}
	if n.Said != "" {
		style := Plain
		if r.State == Failed {
			style = r.style()
		} else if r.Kind == KindLifecycle {
			style = Dim
		}
		pieces = append(pieces, Piece{style, Clean(n.Said)}, Piece{Plain, "  "})
	}
	if n.Text != "" {
		style := Dim
		if r.State == Failed {
			style = Plain
		}
		pieces = append(pieces, Piece{style, look.fit(n.Text, max(width-columns(pieces), 4), n.Bytes)})
	}
	return pieces
}

func (x *Exchange) summary(r *Row, look *Look, width int) []Piece {
	status, style := "…", Dim
	switch {
	case x.Status >= 400:
		status, style = strconv.Itoa(x.Status), Bad
	case x.Status != 0:
		status, style = strconv.Itoa(x.Status), Good
	case look.ASCII:
		status = "..."
	}
	after := []Piece{{Plain, " "}, {style, status}}
	if x.Made {
		after = append(after, Piece{Warn, " by the proxy"})
	}
	after = append(after, Piece{Dim, " " + FormatSize(x.ResponseBytes)})
	if r.State != Open {
		after = append(after, Piece{Dim, " " + FormatDuration(r.Took())})
	}
	if x.Error != "" {
		after = append(after, Piece{Bad, " " + look.fit(x.Error, max(width/3, 10), 0)})
	}
	target := look.fit(x.Method+" "+x.Target, max(width-columns(after), 8), 0)
	return append([]Piece{{Plain, target}}, after...)
}
