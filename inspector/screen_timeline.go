package inspector

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"
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
	if v.whole = true; !v.film.running() {
		v.film.timeline.Finish()
	}
	v.film.settle()
	if !v.wanted.IsZero() {
		s.refuse(fmt.Sprintf("#%s is no message of this run", v.wanted))
		v.wanted = capture.Address{}
	}
}

// shows reports whether a row is to be listed.
func (v *timelineView) shows(r *Row) bool {
	return (v.filter == nil || r.Matched) && (len(v.hidden) == 0 || !v.hidden[r.Thread])
}

// compare orders items as they are listed.
func (v *timelineView) compare(a, b item) int {
	if v.raw {
		return cmp.Compare(a.place, b.place)
	}
	return cmp.Or(cmp.Compare(a.row.Index, b.row.Index), cmp.Compare(a.place, b.place))
}

func (v *timelineView) index(it item) (int, bool) {
	return slices.BinarySearchFunc(v.items, it, v.compare)
}

// rowChanged lists what a new frame brought.
func (s *Screen) rowChanged(r *Row) {
	v := &s.line
	if v.raw {
		v.listPlaces()
		return
	}
	at, listed := v.index(item{r, -1})
	if !listed {
		if !v.shows(r) {
			return
		}
		v.insert(at, item{r, -1})
	}
	if last := len(v.film.glimpses) - 1; v.unfolded[r] && last >= 0 && v.film.timeline.places[last].row == r {
		if at, there := v.index(item{r, last}); !there {
			v.insert(at, item{r, last})
		}
	}
}

func (v *timelineView) insert(at int, it item) {
	v.items = slices.Insert(v.items, at, it)
	if at <= v.list.cursor && len(v.items) > 1 {
		v.list.cursor++
	}
}

// listPlaces lists the messages that came since it was called last.
func (v *timelineView) listPlaces() {
	for ; v.listed < len(v.film.glimpses); v.listed++ {
		r := v.film.timeline.places[v.listed].row
		if v.film.glimpses[v.listed].wanted && (len(v.hidden) == 0 || !v.hidden[r.Thread]) {
			v.items = append(v.items, item{r, v.listed})
		}
	}
}

