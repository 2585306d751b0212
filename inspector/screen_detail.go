package inspector

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// tab is a way to look at one message.
type tab uint8

const (
	renderedTab tab = iota
	eventTab
	rawTab
	wireTab
	diffTab
	timingTab
	tabs
)

var tabNames = [tabs]string{"Rendered", "Event", "Raw", "Wire", "Diff", "Timing"}

// detailView is one message, and the row that it belongs to.
type detailView struct {
	place  int
	at     capture.Address
	row    *Row // nil before a message was chosen
	tab    tab
	scroll int // -1: where the message is

	moment *Moment // nil until it is loaded
	err    error

	reader     chan capture.Address // asks what a client would show
	thread     string               // that the reader reads
	transcript *conversation.Transcript
	readAt     capture.Address
	readErr    error

	drawn struct { // the body, as it was drawn last
		tab        tab
		at         capture.Address
		width      int
		moment     *Moment
		transcript *conversation.Transcript
		lines      []Line
		focus      int // the line that matters
	}
}

func (d *detailView) address() (capture.Address, bool) { return d.at, d.row != nil }

// openDetail opens the message or row under the cursor.
func (s *Screen) openDetail() {
	it, ok := s.chosenItem()
	if !ok {
		return
	}
	p := it.place
	if p < 0 {
		p = s.line.film.nearest(it.row.First)
	}
	s.item.row = nil
	s.open(inDetail)
	s.toPlace(p)
}

// toPlace shows the message at a place.
func (s *Screen) toPlace(p int) {
	f, d := s.line.film, &s.item
	if p < 0 || p >= len(f.glimpses) {
		return
	}
	d.place, d.at, d.row = p, f.timeline.places[p].address, f.timeline.places[p].row
	d.scroll, d.moment, d.err = -1, nil, nil
	s.loadMoment()
	s.askReader()
}

func (s *Screen) loadMoment() {
	at, before := s.item.at, s.item.row.First
	s.loader.start(momentJob, func(ctx context.Context, tell teller) {
		m, err := s.loader.loadMoment(ctx, at, before)
		tell(func(s *Screen) { s.setMoment(at, m, err) })
	})
}

func (s *Screen) setMoment(at capture.Address, m *Moment, err error) {
	s.loader.settled(momentJob)
	d := &s.item
	if d.at != at {
		return
	}
	if d.moment, d.err = m, err; m == nil {
		return
	}
	for _, f := range d.row.Findings {
		if samePlace(f.At, at) {
			m.Findings = append(m.Findings, f)
		}
	}
}

// askReader asks what a client would show after this message. Of what is asked
// while the reader reads, the last counts.
func (s *Screen) askReader() {
	d := &s.item
	if d.tab != renderedTab || d.row == nil {
		return
	}
	thread := d.row.Thread
	if thread == "" {
		thread = s.line.film.chain[0].Thread
	}
	if d.reader == nil || d.thread != thread {
		asked := make(chan capture.Address, 1)
		d.reader, d.thread, d.transcript = asked, thread, nil
		r := newReader(s.source, s.line.film.chain, thread)
		s.loader.start(readerJob, func(ctx context.Context, tell teller) { r.serve(ctx, tell, asked) })
	}
	select {
	case <-d.reader:
	default:
	}
	d.reader <- d.at
	s.loader.jobs[readerJob].busy = true
}

func (s *Screen) setTranscript(at capture.Address, t *conversation.Transcript, err error) {
	d := &s.item
	d.transcript, d.readAt, d.readErr = t, at, err
	if at == d.at {
		s.loader.settled(readerJob)
	}
}

// leaveDetail has the cursor stand where one scrubbed to.
func (s *Screen) leaveDetail() {
	s.loader.stop(momentJob)
	if s.item.row != nil && s.line.film != nil {
		v := &s.line
		if it, ok := s.chosenItem(); !ok || it.row != s.item.row || it.place >= 0 {
			follow := v.follow
			s.showPlace(s.item.place)
			v.follow = follow && v.list.cursor == len(v.items)-1
		}
	}
}

// scrub goes to another message.
func (s *Screen) scrub(by int) {
	if p := s.item.place + by; p >= 0 && p < len(s.line.film.glimpses) {
		s.toPlace(p)
		return
	}
	s.Say(map[bool]string{true: "this is the first message", false: "this is the last message"}[by < 0])
}

