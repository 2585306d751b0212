package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/bits"
)

// splitter checks JSON as JSON.parse does and finds where values end, in one
// pass, to any depth and without reading what they hold. The text is known to be
// UTF-8. When a method reports false, i is at the byte that is wrong, or at the
// end of a text that ends too early.
//
// The work is done by functions over (b, i), which keep i in a register.
type splitter struct {
	b    []byte
	i    int
	nest []byte // the brackets that will close what is open
}

// reset makes s begin at byte i of b.
func (s *splitter) reset(b []byte, i int) { s.b, s.i = b, i }

// peek returns the byte at i, 0 at the end: a NUL is nowhere allowed in JSON.
func (s *splitter) peek() byte { return byteAt(s.b, s.i) }

func (s *splitter) space() { s.i = skipSpace(s.b, s.i) }

// take steps over c and the space before it, if it is there.
func (s *splitter) take(c byte) bool {
	s.space()
	if s.peek() != c {
		return false
	}
	s.i++
	return true
}

// atEnd reports whether only space is left.
func (s *splitter) atEnd() bool {
	s.space()
	return s.i == len(s.b)
}

// text steps over a string, which begins at i.
func (s *splitter) text() (ok bool) {
	s.i, ok = skipText(s.b, s.i)
	return ok
}

// value steps over one value.
func (s *splitter) value() (ok bool) {
	b, i, nest := s.b, s.i, s.nest[:0]
	for {
		i = skipSpace(b, i)
		switch c := byteAt(b, i); c {
		case '"':
			i, ok = skipText(b, i)
		case '{', '[':
			closing := c + 2 // in ASCII
			nest = append(nest, closing)
			i = skipSpace(b, i+1)
			if byteAt(b, i) == closing {
				ok = true
				break
			}
			if c == '{' {
				if i, ok = skipName(b, i); !ok {
					s.i, s.nest = i, nest
					return false
				}
			}
			continue
		case 't':
			i, ok = skipWord(b, i, "true")
		case 'f':
			i, ok = skipWord(b, i, "false")
		case 'n':
			i, ok = skipWord(b, i, "null")
		default:
			i, ok = skipNumber(b, i)
		}
		if ok {
			i, nest, ok = skipClosing(b, i, nest)
		}
		if !ok || len(nest) == 0 {
			s.i, s.nest = i, nest
			return ok
		}
	}
}

// skipClosing steps over the brackets that close after a value, and over the
// comma and the name before the next one, if the outermost value goes on.
func skipClosing(b []byte, i int, nest []byte) (int, []byte, bool) {
	for len(nest) > 0 {
		closing := nest[len(nest)-1]
		i = skipSpace(b, i)
		switch byteAt(b, i) {
		case closing:
			i, nest = i+1, nest[:len(nest)-1]
		case ',':
			ok := true
			if i++; closing == '}' {
				i, ok = skipName(b, skipSpace(b, i))
			}
			return i, nest, ok
		default:
			return i, nest, false
		}
	}
	return i, nest, true
}

// members steps over an object, and calls each with the JSON of its members'
// names and values.
func (s *splitter) members(each func(name, value []byte)) bool {
	if !s.take('{') {
		return false
	}
	if s.take('}') {
		return true
	}
	for {
		s.space()
		start := s.i
		i, ok := skipName(s.b, start)
		if s.i = i; !ok {
			return false
		}
		name := s.b[start : start+bytes.LastIndexByte(s.b[start:i], '"')+1]
		s.space()
		start = s.i
		if !s.value() {
			return false
		}
		each(name, s.b[start:s.i:s.i])
		if s.take('}') {
			return true
		}
		if !s.take(',') {
			return false
		}
	}
}

// complaint says what is wrong at i, after a method has reported false.
func (s *splitter) complaint() (reason string, offending int) {
	if s.i >= len(s.b) {
		return fmt.Sprintf("not JSON: it ends too early, at byte %d", len(s.b)), -1
	}
	return fmt.Sprintf("not JSON at byte %d: %q is not expected there", s.i, firstRune(s.b[s.i:])), s.i
}

func byteAt(b []byte, i int) byte {
	if i < len(b) {
		return b[i]
	}
	return 0
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skipName steps over a member's name and its colon.
func skipName(b []byte, i int) (int, bool) {
	if byteAt(b, i) != '"' {
		return i, false
	}
	i, ok := skipText(b, i)
	if !ok {
		return i, false
	}
	if i = skipSpace(b, i); byteAt(b, i) != ':' {
		return i, false
	}
	return i + 1, true
}

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// skipText steps over a string.
func skipText(b []byte, i int) (int, bool) {
	i++
	for {
		// Eight bytes at a time, to the first that is a quote, a backslash or a
		// control character: the lowest high bit that is left is exact.
		for i+8 <= len(b) {
			w := binary.LittleEndian.Uint64(b[i:])
			quote, slash := w^(lowBits*'"'), w^(lowBits*'\\')
			found := ((quote-lowBits)&^quote | (slash-lowBits)&^slash | (w-lowBits*' ')&^w) & highBits
			if found != 0 {
				i += bits.TrailingZeros64(found) >> 3
				break
			}
			i += 8
		}
		switch c := byteAt(b, i); {
		case c == '"':
			return i + 1, true
		case c < ' ':
			return i, false
		case c == '\\':
			var ok bool
			if i, ok = skipEscape(b, i); !ok {
				return i, false
			}
		default: // among the last seven bytes
			i++
		}
	}
}

// skipEscape steps over a backslash and what it escapes.
func skipEscape(b []byte, i int) (int, bool) {
	i++
	switch byteAt(b, i) {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1, true
	case 'u':
		i++
		for range 4 {
			switch c := byteAt(b, i); {
			case '0' <= c && c <= '9', 'a' <= c && c <= 'f', 'A' <= c && c <= 'F':
				i++
			default:
				return i, false
			}
		}
		return i, true
	}
	return i, false
}

func skipWord(b []byte, i int, word string) (int, bool) {
	for j := range len(word) {
		if byteAt(b, i) != word[j] {
			return i, false
		}
		i++
	}
	return i, true
}

func skipNumber(b []byte, i int) (end int, ok bool) {
	if byteAt(b, i) == '-' {
		i++
	}
	if byteAt(b, i) == '0' {
		i++
	} else if i, ok = skipDigits(b, i); !ok {
		return i, false
	}
	if byteAt(b, i) == '.' {
		if i, ok = skipDigits(b, i+1); !ok {
			return i, false
		}
	}
	if c := byteAt(b, i); c == 'e' || c == 'E' {
		if c := byteAt(b, i+1); c == '+' || c == '-' {
			i++
		}
		return skipDigits(b, i+1)
	}
	return i, true
}

// skipDigits steps over at least one digit.
func skipDigits(b []byte, i int) (int, bool) {
	end := digitsEnd(b, i)
	return end, end > i
}

// unquote returns what a JSON string that was checked says. Half of a surrogate
// pair becomes U+FFFD.
func unquote(raw []byte) string {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return string(raw)
	}
	return text
}
