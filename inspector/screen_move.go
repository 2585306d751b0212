package inspector

import "tapedeck/protocol/capture"

// enter looks closer at what is chosen.
func (s *Screen) enter() {
	switch s.top() {
	case inRuns:
		if v := &s.runs; v.list.cursor < len(v.rows) {
			s.openFilm(v.rows[v.list.cursor].chain, capture.Address{})
		}
	case inTimeline:
		s.openDetail()
	case inFindings:
		s.enterFinding()
	case inCompare:
		s.enterPair()
	}
}

// move moves the cursor, or scrolls.
func (s *Screen) move(by int) {
	switch s.top() {
	case inRuns:
		s.runs.pinned = false
		s.runs.list.move(by, len(s.runs.rows))
	case inTimeline:
		v := &s.line
		v.list.move(by, len(v.items))
		if by < 0 {
			v.follow = false
		}
	case inDetail:
		s.item.scroll = max(s.item.scroll, 0) + by
	case inFindings:
		s.panel.list.move(by, len(s.findings()))
	case inHelp:
		s.help.scroll += by
	case inCompare:
		s.sides.list.move(by, len(s.sides.items))
	}
}

// page moves by a window.
func (s *Screen) page(by int) {
	height := s.height - 4
	switch s.top() {
	case inRuns:
		height = s.runs.list.height
	case inTimeline:
		height = s.line.list.height
	case inFindings:
		height = s.panel.list.height
	case inCompare:
		height = s.sides.list.height
	}
	s.move(by * max(height-1, 1))
}

// edge moves to the beginning, or the end.
func (s *Screen) edge(end bool) {
	const far = 1 << 40
	switch {
	case s.top() == inDetail && !end:
		s.item.scroll = 0
	case s.top() == inDetail:
		s.item.scroll = far
	case end:
		s.move(far)
	default:
		s.move(-far)
	}
}

// search looks through a list for words, a part at a time.
type search struct {
	words string
	next  int // the item to look at
	by    int
	left  int // items to look at
}

// searchPart is how many items are looked at before a key gets its turn.
const searchPart = 512

// find looks for words from the cursor on.
func (s *Screen) find(words string) {
	if words == "" {
		return
	}
	s.words = words
	s.findFrom(1)
}

func (s *Screen) findAgain(by int) {
	if s.words == "" {
		s.ask('s')
		return
	}
	s.findFrom(by)
}

func (s *Screen) findFrom(by int) {
	n := s.searchable()
	if n == 0 {
		s.Say("there is nothing to search")
		return
	}
	cursor := s.runs.list.cursor
	if s.top() == inTimeline {
		cursor = s.line.list.cursor
	}
	s.search = &search{words: s.words, next: cursor + by, by: by, left: n}
	s.say = "searching " + Quote(s.words) + s.look.ellipsis() + " Esc stops"
	s.searchOn()
}

func (s *Screen) searchable() int {
	if s.top() == inTimeline {
		return len(s.line.items)
	}
	return len(s.runs.rows)
}

// searchOn looks at some more items. Behind the last one it goes on with the
// first.
func (s *Screen) searchOn() {
	q, n := s.search, s.searchable()
	for range searchPart {
		if q.left <= 0 || n == 0 {
			s.search = nil
			s.Say("nothing holds " + Quote(q.words))
			return
		}
		q.left--
		i := ((q.next % n) + n) % n
		q.next = i + q.by
		if !s.matches(i, q.words) {
			continue
		}
		s.search = nil
		s.say = ""
		if s.top() == inTimeline {
			s.line.follow = false
			s.line.list.to(i, n)
		} else {
			s.runs.pinned = false
			s.runs.list.to(i, n)
		}
		return
	}
}

func (s *Screen) matches(i int, words string) bool {
	if s.top() != inTimeline {
		r := &s.runs.rows[i]
		texts := []string{r.sum.thread, r.sum.input, string(r.sum.status)}
		for _, segment := range r.chain {
			texts = append(texts, segment.ID)
		}
		return holds(texts, words)
	}
	it := s.line.items[i]
	if it.place >= 0 {
		return holds([]string{s.line.film.glimpses[it.place].name, s.line.film.delta(it.place)}, words)
	}
	return holds(rowText(it.row), words)
}
