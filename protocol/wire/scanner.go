package wire

import (
	"slices"
	"sync"

	"tapedeck/protocol/capture"
)

// DefaultLimit is how much of one message a Scanner keeps unless told
// otherwise, in bytes.
const DefaultLimit = 64 << 20

const (
	// keptBuffer is the largest buffer that is kept for the next message: thousands
	// of connections must not each hold on to their largest one.
	keptBuffer = 256 << 10
	// believed is how long a frame may say that it is, to be given all that room
	// once its first 64 KiB have come. Memory that was not touched costs nothing.
	believed  = 8 << 20
	believeAt = 64 << 10
)

// ScannerOptions configure a Scanner. The zero value is ready to use.
type ScannerOptions struct {
	// Limit is how many bytes of a message's payload are kept; what is beyond is
	// counted. 0 is DefaultLimit.
	Limit int
	// Deflate says what was negotiated for compressed messages, see
	// [NegotiatedDeflate]. They are inflated on the side.
	Deflate Deflate
	// Hold begins as if Hold had been called.
	Hold bool
	// Large lends buffers for long messages, each a *[]byte, which many connections
	// share: to touch new memory costs more than to copy into it. Nil makes new
	// ones.
	Large *sync.Pool
}

// Scanner finds the WebSocket messages in one direction of an upgraded
// connection, from the bytes as they were read:
//
//	s.Feed(b)
//	for m := s.Next(); m != nil; m = s.Next() {
//		…
//	}
//
// At the end of the connection, End takes Feed's place, and the same loop gives
// what was left unfinished. How the bytes were cut makes no difference.
//
// Bytes that are no WebSocket frames are reported once, by a message of kind
// Stream with the Reason, and all that follows comes out as Stream.
//
// A Scanner allocates only to grow its buffers and to report trouble. It is not
// safe for concurrent use.
type Scanner struct {
	limit   int64
	inflate *inflater // nil if compression was not negotiated
	hold    bool
	large   *sync.Pool
	lent    []byte // the large buffer that the last message lies in

	in    []byte // what was fed and not yet looked at
	ended bool

	head     [maxHeader]byte // of a frame whose head came in pieces
	headLen  int
	headSent int // how many bytes of head passed before Hold

	frame   header // the frame that in goes on with
	inFrame bool
	left    int64 // of the frame's payload

	data    assembly // the text or binary message under way
	control assembly // the control frame under way

	lost   string // why these are no frames, "" while they are
	told   bool   // Reason was reported
	result Message
}

// Message is what a Scanner found: a WebSocket message or control frame, or a
// part of a stream that holds none. It carries what a capture.Frame needs.
type Message struct {
	// Kind is Text, Binary, Ping, Pong, Close or Stream; 0 is a piece of a
	// message that cannot be held, see Unheld.
	Kind capture.Kind
	// Flags are among Cut, Partial, Fragmented and Inflated.
	Flags capture.Flags
	// Size is the length of the whole payload, after inflating.
	Size int64
	// Payload is unmasked, its fragments joined. It may point into the bytes
	// that were fed.
	Payload []byte
	// Reason says why a Stream is no WebSocket message. It is set on the first
	// of them, and on a message that could not be inflated.
	Reason string

	// Raw is set while the scanner holds: the message's bytes as they passed,
	// to be written on if it may pass. Control frames between its fragments are
	// not in it, as they came out before as messages of their own.
	Raw []byte
	// Unheld is set if Raw must be written on whatever the gate says: its
	// message is over the limit or had begun to pass before Hold. Its pieces
	// have Kind 0; the message itself comes last, for the record.
	Unheld bool
}

// assembly is a message that is being put together.
type assembly struct {
	open       bool
	kind       capture.Kind
	fragmented bool
	compressed bool
	unheld     bool
	size       int64
	buf        []byte // payload, as far as it is kept
	raw        []byte // while holding: the bytes that were not yet handed out
}

// NewScanner returns a Scanner for the bytes that follow the 101 in one
// direction.
func NewScanner(opts ScannerOptions) *Scanner {
	s := &Scanner{limit: int64(opts.Limit), inflate: newInflater(opts.Deflate), hold: opts.Hold, large: opts.Large}
	if s.limit <= 0 {
		s.limit = DefaultLimit
	}
	return s
}

// Feed hands b to s, which reads it until the next call of Feed. All of what
// was fed before must have been drawn by Next.
func (s *Scanner) Feed(b []byte) {
	s.in = b
}