// scrubRow goes to the beginning of another construct.
func (s *Screen) scrubRow(by int) {
	v := &s.line
	rows := v.film.timeline.Rows
	if by < 0 && s.item.at != s.item.row.First {
		by = 0 // first to the beginning of this one
	}
	for i := s.item.row.Index + by; i >= 0 && i < len(rows); i += by {
		if r := rows[i]; v.shows(r) {
			if p, ok := v.film.placeAt(r.First); ok {
				s.toPlace(p)
				return
			}
		}
		if by == 0 {
			by = -1
		}
	}
	s.Say(map[bool]string{true: "this is the first construct", false: "this is the last construct"}[by < 0])
}

func (s *Screen) turnTab(by int) { s.toTab(tab((int(s.item.tab) + by + int(tabs)) % int(tabs))) }

func (s *Screen) toTab(t tab) {
	if s.item.tab = t; s.item.scroll != -1 || t != renderedTab {
		s.item.scroll = 0
	}
	if t == renderedTab {
		s.item.scroll = -1
		s.askReader()
	}
}

// toPartner goes to what belongs to a message.
func (s *Screen) toPartner() {
	v := &s.line
	if s.top() == inFindings {
		s.findingPartner()
		return
	}
	at, row := capture.Address{}, (*Row)(nil)
	if s.top() == inDetail {
		at, row = s.item.at, s.item.row
	} else if it, ok := s.chosenItem(); ok {
		at, row = v.address(it), it.row
	}
	if row == nil {
		return
	}
	to := v.film.partner(at, row)
	p, ok := v.film.placeAt(to)
	switch {
	case !ok:
		s.Say("nothing belongs to it")
	case s.top() == inDetail:
		s.toPlace(p)
	case v.film.timeline.places[p].row == row && !v.raw: // its other end is in the same row
		s.openDetail()
		s.toPlace(p)
	default:
		s.showPlace(p)
	}
}

// partner is the address of what belongs to a message: the answer to a command,
// the end of a construct, the command that resumes after an interrupt, and the
// other way round. It is zero if there is none.
func (f *film) partner(at capture.Address, r *Row) capture.Address {
	switch d := r.Detail.(type) {
	case *Talk:
		if !samePlace(at, r.First) {
			return r.First
		}
		if thread := f.timeline.threads[r.Thread]; thread != nil && r.Name == string(protocol.RunResume) {
			if asked := thread.decisions[d.About]; asked != nil {
				return asked.First
			}
		}
		if d.Reply != nil {
			return d.Reply.At
		}
		return capture.Address{}
	case *Decision:
		if d.Reply != nil {
			return d.Reply.At
		}
	}
	if r.Kind == KindLifecycle {
		return f.otherEnd(r)
	}
	switch {
	case !samePlace(at, r.First):
		return r.First
	case r.Last != r.First:
		return r.Last
	}
	return capture.Address{}
}

// otherEnd is where a run ends that starts here, or starts that ends here.
func (f *film) otherEnd(r *Row) capture.Address {
	by := -1
	if r.Name == string(protocol.RunStarted) {
		by = 1
	}
	rows := f.timeline.Rows
	for i := r.Index + by; i >= 0 && i < len(rows); i += by {
		if rows[i].Kind == KindLifecycle && rows[i].Run == r.Run {
			return rows[i].First
		}
	}
	return capture.Address{}
}

func (s *Screen) detailWhere() []Piece {
	return []Piece{{Plain, " " + position(s.item.place, len(s.line.film.glimpses), "message")}}
}

// detailBody draws one message: what it belongs to, the tabs, and the tab that
// is chosen.
func (s *Screen) detailBody(height int) []Line {
	d := &s.item
	if d.row == nil {
		return nil
	}
	lines := s.detailHead(height)
	room := max(height-len(lines), 1)
	body, focus := s.tabBody()
	if d.scroll < 0 { // the message is in the lower half, with room for what comes
		d.scroll = focus - room*2/3
	}
	d.scroll = max(min(d.scroll, len(body)-room), 0)
	shown := body[d.scroll:min(d.scroll+room, len(body))]
	lines = append(lines, shown...)
	if below := len(body) - d.scroll - room; below > 0 {
		lines[len(lines)-1] = bare(Piece{Dim, fmt.Sprintf("   %s %s", s.look.glyph("↓", "v"), FormatCount(below+1, "more line"))})
	}
	return lines
}

