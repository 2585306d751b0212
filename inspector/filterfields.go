package inspector

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/conversation"
)

// field is one of the things that a filter can ask for.
type field struct {
	name string
	help string
	// compile makes the test of a value, or says what is wrong with the value.
	compile func(filterValue) (func(*Moment) bool, error)
}

// filterFields returns the fields in the order of the help.
func filterFields() []field {
	return []field{
		{"type", "an event type, such as type:TOOL_CALL_*", glob(func(m *Moment) string {
			if e := m.event(); e != nil {
				return string(e.Type)
			}
			return ""
		})},
		{"run", "a run's id or its beginning, run:7f3a", id(func(m *Moment) []string { return []string{m.Run} })},
		{"thread", "a thread's id or its beginning", id(func(m *Moment) []string { return []string{m.Thread} })},
		{"seq", "sequence numbers: seq:41, seq:40..80, seq:>100", number(parseInteger, (*Moment).sequence)},
		{"dir", "who sent it: dir:client or dir:gateway", oneOf(func(m *Moment, v string) bool {
			return m.Direction().String() == v
		}, "client", "gateway")},
		{"name", "a message's name, name:task:status", glob((*Moment).messageName)},
		{"cmd", "a command of the client, cmd:run:start or cmd:*", glob(func(m *Moment) string {
			if m.Message == nil || m.Message.Answer || !m.Message.Name.IsCommand() {
				return ""
			}
			return string(m.Message.Name)
		})},
		{"tool", "a tool's name, or the id of a call", id(func(m *Moment) []string {
			if e := m.event(); e != nil {
				return []string{m.Tool, e.ToolCallID}
			}
			return []string{m.Tool}
		})},
		{"sub", "a subagent's name, or its task's id", id(func(m *Moment) []string {
			if e := m.event(); e != nil {
				return []string{m.Agent, e.TaskID}
			}
			return []string{m.Agent}
		})},
		{"rule", "a rule that was broken here, rule:sequence-*", anyFinding(globMatcher, func(f *protocol.Finding) string { return f.Rule })},
		{"sev", "the severity of a finding: sev:error, sev:>=warning", severity},
		{"has", "has:" + strings.Join(hasNames(), ", has:"), oneOf(has, hasNames()...)},
		{"text", `words in the payload, text:"refund"; deltas are joined`, text},
		{"size", "the payload's size: size:>10k, size:1k..2k", number(parseSize, (*Moment).Size)},
		{"gap", "the time since the message of the run before it: gap:>2s", number(parseDuration, func(m *Moment) int64 { return int64(m.Gap) })},
		{"conn", "a connection, by its position: conn:1", number(parseInteger, func(m *Moment) int64 { return int64(m.Connection()) })},
		{"ns", "a Socket.IO namespace, ns:/chat", glob((*Moment).namespace)},
		{"time", "the time since the session began: time:1s..3s", number(parseDuration, func(m *Moment) int64 { return int64(m.At()) })},
		{"src", "where it came from: src:live, src:replay, src:injected, src:withheld, src:imported", oneOf(func(m *Moment, v string) bool {
			return m.Source() == v
		}, "live", "replay", "injected", "withheld", "imported")},
		{"status", "how the run stood: status:running, status:paused, status:finished, status:cancelled, status:error", oneOf(func(m *Moment, v string) bool {
			return string(m.Status) == v
		}, string(conversation.Running), string(conversation.Paused), string(conversation.Finished), string(conversation.Cancelled),
			string(conversation.Failed), string(conversation.Truncated))},
	}
}

// FilterHelp returns what can be asked for, one field a line.
func FilterHelp() string {
	var b strings.Builder
	for _, f := range filterFields() {
		fmt.Fprintf(&b, "  %-7s %s\n", f.name, f.help)
	}
	b.WriteString("Terms side by side must all hold; OR, parentheses, and - before a term work as expected.\n")
	b.WriteString("* and ? stand for any letters and any one letter; a text in quotes stands for itself.\n")
	return b.String()
}

