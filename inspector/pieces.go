package inspector

import (
	"fmt"
	"strconv"
	"strings"

	"tapedeck/protocol"
	"tapedeck/protocol/conversation"
)

// Label returns what a row is: its glyph, its word and its id.
func (r *Row) Label(look *Look) []Piece {
	style := r.style()
	pieces := []Piece{{style, r.Glyph(look)}, {Plain, " "}, {style, Clean(r.word())}}
	if r.ID != "" && r.ID != r.Run && r.Kind != KindCommand {
		pieces = append(pieces, Piece{Dim, " " + look.fit(r.ID, 24, 0)})
	}
	return pieces
}

// label is Label in at most width columns: the id goes first.
func (r *Row) label(look *Look, width int) []Piece {
	pieces := r.Label(look)
	if n := len(pieces) - 1; columns(pieces) > width && pieces[n].Style == Dim && pieces[n].Text[0] == ' ' {
		pieces = pieces[:n]
	}
	return trimPieces(pieces, width, look)
}

// Summary returns what a row came to, in at most width columns.
func (r *Row) Summary(look *Look, width int) []Piece {
	var pieces []Piece
	if r.State == Cut && (r.Streams() || r.Kind == KindSubagent) {
		pieces = append(pieces, Piece{Bad, look.glyph("↯", "!") + " cut off"}, Piece{Plain, "  "})
	}
	if r.Replayed > 0 && r.Kind != KindReplay {
		text := " replayed"
		if r.Envelopes > 0 {
			text = fmt.Sprintf(" %d of %d replayed", r.Replayed, r.Replayed+r.Envelopes)
		}
		pieces = append(pieces, Piece{Dim, look.glyph("↻", "@") + text}, Piece{Plain, "  "})
	}
	if r.Repeats > 0 {
		pieces = append(pieces, Piece{Warn, FormatCount(r.Repeats, "repeat")}, Piece{Plain, "  "})
	}
	if r.Detail != nil {
		pieces = append(pieces, r.Detail.summary(r, look, width-columns(pieces))...)
	}
	return trimPieces(pieces, width, look)
}

// trimPieces cuts pieces at a width, and leaves no space at the end.
func trimPieces(pieces []Piece, width int, look *Look) []Piece {
	used := 0
	for i := range pieces {
		w := Width(pieces[i].Text)
		if used+w > width {
			pieces[i].Text = cutColumns(pieces[i].Text, width-used, look.ellipsis())
			pieces = pieces[:i+1]
			break
		}
		used += w
	}
	for n := len(pieces); n > 0; n-- {
		if pieces[n-1].Text = strings.TrimRight(pieces[n-1].Text, " "); pieces[n-1].Text != "" {
			return pieces[:n]
		}
	}
	return nil
}

// cutColumns cuts a text that is clean already.
func cutColumns(s string, width int, ellipsis string) string {
	if Width(s) <= width {
		return s
	}
	if width < Width(ellipsis) {
		return ""
	}
	shown, _ := firstColumns(s, width-Width(ellipsis))
	return shown + ellipsis
}

func (r *Row) word() string {
	switch r.Kind {
	case KindTool:
		if r.Name == "" {
			return "tool"
		}
		return r.Name
	case KindSubagent:
		if r.Name == "" {
			return "subagent"
		}
		return "subagent " + r.Name
	case KindCopy:
		return r.Name + " again"
	}
	return r.Name
}

// Glyph returns the one character that stands for a row's kind and state.
func (r *Row) Glyph(look *Look) string {
	nice, plain := "·", "."
	switch r.Kind {
	case KindCommand:
		nice, plain = "›", ">"
	case KindHello:
		nice, plain = "≡", "="
	case KindRefusal:
		nice, plain = "✖", "x"
	case KindLifecycle:
		nice, plain = statusGlyph(lifecycleStatus(r.Name))
	case KindReasoning:
		nice, plain = "~", "~"
	case KindText:
		nice, plain = "¶", "T"
	case KindTool:
		nice, plain = "⚙", "*"
	case KindDecision:
		nice, plain = "?", "?"
	case KindTodos:
		nice, plain = "☑", "+"
	case KindSubagent:
		nice, plain = "◆", "&"
		if a, ok := r.Detail.(*Agent); ok && a.Detached {
			nice, plain = "◌", "o"
		}
	case KindTask:
		nice, plain = "◌", "o"
	case KindReplay:
		nice, plain = "↻", "@"
	case KindCopy:
		nice, plain = "≠", "!"
	case KindExchange:
		nice, plain = "⇄", "%"
	case KindConnection:
		nice, plain = "○", "o"
		if r.Name == "closed" {
			nice = "●"
		}
	case KindMark:
		nice, plain = "!", "!"
	}
	return look.glyph(nice, plain)
}

func (r *Row) style() Style {
	if r.Replayed > 0 && r.Envelopes == 0 {
		return Dim
	}
	switch r.Kind {
	case KindCommand:
		return Client
	case KindRefusal:
		return Bad
	case KindReasoning:
		return Thought
	case KindText:
		return Said
	case KindTool:
		return Worked
	case KindDecision:
		return Human
	case KindTodos, KindSubagent, KindTask:
		return Key
	case KindCopy:
		return Warn
	case KindLifecycle:
		return statusStyle(lifecycleStatus(r.Name))
	case KindReplay, KindHello, KindUnknown, KindMessage, KindPacket, KindFrame, KindExchange, KindConnection:
		if r.State == Failed {
			return Warn
		}
		return Dim
	case KindMark:
		if r.State == Failed {
			return Bad
		}
		return Warn
	}
	return Plain
}

func lifecycleStatus(name string) conversation.Status {
	return statusAfter("", protocol.EventType(name))
}

// statusGlyph returns a status's glyph, and the one for ASCII.
func statusGlyph(s conversation.Status) (nice, plain string) {
	switch s {
	case conversation.Running:
		return "▶", ">"
	case conversation.Paused:
		return "‖", "="
	case conversation.Finished:
		return "✔", "v"
	case conversation.Cancelled:
		return "⊘", "-"
	case conversation.Failed:
		return "✖", "x"
	case conversation.Truncated:
		return "↯", "!"
	}
	return "·", "."
}

func statusStyle(s conversation.Status) Style {
	switch s {
	case conversation.Running:
		return Key
	case conversation.Paused:
		return Human
	case conversation.Finished:
		return Good
	case conversation.Cancelled:
		return Warn
	case conversation.Failed, conversation.Truncated:
		return Bad
	}
	return Plain
}

// severityGlyph returns a severity's glyph, and the one for ASCII.
func severityGlyph(s protocol.Severity) (nice, plain string) {
	switch s {
	case protocol.Error:
		return "✖", "x"
	case protocol.Warning:
		return "⚠", "!"
	}
	return "·", "."
}

func severityStyle(s protocol.Severity) Style {
	switch s {
	case protocol.Error:
		return Bad
	case protocol.Warning:
		return Warn
	}
	return Notice
}

// sequences writes a row's sequence numbers: "41", "41-52", or nothing.
func (r *Row) sequences() string {
	switch {
	case r.FirstSeq == 0:
		return ""
	case r.FirstSeq == r.LastSeq:
		return strconv.FormatInt(r.FirstSeq, 10)
	}
	return fmt.Sprintf("%d-%d", r.FirstSeq, r.LastSeq)
}

// shortID is an id's beginning where it is too long for a column.
func shortID(id string) string {
	if len(id) <= 12 {
		return Clean(id)
	}
	return Clean(cutBytes(id, 8))
}
