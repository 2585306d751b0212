package inspector

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

// sheet is the layout of a timeline for one width.
type sheet struct {
	look                  *Look
	start                 time.Duration
	seq, position, offset int // widths of the columns
	took                  int // 0 if there is no room for it
	lanes                 int // the highest lane
	label                 int
	bar                   int // 0 if there is no room for it
	axis                  *axis
}

// newSheet measures rows.
func newSheet(look *Look, rows []*Row, waits []Wait) *sheet {
	s := &sheet{look: look, position: 2, seq: 3, offset: 3}
	end := time.Duration(0)
	for i, r := range rows {
		if i == 0 || r.Start < s.start {
			s.start = r.Start
		}
		end = max(end, r.End)
	}
	longest := 0
	for _, r := range rows {
		s.position = max(s.position, len(r.First.String())+1)
		s.seq = max(s.seq, len(r.sequences()))
		s.offset = max(s.offset, Width(FormatOffset(r.Start-s.start)))
		s.lanes = max(s.lanes, r.Lane)
		longest = max(longest, columns(r.Label(look)))
	}
	width := look.width()
	switch {
	case width >= 140:
		s.bar, s.took = 36, 6
	case width >= 100:
		s.bar, s.took = 22, 6
	default:
		s.seq = 0
	}
	s.label = min(longest, max((width-s.bar)/4-2*s.lanes, 18))
	if s.bar > 0 {
		s.axis = newAxis(s.start, end, s.bar, waits)
	}
	return s
}

// indent is the column in which labels begin.
func (s *sheet) indent() int {
	n := 1 + s.position + 1 + s.offset + 2
	if s.seq > 0 {
		n += s.seq + 1
	}
	if s.took > 0 {
		n += s.took + 1
	}
	return n
}

// rails is the width of the lanes before a label.
func (s *sheet) rails() int { return 2 * s.lanes }

// room is what is left for the summary.
func (s *sheet) room() int {
	n := s.look.width() - s.indent() - s.rails() - s.label - 2
	if s.bar > 0 {
		n -= s.bar + 2
	}
	return max(n, 10)
}

// heading names the columns.
func (s *sheet) heading() string {
	line := " " + padLeft("#", s.position) + " "
	if s.seq > 0 {
		line += padLeft("seq", s.seq) + " "
	}
	line += padLeft("at", s.offset) + " "
	if s.took > 0 {
		line += padLeft("took", s.took) + " "
	}
	line += " " + pad("what", s.rails()+s.label)
	if s.bar > 0 {
		line = pad(line, s.indent()+s.rails()+s.label+2+s.room()+2) + s.axis.ruler(s.look)
	}
	return s.look.Palette.Paint(Dim, strings.TrimRight(line, " "))
}

// line draws a row.
func (s *sheet) line(r *Row) string {
	look := s.look
	pieces := []Piece{
		{Plain, " "}, {Dim, padLeft("#"+r.First.String(), s.position)}, {Plain, " "},
	}
	if s.seq > 0 {
		pieces = append(pieces, Piece{Dim, padLeft(r.sequences(), s.seq)}, Piece{Plain, " "})
	}
	pieces = append(pieces, Piece{Dim, padLeft(FormatOffset(r.Start-s.start), s.offset)}, Piece{Plain, " "})
	if s.took > 0 {
		took := ""
		if r.Took() > 0 && !r.instant() {
			took = FormatDuration(r.Took())
		}
		pieces = append(pieces, Piece{Dim, padLeft(took, s.took)}, Piece{Plain, " "})
	}
	pieces = append(pieces, Piece{Plain, " "})
	pieces = append(pieces, s.railPieces(r)...)
	label := r.label(look, s.label)
	pieces = append(pieces, label...)
	pieces = append(pieces, Piece{Plain, strings.Repeat(" ", max(s.label-columns(label), 0)+2)})
	summary := r.Summary(look, s.room())
	pieces = append(pieces, summary...)
	if s.bar > 0 {
		pieces = append(pieces, Piece{Plain, strings.Repeat(" ", max(s.room()-columns(summary), 0)+2)})
		pieces = append(pieces, Piece{r.style(), s.axis.bar(r.Start, r.End, r.mark(look))})
	} else if len(summary) == 0 {
		pieces = trimPieces(pieces, look.width(), look)
	}
	return look.paint(pieces)
}

// railPieces draws the lanes that are open beside a row: a corner where a
// subagent begins, a branch where a row belongs to it.
func (s *sheet) railPieces(r *Row) []Piece {
	var b strings.Builder
	for lane := 1; lane <= s.lanes; lane++ {
		nice, plain := "  ", "  "
		switch {
		case lane == r.Lane && r.Kind == KindSubagent:
			nice, plain = "┌ ", ". "
		case lane == r.Lane:
			nice, plain = "├ ", "+ "
		case r.Lanes&(1<<lane) != 0:
			nice, plain = "│ ", "| "
		}
		b.WriteString(s.look.glyph(nice, plain))
	}
	return []Piece{{Dim, b.String()}}
}

// instant reports whether a row is a moment and not a time.
func (r *Row) instant() bool {
	return r.Kind == KindCommand || r.Kind == KindLifecycle || r.Kind == KindUnknown || r.Kind == KindHello
}

// mark is what a row's bar is drawn with.
func (r *Row) mark(look *Look) string {
	switch r.Kind {
	case KindReasoning:
		return look.glyph("░", "-")
	case KindText:
		return look.glyph("▒", "=")
	case KindTool, KindExchange:
		return look.glyph("▓", "#")
	case KindSubagent:
		return look.glyph("═", "~")
	case KindDecision:
		return look.glyph("┈", ".")
	}
	return look.glyph("╵", "'")
}

