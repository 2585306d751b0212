package inspector

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

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
