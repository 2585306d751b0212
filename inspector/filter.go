package inspector

import (
	"fmt"
	"strings"
)

// Filter says which moments are wanted. A nil Filter wants all.
//
// A filter is made of terms, FIELD:VALUE or a word to be found in the text:
//
//	type:TOOL_CALL_* run:7f3a dir:client
//	-type:TEXT_MESSAGE_CONTENT seq:40..80 size:>10k
//	has:finding text:"refund" OR cmd:run:start
//
// Terms side by side must all hold. OR between them makes alternatives and binds
// less tightly; parentheses group; "-" or NOT before a term turns it round.
// Values match without regard to case. [FilterHelp] lists the fields.
type Filter struct {
	root node
}

// ParseFilter reads a filter. An empty text wants all. Errors are of type
// *FilterError.
func ParseFilter(text string) (*Filter, error) {
	p := &filterParser{text: text}
	p.skipSpace()
	if p.at == len(text) {
		return nil, nil
	}
	root, err := p.alternatives(0)
	if err != nil {
		return nil, err
	}
	if p.at < len(text) {
		return nil, p.fail(p.at, `this ")" closes nothing; put quotes around it to search for it`)
	}
	return &Filter{root: root}, nil
}

// Match reports whether m is wanted.
func (f *Filter) Match(m *Moment) bool { return f == nil || f.root.match(m) }

// String writes the filter so that [ParseFilter] reads the same again.
func (f *Filter) String() string {
	if f == nil {
		return ""
	}
	return f.root.String()
}

// FilterError says what is wrong with a filter, and where.
type FilterError struct {
	Filter string
	Offset int // in bytes
	Text   string
}

// Error names the column, counted from 1.
func (e *FilterError) Error() string {
	return fmt.Sprintf("filter, column %d: %s", Width(Clean(cutBytes(e.Filter, e.Offset)))+1, e.Text)
}

// Pointed returns the filter with a caret under the place, on two lines.
func (e *FilterError) Pointed() string {
	return Clean(e.Filter) + "\n" + strings.Repeat(" ", Width(Clean(cutBytes(e.Filter, e.Offset)))) + "^"
}

// node is a part of a filter: a term, or a combination of others.
type node interface {
	match(m *Moment) bool
	String() string
}

type allOf []node

func (a allOf) match(m *Moment) bool {
	for _, n := range a {
		if !n.match(m) {
			return false
		}
	}
	return true
}

func (a allOf) String() string { return joinNodes(a, " ") }

type anyOf []node

func (a anyOf) match(m *Moment) bool {
	for _, n := range a {
		if n.match(m) {
			return true
		}
	}
	return false
}

func (a anyOf) String() string { return "(" + joinNodes(a, " OR ") + ")" }

func joinNodes(nodes []node, between string) string {
	parts := make([]string, len(nodes))
	for i, n := range nodes {
		parts[i] = n.String()
	}
	return strings.Join(parts, between)
}

type not struct{ node }

func (n not) match(m *Moment) bool { return !n.node.match(m) }

func (n not) String() string {
	if _, many := n.node.(allOf); many {
		return "-(" + n.node.String() + ")"
	}
	return "-" + n.node.String()
}

// term is one FIELD:VALUE.
type term struct {
	field string
	value filterValue
	test  func(*Moment) bool
}

func (t term) match(m *Moment) bool { return t.test(m) }

func (t term) String() string { return t.field + ":" + t.value.String() }

// filterValue is a value as it was written: in quotes it stands for itself.
type filterValue struct {
	text   string
	quoted bool
	offset int // in the filter
}

