package tape

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// place is where in a payload a member stands: it decides which names carry ids.
type place uint8

const (
	free    place = iota // a value of the agent's: only ids known by now are replaced
	inEvent              // the event of an envelope
	inEnvelope
	inMessage  // of a history, or that opened a run
	inCall     // a message's tool call
	inTask     // a background task
	inHistory  // an answer to thread:messages
	inDecision // its pendingInterrupt
	inStatus   // task:status
)

// member says of a member whether its string is an id, and in which place its
// object or array stands.
func member(in place, name string) (id bool, into place) {
	switch in {
	case inEnvelope:
		switch name {
		case "threadId", "runId":
			return true, free
		case "event":
			return false, inEvent
		}
	case inEvent:
		switch name {
		case "messageId", "toolCallId", "interruptId", "taskId", "childThreadId", "parentMessageId", "threadId", "runId":
			return true, free
		case "message":
			return false, inMessage
		}
	case inMessage:
		switch name {
		case "id":
			return true, free
		case "toolCalls":
			return false, inCall
		case "task":
			return false, inTask
		}
	case inCall:
		return name == "id" || name == "toolCallId", free
	case inTask:
		return name == "id" || name == "taskId" || name == "toolCallId" || name == "threadId" || name == "childThreadId", free
	case inHistory:
		switch name {
		case "messages":
			return false, inMessage
		case "pendingInterrupt":
			return false, inDecision
		case "task":
			return false, inTask
		}
	case inDecision:
		return name == "interruptId", free
	case inStatus:
		if name == "task" {
			return false, inTask
		}
		return name == "threadId", free
	}
	return false, free
}

// idName reports whether a member of the agent's own values may hold an id.
func idName(name string) bool { return name == "id" || strings.HasSuffix(name, "Id") }

// span is a part of a payload; the zero span is none.
type span struct{ from, to int }

func (s span) of(payload []byte) []byte {
	if s.to == 0 {
		return nil
	}
	return payload[s.from:s.to:s.to]
}

// spliced is a payload with live ids, and where its event and the event's delta
// stand.
type spliced struct {
	payload      []byte
	event, delta span
}

// splice puts live ids in place of recorded ones. Whole strings are replaced and
// nothing else: not a byte of the rest is read twice or written anew. A payload
// that is no JSON is searched as far as it goes.
func (b *binding) splice(in place, payload []byte) spliced {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := splicer{binding: b, in: payload, value: in}
	s.run()
	if s.copied == 0 {
		s.out = payload
	} else {
		s.out = append(s.out, payload[s.copied:]...)
	}
	return spliced{s.out, s.event, s.delta}
}

// level is an object or an array that is open.
type level struct {
	place  place
	object bool
	event  bool // it is the envelope's event
}

// idRoom is how much longer a payload becomes, in most cases.
const idRoom = 64

type splicer struct {
	*binding
	in     []byte
	out    []byte
	copied int // how much of in is in out
	levels []level

	value  place // of the value that comes
	isID   bool  // it is an id
	maybe  bool  // it is one if it is known
	key    bool  // a name comes
	name   []byte
	event  span
	delta  span
	buffer [16]level
}

// at is where a byte of in stands in the output.
func (s *splicer) at(i int) int { return len(s.out) + i - s.copied }

func (s *splicer) run() {
	s.levels = s.buffer[:0]
	for i := 0; i < len(s.in); i++ {
		switch s.in[i] {
		case '{', '[':
			s.open(i)
		case '}', ']':
			s.close(i)
		case ',':
			s.comma()
		case '"':
			end := stringEnd(s.in, i)
			if end < 0 {
				return
			}
			s.text(i, end)
			i = end - 1
		}
	}
}

func (s *splicer) open(i int) {
	object := s.in[i] == '{'
	l := level{place: s.value, object: object}
	if len(s.levels) == 1 && s.levels[0].place == inEnvelope && string(s.name) == "event" {
		l.event = true
		s.event.from = s.at(i)
	}
	s.levels = append(s.levels, l)
	s.key, s.isID, s.maybe, s.name = object, false, false, nil
}

func (s *splicer) close(i int) {
	if len(s.levels) == 0 {
		return
	}
	if s.levels[len(s.levels)-1].event {
		s.event.to = s.at(i + 1)
	}
	s.levels = s.levels[:len(s.levels)-1]
	s.after()
}

// comma is between two members or elements.
func (s *splicer) comma() {
	s.after()
	if n := len(s.levels); n > 0 {
		s.key = s.levels[n-1].object
	}
}

// after forgets the name of a member whose value has passed. The elements of an
// array stand where the array does.
func (s *splicer) after() {
	s.key, s.isID, s.maybe, s.name, s.value = false, false, false, nil, free
	if n := len(s.levels); n > 0 && !s.levels[n-1].object {
		s.value = s.levels[n-1].place
	}
}

// text takes a string that stands at in[from:to], its quotes included.
func (s *splicer) text(from, to int) {
	if s.key {
		s.key = false
		name := s.in[from+1 : to-1]
		if plain, ok := unquoted(name); ok {
			s.named(plain)
		}
		return
	}
	if n := len(s.levels); n > 0 && s.levels[n-1].event && string(s.name) == "delta" {
		s.delta = span{s.at(from), s.at(to)}
	}
	if !s.isID && !s.maybe {
		return
	}
	id, ok := unquoted(s.in[from+1 : to-1])
	if !ok || len(id) == 0 {
		return
	}
	live, known := s.live[string(id)]
	if s.isID && !known {
		live, known = s.bind(string(id)), true
	}
	if !known {
		return
	}
	if s.out == nil {
		s.out = make([]byte, 0, len(s.in)+idRoom)
	}
	s.out = append(s.out, s.in[s.copied:from]...)
	// A live id is valid UTF-8, or gets U+FFFD.
	s.out, _ = jsontext.AppendQuote(s.out, live)
	s.copied = to
}

// named takes the name of a member.
func (s *splicer) named(name []byte) {
	s.name = name
	in := free
	if n := len(s.levels); n > 0 {
		in = s.levels[n-1].place
	}
	s.isID, s.value = member(in, string(name))
	s.maybe = !s.isID && idName(string(name))
}

// stringEnd is behind the closing quote of the string that begins at from, -1 if
// there is none.
func stringEnd(in []byte, from int) int {
	for i := from + 1; ; {
		q := bytes.IndexByte(in[i:], '"')
		if q < 0 {
			return -1
		}
		i += q
		slashes := 0
		for k := i - 1; k > from && in[k] == '\\'; k-- {
			slashes++
		}
		i++
		if slashes%2 == 0 {
			return i
		}
	}
}

// unquoted reads what stands between the quotes of a JSON string; ok is false if
// it is none.
func unquoted(inner []byte) (text []byte, ok bool) {
	plain := true
	for _, c := range inner {
		if c < 0x20 {
			return nil, false
		}
		plain = plain && c != '\\'
	}
	if !utf8.Valid(inner) {
		return nil, false
	}
	if plain {
		return inner, true
	}
	var unescaped string
	quoted := append(append([]byte{'"'}, inner...), '"')
	if json.Unmarshal(quoted, &unescaped) != nil {
		return nil, false
	}
	return []byte(unescaped), true
}
