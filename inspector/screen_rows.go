package inspector

import (
	"fmt"
	"slices"
	"strings"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

// timelineBody draws the run: what it is, its rows, and below them the commands
// that nothing answered.
func (s *Screen) timelineBody(height int) []Line {
	v := &s.line
	if v.film == nil {
		return nil
	}
	lines := s.timelineHead(height)
	pinned := append(s.pinned(height-len(lines)), s.preview(height)...)
	height -= len(lines) + len(pinned)
	if len(v.items) == 0 {
		lines = append(lines, wrapped(Dim, s.noRows(), 2, s.width)...)
		height -= len(wrap(s.noRows(), s.width-2))
	} else {
		sheet := s.sheet()
		drawn := map[int][]Line{}
		draw := func(i int) []Line {
			if drawn[i] == nil {
				drawn[i] = s.itemLines(sheet, i)
			}
			return drawn[i]
		}
		first := v.list.place(len(v.items), height, func(i int) int { return len(draw(i)) })
		for i := first; i < len(v.items) && height > 0; i++ {
			for _, line := range draw(i) {
				if height > 0 {
					lines = append(lines, line)
					height--
				}
			}
		}
	}
	for ; height > 0 && len(pinned) > 0; height-- {
		lines = append(lines, Line{})
	}
	return append(lines, pinned...)
}

func (s *Screen) noRows() string {
	v := &s.line
	switch {
	case v.err != nil:
		return Clean(v.err.Error())
	case !v.whole && !v.stopped:
		return "reading the run" + s.look.ellipsis()
	case v.filter != nil:
		return "Nothing in this run matches the filter. / changes it, and an empty one shows all."
	}
	return "The run holds no messages."
}

// timelineHead says what the run is, as far as there is room.
func (s *Screen) timelineHead(height int) []Line {
	f, look := s.line.film, &s.look
	first, last := &f.chain[0], &f.chain[len(f.chain)-1]
	nice, plain := statusGlyph(last.Status)
	title := []Piece{{statusStyle(last.Status), " " + look.glyph(nice, plain) + " "}, {Strong, shortID(first.ID)}}
	for _, r := range f.chain[1:] {
		title = append(title, Piece{Dim, look.glyph(" → ", " -> ")}, Piece{Strong, shortID(r.ID)})
	}
	title = append(title, Piece{statusStyle(last.Status), "  " + statusText(last)})
	if first.Input != "" && height >= 16 {
		title = append(title, Piece{Dim, "  thread " + look.fit(first.Thread, 24, 0)})
		title = append(title, Piece{Dim, "  " + startedAt(first, s.runs.sessions, look)})
	} else if first.Input != "" {
		title = append(title, Piece{Dim, "  " + look.quote(first.Input, max(s.width-columns(title)-3, 8), 0)})
	}
	lines := []Line{bare(title...)}
	if height >= 16 {
		if first.Input != "" {
			lines = append(lines, bare(Piece{Strong, "   " + look.quote(first.Input, s.width-4, 0)}))
		}
		figures := runFigures(f.chain, look)
		lines = append(lines, bare(append([]Piece{{Plain, " "}}, figures...)...), Line{})
	}
	heading := s.sheet().heading()
	if s.line.raw {
		heading = s.rawHeading()
	}
	return append(lines, bare(Piece{Dim, heading}))
}

// pinned are the commands that nothing answered, with how long ago they passed.
func (s *Screen) pinned(height int) []Line {
	var open []*Row
	for _, r := range s.line.film.timeline.Pending() {
		if r.Kind == KindCommand && (r.State == Open || r.State == Cut) && r.Detail.(*Talk).Reply == nil {
			open = append(open, r)
		}
	}
	most := min(max(height/4, 1), 3)
	var lines []Line
	for _, r := range open[max(len(open)-most, 0):] {
		text := "was never answered"
		if r.State == Open {
			text = "is not answered yet"
		}
		if for_ := s.waitingFor(r); for_ > 0 {
			text = "has been waiting for " + FormatDuration(for_)
		}
		lines = append(lines, bare(Piece{Client, " " + s.look.glyph("›", ">") + " " + Clean(r.Name)}, Piece{Dim, " #" + r.First.String() + " "}, Piece{Warn, text}))
	}
	if more := len(open) - most; more > 0 {
		lines[0].Pieces = append(lines[0].Pieces, Piece{Dim, fmt.Sprintf(", and %d before it", more)})
	}
	return lines
}

// sheet lays the columns out for what is loaded.
func (s *Screen) sheet() *sheet {
	z := s.line.film.size
	sh := &sheet{look: &s.look, start: max(z.start, 0), position: z.position, seq: z.seq, offset: z.offset, lanes: min(z.lanes, 8)}
	switch width := s.width; {
	case width >= 140:
		sh.bar, sh.took = 36, 6
	case width >= 100:
		sh.bar, sh.took = 22, 6
	default:
		sh.seq = 0
	}
	if s.line.clock == ofDay {
		sh.offset = 8
	}
	sh.label = min(z.labels, max((s.width-sh.bar)/4-2*sh.lanes, 18))
	if sh.bar > 0 {
		sh.axis = newAxis(sh.start, z.end, sh.bar, s.line.film.timeline.Waits)
	}
	return sh
}

// maxFindings is how many findings stand under a row; the panel has the rest.
const maxFindings = 3

// itemLines draws an item with what stands above and below it.
func (s *Screen) itemLines(sh *sheet, i int) []Line {
	v := &s.line
	it, chosen := v.items[i], i == v.list.cursor
	if it.place >= 0 {
		return []Line{s.glimpseLine(sh, it, chosen)}
	}
	var lines []Line
	if p, ok := v.film.pauses[it.row]; ok {
		if p.human {
			lines = append(lines, bare(Piece{Human, sh.wait(p.Wait)}))
		} else {
			lines = append(lines, bare(Piece{Warn, sh.silence(it.row, p.End-p.Start)}))
		}
	}
	lines = append(lines, s.rowLine(sh, i, chosen))
	indent := sh.indent() + sh.rails()
	for _, m := range s.marksIn(it.row) {
		lines = append(lines, bare(Piece{Human, strings.Repeat(" ", indent) + s.look.fit(markText(&s.look, m, it.row.First), max(s.width-indent-1, 8), 0)}))
	}
	found := alike(it.row.Findings)
	for i := range found[:min(len(found), maxFindings)] {
		lines = append(lines, s.findingUnder(&found[i], sh.indent()+sh.rails())...)
	}
	if more := len(found) - maxFindings; more > 0 {
		lines = append(lines, bare(Piece{Dim, strings.Repeat(" ", sh.indent()+sh.rails()) + FormatCount(more, "more finding") + ": press !"}))
	}
	return lines
}

// findingUnder draws a finding in at most two lines.
func (s *Screen) findingUnder(f *protocol.Finding, indent int) []Line {
	label := s.look.glyph(severityGlyph(f.Severity)) + " " + Clean(f.Rule)
	var lines []Line
	for i, text := range findingLines(&s.look, f, indent, true) {
		switch i {
		case 0:
			cut := min(indent+len(label), len(text))
			lines = append(lines, bare(Piece{severityStyle(f.Severity), text[:cut]}, Piece{Plain, text[cut:]}))
		case 1:
			lines = append(lines, bare(Piece{Plain, text}))
		case 2:
			lines[1].Pieces = append(lines[1].Pieces, Piece{Dim, " " + s.look.ellipsis()})
			return lines
		}
	}
	return lines
}

// rowTime is what the column of times says of a row.
func (s *Screen) rowTime(sh *sheet, i int) string {
	v := &s.line
	r := v.items[i].row
	switch v.clock {
	case ofDay:
		return s.ofDay(r.Start)
	case sinceBefore:
		for j := i - 1; j >= 0; j-- {
			if before := v.items[j].row; before != r {
				return FormatOffset(r.Start - before.Start)
			}
		}
	}
	return FormatOffset(r.Start - sh.start)
}

// rowLine draws a row.
func (s *Screen) rowLine(sh *sheet, i int, chosen bool) Line {
	r, look := s.line.items[i].row, &s.look
	pieces := []Piece{s.cursorMark(r.First, chosen), {Dim, padLeft("#"+r.First.String(), sh.position)}, {Plain, " "}}
	if sh.seq > 0 {
		pieces = append(pieces, Piece{Dim, padLeft(r.sequences(), sh.seq)}, Piece{Plain, " "})
	}
	pieces = append(pieces, Piece{Dim, padLeft(s.rowTime(sh, i), sh.offset)}, Piece{Plain, " "})
	if sh.took > 0 {
		took := ""
		if r.Took() > 0 && !r.instant() {
			took = FormatDuration(r.Took())
		}
		pieces = append(pieces, Piece{Dim, padLeft(took, sh.took)}, Piece{Plain, " "})
	}
	pieces = append(pieces, Piece{Plain, " "})
	pieces = append(pieces, sh.railPieces(r)...)
	label := r.label(look, sh.label)
	pieces = append(pieces, label...)
	pieces = append(pieces, Piece{Plain, strings.Repeat(" ", max(sh.label-columns(label), 0)+2)})
	room := sh.room()
	var summary []Piece
	if s.line.folded[r] {
		summary = append(summary, Piece{Notice, look.glyph("▸ ", "+ ") + "folded  "})
	}
	summary = append(summary, r.Summary(look, max(room-columns(summary), 4))...)
	pieces = append(pieces, summary...)
	if sh.bar > 0 {
		pieces = append(pieces, Piece{Plain, strings.Repeat(" ", max(room-columns(summary), 0)+2)})
		pieces = append(pieces, Piece{r.style(), sh.axis.bar(r.Start, r.End, r.mark(look))})
	}
	line := bare(pieces...)
	if chosen {
		line.Ground = Chosen
	}
	return line
}

// cursorMark is the first column: the cursor, or a mark of the user.
func (s *Screen) cursorMark(a capture.Address, chosen bool) Piece {
	switch {
	case chosen:
		return Piece{Strong, s.look.glyph("▸", ">")}
	case s.marks[a] != "":
		return Piece{Human, s.look.glyph("◈", "@")}
	}
	return Piece{Plain, " "}
}

// nameColumn is the width of an event's type, "TEXT_MESSAGE_CONTENT", where
// messages are shown one by one.
const nameColumn = 20

func (s *Screen) rawHeading() string {
	sh := s.sheet()
	return " " + padLeft("#", sh.position) + " " + padLeft("seq", max(sh.seq, 5)) + " " + padLeft("at", sh.offset) + "    " + pad("type", nameColumn) + " " + padLeft("size", 7) + "  adds"
}

// glimpseLine draws one message.
func (s *Screen) glimpseLine(sh *sheet, it item, chosen bool) Line {
	f, look := s.line.film, &s.look
	g := &f.glimpses[it.place]
	address := f.timeline.places[it.place].address
	seq := ""
	if g.seq > 0 {
		seq = fmt.Sprint(g.seq)
	}
	at := FormatOffset(g.at - sh.start)
	switch {
	case s.line.clock == ofDay:
		at = s.ofDay(g.at)
	case s.line.clock == sinceBefore && it.place > 0:
		at = FormatOffset(g.at - f.glimpses[it.place-1].at)
	}
	arrow := Piece{Dim, " " + look.glyph("‹", "<") + " "}
	if g.dir == capture.FromClient {
		arrow = Piece{Client, " " + look.glyph("›", ">") + " "}
	}
	pieces := []Piece{
		s.cursorMark(address, chosen), {Dim, padLeft("#"+address.String(), sh.position) + " "}, {Dim, padLeft(seq, max(sh.seq, 5)) + " "},
		{Dim, padLeft(at, sh.offset)}, arrow,
	}
	if !s.line.raw { // under its row
		pieces = append([]Piece{pieces[0], {Dim, "  " + look.glyph("│", "|")}}, pieces[1:]...)
	}
	pieces = append(pieces, Piece{it.row.style(), pad(cutColumns(Clean(g.name), nameColumn, look.ellipsis()), nameColumn)},
		Piece{Dim, " " + padLeft(FormatSize(int64(g.size)), 7) + "  "})
	room := s.width - columns(pieces)
	switch delta := f.delta(it.place); {
	case delta != "" && it.row.Kind == KindTool: // JSON, which has quotes enough
		pieces = append(pieces, Piece{Plain, look.fit(delta, room-4, 0)})
	case delta != "":
		pieces = append(pieces, Piece{Plain, look.quote(delta, room-4, 0)})
	case s.line.raw && it.row.ID != "":
		pieces = append(pieces, Piece{Dim, look.fit(it.row.word()+" "+it.row.ID, max(room-4, 4), 0)})
	}
	if g.finding {
		pieces = append(pieces, s.worstAt(it.row, address))
	}
	line := bare(pieces...)
	if chosen {
		line.Ground = Chosen
	}
	return line
}

func (s *Screen) worstAt(r *Row, a capture.Address) Piece {
	worst := protocol.Note
	for _, f := range r.Findings {
		if samePlace(f.At, a) {
			worst = max(worst, f.Severity)
		}
	}
	return Piece{severityStyle(worst), "  " + s.look.glyph(severityGlyph(worst))}
}

// rowText is what a search looks through.
func rowText(r *Row) []string {
	texts := []string{r.Name, r.ID, r.Run, r.Thread}
	switch d := r.Detail.(type) {
	case *Stream:
		texts = append(texts, d.Text())
	case *Call:
		texts = append(texts, d.Args.Text())
		if d.Result != nil {
			texts = append(texts, d.Result.Head)
		}
	case *Talk:
		texts = append(texts, d.Input, d.Answer, d.About)
	case *Decision:
		texts = append(texts, d.Payload)
	case *Note:
		texts = append(texts, d.Said, d.Text)
	case *Todos:
		for _, t := range d.Items {
			texts = append(texts, t.Content)
		}
	}
	for _, f := range r.Findings {
		texts = append(texts, f.Rule, f.Text)
	}
	return texts
}

func holds(texts []string, needle string) bool {
	return slices.ContainsFunc(texts, func(text string) bool { return containsFold(text, needle) })
}
