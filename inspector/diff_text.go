package inspector

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

const (
	sideBySide  = 100 // columns from which the two sides stand beside each other
	diffContext = 2   // pairs that are the same and shown around those that differ
	maxChanges  = 12  // of one construct that are shown
)

// diffSheet is the layout of a Diff for one width.
type diffSheet struct {
	*Diff
	look *Look
	emit func([]Piece) // takes a line
	half int           // columns of one side, 0 if they stand under each other
	took int           // columns of the times, 0 without
}

func newDiffSheet(d *Diff, look *Look, emit func([]Piece)) *diffSheet {
	s := &diffSheet{Diff: d, look: look, emit: emit}
	if d.options.Timing {
		s.took = 2 * 8
	}
	if width := look.width(); width >= sideBySide {
		s.half = (width - 2 - 3 - s.took) / 2
	}
	return s
}

// Write writes a comparison for a person: the sides beside each other where
// there is room, what is the same between differences folded, and a verdict.
func (d *Diff) Write(w io.Writer, look *Look) error {
	out := bufio.NewWriter(w)
	s := newDiffSheet(d, look, func(pieces []Piece) { out.WriteString(look.paint(pieces) + "\n") })
	s.heading()
	for i := 0; i < len(d.Pairs); {
		if n := s.folded(i); n > diffContext {
			s.same(n)
			i += n
			continue
		}
		s.pair(&d.Pairs[i], i)
		i++
	}
	s.verdict()
	return out.Flush()
}

// same stands for so many constructs that are the same.
func (s *diffSheet) same(n int) {
	s.line([]Piece{{Dim, s.look.glyph("⋯ ", ". ") + FormatCount(n, "construct") + " the same"}})
}

// folded is how many pairs from i on are the same and far from a difference.
func (s *diffSheet) folded(i int) int {
	if i > 0 && !s.far(i) {
		return 0
	}
	n := 0
	for i+n < len(s.Pairs) && s.far(i+n) {
		n++
	}
	return n
}

// far reports whether the pairs around i are all the same.
func (s *diffSheet) far(i int) bool {
	for j := max(i-diffContext, 0); j <= min(i+diffContext, len(s.Pairs)-1); j++ {
		if s.Pairs[j].Differs() {
			return false
		}
	}
	return true
}

func (s *diffSheet) line(pieces []Piece) {
	s.emit(trimPieces(pieces, s.look.width(), s.look))
}

// columns writes two sides beside each other, and what stands behind them.
func (s *diffSheet) columns(mark Piece, a, b, behind []Piece) {
	a, b = fitPieces(a, s.half, s.look), fitPieces(b, s.half, s.look)
	pieces := append([]Piece{mark, {Plain, " "}}, a...)
	pieces = append(pieces, Piece{Plain, strings.Repeat(" ", s.half-columns(a))}, Piece{Dim, s.look.glyph(" │ ", " | ")})
	pieces = append(pieces, b...)
	if len(behind) > 0 {
		pieces = append(append(pieces, Piece{Plain, strings.Repeat(" ", s.half-columns(b))}), behind...)
	}
	s.line(pieces)
}

// fitPieces is trimPieces for a list that may be empty.
func fitPieces(pieces []Piece, width int, look *Look) []Piece {
	if len(pieces) == 0 {
		return nil
	}
	return trimPieces(append([]Piece(nil), pieces...), width, look)
}

func (s *diffSheet) heading() {
	a, b := []Piece{{Strong, "A  " + Clean(s.A.Label)}}, []Piece{{Strong, "B  " + Clean(s.B.Label)}}
	if s.half > 0 {
		var behind []Piece
		if s.took > 0 {
			behind = []Piece{{Dim, fmt.Sprintf("%8s%8s", "A took", "B took")}}
		}
		s.columns(Piece{Plain, " "}, a, b, behind)
	} else {
		s.line(append([]Piece{{Plain, "  "}}, a...))
		s.line(append([]Piece{{Plain, "  "}}, b...))
	}
	s.emit(nil)
}

// pair writes a construct with what has changed in it.
func (s *diffSheet) pair(p *Pair, i int) {
	mark := s.mark(p)
	if s.half > 0 {
		s.columns(mark, s.label(p.A, s.half), s.label(p.B, s.half), s.times(p))
	} else {
		s.stacked(mark, p)
	}
	if p.Moved {
		s.line([]Piece{{Plain, "    "}, {Warn, s.movedTo(i)}})
	}
	for j := range p.Changes {
		if j == maxChanges {
			s.line([]Piece{{Dim, fmt.Sprintf("    and %s more", FormatCount(len(p.Changes)-j, "difference"))}})
			break
		}
		s.change(&p.Changes[j])
	}
}

