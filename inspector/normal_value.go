package inspector

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// decodeValue reads JSON, numbers as they are written. What is no JSON comes
// back as a string.
func decodeValue(raw []byte) any {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var value any
	if d.Decode(&value) != nil || len(bytes.TrimSpace(raw[d.InputOffset():])) > 0 {
		return string(raw)
	}
	return value
}

// canonical writes a value in the one way that there is to write it: members
// sorted, no space, characters escaped only where a terminal would obey them.
func canonical(value any) []byte { return escapeJSON(appendValue(nil, value)) }

func appendValue(b []byte, value any) []byte {
	switch v := value.(type) {
	case map[string]any:
		b = append(b, '{')
		for i, name := range sortedKeys(v) {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, name), ':')
			b = appendValue(b, v[name])
		}
		return append(b, '}')
	case []any:
		b = append(b, '[')
		for i, item := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendValue(b, item)
		}
		return append(b, ']')
	case string:
		return appendString(b, v)
	case json.Number:
		return append(b, v...)
	case Ref:
		return appendString(b, v.String())
	case bool:
		if v {
			return append(b, "true"...)
		}
		return append(b, "false"...)
	}
	return append(b, "null"...)
}

func appendString(b []byte, s string) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(s) // a string can always be encoded
	return append(b, bytes.TrimSuffix(out.Bytes(), []byte("\n"))...)
}

func sortedKeys(object map[string]any) []string { return slices.Sorted(maps.Keys(object)) }

// names gives ids their numbers.
type names struct {
	refs   map[[2]string]Ref // by kind and id
	any    map[string]Ref    // by id
	counts map[string]int
}

func newNames() *names {
	return &names{refs: map[[2]string]Ref{}, any: map[string]Ref{}, counts: map[string]int{}}
}

// ref returns the number of an id; an empty id is none.
func (n *names) ref(kind, id string) Ref {
	if id == "" {
		return Ref{}
	}
	key := [2]string{kind, id}
	ref, known := n.refs[key]
	if !known {
		n.counts[kind]++
		ref = Ref{kind, n.counts[kind]}
		n.refs[key] = ref
		if _, taken := n.any[id]; !taken {
			n.any[id] = ref
		}
	}
	return ref
}

// idKinds are the members of the protocol that hold ids, and of what.
var idKinds = map[string]string{
	"threadId": "thread", "childThreadId": "thread", "runId": "run", "messageId": "message", "parentMessageId": "message",
	"forkFromMessageId": "message", "toolCallId": "call", "interruptId": "decision", "taskId": "task",
}

// isTime reports whether a member of the protocol's own objects holds a time.
func isTime(name string) bool { return name == "timestamp" || strings.HasSuffix(name, "At") }

// own normalises what is of the protocol's own making: its ids and times.
// Within says in which member it stands, since a message and a task call their
// ids "id".
func (n *names) own(value any, within string) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, name := range sortedKeys(v) { // in order, for ids are counted
			kind := idKinds[name]
			if name == "id" && (within == "message" || within == "task") {
				kind = within
			}
			id, isText := v[name].(string)
			switch {
			case kind != "" && isText:
				out[name] = n.ref(kind, id)
			case isTime(name):
			case contents[name]:
				out[name] = n.content(v[name])
			default:
				out[name] = n.own(v[name], name)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = n.own(v[i], within)
		}
		return out
	case string:
		if within == "message" || within == "text" {
			return n.text(v)
		}
	}
	return value
}

// content normalises what the protocol only carries. Ids that are known are
// replaced where a member says that it is an id; the rest stays as it is.
func (n *names) content(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			out[name] = n.content(member)
			if id, is := member.(string); is && holdsID(name) {
				if ref, known := n.any[id]; known {
					out[name] = ref
				}
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = n.content(v[i])
		}
		return out
	}
	return value
}

func holdsID(name string) bool {
	return name == "id" || strings.HasSuffix(name, "Id") || strings.HasSuffix(name, "ID") || strings.HasSuffix(name, "_id")
}

// longID is how long an id must be to be looked for in a sentence.
const longID = 8

// text replaces ids in a sentence, such as that of an error.
func (n *names) text(s string) string {
	words := strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" \t\n\"'`()[]{}<>,;:", r) })
	for _, word := range words {
		word = strings.TrimRight(word, ".!?")
		if ref, known := n.any[word]; known && len(word) >= longID {
			s = strings.ReplaceAll(s, word, ref.String())
		}
	}
	return s
}

// ofRow is the id of a construct.
func (n *names) ofRow(r *Row) Ref {
	switch r.Kind {
	case KindText, KindReasoning, KindCommand:
		return n.ref("message", r.ID)
	case KindTool:
		return n.ref("call", r.ID)
	case KindDecision:
		return n.ref("decision", r.ID)
	case KindSubagent:
		return n.ref("task", r.ID)
	case KindLifecycle:
		return n.ref("run", r.ID)
	}
	return Ref{}
}
