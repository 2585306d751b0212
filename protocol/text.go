package protocol

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	longestFinding = 199 // bytes of a finding's text
	longestQuote   = 40  // characters of something from outside in it
)

// quote quotes something from outside for a finding's text, shortened.
func quote[T ~string | ~[]byte](s T) string {
	if utf8.RuneCountInString(string(s)) > longestQuote {
		return fmt.Sprintf("%.*q…", longestQuote, string(s))
	}
	return fmt.Sprintf("%q", string(s))
}

// clip makes a text fit a finding: one line, under 200 bytes.
func clip(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
	if len(text) <= longestFinding {
		return text
	}
	cut := longestFinding - len("…")
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
