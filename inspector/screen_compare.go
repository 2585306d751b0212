package inspector

import (
	"bytes"
	"context"
	"fmt"

	"tapedeck/protocol/conversation"
)

// compareView shows two runs beside each other, aligned by construct.
type compareView struct {
	first  []conversation.Run // that was chosen to be compared with another, nil if none was
	chains [2][]conversation.Run
	diff   *Diff
	items  []pairs
	whole  bool // what is the same is shown, too
	list   list
}

// pairs are pairs that stand in one item: one that is shown, or several that are
// the same and folded.
type pairs struct{ at, n int }

// compare chooses the first run, or compares it with the one that is chosen now.
func (s *Screen) compare() {
	chain := s.chosenChain()
	v := &s.sides
	switch {
	case len(chain) == 0:
		s.refuse("there is no run to compare")
	case v.first == nil:
		v.first = chain
		s.Say("c on another run compares it with run " + shortID(chain[0].ID))
	case sameRun(&v.first[0], &chain[0]):
		v.first = nil
		s.Say("nothing is compared")
	default:
		s.compareChains(v.first, chain)
	}
}

func sameRun(a, b *conversation.Run) bool { return a.Session == b.Session && a.ID == b.ID }

// compareNamed compares a run that is named with the one that is chosen.
func (s *Screen) compareNamed(name string) {
	sel, err := Select(s.runs.runs, name)
	chain := s.chosenChain()
	switch {
	case err != nil:
		s.complain(err)
	case sel.Run == nil || len(chain) == 0:
		s.refuse("name a run to compare with, such as :compare last~1")
	default:
		s.compareChains(Chain(s.runs.runs, sel.Run), chain)
	}
}

// compareChains loads two runs, with those that they continue, and shows how they
// differ.
func (s *Screen) compareChains(a, b []conversation.Run) {
	s.say = "comparing" + s.look.ellipsis()
	s.loader.start(compareJob, func(ctx context.Context, tell teller) {
		diff, err := loadDiff(ctx, s.source, a, b)
		tell(func(s *Screen) {
			s.loader.settled(compareJob)
			if err != nil {
				s.complain(fmt.Errorf("compare runs: %w", err))
				return
			}
			s.sides = compareView{chains: [2][]conversation.Run{a, b}, diff: diff}
			s.sides.fold(&s.look)
			s.say = ""
			if s.isOpen(inTimeline) {
				s.closeFilm()
			}
			s.views = []view{inRuns} // from here one looks closer, and comes back
			s.toDifference(1)
			s.open(inCompare)
		})
	})
}

func loadDiff(ctx context.Context, src Source, a, b []conversation.Run) (*Diff, error) {
	left, err := LoadNormal(ctx, src, a)
	if err != nil {
		return nil, err
	}
	right, err := LoadNormal(ctx, src, b)
	if err != nil {
		return nil, err
	}
	return Compare(left, right, DiffOptions{Timing: true}), nil
}

// fold makes the items: what is the same and far from a difference stands in one.
func (v *compareView) fold(look *Look) {
	sheet := newDiffSheet(v.diff, look, nil)
	v.items = nil
	for i := 0; i < len(v.diff.Pairs); {
		n := 1
		if folded := sheet.folded(i); folded > diffContext && !v.whole {
			n = folded
		}
		v.items = append(v.items, pairs{i, n})
		i += n
	}
	v.list.to(v.list.cursor, len(v.items))
}

func (s *Screen) unfoldSame() {
	v := &s.sides
	at := 0
	if v.list.cursor < len(v.items) {
		at = v.items[v.list.cursor].at
	}
	v.whole = !v.whole
	v.fold(&s.look)
	for i, it := range v.items {
		if it.at <= at {
			v.list.cursor = i
		}
	}
}

