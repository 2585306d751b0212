package inspector

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// runsView is the list of runs: one row for a run with those that it
// continues.
type runsView struct {
	list     list
	loading  bool
	err      error
	sessions []capture.Session
	runs     []conversation.Run // as loadRuns orders them
	rows     []runRow
	order    order
	pinned   bool // the cursor stays with the newest
	opened   bool // the run that the options name
}

// order is how the runs are ordered.
type order string

const (
	byTime     order = "time" // the newest first
	byProblems order = "problems"
	byDuration order = "duration"
)

// setRuns takes the sessions and runs as they are now.
func (s *Screen) setRuns(sessions []capture.Session, runs []conversation.Run, err error) {
	v := &s.runs
	s.loader.settled(watchJob)
	v.loading = false
	if v.err = err; err != nil {
		return
	}
	v.sessions, v.runs = sessions, runs
	live := capture.SessionID(0)
	if s.live() {
		live = sessions[len(sessions)-1].ID
	}
	names := shortNames(runs)
	chosen := s.chosenRun()
	all := chains(runs)
	v.rows = make([]runRow, len(all))
	for i, chain := range all {
		v.rows[i] = runRow{chain: chain, name: names[chain[0].ID], sum: sumOf(chain, live)}
	}
	s.sortRuns(chosen)
	s.refreshFilm()
	if s.o.Run != "" && !v.opened {
		v.opened = true
		s.openNamed(s.o.Run)
	}
}

func (s *Screen) chosenRun() (key conversation.RunKey) {
	if v := &s.runs; v.list.cursor < len(v.rows) {
		return v.rows[v.list.cursor].key()
	}
	return key
}

// sortRuns orders the rows, live ones first, and keeps the cursor on its run.
func (s *Screen) sortRuns(chosen conversation.RunKey) {
	v := &s.runs
	slices.SortStableFunc(v.rows, func(a, b runRow) int {
		if a.sum.live != b.sum.live {
			if a.sum.live {
				return -1
			}
			return 1
		}
		newest := cmp.Or(cmp.Compare(b.sum.session, a.sum.session), cmp.Compare(b.sum.started, a.sum.started), cmp.Compare(b.chain[0].First, a.chain[0].First))
		switch x, y := &a.sum, &b.sum; v.order {
		case byProblems:
			return cmp.Or(cmp.Compare(y.errors, x.errors), cmp.Compare(y.warnings, x.warnings), cmp.Compare(y.notes, x.notes), newest)
		case byDuration:
			return cmp.Or(cmp.Compare(y.model, x.model), newest)
		}
		return newest
	})
	if v.pinned {
		v.list.cursor = 0
		return
	}
	if chosen.Run != "" {
		if i := slices.IndexFunc(v.rows, func(r runRow) bool { return r.key() == chosen }); i >= 0 {
			v.list.cursor = i
		}
	}
}

func (s *Screen) turnOrder() {
	switch s.runs.order {
	case byProblems:
		s.setOrder(string(byDuration))
	case byDuration:
		s.setOrder(string(byTime))
	default:
		s.setOrder(string(byProblems))
	}
}

func (s *Screen) setOrder(name string) {
	orders := []string{string(byTime), string(byProblems), string(byDuration)}
	if !slices.Contains(orders, name) {
		s.refuse("order " + Quote(name) + " is none of " + strings.Join(orders, ", "))
		return
	}
	chosen := s.chosenRun()
	s.runs.order = order(name)
	s.sortRuns(chosen)
	s.Say("ordered by " + name)
}

// openNamed opens the run that a name stands for.
func (s *Screen) openNamed(name string) {
	sel, err := Select(s.runs.runs, name)
	if err != nil {
		s.complain(err)
		return
	}
	if sel.Run == nil {
		s.goTo(name)
		return
	}
	key := conversation.RunKey{Session: sel.Run.Session, Run: sel.Run.ID}
	for i, row := range s.runs.rows {
		if slices.ContainsFunc(row.chain, func(r conversation.Run) bool { return r.Session == key.Session && r.ID == key.Run }) {
			s.runs.list.cursor = i
			s.openFilm(row.chain, sel.At)
			return
		}
	}
}

func (s *Screen) runsBody(height int) []Line {
	v := &s.runs
	if len(v.rows) == 0 {
		return s.noRuns(height)
	}
	c := newRunColumns(s)
	lines := []Line{c.heading()}
	height--
	warning := s.incomplete()
	height -= len(warning)
	first := v.list.place(len(v.rows), height, func(int) int { return 1 })
	for i := first; i < len(v.rows) && i < first+height; i++ {
		line := c.row(s, &v.rows[i], i == v.list.cursor)
		lines = append(lines, line)
	}
	for len(lines) < height+1 {
		lines = append(lines, Line{})
	}
	return append(lines, warning...)
}

// noRuns says what to do when there is nothing to show.
func (s *Screen) noRuns(height int) []Line {
	text, style := NoRuns(s.runs.sessions), Plain
	switch {
	case s.runs.err != nil:
		text, style = Clean(s.runs.err.Error()), Bad
	case s.runs.loading:
		text, style = "reading the tape"+s.look.ellipsis(), Dim
	}
	lines := make([]Line, max(height/3, 1))
	lines = append(lines, wrapped(style, text, 4, s.width-4)...)
	return append(lines, s.incomplete()...)
}

