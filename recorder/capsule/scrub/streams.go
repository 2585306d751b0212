package scrub

import (
	"cmp"
	"strconv"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

const (
	maxStreams = 1 << 14 // texts that are open at once
	maxPieces  = 1 << 15 // pieces that are remembered, to know them when they come again
)

// streams are the texts that come in pieces. The same piece may come to several
// sockets, and once more in a replay: it then becomes what it became the first
// time.
type streams struct {
	run      string // of the envelope at hand
	sequence int64
	id       string // of its text
	open     map[streamKey]*stream
	before   recent[pieceKey, stream] // how a stream stood before a piece
}

// streamKey is a text.
type streamKey struct {
	run, id string
	group   group
	body    bodyKey
}

// pieceKey is a piece of one.
type pieceKey struct {
	streamKey
	sequence int64
	at       capture.Position // if it has no sequence
}

// stream is how far a text is replaced.
type stream struct {
	text mask
	json lexer
}

func newStreams() streams {
	return streams{open: map[streamKey]*stream{}, before: newRecent[pieceKey, stream](maxPieces)}
}

// enter takes note of the envelope at hand.
func (t *streams) enter(in scanner, at int) {
	t.run = in.getText(at, "runId")
	t.sequence, _ = strconv.ParseInt(string(in.get(at, "sequence")), 10, 64)
}

// event takes note of its event.
func (t *streams) event(in scanner, at int, typ protocol.EventType) {
	t.id = ""
	switch typ {
	case protocol.TextMessageContent, protocol.TextMessageEnd, protocol.ReasoningContent, protocol.ReasoningEnd:
		t.id = in.getText(at, "messageId")
	case protocol.ToolCallArgs, protocol.ToolCallEnd:
		t.id = in.getText(at, "toolCallId")
	}
}

// left closes the text that an event ends.
func (t *streams) left(s *Scrubber, typ protocol.EventType) {
	ends := map[protocol.EventType]group{
		protocol.TextMessageEnd: texts, protocol.ReasoningEnd: reasonings, protocol.ToolCallEnd: toolArgs,
	}[typ]
	if ends == 0 {
		return
	}
	key := streamKey{run: t.run, id: t.id, group: ends}
	delete(t.open, key)
	s.plan.close(s, key)
}

func (t *streams) key(g group) pieceKey {
	return pieceKey{streamKey: streamKey{run: t.run, id: t.id, group: g}, sequence: t.sequence}
}

// of returns the stream of a piece, which it makes if it is new. Where the piece
// came before, it is a copy as the stream stood then.
func (t *streams) of(s *Scrubber, key pieceKey, whole bool) *stream {
	if was, ok := t.before.get(key); ok {
		was.json = was.json.clone()
		return &was
	}
	now := t.open[key.streamKey]
	if now == nil {
		if len(t.open) >= maxStreams {
			clear(t.open)
		}
		now = &stream{text: s.masks.start(), json: s.masks.lexer(whole, s.rules.field)}
		t.open[key.streamKey] = now
	}
	t.before.put(key, stream{now.text, now.json.clone()})
	return now
}

// piece replaces a piece of a text.
func (s *Scrubber) piece(list []uint16, at spot, whole bool) []uint16 {
	key := s.streams.key(at.group)
	if key.sequence <= 0 {
		key.at = s.frame.Position
	}
	if s.looking {
		s.plan.note(s, key, list)
		return list
	}
	out := list
	switch {
	case at.how == asStream && whole:
		out = make([]uint16, len(list))
		text := &s.streams.of(s, key, whole).text
		for i, u := range list {
			out[i] = text.unit(u)
		}
	case at.how == asPieces && (whole || len(s.rules.fields) > 0):
		out = s.streams.of(s, key, whole).json.units(list)
	}
	return s.plan.patch(key, out)
}

// recent remembers the latest of what it was given.
type recent[K comparable, V any] struct {
	most   int
	values map[K]V
	order  []K // a ring
	next   int
}

func newRecent[K comparable, V any](most int) recent[K, V] {
	return recent[K, V]{most: most, values: map[K]V{}}
}

func (r *recent[K, V]) get(key K) (V, bool) {
	v, ok := r.values[key]
	return v, ok
}

func (r *recent[K, V]) put(key K, value V) {
	if _, is := r.values[key]; !is {
		if len(r.order) < r.most {
			r.order = append(r.order, key)
		} else {
			delete(r.values, r.order[r.next])
			r.order[r.next] = key
			r.next = (r.next + 1) % len(r.order)
		}
	}
	r.values[key] = value
}

// bodyKey is what passed one way in an HTTP exchange.
type bodyKey struct {
	exchange  capture.Position
	direction capture.Direction
}

func keyOfBody(f *capture.Frame) bodyKey {
	return bodyKey{cmp.Or(f.Exchange, f.Position), f.Direction}
}