// toDifference goes to the next pair that differs, or the one before. The first
// time it may be the one where one is.
func (s *Screen) toDifference(by int) {
	v := &s.sides
	from := v.list.cursor + by
	if s.top() != inCompare {
		from = 0
	}
	for i := from; i >= 0 && i < len(v.items); i += by {
		if it := v.items[i]; it.n == 1 && v.diff.Pairs[it.at].Differs() {
			v.list.cursor = i
			return
		}
	}
	if s.top() == inCompare {
		s.Say("no difference further on")
	}
}

// enterPair opens the construct that is chosen, in the run that has it: A's, if
// both do.
func (s *Screen) enterPair() {
	v := &s.sides
	if v.list.cursor >= len(v.items) {
		return
	}
	it := v.items[v.list.cursor]
	if it.n > 1 {
		s.unfoldSame()
		return
	}
	p, chain := &v.diff.Pairs[it.at], v.chains[0]
	c := p.A
	if c == nil {
		c, chain = p.B, v.chains[1]
	}
	s.openFilm(chain, c.At)
}

// compareBody draws the runs' names, the pairs, and the verdict below them.
func (s *Screen) compareBody(height int) []Line {
	v := &s.sides
	lines := s.sheetLines(func(sheet *diffSheet) { sheet.heading() })
	verdict := s.sheetLines(func(sheet *diffSheet) { sheet.verdict() })
	room := max(height-len(lines)-len(verdict), 1)
	first := v.list.place(len(v.items), room, func(i int) int { return len(s.pairLines(i)) })
	for i := first; i < len(v.items) && room > 0; i++ {
		drawn := s.pairLines(i)
		drawn = drawn[:min(len(drawn), room)]
		lines, room = append(lines, drawn...), room-len(drawn)
	}
	return append(append(lines, make([]Line, room)...), verdict...)
}

// pairLines draws an item.
func (s *Screen) pairLines(i int) []Line {
	it := s.sides.items[i]
	lines := s.sheetLines(func(sheet *diffSheet) {
		if it.n > 1 {
			sheet.same(it.n)
		} else {
			sheet.pair(&s.sides.diff.Pairs[it.at], it.at)
		}
	})
	if i == s.sides.list.cursor {
		lines[0].Pieces[0].Text, lines[0].Ground = s.look.glyph("▸", ">"), Chosen
	}
	return lines
}

// sheetLines are the lines that a part of the sheet draws, behind the column of
// the cursor's mark.
func (s *Screen) sheetLines(draw func(*diffSheet)) []Line {
	look := s.look
	look.Width = max(s.width-1, minWidth-1)
	var lines []Line
	draw(newDiffSheet(s.sides.diff, &look, func(pieces []Piece) {
		lines = append(lines, bare(append([]Piece{{Strong, " "}}, pieces...)...))
	}))
	return lines
}

func (s *Screen) compareWhere() []Piece {
	v := &s.sides
	differ, here := 0, 0
	for i := range v.diff.Pairs {
		if v.diff.Pairs[i].Differs() {
			differ++
			if v.list.cursor < len(v.items) && i <= v.items[v.list.cursor].at {
				here = differ
			}
		}
	}
	if differ == 0 {
		return []Piece{{Plain, " no differences"}}
	}
	return []Piece{{Plain, fmt.Sprintf(" %s of %s", groupDigits(max(here, 1)), FormatCount(differ, "difference"))}}
}

// comparisonJSON is the comparison, as diff writes it.
func (s *Screen) comparisonJSON() (string, error) {
	var b bytes.Buffer
	err := s.sides.diff.WriteJSON(&b)
	return b.String(), err
}

// comparisonCommand is the command that shows the comparison.
func (s *Screen) comparisonCommand() string {
	name := func(chain []conversation.Run) string {
		return shellWord(fmt.Sprintf("%d/%s", chain[0].Session, chain[0].ID))
	}
	return s.commandLine("diff " + name(s.sides.chains[0]) + " " + name(s.sides.chains[1]))
}
