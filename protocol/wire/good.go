package wire

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// skipGood steps over the string or the number that begins at i, which may be
// the end of b, if there is nothing to say about it.
func skipGood(b []byte, i int) (end int, ok bool) {
	if byteAt(b, i) != '"' {
		return SkipNumber(b, i)
	}
	end, _, ok = SkipString(b, i)
	return end, ok
}

// SkipString steps over the JSON string that begins with the quote at byte i of
// b. It is content only with a string about which there is nothing to say: UTF-8,
// ended, and without half a surrogate pair. Escaped says whether it has escapes.
func SkipString(b []byte, i int) (end int, escaped, ok bool) {
	i++
	start, other := i, uint64(0)
	for {
		// Eight bytes at a time, to the first that is a quote, a backslash or a
		// control character: the lowest high bit that is left is exact.
		for i+8 <= len(b) {
			w := binary.LittleEndian.Uint64(b[i:])
			quote, slash := w^(lowBits*'"'), w^(lowBits*'\\')
			found := ((quote-lowBits)&^quote | (slash-lowBits)&^slash | (w-lowBits*' ')&^w) & highBits
			if found != 0 {
				n := bits.TrailingZeros64(found)
				other |= w & (1<<n - 1)
				i += n >> 3
				break
			}
			other |= w
			i += 8
		}
		switch c := byteAt(b, i); {
		case c == '"':
			return i + 1, escaped, other&highBits == 0 || utf8.Valid(b[start:i])
		case c < ' ':
			return i, escaped, false
		case c == '\\':
			n := escape(b[i:])
			if n == 0 {
				return i, true, false
			}
			escaped = true
			i += n
		default: // among the last seven bytes
			other |= uint64(c)
			i++
		}
	}
}

// escape returns the length of the escape that b begins with: 12 for a
// surrogate pair, 0 for what is no escape or half a pair.
func escape(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	}
	unit, ok := codeUnit(b)
	switch {
	case !ok, isLow(unit):
		return 0
	case !isHigh(unit):
		return 6
	}
	if low, ok := codeUnit(b[6:]); ok && isLow(low) {
		return 12
	}
	return 0
}

// codeUnit reads \uXXXX.
func codeUnit(b []byte) (unit uint16, ok bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	for _, c := range b[2:6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		unit = unit<<4 | uint16(c)
	}
	return unit, true
}

func isHigh(unit uint16) bool { return unit>>10 == 0xd800>>10 }
func isLow(unit uint16) bool  { return unit>>10 == 0xdc00>>10 }

// SkipNumber steps over the JSON number that begins at byte i of b, if
// JavaScript surely keeps it as it is: no integer beyond 2^53, and no exponent
// that could carry it out of range.
func SkipNumber(b []byte, i int) (end int, ok bool) {
	if byteAt(b, i) == '-' {
		i++
	}
	start := i
	if byteAt(b, i) == '0' {
		i++
	} else if i, ok = skipDigits(b, i); !ok {
		return i, false
	}
	whole := b[start:i]
	if byteAt(b, i) == '.' {
		if i, ok = skipDigits(b, i+1); !ok {
			return i, false
		}
	}
	if byteAt(b, i)|0x20 == 'e' {
		if i++; byteAt(b, i) == '+' || byteAt(b, i) == '-' {
			i++
		}
		end := digitsEnd(b, i)
		return end, end > i && end-i <= 2 && len(whole) <= 100
	}
	return i, len(whole) < len(maxExact) || len(whole) == len(maxExact) && string(whole) <= maxExact
}