// marked draws a mark under its row.
func (s *sheet) marked(m capture.Mark, r *Row) string {
	indent := s.indent() + s.rails()
	return strings.Repeat(" ", indent) + s.look.Palette.Paint(Human, s.look.fit(markText(s.look, m, r.First), max(s.look.width()-indent-1, 8), 0))
}

// finding draws a finding under its row.
func (s *sheet) finding(f *protocol.Finding) []string {
	return findingLines(s.look, f, s.indent()+s.rails(), true)
}

// alike returns findings with those that say the same counted in one.
func alike(found []protocol.Finding) []protocol.Finding {
	type saying struct{ rule, text string }
	times := map[saying]int{}
	for _, f := range found {
		times[saying{f.Rule, f.Text}]++
	}
	var once []protocol.Finding
	for _, f := range found {
		key := saying{f.Rule, f.Text}
		if n := times[key]; n > 1 {
			f.Text += fmt.Sprintf(" (%d times)", n)
		}
		if times[key] > 0 {
			once = append(once, f)
		}
		times[key] = 0
	}
	return once
}

// findingLines writes a finding behind an indentation: the rule, the sentence
// and the other place.
func findingLines(look *Look, f *protocol.Finding, indent int, withPlace bool) []string {
	text := f.Text
	if place := "#" + f.Other.String(); withPlace && !f.Other.IsZero() && f.Other != f.At && !strings.Contains(text, place) {
		text += " (see " + place + ")"
	}
	glyph := look.glyph(severityGlyph(f.Severity))
	label := glyph + " " + Clean(f.Rule)
	var lines []string
	room := max(look.width()-indent-2, 20)
	for i, part := range wrap(label+"  "+Clean(text), room) {
		if i == 0 {
			rest := strings.TrimPrefix(part, label)
			part = look.Palette.Paint(severityStyle(f.Severity), part[:len(part)-len(rest)]) + rest
		} else {
			part = "  " + part
		}
		lines = append(lines, strings.Repeat(" ", indent)+part)
	}
	return lines
}

// wrap breaks a clean text into lines of at most width columns, between words
// where it can.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.SplitAfter(text, " ") {
		if line != "" && Width(line)+Width(strings.TrimRight(word, " ")) > width {
			lines = append(lines, strings.TrimRight(line, " "))
			line = ""
		}
		for Width(word) > width { // a word without an end
			part, used := firstColumns(word, width)
			if used == 0 {
				break
			}
			lines, word = append(lines, part), word[used:]
		}
		line += word
	}
	if line = strings.TrimRight(line, " "); line != "" {
		lines = append(lines, line)
	}
	return lines
}

// wait draws a time in which a person was waited for.
func (s *sheet) wait(w Wait) string {
	text := s.look.glyph("┊ ", ": ") + FormatDuration(w.End-w.Start) + " waiting for a person"
	line := strings.Repeat(" ", s.indent()+s.rails()) + text
	if s.bar > 0 {
		line = pad(line, s.indent()+s.rails()+s.label+2+s.room()+2) + s.axis.wait(w, s.look)
	}
	return s.look.Palette.Paint(Human, strings.TrimRight(line, " "))
}

// silence draws a time in which nothing came. Before a command it was the
// client's to take; else it is worth a warning.
func (s *sheet) silence(before *Row, d time.Duration) string {
	style, text := Warn, FormatDuration(d)+" of silence"
	if before.Kind == KindCommand {
		style, text = Dim, FormatDuration(d)+" until the client went on"
	}
	return s.look.Palette.Paint(style, strings.Repeat(" ", s.indent()+s.rails())+s.look.glyph("┄ ", "- ")+text)
}

// WriteTimeline writes the rows of a timeline under each other, with their
// findings, the waits for a person and the silences between them. With a
// filter, only the rows that matched.
func WriteTimeline(w io.Writer, t *Timeline, look *Look) error {
	rows := t.Wanted()
	s := newSheet(look, rows, t.Waits)
	out := bufio.NewWriter(w)
	out.WriteString(s.heading() + "\n")
	waits := mergeWaits(t.Waits)
	latest := s.start
	for i, r := range rows {
		for len(waits) > 0 && waits[0].End <= r.Start {
			out.WriteString(s.wait(waits[0]) + "\n")
			latest = max(latest, waits[0].End)
			waits = waits[1:]
		}
		if i > 0 && t.options.Filter == nil && r.Start-latest > stallAfter {
			out.WriteString(s.silence(r, r.Start-latest) + "\n")
		}
		out.WriteString(s.line(r) + "\n")
		for _, f := range alike(r.Findings) {
			for _, line := range s.finding(&f) {
				out.WriteString(line + "\n")
			}
		}
		for _, m := range r.Marks {
			out.WriteString(s.marked(m, r) + "\n")
		}
		if r.Kind != KindDecision { // it lasts until its answer: no sign of life
			latest = max(latest, r.End)
		}
	}
	return out.Flush()
}

// Wanted returns the rows that the filter wants: all, if there is none.
func (t *Timeline) Wanted() []*Row {
	if t.options.Filter == nil {
		return t.Rows
	}
	var wanted []*Row
	for _, r := range t.Rows {
		if r.Matched {
			wanted = append(wanted, r)
		}
	}
	return wanted
}