func fieldNamed(name string) *field {
	for _, f := range filterFields() {
		if f.name == name {
			return &f
		}
	}
	return nil
}

func unknownField(name string) string {
	var names []string
	for _, f := range filterFields() {
		names = append(names, f.name)
	}
	if near := protocol.Nearest(name, names); near != "" {
		return fmt.Sprintf("no field is called %q; did you mean %s?", name, near)
	}
	return fmt.Sprintf("no field is called %q: the fields are %s; put quotes around a text with a colon", name, strings.Join(names, " "))
}

// A matcher is what a value means for a string field.
type matcher func(string) bool

func globMatcher(v filterValue) matcher {
	if v.quoted || !strings.ContainsAny(v.text, "*?") {
		return func(s string) bool { return strings.EqualFold(s, v.text) }
	}
	pattern := strings.ToLower(v.text)
	return func(s string) bool { return s != "" && matchGlob(pattern, strings.ToLower(s)) }
}

// idMatcher takes the beginning of an id for the whole, as all commands do.
func idMatcher(v filterValue) matcher {
	if v.quoted || strings.ContainsAny(v.text, "*?") {
		return globMatcher(v)
	}
	return func(s string) bool { return len(s) >= len(v.text) && strings.EqualFold(s[:len(v.text)], v.text) }
}

// matchGlob goes back only to the last star, so it takes at most the product of
// the two lengths.
func matchGlob(pattern, s string) bool {
	p, i, star, mark := 0, 0, -1, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, i
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == s[i]):
			p++
			i++
		case star >= 0:
			p = star + 1
			mark++
			i = mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

type compiler = func(filterValue) (func(*Moment) bool, error)

func glob(get func(*Moment) string) compiler {
	return func(v filterValue) (func(*Moment) bool, error) {
		match := globMatcher(v)
		return func(m *Moment) bool { return match(get(m)) }, nil
	}
}

func id(get func(*Moment) []string) compiler {
	return func(v filterValue) (func(*Moment) bool, error) {
		match := idMatcher(v)
		return func(m *Moment) bool { return slices.ContainsFunc(get(m), match) }, nil
	}
}

func anyFinding(make func(filterValue) matcher, get func(*protocol.Finding) string) compiler {
	return func(v filterValue) (func(*Moment) bool, error) {
		match := make(v)
		return func(m *Moment) bool {
			return slices.ContainsFunc(m.Findings, func(f protocol.Finding) bool { return match(get(&f)) })
		}, nil
	}
}

func oneOf(test func(*Moment, string) bool, names ...string) compiler {
	return func(v filterValue) (func(*Moment) bool, error) {
		value := strings.ToLower(v.text)
		if !slices.Contains(names, value) {
			hint := ""
			if near := protocol.Nearest(value, names); near != "" {
				hint = fmt.Sprintf("; did you mean %s?", near)
			}
			return nil, fmt.Errorf("%q is none of %s%s", v.text, strings.Join(names, ", "), hint)
		}
		return func(m *Moment) bool { return test(m, value) }, nil
	}
}

func hasNames() []string {
	return []string{"finding", "error", "warning", "note", "ack", "answer", "attachment", "delta"}
}

func has(m *Moment, what string) bool {
	switch what {
	case "finding":
		return len(m.Findings) > 0
	case "ack":
		return m.Message != nil && m.Message.AckID != "" && !m.Message.Answer
	case "answer":
		return m.Message != nil && m.Message.Answer
	case "attachment":
		return m.Packet != nil && len(m.Packet.Attachments) > 0 || m.Command != nil && countItems(m.Command.Attachments) > 0
	case "delta":
		e := m.event()
		return e != nil && e.Delta != ""
	}
	return slices.ContainsFunc(m.Findings, func(f protocol.Finding) bool { return f.Severity.String() == what })
}

// bounds are the least and the greatest value that a range takes.
type bounds struct{ low, high int64 }

