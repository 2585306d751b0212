package har

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"time"

	"tapedeck/protocol/capture"
)

// Session is a session to write. Frames yields its frames, from the beginning
// each time; a frame is valid until the next one.
type Session struct {
	Row    capture.Session
	Frames func() iter.Seq2[*capture.Frame, error]
}

// Archive is what to write.
type Archive struct {
	Tool     string // this tapedeck
	Redacted string // what was taken out, in words
	Sessions []Session
}

const (
	// maxHeld is how many bytes of messages are held in memory. Connections that
	// have more are read once more, each by itself.
	maxHeld = 32 << 20
	// maxBody is how much of a compressed body is written.
	maxBody = 64 << 20
)

// Write writes an archive.
func Write(ctx context.Context, w io.Writer, a *Archive) error {
	out := &writer{out: bufio.NewWriterSize(w, 64<<10), rest: []leftover{}}
	rows := []capture.Session{}
	for i := range a.Sessions {
		rows = append(rows, a.Sessions[i].Row)
	}
	about, err := encode(struct {
		Redacted string            `json:"redacted"`
		Sessions []capture.Session `json:"sessions"`
	}{a.Redacted, rows})
	if err != nil {
		return err
	}
	tool, err := encode(cmp.Or(a.Tool, "unknown"))
	if err != nil {
		return err
	}
	fmt.Fprintf(out.out, `{"log":{"version":"1.2","_tape":%s,"creator":{"name":"tapedeck","version":%s},"pages":[],"entries":[`, about, tool)
	for i := range a.Sessions {
		if err := out.session(ctx, i, &a.Sessions[i]); err != nil {
			return err
		}
	}
	rest, err := encode(out.rest)
	if err != nil {
		return err
	}
	fmt.Fprintf(out.out, "\n],\"_tapeRest\":%s}}\n", rest)
	return out.out.Flush()
}

// encode writes JSON in which & stands for itself.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// writer writes entries.
type writer struct {
	out   *bufio.Writer // latches its errors
	any   bool
	index int
	row   *capture.Session

	exchanges map[capture.Position]*exchange
	sockets   map[capture.Position]*socket
	openings  map[capture.Position]capture.Opening
	held      int
	rest      []leftover
}

// exchange is one that is under way.
type exchange struct {
	head       capture.RequestHead
	answer     capture.ResponseHead
	outcome    capture.Outcome
	at, until  time.Duration
	answered   time.Duration
	sent, got  []byte
	codedSent  capture.Flags
	codedGot   capture.Flags
	marks      remark
	upgraded   bool
	connection capture.Position
}

// socket is a WebSocket, and its messages as they will be written.
type socket struct {
	exchange *exchange
	messages bytes.Buffer
	over     bool // they are too many to hold
}

func (w *writer) session(ctx context.Context, index int, s *Session) error {
	w.index, w.row = index, &s.Row
	w.exchanges, w.sockets = map[capture.Position]*exchange{}, map[capture.Position]*socket{}
	w.openings, w.held = map[capture.Position]capture.Opening{}, 0
	var order []capture.Position // of the sockets
	for f, err := range s.Frames() {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = w.frame(f)
		}
		if err != nil {
			return err
		}
		if x := w.exchanges[f.Exchange]; x != nil && x.upgraded && f.Kind == capture.Response || f.Kind == capture.Open && f.Exchange == 0 {
			at := cmp.Or(f.Exchange, f.Position)
			if w.sockets[at] == nil {
				w.sockets[at] = &socket{exchange: w.exchanges[at]}
				order = append(order, at)
			}
		}
	}
	for _, at := range order {
		if err := w.socket(s, at, w.sockets[at]); err != nil {
			return err
		}
	}
	for _, at := range slices.Sorted(keysOf(w.exchanges)) { // those that never ended
		if err := w.entry(w.exchanges[at], nil); err != nil {
			return err
		}
	}
	return nil
}

func keysOf(m map[capture.Position]*exchange) iter.Seq[capture.Position] {
	return func(yield func(capture.Position) bool) {
		for at, x := range m {
			if !x.upgraded && !yield(at) {
				return
			}
		}
	}
}

func markOf(f *capture.Frame, detail bool) *mark {
	m := &mark{N: f.Position, At: f.At, Flags: f.Flags &^ (capture.Gzip | capture.Deflate)}
	if detail {
		if m.Dir = f.Direction; json.Valid(f.Data) {
			m.Detail = bytes.Clone(f.Data)
		}
	}
	if f.Size != int64(len(f.Data)) {
		m.Size = f.Size
	}
	return m
}