// End says that nothing more will come: Next returns what was left unfinished,
// marked as Partial.
func (s *Scanner) End() { s.ended = true }

// Hold makes s keep the bytes of each message and give them as its Raw, so that
// the caller can write them on when it likes instead of at once: every byte
// that is fed from now on comes out in exactly one Raw. It is to be called when
// Next has returned nil.
func (s *Scanner) Hold() {
	if s.hold {
		return
	}
	s.hold = true
	s.headSent = s.headLen
	s.data.unheld, s.control.unheld = s.data.open, s.control.open
}

// Release undoes Hold and returns the bytes of the unfinished message that are
// still to be written on. It is to be called when Next has returned nil.
func (s *Scanner) Release() []byte {
	if !s.hold {
		return nil
	}
	held := append(s.data.raw, s.control.raw...)
	held = append(held, s.head[s.headSent:s.headLen]...)
	s.hold, s.headSent = false, 0
	s.data.raw, s.control.raw = nil, nil
	return held
}

// Next returns the next message in what was fed, nil if there is none. The
// message and all that it points to are valid until the next call of a method
// of s.
func (s *Scanner) Next() *Message {
	s.giveBack(s.lent)
	s.lent = nil
	for s.lost == "" && (len(s.in) > 0 || s.inFrame && s.left == 0) {
		m := (*Message)(nil)
		if s.inFrame {
			m = s.payload()
		} else {
			m = s.begin()
		}
		if m != nil {
			return m
		}
	}
	if s.lost != "" {
		return s.stream()
	}
	if s.ended {
		return s.rest()
	}
	return nil
}

// Border reports whether what was fed ends between two messages, so that a
// frame of one's own may follow it. It is to be called when Next has returned
// nil.
func (s *Scanner) Border() bool {
	return s.lost == "" && !s.inFrame && s.headLen == 0 && !s.data.open
}

// Inside reports whether the next n bytes belong to the frame under way and do
// not end it: feeding them will complete no message.
func (s *Scanner) Inside(n int) bool {
	return s.lost == "" && s.inFrame && s.left > int64(n)
}

// begin reads the head of a frame, and the whole frame if it can be given as it
// lies in the fed bytes.
func (s *Scanner) begin() *Message {
	direct := s.headLen == 0
	var h header
	var n int
	if direct {
		h, n = parseHeader(s.in)
	}
	if n == 0 {
		direct = false
		for n == 0 && len(s.in) > 0 {
			s.head[s.headLen] = s.in[0]
			s.headLen++
			s.in = s.in[1:]
			h, n = parseHeader(s.head[:s.headLen])
		}
		if n == 0 {
			return nil
		}
	}
	if s.lost = h.objection(s.data.open, s.inflate != nil); s.lost != "" {
		return nil
	}
	if direct && !h.masked && h.fin && h.rsv == 0 && h.opcode != opContinuation && int64(len(s.in)-n) >= h.length {
		return s.whole(&h, n)
	}
	var head []byte
	sent := s.headSent
	if direct {
		head, s.in = s.in[:n], s.in[n:]
	} else {
		head, s.headLen, s.headSent = s.head[:n], 0, 0
	}
	s.frame, s.inFrame, s.left = h, true, h.length
	a := s.current()
	if h.opcode != opContinuation {
		a.start(&h)
		a.unheld = sent > 0
	}
	if a.size+h.length > s.limit && !h.control() {
		a.unheld = true
	}
	a.fragmented = a.fragmented || !h.fin
	if s.hold {
		a.raw = append(a.raw, head[sent:]...)
	}
	return nil
}

// whole gives a frame that lies in the fed bytes without copying it.
func (s *Scanner) whole(h *header, n int) *Message {
	end := n + int(h.length)
	m := &s.result
	*m = Message{Kind: h.kind(), Size: h.length, Payload: s.in[n:end:end]}
	if h.length > s.limit {
		m.Payload, m.Flags, m.Unheld = m.Payload[:s.limit:s.limit], capture.Cut, s.hold
	}
	if s.hold {
		m.Raw = s.in[:end:end]
	}
	s.in = s.in[end:]
	return m
}

func (s *Scanner) current() *assembly {
	if s.frame.control() {
		return &s.control
	}
	return &s.data
}

