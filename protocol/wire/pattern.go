package wire

import (
	"encoding/binary"
	"math/bits"
)

// maxPattern is the length of the longest text that a Pattern keeps, in bytes.
const maxPattern = 4 << 10

// Pattern is a text of JSON that was read before, to read others by. Streams
// repeat themselves: but for what a few strings and numbers say, an envelope is
// the one before it. What is the same byte for byte needs no second look, so
// that Match reads the values that differ and nothing else. Names and brackets
// may not differ, and a value about which there is something to say matches
// nothing: see [SkipString] and [SkipNumber].
//
//	like, ok := p.Match(text, nil)
//	if !ok {
//		// read text as a whole, and if it is good:
//		like = p.Learn(text)
//	}
//
// The zero value matches nothing.
type Pattern struct {
	// Note is what whoever reads by the pattern remembers of the text. Learn
	// makes it nil.
	Note any

	text   []byte
	values []span // the strings and numbers in text, names left out
	learnt int    // how often
}

// span is a stretch of bytes.
type span struct{ from, to int }

// Like says that a text is what a Pattern has learnt, or how it differs. The
// zero value says nothing.
type Like struct {
	Pattern *Pattern
	// Changes are the values that differ, in their order.
	Changes []Change
	learnt  int
}

// Change says that a value differs: the Value-th of the pattern, from 0, stands
// from byte From to byte To of the text.
type Change struct{ Value, From, To int }

// Holds reports whether the pattern is still the one that l is about.
func (l *Like) Holds() bool { return l.Pattern != nil && l.Pattern.learnt == l.learnt }

// At returns where in the text the byte i of the learnt one stands, for a byte
// at which a value begins or behind which one ends.
func (l *Like) At(i int) int {
	by := 0
	for _, c := range l.Changes {
		to := l.Pattern.values[c.Value].to
		if to > i {
			break
		}
		by = c.To - to
	}
	return i + by
}

// Learn takes the place of what was learnt before by text, which is good JSON.
// Texts over 4 KiB are not learnt: what is like them is not known.
func (p *Pattern) Learn(text []byte) Like {
	p.text, p.values, p.Note = p.text[:0], p.values[:0], nil
	p.learnt++
	if len(text) > maxPattern {
		return Like{}
	}
	p.text = append(p.text, text...)
	for i := 0; i < len(text); {
		start := i
		switch c := text[i]; {
		case c == '"':
			i, _ = skipText(text, i)
			if byteAt(text, skipSpace(text, i)) == ':' {
				continue
			}
		case c == '-' || '0' <= c && c <= '9':
			i, _ = skipNumber(text, i)
		default:
			i++
			continue
		}
		p.values = append(p.values, span{start, i})
	}
	return Like{Pattern: p, learnt: p.learnt}
}

// Values returns how many values there are, and Value where the n-th stands.
func (p *Pattern) Values() int { return len(p.values) }

// Value returns where the n-th value stands in the learnt text.
func (p *Pattern) Value(n int) (from, to int) { return p.values[n].from, p.values[n].to }

// Match reports whether text is what was learnt, or differs only in what strings
// and numbers say. The changes are put behind room, whose memory they use.
func (p *Pattern) Match(text []byte, room []Change) (l Like, ok bool) {
	first := len(room)
	i, by := 0, 0 // the byte of p.text that stands at i+by of text
	for n, v := range p.values {
		if i > v.to {
			continue
		}
		i += common(p.text[i:], text[i+by:])
		switch {
		case i < v.from:
			return l, false
		case i > v.to:
			continue
		}
		start := v.from + by
		end, ok := skipGood(text, start)
		if !ok || (text[start] == '"') != (p.text[v.from] == '"') {
			return l, false
		}
		i, by = v.to, end-v.to
		room = append(room, Change{n, start, end})
	}
	if len(p.text) == 0 || string(p.text[i:]) != string(text[i+by:]) {
		return l, false
	}
	return Like{p, room[first:len(room):len(room)], p.learnt}, true
}

// common returns the length of the longest beginning that a and b share.
func common(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for ; i+8 <= n; i += 8 {
		if differ := binary.LittleEndian.Uint64(a[i:]) ^ binary.LittleEndian.Uint64(b[i:]); differ != 0 {
			return i + bits.TrailingZeros64(differ)>>3
		}
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}
