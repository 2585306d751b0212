package scenario

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// chunker cuts a text into deltas. What it returns are JSON strings, since a
// delta may end inside a surrogate pair, which no Go string can.
type chunker func(text string) [][]byte

// chunkerNamed returns the chunker that a pace names.
func chunkerNamed(name string) (chunker, error) {
	switch name {
	case "whole":
		return func(s string) [][]byte { return encodeAll([]string{s}) }, nil
	case "word":
		return func(s string) [][]byte { return encodeAll(words(s)) }, nil
	case "char":
		return func(s string) [][]byte { return encodeAll(runes(s, 1)) }, nil
	case "grapheme":
		return func(s string) [][]byte { return encodeAll(graphemes(s)) }, nil
	case "mid-surrogate":
		return midSurrogate, nil
	}
	n, err := strconv.Atoi(name)
	if err != nil || n < 1 {
		return nil, fmt.Errorf("chunk %q is none of whole, word, char, grapheme, mid-surrogate and a number of characters", name)
	}
	return func(s string) [][]byte { return encodeAll(runes(s, n)) }, nil
}

// words cuts before each word: the spaces stay with the word before them.
func words(s string) []string {
	var parts []string
	start, space := 0, false
	for i, r := range s {
		if !unicode.IsSpace(r) && space {
			parts = append(parts, s[start:i])
			start = i
		}
		space = unicode.IsSpace(r)
	}
	return append(parts, s[start:])
}

func runes(s string, n int) []string {
	var parts []string
	for len(s) > 0 {
		end := 0
		for i := 0; i < n && end < len(s); i++ {
			_, size := utf8.DecodeRuneInString(s[end:])
			end += size
		}
		parts = append(parts, s[:end])
		s = s[end:]
	}
	return parts
}

func graphemes(s string) []string {
	var parts []string
	for state := -1; len(s) > 0; {
		var cluster string
		cluster, s, _, state = uniseg.FirstGraphemeClusterInString(s, state)
		parts = append(parts, cluster)
	}
	return parts
}

// midSurrogate cuts inside every surrogate pair, and nowhere else.
func midSurrogate(s string) [][]byte {
	var parts [][]byte
	delta := []byte{'"'}
	for _, r := range s {
		if r < 0x10000 {
			delta = appendEscaped(delta, string(r))
			continue
		}
		high, low := 0xD800+(r-0x10000)>>10, 0xDC00+(r-0x10000)&0x3FF
		parts = append(parts, append(fmt.Appendf(delta, `\u%04x`, high), '"'))
		delta = fmt.Appendf([]byte{'"'}, `\u%04x`, low)
	}
	if len(delta) > 1 {
		parts = append(parts, append(delta, '"'))
	}
	return parts
}

// encodeAll writes the parts into one buffer.
func encodeAll(parts []string) [][]byte {
	size := 0
	for _, part := range parts {
		size += len(part) + 2
	}
	buf := make([]byte, 0, size) // where there is much to escape it moves
	encoded := make([][]byte, 0, len(parts))
	for _, part := range parts {
		if part != "" {
			at := len(buf)
			buf = appendString(buf, part)
			encoded = append(encoded, buf[at:len(buf):len(buf)])
		}
	}
	return encoded
}

// appendString writes s as a JSON string, as JSON.stringify does.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	return append(appendEscaped(dst, s), '"')
}

func appendEscaped(dst []byte, s string) []byte {
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, `\n`...)
		case r == '\r':
			dst = append(dst, `\r`...)
		case r == '\t':
			dst = append(dst, `\t`...)
		case r < 0x20:
			dst = fmt.Appendf(dst, `\u%04x`, r)
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return dst
}

// filler returns n bytes of text that reads like text.
func filler(n int) string {
	const sentence = "The quick brown fox jumps over the lazy dog, and the tape runs on. "
	return strings.Repeat(sentence, n/len(sentence)+1)[:n]
}
