package capsule

import (
	"cmp"
	"context"
	"slices"

	"tapedeck/protocol/capture"
)

// choose says which frames of a session go into a capsule: as few as will do.
// What will do is tried: the frames of the runs' connections within the runs'
// span, and what those need to be read, are judged by themselves. If the judge
// finds another thing than in the whole session, all the connections' frames are
// taken, and if that is not enough, the whole session.
func (s *survey) choose(ctx context.Context, src Source, tick func()) (*set, error) {
	if s.runs == nil {
		return s.all, nil
	}
	narrow, wide := s.narrow(), s.wide()
	trials := []*trial{newTrial(s.session.ID), newTrial(s.session.ID)}
	for f, err := range framesOf(ctx, src, &s.session) {
		if err != nil {
			return nil, err
		}
		for i, p := range []*part{narrow, wide} {
			if p.takes(f) {
				trials[i].frame(f)
			}
		}
		tick()
	}
	for _, t := range trials {
		t.end()
		if s.verdict.same(t.verdict, t.taken, s.runs) {
			return t.taken, nil
		}
	}
	return s.all, nil
}

// stretch is the frames of some connections from one position to another.
type stretch struct {
	from, to    capture.Position
	connections map[capture.Position]bool
}

// part says which frames to take.
type part struct {
	stretches   []stretch
	besides     *set                      // frames that are taken wherever they are
	connections map[capture.Position]bool // of all stretches
	first       capture.Position          // before it nothing is taken
	exchanges   map[capture.Position]bool // that were begun
	deeds       map[capture.Position]bool // frames that something was done to are taken
}

func newPart() *part {
	return &part{
		besides: newSet(), connections: map[capture.Position]bool{},
		exchanges: map[capture.Position]bool{}, deeds: map[capture.Position]bool{},
	}
}

// takes says whether the next frame is part of it. Frames come in order.
func (p *part) takes(f *capture.Frame) bool {
	if !p.belongs(f) {
		return false
	}
	if f.Exchange != 0 {
		p.exchanges[f.Exchange] = true
		if f.Kind == capture.Done {
			delete(p.exchanges, f.Exchange)
		}
	}
	return true
}

func (p *part) belongs(f *capture.Frame) bool {
	switch {
	case p.besides.has(f.Position):
		return true
	case f.Kind == capture.Gap:
		return f.Position > p.first
	case f.Kind == capture.End:
		return p.connections[f.Connection]
	case f.Kind == capture.Act && f.Connection == 0:
		return p.within(f.Position, 0)
	case f.Connection != 0 && p.within(f.Position, f.Connection):
		return true
	}
	// The rest of an exchange that was begun, without what it carried.
	return (f.Kind == capture.Response || f.Kind == capture.Done) && p.exchanges[f.Exchange]
}

// within reports whether a stretch has a position, of the connection if one is
// given.
func (p *part) within(at, connection capture.Position) bool {
	for _, s := range p.stretches {
		if at >= s.from && at <= s.to && (connection == 0 || s.connections[connection]) {
			return true
		}
	}
	return false
}

// add takes a connection: what came before it had a number, and its Open frame.
func (p *part) add(s *survey, connection capture.Position) {
	if p.connections[connection] {
		return
	}
	p.connections[connection] = true
	for _, at := range append(s.before[connection], connection) {
		p.besides.add(at)
		if p.first == 0 || at < p.first {
			p.first = at
		}
	}
}

// narrow takes the stretches of the wanted runs.
func (s *survey) narrow() *part {
	p := newPart()
	for _, stretch := range s.stretches() {
		p.stretches = append(p.stretches, stretch)
		for c := range stretch.connections {
			p.add(s, c)
		}
		s.addJoins(p, stretch)
	}
	for _, posted := range s.posted {
		for at := range posted.positions() {
			p.besides.add(at)
		}
	}
	return p
}

// wide takes all frames of the same connections, up to the end.
func (s *survey) wide() *part {
	p := newPart()
	all := stretch{from: s.session.First, to: s.session.Last, connections: map[capture.Position]bool{}}
	for _, stretch := range s.stretches() {
		for c := range stretch.connections {
			all.connections[c] = true
			p.add(s, c)
		}
	}
	p.stretches = []stretch{all}
	return p
}

// stretches are the spans of the wanted runs, joined with those of the runs that
// were under way on the same connections: a run that is cut looks broken.
func (s *survey) stretches() []stretch {
	var list []stretch
	for _, id := range s.ids() {
		if where := s.spans[id]; where != nil && where.from != 0 {
			list = append(list, stretch{where.from, where.to, where.connections})
		}
	}
	for grown := true; grown; {
		grown = false
		for _, where := range s.spans {
			for i := range list {
				if list[i].grow(where) {
					grown = true
				}
			}
		}
		list = merge(list)
	}
	return list
}

// grow makes the stretch reach over a run that overlaps it on one of its
// connections.
func (t *stretch) grow(where *span) bool {
	if where.from == 0 || where.from > t.to || where.to < t.from || where.from >= t.from && where.to <= t.to {
		return false
	}
	for c := range where.connections {
		if t.connections[c] {
			t.from, t.to = min(t.from, where.from), max(t.to, where.to)
			return true
		}
	}
	return false
}

// merge joins stretches that overlap.
func merge(list []stretch) []stretch {
	slices.SortFunc(list, func(a, b stretch) int { return cmp.Compare(a.from, b.from) })
	var merged []stretch
	for _, t := range list {
		n := len(merged)
		if n == 0 || merged[n-1].to < t.from {
			merged = append(merged, stretch{t.from, t.to, map[capture.Position]bool{}})
			n++
		}
		last := &merged[n-1]
		last.to = max(last.to, t.to)
		for c := range t.connections {
			last.connections[c] = true
		}
	}
	return merged
}

// addJoins takes the latest thread:messages of each thread and connection before
// a stretch: without it the socket would be no member of the room.
func (s *survey) addJoins(p *part, t stretch) {
	type key struct {
		connection capture.Position
		thread     string
	}
	latest := map[key]join{}
	for _, j := range s.joins {
		if t.connections[j.connection] && j.asked[0] < t.from {
			latest[key{j.connection, j.thread}] = j
		}
	}
	for _, j := range latest {
		for _, between := range [][2]capture.Position{j.asked, j.answered} {
			if between[0] != 0 { // attachments in between go with it
				one := stretch{between[0], between[1], map[capture.Position]bool{j.connection: true}}
				p.stretches = append(p.stretches, one)
			}
		}
	}
}