// frame takes the next frame.
func (w *writer) frame(f *capture.Frame) error {
	x := w.exchanges[f.Exchange]
	if x == nil && f.Exchange != 0 && f.Kind == capture.Request {
		x = &exchange{at: f.At, until: f.At, answered: f.At}
		x.marks = remark{Session: w.index, N: f.Position}
		w.exchanges[f.Exchange] = x
	}
	if x != nil {
		x.until = max(x.until, f.At)
		x.connection = max(x.connection, f.Connection)
	}
	switch f.Kind {
	case capture.End, capture.Gap, capture.Act:
		w.rest = append(w.rest, leftover{w.index, f.Connection, f.Kind, *markOf(f, true)})
	case capture.Open:
		if o, err := capture.Detail[capture.Opening](f); err == nil {
			w.openings[f.Position] = o
		}
		if x == nil {
			x = w.unasked(f)
		}
		x.marks.Opened, x.connection = markOf(f, true), f.Position
	case capture.Text, capture.Binary, capture.Ping, capture.Pong, capture.Close, capture.Stream:
		return w.message(f)
	default:
		if x != nil {
			return x.take(w, f)
		}
		if f.Kind == capture.Polling {
			return w.poll(f)
		}
	}
	return nil
}

// poll writes a polling body whose request is not there.
func (w *writer) poll(f *capture.Frame) error {
	x := &exchange{at: f.At, until: f.At, answered: f.At, connection: f.Connection}
	x.head = capture.RequestHead{Method: "GET", Target: w.openings[f.Connection].Target}
	if f.Direction == capture.FromClient {
		x.head.Method = "POST"
	}
	x.answer.Status = http.StatusOK
	x.marks = remark{Session: w.index, N: f.Position}
	if err := x.take(w, f); err != nil {
		return err
	}
	return w.entry(x, nil)
}

// unasked is the exchange of a connection whose request is not there.
func (w *writer) unasked(f *capture.Frame) *exchange {
	x := &exchange{at: f.At, until: f.At, answered: f.At, upgraded: true, answer: capture.ResponseHead{Status: http.StatusSwitchingProtocols}}
	x.marks = remark{Session: w.index, N: f.Position}
	x.head = capture.RequestHead{Method: "GET", Target: w.openings[f.Position].Target, Proto: "HTTP/1.1"}
	w.exchanges[f.Position] = x
	return x
}

// take takes a frame of an exchange; with its end it is written.
func (x *exchange) take(w *writer, f *capture.Frame) error {
	fromClient := f.Direction == capture.FromClient
	switch f.Kind { // what cannot be read of a head is left empty
	case capture.Request:
		x.head, _ = capture.Detail[capture.RequestHead](f)
		x.marks.Request = markOf(f, false)
	case capture.Response:
		x.answer, _ = capture.Detail[capture.ResponseHead](f)
		x.marks.Answer, x.answered = markOf(f, false), f.At
		x.upgraded = x.answer.Status == http.StatusSwitchingProtocols
	case capture.Body, capture.Polling:
		to, m, coded := &x.got, &x.marks.Got, &x.codedGot
		if fromClient {
			to, m, coded = &x.sent, &x.marks.Sent, &x.codedSent
		}
		x.marks.Poll = f.Kind == capture.Polling
		if *to = append(*to, f.Data...); *m == nil {
			*m = markOf(f, false)
		}
		*coded = f.Flags & (capture.Gzip | capture.Deflate)
	case capture.Done:
		x.outcome, _ = capture.Detail[capture.Outcome](f)
		x.marks.Done = markOf(f, true)
		if !x.upgraded {
			delete(w.exchanges, f.Exchange)
			return w.entry(x, nil)
		}
	}
	return nil
}

// socketOf is the socket that a message passed on.
func (w *writer) socketOf(f *capture.Frame) *socket {
	if s := w.sockets[f.Exchange]; s != nil && f.Exchange != 0 {
		return s
	}
	return w.sockets[f.Connection]
}

// message holds a message until its socket is written.
func (w *writer) message(f *capture.Frame) error {
	s := w.socketOf(f)
	if s == nil || s.over {
		return nil
	}
	was := s.messages.Len()
	if err := appendMessage(&s.messages, w.row, f); err != nil {
		return err
	}
	if w.held += s.messages.Len() - was; w.held > maxHeld {
		w.held -= s.messages.Len()
		s.over, s.messages = true, bytes.Buffer{}
	}
	return nil
}

func appendMessage(b *bytes.Buffer, row *capture.Session, f *capture.Frame) error {
	m := message{Type: "receive", Time: float64(row.Started.Add(f.At).UnixNano()) / 1e9, Opcode: opcodeOf(f.Kind)}
	if f.Direction == capture.FromClient {
		m.Type = "send"
	}
	m.Tape = &messageMark{N: f.Position, At: f.At, Flags: f.Flags, Stream: f.Kind == capture.Stream}
	if f.Size != int64(len(f.Data)) {
		m.Tape.Size = f.Size
	}
	text, coded := textOf(f.Data)
	if m.Data = text; f.Kind != capture.Text && !coded && len(f.Data) > 0 {
		m.Data = base64.StdEncoding.EncodeToString(f.Data)
	} else if f.Kind == capture.Text {
		m.Tape.Base64 = coded
	}
	line, err := encode(m)
	if err != nil {
		return err
	}
	if b.Len() > 0 {
		b.WriteByte(',')
	}
	b.WriteByte('\n')
	b.Write(line)
	return nil
}
