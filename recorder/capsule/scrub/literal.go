package scrub

import (
	"unicode/utf16"
	"unicode/utf8"
)

// units reads what stands between the quotes of a JSON string, as JavaScript
// counts it. Half a surrogate pair stays half a pair; a byte that is no UTF-8
// becomes U+FFFD.
func units(raw []byte) []uint16 {
	out := make([]uint16, 0, len(raw))
	for i := 0; i < len(raw); {
		c := raw[i]
		switch {
		case c == '\\' && i+1 < len(raw) && raw[i+1] == 'u' && i+6 <= len(raw):
			code, ok := uint16(0), true
			for _, d := range raw[i+2 : i+6] {
				v, is := hexValue(uint16(d))
				code, ok = code<<4|v, ok && is
			}
			if !ok {
				out = append(out, '\\')
				i++
				continue
			}
			out = append(out, code)
			i += 6
		case c == '\\' && i+1 < len(raw):
			out = append(out, escaped(uint16(raw[i+1])))
			i += 2
		case c < utf8.RuneSelf:
			out = append(out, uint16(c))
			i++
		default:
			r, n := utf8.DecodeRune(raw[i:])
			out = utf16.AppendRune(out, r)
			i += n
		}
	}
	return out
}

// appendUnits writes units as they stand between the quotes of a JSON string.
func appendUnits(dst []byte, list []uint16) []byte {
	const digits = "0123456789abcdef"
	for i := 0; i < len(list); i++ {
		u := list[i]
		switch {
		case u == '"' || u == '\\':
			dst = append(dst, '\\', byte(u))
		case u == '\n':
			dst = append(dst, '\\', 'n')
		case u == '\r':
			dst = append(dst, '\\', 'r')
		case u == '\t':
			dst = append(dst, '\\', 't')
		case u >= 0xd800 && u < 0xdc00 && i+1 < len(list) && list[i+1] >= 0xdc00 && list[i+1] < 0xe000:
			dst = utf8.AppendRune(dst, utf16.DecodeRune(rune(u), rune(list[i+1])))
			i++
		case u < 0x20 || u >= 0xd800 && u < 0xe000:
			dst = append(dst, '\\', 'u', digits[u>>12], digits[u>>8&15], digits[u>>4&15], digits[u&15])
		default:
			dst = utf8.AppendRune(dst, rune(u))
		}
	}
	return dst
}

// ofText returns the units of a Go string.
func ofText(s string) []uint16 {
	out := make([]uint16, 0, len(s))
	for _, r := range s {
		out = utf16.AppendRune(out, r)
	}
	return out
}

// isJSON reports whether a text looks like an object or an array.
func isJSON(list []uint16) bool {
	for _, u := range list {
		switch u {
		case ' ', '\t', '\n', '\r':
			continue
		case '{', '[':
			return true
		}
		return false
	}
	return false
}