func (b bounds) contain(n int64) bool { return b.low <= n && n <= b.high }

// number compiles a range of what parse reads. A value of 0 that stands for
// "none" is in no range that does not ask for it.
func number(parse func(string) (int64, error), get func(*Moment) int64) compiler {
	return func(v filterValue) (func(*Moment) bool, error) {
		b, err := parseRange(v.text, parse)
		if err != nil {
			return nil, err
		}
		return func(m *Moment) bool {
			n := get(m)
			return b.contain(n) && (n != 0 || b.low != math.MinInt64)
		}, nil
	}
}

func parseRange(s string, parse func(string) (int64, error)) (bounds, error) {
	b := bounds{math.MinInt64, math.MaxInt64}
	if low, high, cut := strings.Cut(s, ".."); cut {
		var err, err2 error
		if low != "" {
			b.low, err = parse(low)
		}
		if high != "" {
			b.high, err2 = parse(high)
		}
		switch {
		case low == "" && high == "":
			return b, errors.New("a range needs a beginning or an end, such as 40..80")
		case cmp.Or(err, err2) != nil:
			return b, cmp.Or(err, err2)
		case b.low > b.high:
			return b, fmt.Errorf("the range %s ends before it begins", s)
		}
		return b, nil
	}
	operator := s[:len(s)-len(strings.TrimLeft(s, "<>="))]
	n, err := parse(s[len(operator):])
	if err != nil {
		return b, err
	}
	switch operator {
	case "", "=":
		b.low, b.high = n, n
	case ">":
		b.low = n + 1
	case ">=":
		b.low = n
	case "<":
		b.high = n - 1
	case "<=":
		b.high = n
	default:
		return b, fmt.Errorf("%q is none of <, <=, > and >=", operator)
	}
	return b, nil
}

func parseInteger(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 48)
	if err != nil {
		return 0, fmt.Errorf("%q is no number below 2^47", s)
	}
	return n, nil
}

// parseSize reads "512", "10k", "1.5MB" or "4KiB".
func parseSize(s string) (int64, error) {
	units := []struct {
		name   string
		factor float64
	}{{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"k", 1e3}, {"m", 1e6}, {"g", 1e9}, {"b", 1}}
	digits, factor := strings.ToLower(s), 1.0
	for _, u := range units {
		if rest, found := strings.CutSuffix(digits, u.name); found {
			digits, factor = rest, u.factor
			break
		}
	}
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || strings.Trim(digits, "0123456789.") != "" || n*factor > 1<<50 {
		return 0, fmt.Errorf("%q is no size such as 512, 10k or 1.5MB", s)
	}
	return int64(n * factor), nil
}

func parseDuration(s string) (int64, error) {
	d, err := time.ParseDuration(s)
	if err != nil || strings.ContainsAny(s, "+-") {
		return 0, fmt.Errorf("%q is no time such as 300ms, 2s or 1m30s", s)
	}
	return int64(d), nil
}

func severity(v filterValue) (func(*Moment) bool, error) {
	b, err := parseRange(strings.ToLower(v.text), func(s string) (int64, error) {
		sev, err := protocol.ParseSeverity(s)
		return int64(sev), err
	})
	if err != nil {
		return nil, err
	}
	return func(m *Moment) bool {
		return slices.ContainsFunc(m.Findings, func(f protocol.Finding) bool { return b.contain(int64(f.Severity)) })
	}, nil
}

func (m *Moment) messageName() string {
	switch {
	case m.Message != nil:
		return string(m.Message.Name)
	case m.Packet != nil && m.Packet.Name != "":
		return m.Packet.Name
	case m.Packet != nil:
		return m.Packet.Asked
	}
	return ""
}

func (m *Moment) namespace() string {
	switch {
	case m.Message != nil:
		return m.Message.Namespace
	case m.Packet != nil:
		return m.Packet.Namespace
	}
	return ""
}