// incomplete warns of a session that does not hold all that passed.
func (s *Screen) incomplete() []Line {
	n := len(s.runs.sessions)
	if n == 0 {
		return nil
	}
	text := Incomplete(&s.runs.sessions[n-1])
	if text == "" || s.live() {
		return nil
	}
	return []Line{bare(Piece{Warn, " " + s.look.glyph("⚠", "!") + " "}, Piece{Plain, s.look.fit(text, s.width-4, 0)})}
}

func (s *Screen) runsWhere() []Piece {
	v := &s.runs
	if v.err != nil && len(v.rows) > 0 {
		return []Piece{{Bad, " " + s.look.fit(v.err.Error(), s.width/2, 0)}}
	}
	text := " " + position(v.list.cursor, len(v.rows), "run")
	if v.order != "" && v.order != byTime {
		text += ", by " + string(v.order)
	}
	if v.pinned {
		text += ", following"
	}
	return []Piece{{Plain, text}}
}

// runColumns are the columns of the list for a width. What is nice to have goes
// first.
type runColumns struct {
	name, thread, status, started, model, human, first, events, findings, pulse int
	width                                                                       int
	look                                                                        *Look
}

func newRunColumns(s *Screen) *runColumns {
	c := &runColumns{name: 8, thread: 12, status: 14, model: 6, human: 6, events: 6, findings: 8, width: s.width, look: &s.look}
	threads := 6
	for _, r := range s.runs.rows[:min(len(s.runs.rows), 1000)] {
		c.name = max(c.name, Width(r.name))
		threads = max(threads, Width(Clean(cutBytes(r.sum.thread, 40))))
	}
	if c.width >= 100 {
		c.started, c.first, c.findings = 8, 6, 9
	}
	if c.width >= 140 {
		c.pulse = 10
	}
	c.thread = min(threads, c.width/6)
	if c.width < 64 {
		c.thread, c.human, c.events = 0, 0, 0
	}
	return c
}

// inputColumn is the least width in which an input says anything.
const inputColumn = 10

// cell puts a text in a column, and nothing if it has no room.
func (c *runColumns) cell(style Style, text string, width int, right bool) []Piece {
	if width == 0 {
		return nil
	}
	text = cutColumns(text, width, c.look.ellipsis())
	if right {
		return []Piece{{style, padLeft(text, width)}, {Plain, "  "}}
	}
	return []Piece{{style, pad(text, width)}, {Plain, "  "}}
}

func (c *runColumns) heading() Line {
	pieces := []Piece{{Plain, "    "}}
	for _, h := range []struct {
		text  string
		width int
		right bool
	}{{"run", c.name, false}, {"thread", c.thread, false}, {"status", c.status, false}, {"started", c.started, false}, {"model", c.model, true},
		{"human", c.human, true}, {"first", c.first, true}, {"events", c.events, true}, {"findings", c.findings, false}, {"pulse", c.pulse, false}} {
		pieces = append(pieces, c.cell(Dim, h.text, h.width, h.right)...)
	}
	if c.width-columns(pieces) >= inputColumn {
		pieces = append(pieces, Piece{Dim, "input"})
	}
	return bare(pieces...)
}

func (c *runColumns) row(s *Screen, r *runRow, chosen bool) Line {
	sum, look := &r.sum, c.look
	nice, plain := statusGlyph(sum.status)
	mark := " "
	if chosen {
		mark = look.glyph("▸", ">")
	}
	pieces := []Piece{{Strong, mark}, {statusStyle(sum.status), look.glyph(nice, plain)}, {Plain, "  "}}
	put := func(style Style, text string, width int, right bool) {
		pieces = append(pieces, c.cell(style, text, width, right)...)
	}
	put(Key, r.name, c.name, false)
	put(Plain, look.fit(sum.thread, max(c.thread, 1), 0), c.thread, false)
	status := string(sum.status)
	if sum.waiting != "" {
		status = "waiting " + shortID(sum.waiting)
	} else if n := len(r.chain); n > 1 {
		status += fmt.Sprintf(" %s%d", look.glyph("×", "x"), n)
	}
	put(statusStyle(sum.status), status, c.status, false)
	put(Dim, startedAt(&r.chain[0], s.runs.sessions, look), c.started, false)
	put(Plain, FormatDuration(sum.model), c.model, true)
	put(Human, orEmpty(sum.human), c.human, true)
	put(Plain, firstToken(&r.chain[0]), c.first, true)
	put(Plain, groupDigits(sum.envelopes), c.events, true)
	put(findingsStyle(sum.errors, sum.warnings), findingsText(look, sum.errors, sum.warnings, sum.notes), c.findings, false)
	put(Dim, sparkline(sum.pulse, look), c.pulse, false)
	if room := c.width - columns(pieces); sum.input != "" && room >= inputColumn {
		pieces = append(pieces, Piece{Dim, look.quote(sum.input, room-1, 0)})
	}
	line := bare(pieces...)
	if chosen {
		line.Ground = Chosen
	}
	return line
}

// marksIn are the marks in a row, in order.
func (s *Screen) marksIn(r *Row) (marks []capture.Mark) {
	for at, text := range s.marks {
		if s.line.film.timeline.RowAt(at) == r {
			marks = append(marks, capture.Mark{At: at, Text: text})
		}
	}
	slices.SortFunc(marks, func(a, b capture.Mark) int { return a.At.Compare(b.At) })
	return marks
}

// loadMarks reads the user's marks.
func (s *Screen) loadMarks() {
	s.loader.start(markJob, func(ctx context.Context, tell teller) {
		marks, err := loadMarks(ctx, s.source)
		tell(func(s *Screen) { s.setMarks(marks, err) })
	})
}