func (v filterValue) String() string {
	if !v.quoted {
		return v.text
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(v.text) + `"`
}

// maxFilterDepth bounds the nesting, since a filter may come from a file.
const maxFilterDepth = 100

type filterParser struct {
	text string
	at   int
}

func (p *filterParser) fail(offset int, format string, args ...any) *FilterError {
	return &FilterError{Filter: p.text, Offset: offset, Text: fmt.Sprintf(format, args...)}
}

func (p *filterParser) skipSpace() {
	for p.at < len(p.text) && isFilterSpace(p.text[p.at]) {
		p.at++
	}
}

func isFilterSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// keyword takes a word in capitals, if it comes next and stands alone.
func (p *filterParser) keyword(word string) bool {
	rest := p.text[p.at:]
	if !strings.HasPrefix(rest, word) {
		return false
	}
	if rest = rest[len(word):]; rest != "" && !isFilterSpace(rest[0]) && rest[0] != '(' && rest[0] != ')' {
		return false
	}
	p.at += len(word)
	p.skipSpace()
	return true
}

func (p *filterParser) alternatives(depth int) (node, error) {
	var all anyOf
	for {
		n, err := p.together(depth)
		if err != nil {
			return nil, err
		}
		all = append(all, n)
		if !p.keyword("OR") {
			break
		}
	}
	if len(all) == 1 {
		return all[0], nil
	}
	return all, nil
}

func (p *filterParser) together(depth int) (node, error) {
	var all allOf
	for {
		n, err := p.part(depth)
		if err != nil {
			return nil, err
		}
		all = append(all, n)
		p.skipSpace()
		if p.keyword("AND") {
			continue
		}
		if p.at == len(p.text) || p.text[p.at] == ')' || p.startsOr() {
			break
		}
	}
	if len(all) == 1 {
		return all[0], nil
	}
	return all, nil
}

func (p *filterParser) startsOr() bool {
	ahead := *p
	return ahead.keyword("OR")
}

func (p *filterParser) part(depth int) (node, error) {
	start := p.at
	switch {
	case depth > maxFilterDepth:
		return nil, p.fail(p.at, "nested deeper than %d", maxFilterDepth)
	case p.at == len(p.text):
		return nil, p.fail(p.at, "the filter ends where a term should stand")
	case p.text[p.at] == ')' || p.startsOr() || p.keyword("AND"):
		return nil, p.fail(start, "a term such as type:TOOL_CALL_* should stand here")
	case p.text[p.at] == '(':
		p.at++
		p.skipSpace()
		n, err := p.alternatives(depth + 1)
		if err != nil {
			return nil, err
		}
		if p.at == len(p.text) {
			return nil, p.fail(start, `this "(" is never closed`)
		}
		p.at++
		return n, nil
	case p.text[p.at] == '-' || p.keyword("NOT"):
		if p.at == start {
			p.at++
		}
		n, err := p.part(depth + 1)
		if err != nil {
			return nil, err
		}
		return not{n}, nil
	}
	return p.term()
}

// term reads FIELD:VALUE, or a bare word, which is looked for in the text.
func (p *filterParser) term() (node, error) {
	start := p.at
	for p.at < len(p.text) && isFieldLetter(p.text[p.at]) {
		p.at++
	}
	if p.at == start || p.at == len(p.text) || p.text[p.at] != ':' {
		p.at = start
		value, err := p.value()
		if err != nil {
			return nil, err
		}
		return p.makeTerm("text", value)
	}
	name := strings.ToLower(p.text[start:p.at])
	if fieldNamed(name) == nil {
		return nil, p.fail(start, "%s", unknownField(name))
	}
	p.at++
	if p.at == len(p.text) || isFilterSpace(p.text[p.at]) || p.text[p.at] == ')' {
		return nil, p.fail(p.at, "%s: has no value; %s", name, fieldNamed(name).help)
	}
	value, err := p.value()
	if err != nil {
		return nil, err
	}
	return p.makeTerm(name, value)
}

func isFieldLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func (p *filterParser) makeTerm(field string, value filterValue) (node, error) {
	test, err := fieldNamed(field).compile(value)
	if err != nil {
		return nil, p.fail(value.offset, "%s: %s", field, err)
	}
	return term{field: field, value: value, test: test}, nil
}

// value reads up to the next space or parenthesis, or a text in quotes, in
// which \" and \\ stand for a quote and a backslash.
func (p *filterParser) value() (filterValue, error) {
	v := filterValue{offset: p.at}
	if p.text[p.at] != '"' {
		for p.at < len(p.text) && !isFilterSpace(p.text[p.at]) && p.text[p.at] != ')' && p.text[p.at] != '(' {
			p.at++
		}
		v.text = p.text[v.offset:p.at]
		if v.text == "" {
			return v, p.fail(v.offset, `put quotes around a "(" to search for it`)
		}
		return v, nil
	}
	v.quoted = true
	var b strings.Builder
	for p.at++; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case c == '"':
			p.at++
			v.text = b.String()
			if v.text == "" {
				return v, p.fail(v.offset, "there is nothing between the quotes")
			}
			return v, nil
		case c == '\\' && p.at+1 < len(p.text) && (p.text[p.at+1] == '"' || p.text[p.at+1] == '\\'):
			p.at++
			b.WriteByte(p.text[p.at])
		default:
			b.WriteByte(c)
		}
	}
	return v, p.fail(v.offset, "this quote is never closed")
}
