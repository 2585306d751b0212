package tape

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// binding is the map from recorded ids to those of a live thread. An id that it
// does not know gets a new one, which depends on the seed, the live thread and
// the id alone.
type binding struct {
	key [sha256.Size]byte
	// bound, if it is not nil, is told each pair once, under mu.
	bound func(recorded, live string)

	mu   sync.Mutex // protects following
	live map[string]string
	back map[string]string // live to recorded
}

func newBinding(seed uint64, thread string, generation int) *binding {
	return &binding{
		key:  sha256.Sum256(fmt.Appendf(nil, "%d\x00%d\x00%s", seed, generation, thread)),
		live: map[string]string{}, back: map[string]string{},
	}
}

// set maps a recorded id to one that a caller or the gateway chose.
func (b *binding) set(recorded, live string) {
	if recorded == "" || live == "" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pair(recorded, live)
}

func (b *binding) pair(recorded, live string) {
	b.live[recorded], b.back[live] = live, recorded
	if b.bound != nil {
		b.bound(recorded, live)
	}
}

// of returns the live id of a recorded one.
func (b *binding) of(recorded string) string {
	if recorded == "" {
		return ""
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bind(recorded)
}

// recorded returns the recorded id of a live one.
func (b *binding) recorded(live string) (string, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	id, ok := b.back[live]
	return id, ok
}

// bind is of, with mu held.
func (b *binding) bind(recorded string) string {
	live, ok := b.live[recorded]
	if !ok {
		live = b.derive(recorded)
		b.pair(recorded, live)
	}
	return live
}

// derive makes a live id. A UUID stays one; of anything else the recorded id
// stays legible. Two recorded ids never become one.
func (b *binding) derive(recorded string) string {
	if !isUUID(recorded) {
		return recorded + "-" + hex.EncodeToString(b.key[:4])
	}
	node, err := hex.DecodeString(recorded[24:])
	if err != nil {
		return recorded + "-" + hex.EncodeToString(b.key[:4])
	}
	for i := range node {
		node[i] ^= b.key[i]
	}
	digits := hex.EncodeToString(node)
	if strings.ContainsAny(recorded, "ABCDEF") {
		digits = strings.ToUpper(digits)
	}
	return recorded[:24] + digits
}

func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if c != '-' {
				return false
			}
		case c >= '0' && c <= '9', c >= 'a' && c <= 'f', c >= 'A' && c <= 'F':
		default:
			return false
		}
	}
	return true
}

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