func (s *Screen) detailHead(height int) []Line {
	d, f, look := &s.item, s.line.film, &s.look
	g := &f.glimpses[d.place]
	title := append([]Piece{{Plain, " "}}, d.row.Label(look)...)
	if !samePlace(d.row.First, d.row.Last) {
		title = append(title, Piece{Dim, fmt.Sprintf("  #%s %s #%s", d.row.First, look.glyph("…", "..."), d.row.Last)})
	}
	if d.row.State != Done {
		title = append(title, Piece{Warn, "  " + d.row.State.String()})
	}
	here := []Piece{{Strong, " #" + d.at.String()}, {Plain, "  " + Clean(g.name)}}
	if g.seq > 0 {
		here = append(here, Piece{Dim, fmt.Sprintf("  seq %d", g.seq)})
	}
	here = append(here, Piece{Dim, "  " + FormatOffset(g.at-max(f.size.start, 0))})
	if to := f.partner(d.at, d.row); !to.IsZero() {
		here = append(here, Piece{Notice, "  " + look.glyph("⇄", "<>") + " #" + to.String() + " x"})
	}
	if delta := f.delta(d.place); delta != "" {
		here = append(here, Piece{Dim, "  adds "}, Piece{Plain, look.quote(delta, max(s.width-columns(here)-10, 8), 0)})
	}
	lines := []Line{bare(title...), bare(here...)}
	if text := s.marks[d.at]; text != "" {
		lines = append(lines, bare(Piece{Human, " " + look.glyph("◈ ", "@ ") + look.fit(text, s.width-4, 0)}))
	}
	for i := range d.row.Findings {
		if finding := &d.row.Findings[i]; samePlace(finding.At, d.at) && len(lines) < height/2 {
			lines = append(lines, s.findingUnder(finding, 1)...)
		}
	}
	return append(lines, s.tabLine())
}

// tabLine names the tabs. The chosen one stands in brackets.
func (s *Screen) tabLine() Line {
	pieces := []Piece{{Plain, " "}}
	for t := range tabs {
		name := fmt.Sprintf("%d %s", t+1, tabNames[t])
		if s.width < 60 {
			name = tabNames[t]
		}
		if t == s.item.tab {
			pieces = append(pieces, Piece{Strong, "[" + name + "]"})
		} else {
			pieces = append(pieces, Piece{Dim, " " + name + " "})
		}
		pieces = append(pieces, Piece{Plain, " "})
	}
	used := columns(pieces)
	return bare(append(pieces, Piece{Dim, strings.Repeat(s.look.glyph("─", "-"), max(s.width-used-1, 0))})...)
}

// tabBody returns the lines of the chosen tab, and which of them matters. It
// draws them once.
func (s *Screen) tabBody() (lines []Line, focus int) {
	d := &s.item
	c := &d.drawn
	if c.lines != nil && c.tab == d.tab && c.at == d.at && c.width == s.width && c.moment == d.moment && c.transcript == d.transcript && d.tab != timingTab {
		return c.lines, c.focus
	}
	switch d.tab {
	case renderedTab:
		lines, focus = s.renderedLines()
	case diffTab:
		lines = s.diffLines()
	case timingTab:
		lines = s.timingLines()
	default:
		lines = s.momentLines()
	}
	c.tab, c.at, c.width, c.moment, c.transcript, c.lines, c.focus = d.tab, d.at, s.width, d.moment, d.transcript, lines, focus
	return lines, focus
}

// diffLines compares a list of todos with the one that it replaces.
func (s *Screen) diffLines() []Line {
	after, ok := s.item.row.Detail.(*Todos)
	if !ok {
		return wrapped(Dim, "Only todos replace something that was there before.", 1, s.width)
	}
	lines := []Line{{}}
	var before []Todo
	if plan := s.line.film.plans[s.item.row]; plan != nil {
		before = plan.Detail.(*Todos).Items
		lines[0] = bare(Piece{Dim, " against #" + plan.First.String()})
	} else {
		lines[0] = bare(Piece{Dim, " the first list of this thread"})
	}
	was := map[string]string{}
	for _, t := range before {
		was[t.Content] = t.Status
	}
	for _, t := range after.Items {
		status, known := was[t.Content]
		delete(was, t.Content)
		text := s.look.fit(t.Content, max(s.width-36, 10), 0)
		switch {
		case !known:
			lines = append(lines, bare(Piece{Good, " + " + text}, Piece{Dim, "  " + Clean(t.Status)}))
		case status != t.Status:
			lines = append(lines, bare(Piece{Warn, " ~ " + text}, Piece{Dim, "  " + Clean(status) + s.look.glyph(" → ", " -> ")}, Piece{Strong, Clean(t.Status)}))
		default:
			lines = append(lines, bare(Piece{Dim, "   " + text + "  " + Clean(t.Status)}))
		}
	}
	for _, t := range before {
		if _, gone := was[t.Content]; gone {
			lines = append(lines, bare(Piece{Bad, " - " + s.look.fit(t.Content, max(s.width-36, 10), 0)}, Piece{Dim, "  " + Clean(t.Status)}))
		}
	}
	return lines
}

