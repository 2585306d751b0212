package inspector

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"tapedeck/protocol/conversation"
)

// Write writes the figures as two tables: a line a run, and the spread over
// all.
func (s *Stats) Write(w io.Writer, look *Look) error {
	if err := s.runsTable(look).write(w, look); err != nil {
		return err
	}
	text := "\n"
	for _, line := range [][]Piece{s.ends(look), s.sum(look)} {
		text += look.paint(trimPieces(line, look.width(), look)) + "\n"
	}
	if _, err := io.WriteString(w, text+"\n"); err != nil {
		return err
	}
	return s.spreads(look).write(w, look)
}

func (s *Stats) runsTable(look *Look) *table {
	t := &table{
		heads: []string{"", "RUN", "MODEL", "HUMAN", "FIRST", "GAP50", "GAP95", "GAPMAX", "STALLS", "CALLS", "CALL50", "CALL95", "TOKENS", "/S", "PULSE"},
		right: []bool{false, false, true, true, true, true, true, true, true, true, true, true, true, true, false},
	}
	runs := make([]conversation.Run, len(s.Runs))
	for i := range s.Runs {
		runs[i] = s.Runs[i].Run
	}
	short := shortNames(runs)
	for i := range s.Runs {
		r := &s.Runs[i]
		nice, plain := statusGlyph(r.Status)
		cells := []Piece{
			{statusStyle(r.Status), look.glyph(nice, plain)}, {Key, short[r.ID]}, {Plain, FormatDuration(ModelTime(&r.Run))}, {Human, orEmpty(r.Run.Human)},
			{Plain, firstToken(&r.Run)}, {Plain, r.Gaps.cell(r.Gaps.P50)}, {Plain, r.Gaps.cell(r.Gaps.P95)}, {Plain, r.Gaps.cell(r.Gaps.Max)},
			{Warn, orNone(r.Stalls)}, {Plain, orNone(r.Tools.Count)}, {Plain, r.Tools.cell(r.Tools.P50)}, {Plain, r.Tools.cell(r.Tools.P95)},
			{Plain, orNone(r.Tokens)}, {Plain, rateCell(r.Rate)}, {Dim, sparkline(r.Pulse, look)},
		}
		if look.width() < 110 { // what is nice to have goes first
			cells[5].Text, cells[9].Text, cells[11].Text, cells[14].Text = "", "", "", ""
		}
		t.add(cells...)
	}
	return t
}

func (s *Spread) cell(d time.Duration) string {
	if s.Count == 0 {
		return ""
	}
	return FormatDuration(d)
}

func orNone(n int) string {
	if n == 0 {
		return ""
	}
	return groupDigits(n)
}

func rateCell(rate float64) string {
	if rate == 0 {
		return ""
	}
	return strings.TrimSuffix(formatRate(rate), "/s")
}

// ends says in a line how the runs ended.
func (s *Stats) ends(look *Look) []Piece {
	pieces := []Piece{{Strong, FormatCount(len(s.Runs), "run")}}
	for _, status := range []conversation.Status{
		conversation.Finished, conversation.Running, conversation.Paused, conversation.Cancelled, conversation.Failed, conversation.Truncated,
	} {
		if n := s.All.Statuses[status]; n > 0 {
			nice, plain := statusGlyph(status)
			pieces = append(pieces, Piece{Plain, "  "}, Piece{statusStyle(status), look.glyph(nice, plain) + " " + groupDigits(n) + " " + string(status)})
		}
	}
	return pieces
}

// sum says in a line what came.
func (s *Stats) sum(look *Look) []Piece {
	text := FormatCount(s.All.Envelopes, "envelope") + ", " + FormatSize(s.All.Bytes)
	if s.All.Rate > 0 {
		text += look.glyph(" · ", ", ") + FormatCount(s.All.Tokens, "token") + ", " + formatRate(s.All.Rate)
	}
	pieces := []Piece{{Dim, text}}
	if s.All.Human > 0 {
		pieces = append(pieces, Piece{Dim, look.glyph(" · ", ", ")}, Piece{Human, FormatDuration(s.All.Human) + " human"})
	}
	if s.All.Stalls > 0 {
		pieces = append(pieces, Piece{Dim, look.glyph(" · ", ", ")}, Piece{Warn, FormatCount(s.All.Stalls, "stall")})
	}
	return pieces
}

