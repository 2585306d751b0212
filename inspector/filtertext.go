package inspector

import (
	"bytes"
	"errors"
	"strings"
	"unicode/utf8"
)

// text finds words in a payload, as sent and with its escapes undone, and in
// the text that deltas join to: there, the delta that completes it matches.
func text(v filterValue) (func(*Moment) bool, error) {
	if len(v.text) > reach {
		return nil, errors.New("longer than 256 bytes; look for a part of it")
	}
	needle := v.text
	return func(m *Moment) bool {
		if e := m.event(); e != nil && e.Delta != "" {
			before := m.Before
			if keep := len(needle) - 1; len(before) > keep {
				before = before[len(before)-keep:]
			}
			if containsFold(string(before)+e.Delta, needle) {
				return true
			}
		}
		raw := m.Bytes()
		if containsFold(raw, needle) {
			return true
		}
		return bytes.IndexByte(raw, '\\') >= 0 && containsFold(unescape(raw), needle)
	}, nil
}

// containsFold is strings.Contains without regard to case.
func containsFold[T string | []byte](s T, needle string) bool {
	first := lower(needle[0])
	for i := 0; i+len(needle) <= len(s); i++ {
		if lower(s[i]) == first && strings.EqualFold(string(s[i:i+len(needle)]), needle) {
			return true
		}
	}
	// A letter whose other case has another length, or another first byte.
	return first >= utf8.RuneSelf && strings.Contains(strings.ToLower(string(s)), strings.ToLower(needle))
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c | 0x20
	}
	return c
}

// unescape undoes the escapes of JSON strings wherever they stand, so that a
// whole payload can be searched.
func unescape(raw []byte) []byte {
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' || i+1 == len(raw) {
			out = append(out, raw[i])
			continue
		}
		i++
		switch c := raw[i]; c {
		case 'n':
			out = append(out, '\n')
		case 't':
			out = append(out, '\t')
		case 'r':
			out = append(out, '\r')
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'u':
			r, n := unescapeRune(raw[i-1:])
			if n == 0 {
				out = append(out, '\\', 'u')
				continue
			}
			out = utf8.AppendRune(out, r)
			i += n - 2
		default:
			out = append(out, c)
		}
	}
	return out
}

// unescapeRune reads \uXXXX, or two of them that make one rune, and says how
// many bytes they took; 0 if it is none. Half of a pair is U+FFFD.
func unescapeRune(s []byte) (r rune, n int) {
	high, ok := hex4(s)
	if !ok {
		return 0, 0
	}
	if high < 0xd800 || high > 0xdfff {
		return high, 6
	}
	if low, ok := hex4(s[6:]); ok && high < 0xdc00 && 0xdc00 <= low && low <= 0xdfff {
		return (high-0xd800)<<10 + (low - 0xdc00) + 0x10000, 12
	}
	return utf8.RuneError, 6
}

func hex4(s []byte) (r rune, ok bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	for _, c := range s[2:6] {
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}