// timingLines say when things happened.
func (s *Screen) timingLines() []Line {
	d, f := &s.item, s.line.film
	r, g := d.row, &f.glimpses[d.place]
	var lines []Line
	fact := func(name, format string, args ...any) {
		lines = append(lines, bare(Piece{Dim, " " + pad(name, 20) + "  "}, Piece{Plain, fmt.Sprintf(format, args...)}))
	}
	moment := func(at time.Duration) string { return FormatOffset(at-max(f.size.start, 0)) + "  " + s.ofDay(at) }
	fact("this message", "%s", moment(g.at))
	if d.place > 0 {
		fact("since the one before", "%s", FormatDuration(g.at-f.glimpses[d.place-1].at))
	}
	lines = append(lines, Line{})
	fact("began", "%s", moment(r.Start))
	if !r.instant() {
		fact("last", "%s", moment(r.End))
		fact("took", "%s", FormatDuration(r.Took()))
	}
	fact("envelopes", "%s live, %s replayed, %s to other sockets", groupDigits(r.Envelopes), groupDigits(r.Replayed), groupDigits(r.Copies))
	switch x := r.Detail.(type) {
	case *Stream:
		s.streamFacts(fact, x, r.Start)
	case *Call:
		s.streamFacts(fact, &x.Args, r.Start)
		if x.Result != nil && x.Complete {
			fact("result", "%s after the arguments", FormatDuration(x.Result.After))
			if x.Result.Human > 0 {
				fact("waited for a person", "%s", FormatDuration(x.Result.Human))
			}
		}
	case *Talk:
		if x.Reply != nil {
			fact("answered", "after %s, by %s", FormatDuration(x.Reply.After), Clean(x.Reply.By))
		}
	case *Decision:
		if x.Reply != nil {
			fact("decided", "after %s", FormatDuration(x.Reply.After))
		}
	}
	if places := f.placesOf(r); len(places) > 2 {
		lines = append(lines, Line{}, bare(Piece{Dim, " " + pad("messages over time", 20) + "  "}, Piece{r.style(), sparkline(f.spread(places, min(s.width-30, 60)), &s.look)}))
	}
	return lines
}

func (s *Screen) streamFacts(fact func(string, string, ...any), x *Stream, began time.Duration) {
	if x.Deltas == 0 {
		return
	}
	fact("deltas", "%s, %s", groupDigits(x.Deltas), FormatSize(int64(len(x.joined))))
	fact("first delta", "%s after the start", FormatDuration(x.First-began))
	if rate := x.Rate(); rate > 0 {
		fact("rate", "%s", formatRate(rate))
	}
	fact("longest silence", "%s", FormatDuration(x.Stall))
}

// spread counts messages over equal parts of the time that they took.
func (f *film) spread(places []int, parts int) []int {
	counts := make([]int, max(parts, 1))
	start, end := f.glimpses[places[0]].at, f.glimpses[places[0]].at
	for _, p := range places {
		start, end = min(start, f.glimpses[p].at), max(end, f.glimpses[p].at)
	}
	for _, p := range places {
		i := int(int64(len(counts)) * int64(f.glimpses[p].at-start) / int64(max(end-start+1, 1)))
		counts[slices.Max([]int{0, min(i, len(counts)-1)})]++
	}
	return counts
}

// ofDay is the time of day of a moment of the run.
func (s *Screen) ofDay(at time.Duration) string {
	session := sessionOf(s.runs.sessions, s.line.film.chain[0].Session)
	if session == nil || session.Started.IsZero() {
		return FormatOffset(at)
	}
	return s.look.wall(session.Started.Add(at))
}