func (s *diffSheet) mark(p *Pair) Piece {
	switch {
	case p.B == nil:
		return Piece{Bad, "-"}
	case p.A == nil:
		return Piece{Good, "+"}
	case p.Moved:
		return Piece{Warn, "~"}
	case len(p.Changes) > 0:
		return Piece{Warn, s.look.glyph("≠", "!")}
	}
	return Piece{Plain, " "}
}

// stacked writes a pair for a narrow width: one line if both sides are alike.
func (s *diffSheet) stacked(mark Piece, p *Pair) {
	c, at := p.A, ""
	if c == nil {
		c = p.B
	} else if p.B != nil && !p.B.At.IsZero() {
		at = " | #" + p.B.At.String()
	}
	pieces := append([]Piece{mark, {Plain, " "}}, s.label(c, s.look.width()-2-Width(at)-s.took)...)
	pieces = append(pieces, Piece{Dim, at})
	s.line(append(pieces, s.times(p)...))
}

// times say how long a pair took on both sides.
func (s *diffSheet) times(p *Pair) []Piece {
	if s.took == 0 || p.A == nil || p.B == nil {
		return nil
	}
	return []Piece{{Dim, fmt.Sprintf("%8s%8s", FormatDuration(p.A.Took), FormatDuration(p.B.Took))}}
}

// label is a construct with its address and the beginning of what it says.
func (s *diffSheet) label(c *Construct, width int) []Piece {
	if c == nil {
		return nil
	}
	row := &Row{Kind: c.Kind, Name: c.Name}
	pieces := []Piece{{row.style(), row.Glyph(s.look) + " " + Clean(row.word())}}
	if c.Kind == 0 {
		pieces = []Piece{{Strong, s.look.glyph("▸ ", "= ") + "run"}}
	}
	if !c.At.IsZero() {
		pieces = append(pieces, Piece{Dim, " #" + c.At.String()})
	}
	room := width - columns(pieces) - 2
	if said := c.said(); said != nil && room > 8 {
		pieces = append(pieces, Piece{Plain, "  " + s.look.fit(string(canonical(said)), room, 0)})
	}
	return pieces
}

// said is what a construct has to say in a line: its one field, or the one that
// matters most.
func (c *Construct) said() any {
	for _, name := range []string{"text", "arguments", "input", "answer", "payload", "code", "todos", "status", "task", "events"} {
		if f := c.field(name); f != nil {
			return f.value
		}
	}
	return nil
}

// movedTo says where a construct is on the other side.
func (s *diffSheet) movedTo(i int) string {
	p := &s.Pairs[i]
	if p.B.At.IsZero() {
		return "stands elsewhere in B"
	}
	return "stands elsewhere in B, at #" + p.B.At.String()
}

// change writes one value that differs.
func (s *diffSheet) change(c *Change) {
	path := []Piece{{Dim, "    " + s.look.fit(c.Field, max(s.look.width()/2-6, 12), 0)}}
	if s.half > 0 {
		room := s.half - 4
		a, b := excerpts(c.A, c.B, room, s.look.ellipsis())
		s.line(path)
		s.columns(Piece{Plain, " "}, []Piece{{Bad, "    " + orNothing(a)}}, []Piece{{Good, orNothing(b)}}, nil)
		return
	}
	a, b := excerpts(c.A, c.B, s.look.width()-8, s.look.ellipsis())
	s.line(path)
	s.line([]Piece{{Bad, "      - " + orNothing(a)}})
	s.line([]Piece{{Good, "      + " + orNothing(b)}})
}

// verdict says what the comparison came to.
func (s *diffSheet) verdict() {
	same, changed, moved, onlyA, onlyB := s.Counts()
	s.emit(nil)
	if s.Equal() {
		s.line([]Piece{{Good, s.look.glyph("✔", "v") + " no differences"}, {Plain, " in " + FormatCount(same, "construct")}})
	} else {
		var parts []string
		for _, c := range []struct {
			n    int
			what string
		}{{changed, "changed"}, {moved, "moved"}, {onlyA, "only in A"}, {onlyB, "only in B"}, {same, "the same"}} {
			if c.n > 0 {
				parts = append(parts, groupDigits(c.n)+" "+c.what)
			}
		}
		s.line([]Piece{{Bad, s.look.glyph("✖", "x") + " they differ"}, {Plain, ": " + strings.Join(parts, ", ")}})
		for _, line := range wrap("first at "+s.First.place()+": "+s.First.Text, s.look.width()-2) {
			s.line([]Piece{{Plain, "  " + line}})
		}
	}
	for _, name := range s.Unused {
		s.line([]Piece{{Warn, s.look.glyph("⚠", "!") + " nothing is called " + Quote(name) + ", which was to be ignored"}})
	}
}

// place writes both addresses of a divergence.
func (d *Divergence) place() string {
	a, b := "the end of A", "the end of B"
	if !d.A.IsZero() {
		a = "#" + d.A.String()
	}
	if !d.B.IsZero() {
		b = "#" + d.B.String()
	}
	return a + " | " + b
}
