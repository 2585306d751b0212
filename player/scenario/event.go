package scenario

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"tapedeck/player/script"
	"tapedeck/protocol"
)

// event builds an event object, its members in the order they are given.
type event struct {
	kind protocol.EventType
	id   string
	json []byte
}

// stream returns what the deltas of a kind share that are about the same thing.
func stream(kind protocol.EventType, key, id string) *script.Stream {
	return &script.Stream{Type: kind, ID: id, Head: appendKey(newEvent(kind).about(key, id).json, "delta")}
}

// usualEvent is the room that most events take, in bytes.
const usualEvent = 112

func newEvent(kind protocol.EventType) event {
	json := append(make([]byte, 0, usualEvent), `{"type":"`...)
	return event{kind: kind, json: append(append(json, kind...), '"')}
}

// about sets the member that names what the event is about.
func (e event) about(key, id string) event {
	e = e.text(key, id)
	e.id = id
	return e
}

// text adds a member, unless its value is empty.
func (e event) text(key, value string) event {
	if value != "" {
		e.json = appendString(appendKey(e.json, key), value)
	}
	return e
}

// raw adds a member whose value is JSON, unless it is empty.
func (e event) raw(key string, value []byte) event {
	if len(value) > 0 {
		e.json = append(appendKey(e.json, key), value...)
	}
	return e
}

// appendKey begins a member, whose name needs no escapes.
func appendKey(dst []byte, key string) []byte {
	return append(append(append(dst, `,"`...), key...), `":`...)
}

func (e event) act() script.Event {
	return script.Event{Type: e.kind, ID: e.id, JSON: append(e.json, '}')}
}

// ident makes the id of something of a run: the same for the same seed, thread
// and run, another in any other.
func (in *Input) ident(prefix, name string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\x00%s\x00%d\x00%s\x00%s", in.Seed, in.Thread, in.Opened, prefix, name))
	return fmt.Sprintf("%s_%x", prefix, sum[:6])
}

// fill puts what the client sent in the place of {{input}}, {{answer}},
// {{thread}}, {{run}} and {{messageId}}, ids in that of {{message:NAME}},
// {{tool:NAME}} and {{decision:NAME}}, and n bytes of text in that of {{fill:n}}.
func (c *compiler) fill(s string) string {
	if !strings.Contains(s, "{{") {
		return s
	}
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(s, "{{")
		name, after, closed := strings.Cut(rest, "}}")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		value, known := c.lookUp(name)
		if !closed || !known {
			out.WriteString("{{")
			s = rest
			continue
		}
		out.WriteString(value)
		s = after
	}
}

// lookUp returns what stands for a name in double braces.
func (c *compiler) lookUp(name string) (string, bool) {
	kind, id, _ := strings.Cut(name, ":")
	switch kind {
	case "input":
		return c.in.Text, true
	case "answer":
		return plain(c.answer), true
	case "thread":
		return c.in.Thread, true
	case "run":
		return c.in.Run, true
	case "messageId":
		return c.in.Message, true
	case "fill":
		n, err := strconv.Atoi(id)
		if err != nil || within("fill", n, 64<<20) != nil {
			return "", false
		}
		return filler(n), true
	case "message":
		return c.in.ident("msg", id), true
	case "tool":
		return c.in.ident("call", id), true
	case "decision":
		return c.in.ident("ask", id), true
	}
	return "", false
}

// fillJSON does what fill does inside the strings of a JSON value. A string
// that is {{answer}} and nothing else becomes the answer itself.
func (c *compiler) fillJSON(v Value) json.RawMessage {
	s := string(v)
	if !strings.Contains(s, "{{") {
		return json.RawMessage(v)
	}
	if c.answer != nil {
		s = strings.ReplaceAll(s, `"{{answer}}"`, string(c.answer))
	}
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(s, "{{")
		name, after, closed := strings.Cut(rest, "}}")
		out.WriteString(before)
		if !found {
			return json.RawMessage(out.String())
		}
		value, known := c.lookUp(name)
		if !closed || !known {
			out.WriteString("{{")
			s = rest
			continue
		}
		out.Write(appendEscaped(nil, value))
		s = after
	}
}

// plain is a JSON value as a person reads it: a string without its quotes.
func plain(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) == nil {
		return s
	}
	return string(v)
}
