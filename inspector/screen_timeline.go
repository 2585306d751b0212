package inspector

import (
	"context"
	"fmt"
	"slices"
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// timelineView is a run, row by row.
type timelineView struct {
	film   *film // nil if none is open
	filter *Filter
	list   list
	items  []item
	listed int // places that raw items were made of

	raw      bool
	folded   map[*Row]bool   // subagents whose own rows are hidden
	unfolded map[*Row]bool   // rows that show their messages
	hidden   map[string]bool // threads of folded subagents
	clock    clockMode

	follow, frozen bool
	arrived        int // messages since the run was whole, or was followed
	whole, stopped bool
	err            error
	more           chan []conversation.Run // has the loader ask again
	wanted         capture.Address         // where the cursor goes once it is there
}

// item is a line to choose: a row, or one of its messages.
type item struct {
	row   *Row
	place int // of the film; -1 for the row itself
}

// clockMode is what the times of rows say.
type clockMode uint8

const (
	sinceStart clockMode = iota
	sinceBefore
	ofDay
	clockModes
)

// openFilm opens a run, and goes to an address once it is loaded.
func (s *Screen) openFilm(chain []conversation.Run, at capture.Address) {
	v := &s.line
	filter, raw, clock := v.filter, v.raw, v.clock
	*v = timelineView{
		film: newFilm(chain, filter), filter: filter, raw: raw, clock: clock, folded: map[*Row]bool{}, unfolded: map[*Row]bool{},
		hidden: map[string]bool{}, more: make(chan []conversation.Run, 1), wanted: at,
	}
	s.search = nil
	s.loader.stop(readerJob)
	s.item.reader = nil
	more := v.more
	s.loader.start(filmJob, func(ctx context.Context, tell teller) { s.loader.loadFilm(ctx, tell, chain, more) })
	s.open(inTimeline)
}

func (s *Screen) closeFilm() {
	s.loader.stop(filmJob)
	s.loader.stop(readerJob)
	s.item.reader, s.line.film, s.line.items, s.search = nil, nil, nil, nil
	s.line.frozen = false
}

// refreshFilm has the loader ask for what is new in the open run.
func (s *Screen) refreshFilm() {
	v := &s.line
	if v.film == nil || v.frozen || v.stopped || v.err != nil {
		return
	}
	chain := v.film.chain
	for _, c := range s.runs.rows {
		if c.key() == (conversation.RunKey{Session: chain[0].Session, Run: chain[0].ID}) {
			chain = c.chain
		}
	}
	if !s.live() && slices.EqualFunc(chain, v.film.chain, func(a, b conversation.Run) bool { return a.ID == b.ID && a.Last == b.Last }) {
		return
	}
	select { // of several, the last counts
	case <-v.more:
	default:
	}
	v.more <- chain
}

func (s *Screen) filmFailed(err error) {
	s.loader.settled(filmJob)
	s.line.err = err
	s.complain(err)
}

func (s *Screen) filmLearns(chain []conversation.Run, found []protocol.Finding) {
	if len(chain) != len(s.line.film.chain) { // the reader reads the old one
		s.loader.stop(readerJob)
		s.item.reader = nil
	}
	s.line.film.setChain(chain)
	s.line.film.learn(found)
}

func (s *Screen) filmGrows(batch []capture.Frame) {
	v := &s.line
	before := len(v.film.glimpses)
	for i := range batch {
		v.film.add(&batch[i], s.rowChanged)
	}
	if v.whole {
		v.arrived += len(v.film.glimpses) - before
	}
	if !v.wanted.IsZero() {
		if p, ok := v.film.placeAt(v.wanted); ok {
			v.wanted = capture.Address{}
			s.showPlace(p)
		}
	}
	if v.follow {
		v.arrived = 0
		v.list.cursor = max(len(v.items)-1, 0)
	}
}

func (s *Screen) filmWhole() {
	v := &s.line
	s.loader.settled(filmJob)
	if v.whole = true; !v.film.running() && !s.goesOn() {
		v.film.timeline.Finish()
	}
	v.film.settle()
	if !v.wanted.IsZero() {
		s.refuse(fmt.Sprintf("#%s is no message of this run", v.wanted))
		v.wanted = capture.Address{}
	}
}

// goesOn reports whether the session of the open run is live.
func (s *Screen) goesOn() bool {
	sessions := s.runs.sessions
	return s.live() && sessions[len(sessions)-1].ID == s.line.film.chain[0].Session
}

func (s *Screen) chosenItem() (item, bool) {
	if v := &s.line; v.film != nil && v.list.cursor < len(v.items) {
		return v.items[v.list.cursor], true
	}
	return item{}, false
}

// address is where an item stands.
func (v *timelineView) address(it item) capture.Address {
	if it.place >= 0 {
		return v.film.timeline.places[it.place].address
	}
	return it.row.First
}

func (s *Screen) turnTime() {
	s.line.clock = (s.line.clock + 1) % clockModes
	s.Say([]string{"times since the run began", "times since the row before", "times of day"}[s.line.clock])
}

// follow stays with the newest: runs, or rows.
func (s *Screen) follow() {
	if s.top() == inRuns {
		if s.runs.pinned = !s.runs.pinned; s.runs.pinned {
			s.setOrder(string(byTime))
			s.Say("following the newest run")
		}
		return
	}
	v := &s.line
	if v.follow = !v.follow; v.follow {
		v.arrived = 0
		v.list.to(len(v.items)-1, len(v.items))
	}
}

func (s *Screen) freeze() {
	if s.line.frozen = !s.line.frozen; !s.line.frozen {
		s.refreshFilm()
	}
}

// missed is how many messages came since the view was frozen.
func (s *Screen) missed() int {
	v, recorded, seen := &s.line, 0, 0
	for _, c := range s.runs.rows {
		if c.key() == (conversation.RunKey{Session: v.film.chain[0].Session, Run: v.film.chain[0].ID}) {
			recorded = c.sum.envelopes
		}
	}
	for _, r := range v.film.chain {
		seen += r.Envelopes
	}
	return max(recorded-seen, 0)
}

// setFilter opens the run anew with a filter.
func (s *Screen) setFilter(text string) {
	filter, err := ParseFilter(text)
	if err != nil {
		s.complain(err)
		return
	}
	at := capture.Address{}
	if it, ok := s.chosenItem(); ok {
		at = s.line.address(it)
	}
	s.line.filter = filter
	s.openFilm(s.line.film.chain, capture.Address{})
	if filter == nil { // all rows are there again, so this one is
		s.line.wanted = at
	}
}

// reload reads everything again.
func (s *Screen) reload() {
	select {
	case s.poke <- struct{}{}:
	default:
	}
	if s.line.film == nil {
		return
	}
	at := capture.Address{}
	if it, ok := s.chosenItem(); ok {
		at = s.line.address(it)
	}
	views := slices.Clone(s.views)
	s.openFilm(s.line.film.chain, at)
	if slices.Contains(views, inDetail) {
		s.views = views[:slices.Index(views, inDetail)]
	}
}

func (s *Screen) timelineWhere() []Piece {
	v := &s.line
	noun := "row"
	if v.raw {
		noun = "message"
	}
	pieces := []Piece{{Plain, " " + position(v.list.cursor, len(v.items), noun)}}
	switch {
	case v.err != nil:
		pieces = append(pieces, Piece{Bad, "  " + Clean(v.err.Error())})
	case v.stopped:
		pieces = append(pieces, Piece{Warn, "  not all loaded"})
	case !v.whole:
		expected := 0
		for _, r := range v.film.chain {
			expected += r.Envelopes
		}
		percent := min(v.film.frames*100/max(expected, 1), 99)
		pieces = append(pieces, Piece{Notice, fmt.Sprintf("  loading, %d%%; Esc stops", percent)})
	case v.frozen:
		pieces = append(pieces, Piece{Warn, fmt.Sprintf("  +%s new, p goes on", groupDigits(s.missed()))})
	case v.follow:
		pieces = append(pieces, Piece{Good, "  following"})
	case v.arrived > 0:
		pieces = append(pieces, Piece{Notice, "  +" + groupDigits(v.arrived) + " new, f follows"})
	}
	if v.filter != nil {
		pieces = append(pieces, Piece{Key, "  " + s.look.fit(v.filter.String(), max(s.width/3, 12), 0)})
	}
	return pieces
}

// waitingFor is how long ago something passed, 0 if that cannot be said.
func (s *Screen) waitingFor(r *Row) time.Duration {
	session := sessionOf(s.runs.sessions, s.line.film.chain[0].Session)
	if !s.goesOn() || session == nil || s.o.Now == nil {
		return 0
	}
	return max(s.o.Now().Sub(session.Started)-r.Start, 0)
}
