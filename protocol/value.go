package protocol

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// kind is what a JSON value is, told from its first byte.
type kind uint8

// The kinds of a value, as bits so that a shape can allow several.
const (
	isString kind = 1 << iota
	isNumber
	isBool
	isObject
	isArray
	isNull

	notNull  = isString | isNumber | isBool | isObject | isArray
	anything = notNull | isNull
)

// kindOf returns the kind of a value without space around it, 0 if it is none.
func kindOf(value []byte) kind {
	if len(value) == 0 {
		return 0
	}
	switch c := value[0]; {
	case c == '"':
		return isString
	case c == '{':
		return isObject
	case c == '[':
		return isArray
	case c == 't', c == 'f':
		return isBool
	case c == 'n':
		return isNull
	case c == '-', '0' <= c && c <= '9':
		return isNumber
	}
	return 0
}

// String names the kinds in k as a sentence does: "a string or an object".
func (k kind) String() string {
	switch k {
	case notNull:
		return "a value"
	case anything:
		return "a value, which may be null"
	}
	var text string
	for i, name := range []string{"a string", "a number", "a boolean", "an object", "an array", "null"} {
		if k&(1<<i) == 0 {
			continue
		}
		if text != "" {
			text += " or "
		}
		text += name
	}
	return text
}

// member is a member of an object: its name, unescaped, and its value's JSON.
type member struct {
	name  string
	value []byte
}

// object is an object's members as they stand. Of a name that stands twice the
// last one counts, as in JavaScript.
type object []member

// get returns the value of the member called name, nil if there is none.
func (o object) get(name string) []byte {
	for i := len(o) - 1; i >= 0; i-- {
		if o[i].name == name {
			return o[i].value
		}
	}
	return nil
}

// text returns the string called name, "" if there is none.
func (o object) text(name string) string {
	return textOf(o.get(name))
}

// readObject slices the members of an object, one level deep. It expects JSON
// and is content with less: it reads as far as it can.
func readObject(value []byte) (o object, ok bool) {
	if kindOf(value) != isObject {
		return nil, false
	}
	for i := skipSpace(value, 1); i < len(value) && value[i] == '"'; {
		end := skipString(value, i)
		name := textOf(value[i:end])
		if i = skipSpace(value, end); i >= len(value) || value[i] != ':' {
			break
		}
		i = skipSpace(value, i+1)
		if end = skipValue(value, i); end == i {
			break
		}
		o = append(o, member{name, value[i:end]})
		if i = skipSpace(value, end); i >= len(value) || value[i] != ',' {
			break
		}
		i = skipSpace(value, i+1)
	}
	return o, true
}

// readArray slices the items of an array, as readObject does.
func readArray(value []byte) (items [][]byte, ok bool) {
	if kindOf(value) != isArray {
		return nil, false
	}
	for i := skipSpace(value, 1); i < len(value); {
		end := skipValue(value, i)
		if end == i {
			break
		}
		items = append(items, value[i:end])
		if i = skipSpace(value, end); i >= len(value) || value[i] != ',' {
			break
		}
		i = skipSpace(value, i+1)
	}
	return items, true
}

// trim returns value without the space around it.
func trim(value []byte) []byte { return bytes.Trim(value, " \t\r\n") }

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skipString returns the index behind the string that begins at i.
func skipString(b []byte, i int) int {
	for start := i; ; {
		n := bytes.IndexByte(b[i+1:], '"')
		if n < 0 {
			return len(b)
		}
		i += 1 + n
		slash := i
		for slash > start+1 && b[slash-1] == '\\' {
			slash--
		}
		if (i-slash)%2 == 0 { // the quote is not escaped
			return i + 1
		}
	}
}

// skipValue returns the index behind the value that begins at i, i if none
// does. It counts brackets instead of calling itself, since how deep a value
// goes is the sender's choice.
func skipValue(b []byte, i int) int {
	for depth := 0; i < len(b); {
		switch b[i] {
		case '"':
			i = skipString(b, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
			i++
		case ',', ':', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
			i++
		default:
			i = skipWord(b, i)
		}
		if depth == 0 {
			return i
		}
	}
	return len(b)
}

// skipWord returns the index behind the number or literal that begins at i.
func skipWord(b []byte, i int) int {
	if n := bytes.IndexAny(b[i:], ",:{}[]\" \t\r\n"); n > 0 {
		return i + n
	}
	return len(b)
}

// textOf returns what a string's JSON says, "" if value is no string. Half of a
// surrogate pair becomes U+FFFD, as it would on a screen.
func textOf(value []byte) string {
	if kindOf(value) != isString {
		return ""
	}
	text, _ := jsontext.AppendUnquote(nil, value) // what could be read before an error
	return string(text)
}

// integerOf returns the integer that value is, however it is spelled: 1, 1.0
// and 1e0 are the same number to JavaScript. ok is false for what is no integer
// or has no place in an int64.
func integerOf(value []byte) (n int64, ok bool) {
	if kindOf(value) != isNumber {
		return 0, false
	}
	if n, ok := plainInteger(value); ok {
		return n, true
	}
	if n, err := strconv.ParseInt(string(value), 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(string(value), 64)
	if err != nil || f < -1<<63 || f >= 1<<63 || f != float64(int64(f)) {
		return 0, false
	}
	return int64(f), true
}

// plainInteger reads what nearly all integers are, up to 18 digits, without
// allocating.
func plainInteger(value []byte) (n int64, ok bool) {
	if len(value) > 18 {
		return 0, false
	}
	for _, c := range value {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}
