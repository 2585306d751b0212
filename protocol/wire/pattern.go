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
// may not differ.
//
//	if !p.Match(text, skip) {
//		// read text as a whole, and if it is good:
//		p.Learn(text, from)
//	}
//
// The zero value matches nothing.
type Pattern struct {
	text   []byte
	values []span // the strings and numbers in text, names left out
	// moves are the values of the matched text that differ.
	moves []move
}

// span is a stretch of bytes.
type span struct{ from, to int }

// move says that what stands from a byte of the learnt text on stands elsewhere
// in the matched one.
type move struct{ from, by int }

// Learn takes the place of what was learnt before by text, which is JSON from
// byte from on. What stands before that may not differ. Texts over 4 KiB are not
// learnt.
func (p *Pattern) Learn(text []byte, from int) {
	p.text, p.values, p.moves = p.text[:0], p.values[:0], p.moves[:0]
	if len(text) > maxPattern {
		return
	}
	p.text = append(p.text, text...)
	for i := from; i < len(text); {
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
}

// Match reports whether text is what was learnt, or differs only in what strings
// and numbers say. Skip reads one of them: it returns the byte behind the string
// or number that begins at i, and whether it is good; i may be the end of b.
func (p *Pattern) Match(text []byte, skip func(b []byte, i int) (end int, ok bool)) bool {
	p.moves = p.moves[:0]
	i, by := 0, 0 // the byte of p.text that stands at i+by of text
	for _, v := range p.values {
		if i > v.to {
			continue
		}
		i += common(p.text[i:], text[i+by:])
		switch {
		case i < v.from:
			return false
		case i > v.to:
			continue
		}
		start := v.from + by
		end, ok := skip(text, start)
		if !ok || (text[start] == '"') != (p.text[v.from] == '"') {
			return false
		}
		i, by = v.to, end-v.to
		p.moves = append(p.moves, move{i, by})
	}
	return len(p.text) > 0 && string(p.text[i:]) == string(text[i+by:])
}

// At returns where in the matched text the byte i of the learnt one stands, for
// a byte at which a value begins or behind which one ends.
func (p *Pattern) At(i int) int {
	by := 0
	for _, m := range p.moves {
		if m.from > i {
			break
		}
		by = m.by
	}
	return i + by
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
