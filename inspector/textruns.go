package inspector

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// WriteRuns writes a table of runs.
func WriteRuns(w io.Writer, runs []conversation.Run, sessions []capture.Session, look *Look) error {
	width := look.width()
	t := &table{
		heads: []string{"", "RUN", "THREAD", "STATUS", "STARTED", "MODEL", "HUMAN", "FIRST", "EVENTS", "FINDINGS", "PULSE", "INPUT"},
		right: []bool{false, false, false, false, false, true, true, true, true, false, false, false},
	}
	for i := range runs {
		r := &runs[i]
		nice, plain := statusGlyph(r.Status)
		cells := []Piece{
			{statusStyle(r.Status), look.glyph(nice, plain)}, {Key, shortest(runs, i)}, {Plain, look.fit(r.Thread, 14, 0)},
			{statusStyle(r.Status), statusText(r)}, {Dim, startedAt(r, sessions, look)}, {Plain, FormatDuration(ModelTime(r))},
			{Human, orEmpty(r.Human)}, {Plain, firstToken(r)}, {Plain, groupDigits(r.Envelopes)},
			{findingsStyle(r.Errors, r.Warnings), findingsText(look, r.Errors, r.Warnings, r.Notes)},
			{Dim, sparkline(r.Pulse, look)}, {Dim, ""},
		}
		if r.Input != "" {
			cells[11].Text = look.quote(r.Input, max(40, width-105), 0)
		}
		if width < 140 { // what is nice to have goes first
			cells[10].Text = ""
		}
		if width < 120 {
			cells[4].Text, cells[7].Text = "", ""
		}
		t.add(cells...)
	}
	return t.write(w, look)
}

// WriteThreads writes a table of threads.
func WriteThreads(w io.Writer, threads []conversation.Thread, look *Look) error {
	t := &table{heads: []string{"", "THREAD", "RUNS", "LATEST", "FROM", "TO", "FINDINGS", ""}, right: []bool{false, false, true, false, true, true, false, false}}
	for i := range threads {
		th := &threads[i]
		nice, plain := statusGlyph(th.Status)
		task := ""
		if th.Task {
			task = "a background task's own"
		}
		t.add(Piece{statusStyle(th.Status), look.glyph(nice, plain)}, Piece{Key, look.fit(th.ID, 40, 0)}, Piece{Plain, groupDigits(th.Runs)},
			Piece{statusStyle(th.Status), string(th.Status)}, Piece{Dim, fmt.Sprintf("#%d", th.First)}, Piece{Dim, fmt.Sprintf("#%d", th.Last)},
			Piece{findingsStyle(th.Errors, th.Warnings), findingsText(look, th.Errors, th.Warnings, 0)}, Piece{Dim, task})
	}
	return t.write(w, look)
}

func statusText(r *conversation.Run) string {
	if r.Waiting != "" {
		return "waiting " + shortID(r.Waiting)
	}
	return string(r.Status)
}

func orEmpty(d time.Duration) string {
	if d <= 0 {
		return ""
	}
	return FormatDuration(d)
}

func firstToken(r *conversation.Run) string {
	if r.FirstToken < 0 {
		return ""
	}
	return FormatDuration(r.FirstToken)
}

func sessionOf(sessions []capture.Session, id capture.SessionID) *capture.Session {
	for i := range sessions {
		if sessions[i].ID == id {
			return &sessions[i]
		}
	}
	return nil
}

func startedAt(r *conversation.Run, sessions []capture.Session, look *Look) string {
	s := sessionOf(sessions, r.Session)
	if s == nil || s.Started.IsZero() {
		return FormatOffset(r.Started)
	}
	return look.wall(s.Started.Add(r.Started))
}

// findingsText counts findings: "✖1 ⚠2".
func findingsText(look *Look, errors, warnings, notes int) string {
	var parts []string
	for _, p := range []struct {
		severity protocol.Severity
		n        int
	}{{protocol.Error, errors}, {protocol.Warning, warnings}, {protocol.Note, notes}} {
		if p.n > 0 {
			nice, plain := severityGlyph(p.severity)
			parts = append(parts, look.glyph(nice, plain)+groupDigits(p.n))
		}
	}
	return strings.Join(parts, " ")
}

func findingsStyle(errors, warnings int) Style {
	switch {
	case errors > 0:
		return Bad
	case warnings > 0:
		return Warn
	}
	return Notice
}

// sparkline draws counts as bars of eight heights.
func sparkline(counts []int, look *Look) string {
	bars := []rune("▁▂▃▄▅▆▇█")
	if look.ASCII {
		bars = []rune("_.-~=+*#")
	}
	most := 1
	for _, n := range counts {
		most = max(most, n)
	}
	var b strings.Builder
	for _, n := range counts {
		b.WriteRune(bars[min(max(n, 0)*len(bars)/(most+1), len(bars)-1)])
	}
	return b.String()
}

// shortest is the least of a run's id that names it, at least eight letters.
func shortest(runs []conversation.Run, i int) string {
	id := runs[i].ID
	n := 8
	for j := range runs {
		if other := runs[j].ID; j != i && other != id {
			for n < len(id) && strings.HasPrefix(other, cutBytes(id, n)) {
				n++
			}
		}
	}
	return Clean(cutBytes(id, n))
}

func shortestID(runs []conversation.Run, run *conversation.Run) string {
	for i := range runs {
		if &runs[i] == run {
			return shortest(runs, i)
		}
	}
	return Clean(run.ID)
}

