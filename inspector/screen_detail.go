package inspector

import (
	"context"
	"fmt"
	"strings"

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
	asked      capture.Address      // last
	thread     string               // that the reader reads
	transcript *conversation.Transcript
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
	d.drawn.lines = nil
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
	d.asked = d.at
	d.reader <- d.asked
	s.loader.jobs[readerJob].busy = true
}

func (s *Screen) setTranscript(at capture.Address, t *conversation.Transcript, err error) {
	d := &s.item
	d.transcript, d.readErr, d.drawn.lines = t, err, nil
	if at == d.asked {
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
		room := max(s.width-columns(here)-10, 8)
		text := look.quote(delta, room, 0)
		if d.row.Kind == KindTool {
			text = look.fit(delta, room, 0)
		}
		here = append(here, Piece{Dim, "  adds "}, Piece{Plain, text})
	}
	lines := []Line{bare(title...), bare(here...)}
	if text := s.marks[atPacket(d.at)]; text != "" {
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