// relist makes the items anew, and keeps the cursor where it was.
func (s *Screen) relist() {
	v := &s.line
	chosen, had := s.chosenItem()
	v.items, v.listed = v.items[:0:0], 0
	if v.raw {
		v.listPlaces()
	} else {
		for _, r := range v.film.timeline.Rows {
			if !v.shows(r) {
				continue
			}
			v.items = append(v.items, item{r, -1})
			if v.unfolded[r] {
				for _, p := range v.film.placesOf(r) {
					v.items = append(v.items, item{r, p})
				}
			}
		}
	}
	if !had {
		return
	}
	switch {
	case v.raw && chosen.place < 0:
		chosen.place = v.film.nearest(chosen.row.First)
	case !v.raw && !v.unfolded[chosen.row]:
		chosen.place = -1
	}
	i, _ := v.index(chosen)
	v.list.to(i, len(v.items))
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

// showPlace moves the cursor to the message at a place, or to its row.
func (s *Screen) showPlace(p int) {
	v := &s.line
	r := v.film.timeline.places[p].row
	it := item{r, -1}
	if v.raw || v.unfolded[r] {
		it.place = p
	}
	i, ok := v.index(it)
	if !ok && it.place >= 0 && !v.raw {
		i, ok = v.index(item{r, -1})
	}
	if !ok {
		s.refuse(fmt.Sprintf("#%s is in a row that is not shown: a filter or a fold hides it", v.film.timeline.places[p].address))
		return
	}
	v.follow = false
	v.list.to(i, len(v.items))
}

func (s *Screen) toggleRaw() {
	s.line.raw = !s.line.raw
	s.relist()
}

func (s *Screen) turnTime() {
	s.line.clock = (s.line.clock + 1) % clockModes
	s.Say([]string{"times since the run began", "times since the row before", "times of day"}[s.line.clock])
}

// fold unfolds a row into its messages, or folds it. A subagent hides or shows
// the rows of its own thread.
func (s *Screen) fold() {
	v := &s.line
	it, ok := s.chosenItem()
	if !ok || v.raw {
		return
	}
	r := it.row
	if agent, is := r.Detail.(*Agent); is && agent.Child != "" && agent.Child != r.Thread {
		toggle(v.folded, r)
		v.hide()
		s.relist()
		return
	}
	places := v.film.placesOf(r)
	if !v.unfolded[r] && len(places) < 2 {
		s.Say("it is one message")
		return
	}
	toggle(v.unfolded, r)
	at, _ := v.index(item{r, -1})
	v.list.cursor = at
	if v.unfolded[r] {
		more := make([]item, len(places))
		for i, p := range places {
			more[i] = item{r, p}
		}
		v.items = slices.Insert(v.items, at+1, more...)
		return
	}
	end := at + 1
	for end < len(v.items) && v.items[end].row == r {
		end++
	}
	v.items = slices.Delete(v.items, at+1, end)
}

func toggle[K comparable](set map[K]bool, k K) {
	if set[k] {
		delete(set, k)
	} else {
		set[k] = true
	}
}

// hide finds the threads that folded subagents hide, with those below them.
func (v *timelineView) hide() {
	clear(v.hidden)
	for r := range v.folded {
		v.hidden[r.Detail.(*Agent).Child] = true
	}
	threads := v.film.timeline.threads
	for grew := len(v.hidden) > 0; grew; {
		grew = false
		for id, t := range threads {
			if t.owner != nil && v.hidden[t.owner.Thread] && !v.hidden[id] {
				v.hidden[id], grew = true, true
			}
		}
	}
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

// goTo moves to a position of the open run.
func (s *Screen) goTo(text string) {
	a, err := capture.ParseAddress(strings.TrimPrefix(text, "@"))
	if err != nil {
		s.complain(err)
		return
	}
	v := &s.line
	if v.film == nil {
		s.goToRun(a)
		return
	}
	p, ok := v.film.placeAt(a)
	if !ok {
		s.refuse(fmt.Sprintf("#%s is no message of this run", a))
		return
	}
	if s.top() == inDetail {
		s.toPlace(p)
		return
	}
	s.showPlace(p)
}

// goToRun opens the run that a position lies in.
func (s *Screen) goToRun(a capture.Address) {
	rows := s.runs.rows
	i := slices.IndexFunc(rows, func(r runRow) bool {
		return slices.ContainsFunc(r.chain, func(r conversation.Run) bool { return r.First <= a.Position && a.Position <= r.Last })
	})
	if i < 0 {
		s.refuse(fmt.Sprintf("#%s lies in no run", a))
		return
	}
	s.runs.list.cursor = i
	s.openFilm(rows[i].chain, a)
}

// toFinding moves to the next finding, or the one before.
func (s *Screen) toFinding(by int) {
	v := &s.line
	if v.film == nil || len(v.film.found) == 0 {
		s.Say("no findings in this run")
		return
	}
	here := capture.Address{}
	row := (*Row)(nil)
	if s.top() == inDetail {
		here, _ = s.item.address()
	} else if it, ok := s.chosenItem(); ok {
		here = v.address(it)
		if it.place < 0 {
			row = it.row // all its findings are seen already
		}
	}
	here.Packet = max(here.Packet, 1)
	found := v.film.found
	i := sort.Search(len(found), func(i int) bool { return found[i].At.Compare(here) > 0 || by < 0 && samePlace(found[i].At, here) })
	if by < 0 {
		i--
	}
	for ; i >= 0 && i < len(found); i += by {
		if found[i].row == nil || row != nil && found[i].row == row {
			continue
		}
		p := v.film.nearest(found[i].At)
		if s.top() == inDetail {
			s.toPlace(p)
		} else {
			s.showPlace(p)
		}
		return
	}
	s.Say(map[int]string{1: "no finding further down", -1: "no finding further up"}[by])
}

// toFirstBroken goes back to where the trouble began.
func (s *Screen) toFirstBroken() {
	for _, f := range s.line.film.found {
		if f.row == nil || f.Severity == protocol.Note {
			continue
		}
		p := s.line.film.nearest(f.At)
		if s.top() == inDetail {
			s.toPlace(p)
		} else {
			s.showPlace(p)
		}
		s.Say(fmt.Sprintf("#%s was the first to break a rule: %s", f.At, f.Rule))
		return
	}
	s.Say("nothing in this run broke a rule")
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
	if !s.live() || session == nil || s.o.Now == nil {
		return 0
	}
	return max(s.o.Now().Sub(session.Started)-r.Start, 0)
}