// payload takes what was fed of the current frame's payload.
func (s *Scanner) payload() *Message {
	a := s.current()
	n := min(int64(len(s.in)), s.left)
	chunk := s.in[:n]
	s.in = s.in[n:]
	keep := chunk[:min(n, max(0, s.limit-a.size))]
	a.buf = s.grow(a.buf, len(keep), min(s.left, s.limit-a.size))
	if s.frame.masked {
		a.buf = appendUnmasked(a.buf, keep, s.frame.key, s.frame.length-s.left)
	} else {
		a.buf = append(a.buf, keep...)
	}
	s.left -= n
	a.size += n
	if s.hold {
		a.raw = append(a.raw, chunk...)
	}
	if s.left == 0 {
		s.inFrame = false
		if s.frame.fin {
			return s.complete(a, 0)
		}
	}
	if a.unheld && len(a.raw) > 0 {
		return s.piece(a)
	}
	return nil
}

// grow makes room in b for n bytes of a frame that has left bytes to come. A
// long message would be moved often if that only doubled what is there, and the
// length of a very long frame is not to be believed before its bytes have come.
func (s *Scanner) grow(b []byte, n int, left int64) []byte {
	if cap(b)-len(b) >= n {
		return b
	}
	more := int64(n + 3*len(b))
	if len(b) >= believeAt && left <= believed {
		more = left
	}
	more = min(left, more)
	if s.large == nil || len(b) < believeAt {
		return slices.Grow(b, int(more))
	}
	var room []byte
	if p, ok := s.large.Get().(*[]byte); ok {
		room = *p
	}
	room = append(slices.Grow(room[:0], len(b)+int(more)), b...)
	s.giveBack(b)
	return room
}

// giveBack takes a buffer that is not used any more.
func (s *Scanner) giveBack(b []byte) {
	if s.large != nil && cap(b) > keptBuffer {
		room := b // so that only a large one moves to the heap
		s.large.Put(&room)
	}
}

// piece hands out bytes that cannot be held.
func (s *Scanner) piece(a *assembly) *Message {
	s.result = Message{Raw: a.raw, Unheld: true}
	a.raw = reuse(a.raw)
	return &s.result
}

// complete hands out a's message, and makes a ready for the next.
func (s *Scanner) complete(a *assembly, flags capture.Flags) *Message {
	m := &s.result
	*m = Message{Kind: a.kind, Flags: flags, Size: a.size, Payload: a.buf, Unheld: a.unheld && s.hold}
	if a.fragmented {
		m.Flags |= capture.Fragmented
	}
	if s.hold {
		m.Raw = a.raw
	}
	if a.compressed {
		s.inflate.message(m, s.limit)
	}
	if int64(len(m.Payload)) < m.Size {
		m.Flags |= capture.Cut
	}
	s.lent = a.buf
	*a = assembly{buf: reuse(a.buf), raw: reuse(a.raw)}
	return m
}

// stream gives bytes that are no frames: first the message that they broke off,
// then what was read of a head, then what was fed.
func (s *Scanner) stream() *Message {
	if s.data.open {
		return s.complete(&s.data, capture.Partial)
	}
	b, sent := s.head[:s.headLen], s.headSent
	s.headLen, s.headSent = 0, 0
	if len(b) == 0 {
		b, s.in, sent = s.in, nil, 0
	}
	if len(b) == 0 {
		return nil
	}
	s.result = Message{Kind: capture.Stream, Size: int64(len(b)), Payload: b}
	if s.hold {
		s.result.Raw = b[sent:]
	}
	if !s.told {
		s.result.Reason, s.told = s.lost, true
	}
	return &s.result
}

// rest gives, one after the other, what the end of the connection cut short.
func (s *Scanner) rest() *Message {
	switch {
	case s.data.open:
		return s.complete(&s.data, capture.Partial)
	case s.control.open:
		return s.complete(&s.control, capture.Partial)
	case s.headLen > 0:
		s.lost = "the connection ended inside the head of a WebSocket frame"
		m := s.stream()
		m.Flags |= capture.Partial
		return m
	}
	return nil
}

func (a *assembly) start(h *header) {
	a.open, a.kind, a.compressed = true, h.kind(), h.rsv&0x40 != 0
}

// reuse empties a buffer, or drops it if it is too large to be kept.
func reuse(b []byte) []byte {
	if cap(b) > keptBuffer {
		return nil
	}
	return b[:0]
}
