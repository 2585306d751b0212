package inspector

import (
	"slices"
	"sort"
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// film is a run, with those that it continues, as a screen holds it: its
// timeline, and in short each message that went into it. It grows frame by
// frame.
type film struct {
	chain    []conversation.Run
	timeline *Timeline
	feed     *Feed
	filter   *Filter
	runs     map[string]bool
	threads  map[string]bool

	// glimpses are parallel to the timeline's places.
	glimpses []glimpse
	// pauses are the times before a row in which nothing came.
	pauses map[*Row]pause
	// plans are the todos that a row's todos replace.
	plans map[*Row]*Row
	found []foundAt
	known map[protocol.Finding]bool

	frames    int
	lastAt    time.Duration // of the last moment
	lastTodos map[string]*Row
	size      sheetSize
}

// glimpse is what is kept of a message, so that a run can be shown message by
// message without asking the tape for each.
type glimpse struct {
	at      time.Duration
	seq     int64
	name    string // of the event, or the message
	from    int32  // what it adds to its row's text
	length  int32
	size    int32
	dir     capture.Direction
	wanted  bool // the filter wants it
	finding bool
}

// pause is a time before a row in which nothing came, or a person was waited
// for.
type pause struct {
	Wait
	human bool
}

// foundAt is a finding and the row that it is about, nil if there is none.
type foundAt struct {
	protocol.Finding
	row *Row
}

// sheetSize are the widths that the rows of a film need.
type sheetSize struct {
	start, end                    time.Duration
	position, seq, offset, labels int
	lanes                         int
}

func newFilm(chain []conversation.Run, filter *Filter) *film {
	f := &film{
		timeline: NewTimeline(TimelineOptions{Filter: filter}), feed: NewFeed([]protocol.Finding{}), filter: filter,
		pauses: map[*Row]pause{}, plans: map[*Row]*Row{}, known: map[protocol.Finding]bool{}, lastTodos: map[string]*Row{},
		size: sheetSize{start: -1, position: 2, seq: 3, offset: 3},
	}
	f.setChain(chain)
	return f
}

func (f *film) setChain(chain []conversation.Run) {
	f.chain, f.runs, f.threads = chain, map[string]bool{}, map[string]bool{}
	for _, r := range chain {
		f.runs[r.ID], f.threads[r.Thread] = true, true
	}
}

// running reports whether more of the run may come.
func (f *film) running() bool {
	return slices.ContainsFunc(f.chain, func(r conversation.Run) bool {
		return r.Status == conversation.Running || r.Status == conversation.Paused
	})
}

// learn takes findings. Those about what is yet to come wait for it.
func (f *film) learn(found []protocol.Finding) {
	for _, x := range found {
		if f.known[x] {
			continue
		}
		f.known[x] = true
		if r := f.timeline.RowAt(x.At); r != nil {
			r.Findings = append(r.Findings, x)
			f.addFound(x, r)
		} else {
			f.feed.known[x.At.Position] = append(f.feed.known[x.At.Position], x)
		}
	}
}

// settle lists the findings that no row took, once all rows are there.
func (f *film) settle() {
	taken := make(map[protocol.Finding]bool, len(f.found))
	for _, x := range f.found {
		taken[x.Finding] = true
	}
	for x := range f.known {
		if !taken[x] {
			f.addFound(x, f.timeline.RowAt(x.At))
		}
	}
}

func (f *film) addFound(x protocol.Finding, r *Row) {
	i := sort.Search(len(f.found), func(i int) bool {
		if c := f.found[i].At.Compare(x.At); c != 0 {
			return c > 0
		}
		return f.found[i].Rule > x.Rule
	})
	f.found = slices.Insert(f.found, i, foundAt{x, r})
	if p, ok := f.placeAt(x.At); ok {
		f.glimpses[p].finding = true
	}
}

// add folds a frame in, and calls changed with each row that it began or
// changed.
func (f *film) add(frame *capture.Frame, changed func(*Row)) {
	f.frames++
	moments := f.feed.Frame(frame)
	for i := range moments {
		m := &moments[i]
		if m.Message != nil && m.Message.Name == protocol.Hello && len(m.Findings) == 0 {
			continue // the connection's, and not the run's
		}
		if m.Run != "" && !f.runs[m.Run] || m.Run == "" && m.Thread != "" && !f.threads[m.Thread] {
			continue
		}
		f.addMoment(m, changed)
	}
}

func (f *film) addMoment(m *Moment, changed func(*Row)) {
	t := f.timeline
	rows, waits := len(t.Rows), len(t.Waits)
	touched := t.Add(m)
	if len(touched) == 0 {
		return
	}
	if len(t.Rows) > rows {
		f.began(t.Rows[rows], m, len(t.Waits) > waits)
	}
	for len(f.glimpses) < len(t.places) {
		f.glimpses = append(f.glimpses, f.glimpse(m, touched[0]))
	}
	for i := range m.Findings {
		f.addFound(m.Findings[i], touched[0])
	}
	f.lastAt = max(f.lastAt, m.At())
	for _, r := range touched {
		f.measure(r)
		changed(r)
	}
}

// began notes what came before a new row.
func (f *film) began(r *Row, m *Moment, waited bool) {
	switch gap := m.At() - f.lastAt; {
	case waited:
		w := f.timeline.Waits[len(f.timeline.Waits)-1]
		if w.End > w.Start {
			f.pauses[r] = pause{w, true}
		}
	case r.Index > 0 && f.filter == nil && gap > stallAfter:
		f.pauses[r] = pause{Wait: Wait{Start: f.lastAt, End: m.At()}}
	}
	if r.Kind == KindTodos {
		if before := f.lastTodos[r.Thread]; before != nil {
			f.plans[r] = before
		}
		f.lastTodos[r.Thread] = r
	}
}

func (f *film) glimpse(m *Moment, r *Row) glimpse {
	g := glimpse{
		at: m.At(), seq: m.sequence(), name: m.title(), size: int32(min(m.Size(), 1<<31-1)), dir: m.Direction(),
		wanted: f.filter.Match(m), finding: len(m.Findings) > 0,
	}
	e := m.event()
	if e == nil {
		return g
	}
	g.name = string(e.Type)
	if e.Delta == "" {
		return g
	}
	joined := 0
	switch d := r.Detail.(type) {
	case *Stream:
		joined = len(d.joined)
	case *Call:
		joined = len(d.Args.joined)
	}
	if from := joined - len(e.Delta); from >= 0 && joined < 1<<31 {
		g.from, g.length = int32(from), int32(len(e.Delta))
	}
	return g
}

// delta is the text that the message at a place added, "" if it added none.
func (f *film) delta(place int) string {
	g := &f.glimpses[place]
	if g.length == 0 {
		return ""
	}
	var joined []byte
	switch d := f.timeline.places[place].row.Detail.(type) {
	case *Stream:
		joined = d.joined
	case *Call:
		joined = d.Args.joined
	}
	if int(g.from+g.length) > len(joined) {
		return ""
	}
	return string(joined[g.from : g.from+g.length])
}

func (f *film) measure(r *Row) {
	s := &f.size
	if s.start < 0 || r.Start < s.start {
		s.start = max(r.Start, 0)
	}
	s.end = max(s.end, r.End)
	s.position = max(s.position, len(r.First.String())+1)
	s.seq = max(s.seq, len(r.sequences()))
	s.offset = max(s.offset, Width(FormatOffset(r.Start-s.start)))
	s.lanes = max(s.lanes, r.Lane)
	if s.labels < 40 {
		s.labels = max(s.labels, columns(r.Label(&Look{})))
	}
}

// placeAt returns the index of the place of an address.
func (f *film) placeAt(a capture.Address) (int, bool) {
	a.Packet = max(a.Packet, 1)
	places := f.timeline.places
	return sort.Find(len(places), func(i int) int { return a.Compare(places[i].address) })
}

// nearest returns the place of an address, or of the last one before it.
func (f *film) nearest(a capture.Address) int {
	i, ok := f.placeAt(a)
	if !ok {
		i--
	}
	return max(min(i, len(f.glimpses)-1), 0)
}

// placesOf returns the places of a row.
func (f *film) placesOf(r *Row) []int {
	first, _ := f.placeAt(r.First)
	last, ok := f.placeAt(r.Last)
	if !ok {
		last--
	}
	var places []int
	for i := first; i <= last && i < len(f.glimpses); i++ {
		if f.timeline.places[i].row == r {
			places = append(places, i)
		}
	}
	return places
}
