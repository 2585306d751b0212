package inspector

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ErrEmptyBaseline is returned when a kept normal form holds nothing to compare
// with: everything would pass.
var ErrEmptyBaseline = errors.New("the baseline is empty")

const (
	normalHead   = "tapedeck normal form 1"
	normalStrict = ", strict"
	normalNote   = "# What a reader of the runs sees. Ids by their order, deltas joined, times left out."
	normalLine   = 100 // JSON up to here stands on one line
)

// bareWord is a name that needs no quotes.
var bareWord = regexp.MustCompile(`^[\pL\pN_.:*/+-]+$`)

func bareName(name string) string {
	if bareWord.MatchString(name) && Clean(name) == name {
		return name
	}
	return string(escapeJSON(appendString(nil, name)))
}

// Write writes a normal form as text that a person can read and [ReadNormal]
// reads back, the same for the same form. Strict adds what only a strict
// comparison asks for.
func (n *Normal) Write(w io.Writer, strict bool) error {
	out := bufio.NewWriter(w)
	out.WriteString(normalHead)
	if strict && n.strict {
		out.WriteString(normalStrict)
	}
	out.WriteString("\n" + normalNote + "\n")
	for _, c := range n.Constructs {
		out.WriteString("\n" + c.kind())
		if c.Name != "" && c.Name != c.kind() {
			out.WriteString(" " + bareName(c.Name))
		}
		if c.ID.N != 0 {
			out.WriteString(" " + c.ID.String())
		}
		out.WriteString("\n")
		for _, f := range c.Fields {
			if strict || !f.strict {
				writeField(out, &f)
			}
		}
	}
	return out.Flush()
}

func (c *Construct) kind() string {
	if c.Kind == 0 {
		return "run"
	}
	return c.Kind.String()
}

// writeField writes one field: a string a line of its text, JSON on one line if
// it is short.
func writeField(out *bufio.Writer, f *Field) {
	out.WriteString("  " + bareName(f.Name) + " ")
	if s, is := f.value.(string); is {
		for i, line := range slices.Collect(strings.Lines(s)) {
			if i > 0 {
				out.WriteString("\n    ")
			}
			out.Write(canonical(line))
		}
		if s == "" {
			out.WriteString(`""`)
		}
		out.WriteString("\n")
		return
	}
	value := canonical(f.value)
	if len(value) > normalLine {
		var wide bytes.Buffer
		if json.Indent(&wide, value, "    ", "  ") == nil {
			value = wide.Bytes()
		}
	}
	out.Write(value)
	out.WriteString("\n")
}

// ReadNormal reads what Write wrote. A form without constructs is
// [ErrEmptyBaseline].
func ReadNormal(data []byte) (*Normal, error) {
	lines := strings.Split(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n")
	if strings.TrimSpace(string(data)) == "" {
		return nil, ErrEmptyBaseline
	}
	if !utf8.Valid(data) {
		return nil, errors.New("this is no kept normal form: it is no UTF-8")
	}
	head, strict := strings.CutSuffix(strings.TrimSpace(lines[0]), normalStrict)
	if head != normalHead {
		if strings.HasPrefix(head, "tapedeck normal form") {
			return nil, fmt.Errorf("line 1: %q is of another version than this tapedeck knows: keep it anew", head)
		}
		return nil, fmt.Errorf("line 1: %q is not %q: this is no kept normal form", cutBytes(lines[0], 40), normalHead)
	}
	n := &Normal{strict: strict}
	for i := 1; i < len(lines); i++ {
		line := lines[i]
		if strings.TrimSpace(line) == "" || line[0] == '#' {
			continue
		}
		if line[0] != ' ' {
			c, err := readConstruct(line)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", i+1, err)
			}
			n.Constructs = append(n.Constructs, c)
			continue
		}
		if len(n.Constructs) == 0 {
			return nil, fmt.Errorf("line %d: a field stands before the first construct", i+1)
		}
		at, text := i+1, line
		for i+1 < len(lines) && strings.HasPrefix(lines[i+1], "    ") {
			i++
			text += "\n" + lines[i]
		}
		f, err := readField(text)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", at, err)
		}
		c := n.Constructs[len(n.Constructs)-1]
		c.Fields = append(c.Fields, f)
	}
	if len(n.Constructs) == 0 {
		return nil, ErrEmptyBaseline
	}
	return n, nil
}

// nextWord reads a bare or quoted word and returns what follows it.
func nextWord(text string) (word, rest string, err error) {
	text = strings.TrimLeft(text, " ")
	if !strings.HasPrefix(text, `"`) {
		word, rest, _ = strings.Cut(text, " ")
		return word, rest, nil
	}
	end := stringEnd([]byte(text), 0)
	if json.Unmarshal([]byte(text[:end]), &word) != nil {
		return "", "", fmt.Errorf("%q begins with a quote and is no JSON string", cutBytes(text, 40))
	}
	return word, strings.TrimPrefix(text[end:], " "), nil
}

func readConstruct(line string) (*Construct, error) {
	c := &Construct{}
	kind, rest, err := nextWord(line)
	if err != nil {
		return nil, err
	}
	if kind != "run" {
		i := slices.Index(kindNames[:], kind)
		if i < 1 {
			return nil, fmt.Errorf("%q is no kind of construct", kind)
		}
		c.Kind = Kind(i)
	}
	for rest != "" {
		var word string
		if word, rest, err = nextWord(rest); err != nil {
			return nil, err
		}
		if ref, is := parseRef(word); is {
			c.ID = ref
		} else {
			c.Name = word
		}
	}
	if c.Name == "" && c.Kind != 0 {
		c.Name = kind
	}
	return c, nil
}

func readField(text string) (Field, error) {
	name, rest, err := nextWord(text)
	if err != nil {
		return Field{}, err
	}
	f := Field{Name: name, strict: name == "deltas" || name == "ended"}
	d := json.NewDecoder(strings.NewReader(rest))
	d.UseNumber()
	for {
		var value any
		if err := d.Decode(&value); err == io.EOF {
			break
		} else if err != nil {
			return f, fmt.Errorf("field %q: %w", name, err)
		}
		before, was := f.value.(string)
		if more, is := value.(string); was && is {
			value = before + more
		} else if f.value != nil {
			return f, fmt.Errorf("field %q has more than one value", name)
		}
		f.value = value
	}
	f.value = refsIn(f.value)
	return f, nil
}

// refsIn finds the references in a value that was read.
func refsIn(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name := range v {
			v[name] = refsIn(v[name])
		}
	case []any:
		for i := range v {
			v[i] = refsIn(v[i])
		}
	case string:
		if ref, is := parseRef(v); is {
			return ref
		}
	}
	return value
}

func parseRef(s string) (Ref, bool) {
	inner, is := strings.CutPrefix(s, "‹")
	inner, ends := strings.CutSuffix(inner, "›")
	kind, number, cut := strings.Cut(inner, "-")
	n, err := strconv.Atoi(number)
	return Ref{kind, n}, is && ends && cut && err == nil && n > 0
}

// CompareNormal compares a kept normal form with a run's. A is what was kept.
func CompareNormal(kept []byte, now *Normal, o DiffOptions) (*Diff, error) {
	baseline, err := ReadNormal(kept)
	if err != nil {
		return nil, err
	}
	if o.Strict && !baseline.strict {
		return nil, errors.New("the baseline was kept without what a strict comparison asks for: keep it anew with --strict, or compare without")
	}
	return Compare(baseline, now, o), nil
}