// WriteRun writes a run with those that it continues: what it is, its timeline,
// and what it came to.
func WriteRun(w io.Writer, t *Timeline, chain []conversation.Run, sessions []capture.Session, look *Look) error {
	out := bufio.NewWriter(w)
	for _, line := range runHeader(chain, sessions, look) {
		out.WriteString(line + "\n")
	}
	out.WriteString("\n")
	if err := out.Flush(); err != nil {
		return err
	}
	if err := WriteTimeline(w, t, look); err != nil {
		return err
	}
	out.WriteString("\n")
	for _, line := range runFooter(t, look) {
		out.WriteString(line + "\n")
	}
	return out.Flush()
}

// runHeader says what a chain of runs is, in two or three lines.
func runHeader(chain []conversation.Run, sessions []capture.Session, look *Look) []string {
	first, last := &chain[0], &chain[len(chain)-1]
	nice, plain := statusGlyph(last.Status)
	title := []Piece{{statusStyle(last.Status), look.glyph(nice, plain) + " "}, {Strong, "run " + Clean(first.ID)}}
	for _, r := range chain[1:] {
		title = append(title, Piece{Dim, look.glyph(" → ", " -> ")}, Piece{Strong, Clean(r.ID)})
	}
	title = append(title, Piece{Plain, "  "}, Piece{statusStyle(last.Status), statusText(last)})
	title = append(title, Piece{Dim, "  thread " + Clean(first.Thread)})
	title = append(title, Piece{Dim, fmt.Sprintf("  session %d, %s", first.Session, startedAt(first, sessions, look))})
	lines := []string{look.paint(trimPieces(title, look.width(), look))}
	if first.Input != "" {
		lines = append(lines, "  "+look.Palette.Paint(Strong, look.quote(first.Input, look.width()-2, 0)))
	}
	return append(lines, look.paint(trimPieces(runFigures(chain, look), look.width(), look)))
}

// runFigures are the sums of a chain of runs.
func runFigures(chain []conversation.Run, look *Look) []Piece {
	var model, human time.Duration
	var envelopes, errors, warnings, notes int
	var bytes int64
	for i := range chain {
		r := &chain[i]
		model, human = model+ModelTime(r), human+r.Human
		envelopes, bytes = envelopes+r.Envelopes, bytes+r.Bytes
		errors, warnings, notes = errors+r.Errors, warnings+r.Warnings, notes+r.Notes
	}
	between := look.glyph(" · ", ", ")
	pieces := []Piece{{Plain, "  " + FormatDuration(model) + " model"}}
	if human > 0 {
		pieces = append(pieces, Piece{Dim, between}, Piece{Human, FormatDuration(human) + " human"})
	}
	if chain[0].FirstToken >= 0 {
		pieces = append(pieces, Piece{Dim, between + "first token " + FormatDuration(chain[0].FirstToken)})
	}
	pieces = append(pieces, Piece{Dim, between + FormatCount(envelopes, "envelope") + ", " + FormatSize(bytes)})
	if errors+warnings+notes > 0 {
		pieces = append(pieces, Piece{Dim, between}, Piece{findingsStyle(errors, warnings), findingsText(look, errors, warnings, notes)})
	}
	return pieces
}

// runFooter says what a timeline came to.
func runFooter(t *Timeline, look *Look) []string {
	counts := map[Kind]int{}
	bySeverity := map[protocol.Severity]int{}
	cut := 0
	for _, r := range t.Rows {
		counts[r.Kind]++
		if r.State == Cut && r.Streams() {
			cut++
		}
		for _, f := range r.Findings {
			bySeverity[f.Severity]++
		}
	}
	var parts []string
	for _, c := range []struct {
		kind Kind
		noun string
	}{{KindCommand, "command"}, {KindReasoning, "reasoning"}, {KindText, "text"}, {KindTool, "tool call"}, {KindDecision, "decision"},
		{KindSubagent, "subagent"}, {KindUnknown, "unknown event type"}} {
		if counts[c.kind] > 0 {
			parts = append(parts, FormatCount(counts[c.kind], c.noun))
		}
	}
	line := "  " + strings.Join(parts, ", ")
	if cut > 0 {
		line += fmt.Sprintf("; %d cut off", cut)
	}
	lines := []string{look.Palette.Paint(Dim, line)}
	for _, sev := range []protocol.Severity{protocol.Error, protocol.Warning, protocol.Note} {
		if n := bySeverity[sev]; n > 0 {
			nice, plain := severityGlyph(sev)
			lines = append(lines, "  "+look.Palette.Paint(severityStyle(sev), look.glyph(nice, plain)+" "+FormatCount(n, sev.String())))
		}
	}
	for i := range t.Loose {
		lines = append(lines, findingLines(look, &t.Loose[i], 2, true)...)
	}
	if hidden := len(t.Rows) - len(t.Wanted()); hidden > 0 {
		lines = append(lines, look.Palette.Paint(Dim, "  "+FormatCount(hidden, "row")+" hidden by the filter"))
	}
	for _, r := range t.Pending() {
		if r.Kind == KindCommand && (r.State == Open || r.State == Cut) {
			lines = append(lines, "  "+look.Palette.Paint(Warn, fmt.Sprintf("%s %s #%s was never answered", look.glyph("›", ">"), Clean(r.Name), r.First)))
		}
	}
	return lines
}
