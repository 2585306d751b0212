package story

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
)

// yamlWriter writes the YAML of a scenario: keys in their order, texts so that
// they can be edited, values as JSON, which is YAML too.
type yamlWriter struct {
	b bytes.Buffer
}

// key writes a key, its value to follow in the same line.
func (y *yamlWriter) key(indent int, key string) {
	fmt.Fprintf(&y.b, "%*s%s: ", 2*indent, "", key)
}

// open writes a key whose value follows in the lines below.
func (y *yamlWriter) open(indent int, key string) {
	fmt.Fprintf(&y.b, "%*s%s:\n", 2*indent, "", key)
}

// text writes a text under a key, none if there is none.
func (y *yamlWriter) text(indent int, key, text string) {
	if text == "" {
		return
	}
	y.key(indent, key)
	y.scalar(indent, text)
}

// scalar writes a text behind its key: of several lines as they are, if nothing
// in them is lost that way, else quoted as JSON quotes.
func (y *yamlWriter) scalar(indent int, text string) {
	if !literal(text) {
		y.b.Write(quoted(text))
		y.b.WriteByte('\n')
		return
	}
	y.b.WriteString("|-\n")
	for line := range strings.SplitSeq(text, "\n") {
		if line != "" {
			fmt.Fprintf(&y.b, "%*s%s", 2*indent+2, "", line)
		}
		y.b.WriteByte('\n')
	}
}

// literal reports whether a text can stand as it is.
func literal(text string) bool {
	if !strings.Contains(text, "\n") || text[0] == '\n' || text[0] == ' ' || text[len(text)-1] == '\n' {
		return false
	}
	for line := range strings.SplitSeq(text, "\n") {
		if line != strings.TrimRight(line, " ") {
			return false
		}
	}
	for _, r := range text {
		if r != '\n' && !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

// quoted writes a text in double quotes, and nothing in it that hides.
func quoted(text string) []byte {
	out := []byte{'"'}
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			out = append(out, '\\', byte(r))
		case r == '\n':
			out = append(out, `\n`...)
		case r == '\t':
			out = append(out, `\t`...)
		case r < 0x20 || r >= 0x7f && r < 0x10000 && !unicode.IsPrint(r):
			out = fmt.Appendf(out, `\u%04x`, r)
		case !unicode.IsPrint(r):
			out = fmt.Appendf(out, `\U%08x`, r)
		default:
			out = append(out, string(r)...)
		}
	}
	return append(out, '"')
}

// value writes a JSON value under a key, none if there is none.
func (y *yamlWriter) value(indent int, key string, raw json.RawMessage) {
	if len(raw) == 0 {
		return
	}
	y.key(indent, key)
	y.flow(raw)
	y.b.WriteByte('\n')
}

// flow writes JSON in one line, as YAML.
func (y *yamlWriter) flow(raw json.RawMessage) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if y.flowValue(d) != nil {
		y.b.Write(quoted(string(raw))) // what is no JSON is told as text
	}
}

func (y *yamlWriter) flowValue(d *json.Decoder) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	delim, ok := token.(json.Delim)
	if !ok {
		y.atom(token)
		return nil
	}
	closing := byte('}')
	if delim == '[' {
		closing = ']'
	}
	y.b.WriteByte(byte(delim))
	for first := true; d.More(); first = false {
		if !first {
			y.b.WriteString(", ")
		}
		if delim == '{' {
			name, err := d.Token()
			if err != nil {
				return err
			}
			y.atom(name)
			y.b.WriteString(": ")
		}
		if err := y.flowValue(d); err != nil {
			return err
		}
	}
	y.b.WriteByte(closing)
	_, err = d.Token()
	return err
}

func (y *yamlWriter) atom(token json.Token) {
	switch v := token.(type) {
	case string:
		y.b.Write(quoted(v))
	case nil:
		y.b.WriteString("null")
	default:
		fmt.Fprint(&y.b, v)
	}
}

// duration writes a duration under a key, rounded for people.
func (y *yamlWriter) duration(indent int, key string, d time.Duration) {
	if d = d.Round(10 * time.Millisecond); d > 0 {
		y.key(indent, key)
		fmt.Fprintln(&y.b, d)
	}
}
