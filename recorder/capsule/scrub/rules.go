package scrub

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"tapedeck/protocol"
)

// group is a kind of content that can be taken out.
type group uint16

const (
	texts       group = 1 << iota // what the agent says
	reasonings                    // what it thinks
	inputs                        // what the user says
	toolArgs                      // arguments of tool calls
	toolResults                   // results, and the answers to decisions, which become results
	decisions                     // what a decision asks
	todos                         // plans
	attachments                   // files, and binary messages
	failures                      // what error messages say
	bodies                        // bodies of HTTP requests and answers
	others                        // what is none of these and not the protocol's own

	keep group = 0 // what the protocol needs: ids, types, names, numbers
)

var groupNames = []string{
	"text", "reasoning", "input", "tool-args", "tool-results", "decisions", "todos", "attachments", "errors", "http", "other",
}

// Groups are the names of the groups.
func Groups() []string { return append(slices.Clone(groupNames), "all") }

// rules are what to take out.
type rules struct {
	groups   group
	fields   []string
	pointers [][]string
	patterns []*regexp.Regexp
}

// parseRules reads what a user asked for: the name of a group, all, field:NAME,
// a JSON pointer into the first argument of messages, or pattern:REGEXP.
func parseRules(asked []string) (r rules, err error) {
	for _, rule := range asked {
		name, isField := strings.CutPrefix(rule, "field:")
		pattern, isPattern := strings.CutPrefix(rule, "pattern:")
		switch {
		case rule == "all":
			r.groups = 1<<len(groupNames) - 1
		case slices.Contains(groupNames, rule):
			r.groups |= 1 << slices.Index(groupNames, rule)
		case isField && name != "":
			r.fields = append(r.fields, name)
		case strings.HasPrefix(rule, "/"):
			path, err := parsePointer(rule)
			if err != nil {
				return r, err
			}
			r.pointers = append(r.pointers, path)
		case isPattern && pattern != "":
			expression, err := regexp.Compile(pattern)
			if err != nil {
				return r, fmt.Errorf("redact %q: %w", rule, err)
			}
			if expression.MatchString("") {
				return r, fmt.Errorf("redact %q: the pattern fits the empty text", rule)
			}
			r.patterns = append(r.patterns, expression)
		default:
			return r, unknownRule(rule)
		}
	}
	return r, nil
}

func unknownRule(rule string) error {
	if near := protocol.Nearest(rule, Groups()); near != "" {
		return fmt.Errorf("redact %q: did you mean %q? A field is written field:%s", rule, near, rule)
	}
	return fmt.Errorf("redact %q: it is none of %s, and no field:NAME, /JSON/pointer or pattern:REGEXP", rule, strings.Join(Groups(), ", "))
}

func parsePointer(pointer string) ([]string, error) {
	path := strings.Split(pointer[1:], "/")
	for i, token := range path {
		if plain := strings.NewReplacer("~0", "", "~1", "").Replace(token); strings.Contains(plain, "~") {
			return nil, fmt.Errorf("redact %q: in a JSON pointer ~ is written ~0, and / within a name ~1", pointer)
		}
		path[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
	}
	return path, nil
}

// field reports whether a member of this name is to be taken out.
func (r *rules) field(name string) bool {
	return slices.ContainsFunc(r.fields, func(f string) bool { return strings.EqualFold(f, name) })
}

// pointed reports whether a pointer leads to path, or above it.
func (r *rules) pointed(path []string) bool {
	return slices.ContainsFunc(r.pointers, func(pointer []string) bool {
		if len(pointer) > len(path) {
			return false
		}
		for i, token := range pointer {
			if token != "*" && token != path[i] {
				return false
			}
		}
		return true
	})
}

// values reports whether anything is taken out by where it stands, and not only
// by what it says.
func (r *rules) values() bool { return r.groups != 0 || len(r.fields) > 0 || len(r.pointers) > 0 }

// NeedsPlan reports whether all frames have to be looked at before the first can
// be replaced: what fits a pattern may be cut over several of them.
func NeedsPlan(asked []string) bool {
	return slices.ContainsFunc(asked, func(rule string) bool { return strings.HasPrefix(rule, "pattern:") })
}

// Names are what was asked for as it can be told to others: a pattern may say
// just what nobody is to see.
func Names(asked []string) []string {
	var names []string
	for _, rule := range asked {
		if strings.HasPrefix(rule, "pattern:") {
			rule = "pattern"
		}
		if !slices.Contains(names, rule) {
			names = append(names, rule)
		}
	}
	return names
}
