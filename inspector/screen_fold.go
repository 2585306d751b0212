package inspector

import (
	"cmp"
	"slices"
)

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
	size := len(v.film.timeline.Rows)
	if v.raw {
		size = len(v.film.glimpses)
	}
	v.items, v.listed = make([]item, 0, size), 0
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

func (s *Screen) toggleRaw() {
	s.line.raw = !s.line.raw
	s.relist()
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
