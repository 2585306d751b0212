package recorder

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// leaf is a string or a number in a JSON text.
type leaf struct {
	from, to int    // with the quotes of a string
	raw      []byte // its JSON
	text     bool   // a string
}

// leaves calls visit for each string and number of one JSON value at the
// beginning of b, with the names and indexes that lead there. What it calls at
// base is where b begins. It returns how far b could be read, which is behind
// the value if it is well-formed.
func (r *redactor) leaves(b []byte, base int, visit func(path []string, l leaf)) (read int, ok bool) {
	d := jsontext.NewDecoder(bytes.NewBuffer(b), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	var path []string
	for {
		kind := d.PeekKind()
		if kind != '"' && kind != '0' {
			if _, err := d.ReadToken(); err != nil {
				return int(d.InputOffset()), false
			}
		} else {
			object, n := d.StackIndex(d.StackDepth())
			raw, err := d.ReadValue()
			if err != nil {
				return int(d.InputOffset()), false
			}
			if object != '{' || n%2 == 1 { // else it is a name
				path = path[:0]
				for token := range d.StackPointer().Tokens() {
					path = append(path, token)
				}
				end := int(d.InputOffset())
				visit(path, leaf{base + end - len(raw), base + end, b[end-len(raw) : end], kind == '"'})
			}
		}
		if d.StackDepth() == 0 {
			return int(d.InputOffset()), true
		}
	}
}

// all hides those leaves of b, all of which is one JSON value, that secret
// names. If b is not well-formed, what cannot be read is hidden as a whole.
func (r *redactor) all(b []byte, base int, secret func(path []string) bool) {
	if len(b) == 0 {
		return
	}
	read, _ := r.leaves(b, base, func(path []string, l leaf) {
		if secret(path) {
			r.leaf(l)
		}
	})
	r.rest(b, base, read)
}

// rest hides what of b could not be read, save for the punctuation before it.
func (r *redactor) rest(b []byte, base, read int) {
	for read < len(b) && bytes.IndexByte([]byte(" \t\r\n,:{[\""), b[read]) >= 0 {
		read++
	}
	r.replace(base+read, base+len(b), b[read:])
}

// leaf hides the whole of a leaf. A number becomes a string.
func (r *redactor) leaf(l leaf) {
	if l.text {
		r.replace(l.from+1, l.to-1, unquoted(l.raw))
		return
	}
	if text := r.token(l.raw); text != "" {
		r.edits = append(r.edits, edit{l.from, l.to, `"` + text + `"`})
	}
}

// inText hides what find finds in the text of a JSON string, where it stands in
// its JSON.
func (r *redactor) inText(l leaf, find func(string) []secret) {
	if bytes.IndexByte(l.raw, '\\') < 0 {
		for _, s := range find(string(l.raw[1 : len(l.raw)-1])) {
			r.replace(l.from+1+s.from, l.from+1+s.to, []byte(s.value))
		}
		return
	}
	text, places := unquote(l.raw)
	for _, s := range find(string(text)) {
		r.replace(l.from+places[s.from], l.from+places[s.to], []byte(s.value))
	}
}

func unquoted(raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	text, _ := unquote(raw)
	return text
}

// unquote returns what a JSON string says, and for each of its bytes, and for
// its end, where it stands in raw.
func unquote(raw []byte) (text []byte, places []int) {
	text, places = make([]byte, 0, len(raw)), make([]int, 0, len(raw))
	end := len(raw) - 1
	for i := 1; i < end; {
		start, size := len(text), 1
		if raw[i] != '\\' || i+1 == end {
			text = append(text, raw[i])
		} else {
			text, size = appendEscaped(text, raw[i:end])
		}
		for range text[start:] {
			places = append(places, i)
		}
		i += size
	}
	return text, append(places, end)
}

// appendEscaped appends what the escape at the beginning of raw stands for, and
// returns the escape's length.
func appendEscaped(text, raw []byte) ([]byte, int) {
	switch c := raw[1]; c {
	case 'b':
		return append(text, '\b'), 2
	case 'f':
		return append(text, '\f'), 2
	case 'n':
		return append(text, '\n'), 2
	case 'r':
		return append(text, '\r'), 2
	case 't':
		return append(text, '\t'), 2
	case 'u':
		c := hex4(raw)
		if low := hex4(raw[min(6, len(raw)):]); utf16.IsSurrogate(c) && low >= 0 {
			if pair := utf16.DecodeRune(c, low); pair != utf8.RuneError {
				return utf8.AppendRune(text, pair), 12
			}
		}
		return utf8.AppendRune(text, c), min(6, len(raw))
	default:
		return append(text, c), 2
	}
}

// hex4 reads \uXXXX, -1 if raw does not begin with that.
func hex4(raw []byte) rune {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return -1
	}
	var c rune
	for _, b := range raw[2:6] {
		switch {
		case '0' <= b && b <= '9':
			c = c<<4 | rune(b-'0')
		case 'a' <= b|0x20 && b|0x20 <= 'f':
			c = c<<4 | rune(b|0x20-'a'+10)
		default:
			return -1
		}
	}
	return c
}