// spreads is the table of what is spread over all runs.
func (s *Stats) spreads(look *Look) *table {
	t := &table{heads: []string{"", "COUNT", "50%", "95%", "MAX", "SPREAD"}, right: []bool{false, true, true, true, true, false}}
	add := func(style Style, name string, sp *Spread) {
		if sp.Count > 0 {
			t.add(Piece{style, name}, Piece{Plain, groupDigits(sp.Count)}, Piece{Plain, FormatDuration(sp.P50)}, Piece{Plain, FormatDuration(sp.P95)},
				Piece{Plain, FormatDuration(sp.Max)}, Piece{Dim, sparkline(sp.Shape, look)})
		}
	}
	add(Plain, "first token", &s.All.FirstToken)
	add(Plain, "model time", &s.All.Model)
	add(Plain, "gaps", &s.All.Gaps)
	add(Plain, "tool calls", &s.All.Tools)
	for i := range s.All.ByTool {
		tool := &s.All.ByTool[i]
		add(Worked, "  "+look.fit(tool.Tool, 30, 0), &tool.Took)
	}
	return t
}

// spreadJSON is a spread in JSON, null if there is none.
func spreadJSON(s *Spread) any {
	if s.Count == 0 {
		return nil
	}
	return object{"count": s.Count, "p50Ms": ms(s.P50), "p95Ms": ms(s.P95), "maxMs": ms(s.Max), "shape": s.Shape}
}

func figuresJSON(f *Figures, into object) object {
	into["gaps"], into["stalls"], into["tools"] = spreadJSON(&f.Gaps), f.Stalls, spreadJSON(&f.Tools)
	into["tokens"], into["tokensPerSecond"] = f.Tokens, math.Round(f.Rate*10)/10
	return into
}

// WriteJSON writes the figures as one document, or, in JSONL, a run a line.
func (s *Stats) WriteJSON(w io.Writer, f Format) error {
	run := func(r *RunStats) any {
		calls := []object{}
		for _, c := range r.Calls {
			calls = append(calls, object{"tool": c.Tool, "at": c.At, "tookMs": ms(c.Took)})
		}
		return figuresJSON(&r.Figures, object{"run": runToJSON(&r.Run, s.sessions), "calls": calls})
	}
	if f == FormatJSONL {
		return writeAll(w, f, s.Runs, run)
	}
	runs := []any{}
	for i := range s.Runs {
		runs = append(runs, run(&s.Runs[i]))
	}
	tools := []object{}
	for i := range s.All.ByTool {
		tools = append(tools, object{"tool": s.All.ByTool[i].Tool, "took": spreadJSON(&s.All.ByTool[i].Took)})
	}
	all := figuresJSON(&s.All.Figures, object{
		"runs": len(s.Runs), "statuses": s.All.Statuses, "envelopes": s.All.Envelopes, "bytes": s.All.Bytes, "humanMs": ms(s.All.Human),
		"firstToken": spreadJSON(&s.All.FirstToken), "model": spreadJSON(&s.All.Model), "byTool": tools,
	})
	return writeJSON(w, object{"runs": runs, "all": all}, true)
}

// csvHead names the columns. They are stable: more may follow.
var csvHead = []string{
	"session", "run", "thread", "status", "model_ms", "human_ms", "first_token_ms", "envelopes", "bytes", "gap_p50_ms", "gap_p95_ms", "gap_max_ms",
	"stalls", "tool_calls", "tool_p50_ms", "tool_p95_ms", "tool_max_ms", "tokens", "tokens_per_second", "errors", "warnings", "notes",
}

// WriteCSV writes a line a run. What is not known is empty.
func (s *Stats) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	lines := [][]string{csvHead}
	for i := range s.Runs {
		r := &s.Runs[i]
		first := ""
		if r.FirstToken >= 0 {
			first = msCell(r.FirstToken)
		}
		line := []string{fmt.Sprint(r.Session), textCell(r.ID), textCell(r.Thread), string(r.Status), msCell(ModelTime(&r.Run)), msCell(r.Run.Human), first,
			strconv.Itoa(r.Envelopes), strconv.FormatInt(r.Bytes, 10)}
		line = append(line, spreadCells(&r.Gaps)...)
		line = append(line, strconv.Itoa(r.Stalls), strconv.Itoa(r.Tools.Count))
		line = append(line, spreadCells(&r.Tools)...)
		rate := ""
		if r.Rate > 0 {
			rate = strconv.FormatFloat(r.Rate, 'f', 1, 64)
		}
		lines = append(lines, append(line, strconv.Itoa(r.Tokens), rate, strconv.Itoa(r.Errors), strconv.Itoa(r.Warnings), strconv.Itoa(r.Notes)))
	}
	if err := out.WriteAll(lines); err != nil {
		return fmt.Errorf("write CSV: %w", err)
	}
	return nil
}

func msCell(d time.Duration) string { return strconv.FormatFloat(ms(d), 'f', -1, 64) }

func spreadCells(s *Spread) []string {
	if s.Count == 0 {
		return slices.Repeat([]string{""}, 3)
	}
	return []string{msCell(s.P50), msCell(s.P95), msCell(s.Max)}
}

// textCell keeps a spreadsheet from taking text off the wire for a formula.
func textCell(s string) string {
	if s = Clean(s); s != "" && strings.ContainsRune("=+-@\t", rune(s[0])) {
		return "'" + s
	}
	return s
}
