package driver

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"tapedeck/protocol/capture"
)

// Reader is a tape whose client can be driven. recorder.Reader is one.
type Reader interface {
	// Sessions returns the sessions in order.
	Sessions(ctx context.Context) ([]capture.Session, error)
	// Frames returns at most n frames from a position on.
	Frames(ctx context.Context, from capture.Position, n int) ([]capture.Frame, error)
}

// LoadOptions say what of a tape is driven. The zero value is ready to use.
type LoadOptions struct {
	// Session is the one to drive. 0 is the last in which a client sent
	// something.
	Session capture.SessionID
	// Thread leaves only the windows that spoke of this thread, and those of
	// the same client. "" leaves all.
	Thread string
	// Limit is how many bytes of commands may be kept, LoadLimit if it is 0.
	Limit int
}

// The bounds of what is loaded.
const (
	LoadLimit  = 256 << 20 // bytes of commands, by default
	MostWindow = 1000      // windows of one session
)

// ErrNothing is returned when a tape has no client that can be driven.
var ErrNothing = errors.New("there is no client to drive")

// Recording is the client's part of a recorded session. It is not changed by
// being driven, and may be driven many times at once.
type Recording struct {
	Session capture.Session

	parties  []*party
	windows  []*window
	recorded *story          // what the gateway told
	chosen   map[string]bool // message ids that the client chose
	remarks  []string
	size     int // of the commands, in bytes
}

// Summary is what there is to drive.
type Summary struct {
	Windows  int // sockets, one for each namespace of a connection
	Plain    int // those of them that speak plain JSON
	Threads  int // that the client spoke of
	Messages int // that the client sent
	Clients  int // groups of windows that have threads in common
}

// Summary returns what there is to drive.
func (r *Recording) Summary() Summary {
	sum := Summary{Clients: len(r.parties)}
	for _, p := range r.parties {
		sum.Threads += len(p.threads)
		for _, m := range p.moves {
			switch {
			case m.kind == send:
				sum.Messages++
			case m.kind == connect && m.window.plain:
				sum.Plain++
				fallthrough
			case m.kind == connect:
				sum.Windows++
			}
		}
	}
	return sum
}

// Threads returns the threads that the client spoke of, by their recorded ids,
// without those that are a subagent's own.
func (r *Recording) Threads() (ids []string) {
	for _, p := range r.parties {
		for _, id := range p.threads {
			if t := r.recorded.threads[id]; t == nil || t.parent == "" {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// Remarks returns what of the recording cannot be repeated, and why.
func (r *Recording) Remarks() []string { return slices.Clone(r.remarks) }

func (r *Recording) remark(format string, args ...any) {
	const most = 100
	if len(r.remarks) < most {
		r.remarks = append(r.remarks, fmt.Sprintf(format, args...))
	}
}

// party is a client: windows that have threads in common, and what they did, in
// the order in which they did it. Parties know nothing of each other.
type party struct {
	moves   []*move
	threads []string
	gap     time.Duration // between the beginning of the party before and this one
}

// window is a recorded socket.
type window struct {
	index      int
	connection capture.Position
	target     string // of the request that opened the connection
	namespace  string
	plain      bool   // it speaks plain JSON
	hello      []byte // what the gateway announced, nil for nothing
	refused    bool   // CONNECT was refused
	threads    []string
}

// kind is what a client does.
type kind int

const (
	connect kind = iota
	send         // an event
	leave        // it leaves in order
	drop         // the network ends the socket
	ended        // the gateway ends the socket, and the client waits for that
)

var kindNames = [...]string{"connect", "send", "leave", "network failure", "end by the gateway"}

// move is something that a client did.
type move struct {
	index  int
	kind   kind
	window *window
	at     moment
	thread string // that it is about, "" for none
	cause  cause
	think  time.Duration // since the last of what it waited for

	name   string // of the event
	args   [][]byte
	ask    bool // for an acknowledgement
	refs   []ref
	answer *outcome // as recorded, nil if none came
	errors int      // protocol:errors that the window had been sent when it made its next move
}

// title names a move in what is told of it.
func (m *move) title() string {
	if m.kind == send {
		return m.name
	}
	return kindNames[m.kind]
}

// outcome is the gist of an acknowledgement.
type outcome struct {
	ok   bool
	code string
}

func (o outcome) String() string {
	switch {
	case o.ok:
		return "ok"
	case o.code == "":
		return "not ok"
	}
	return o.code
}

// cause is what a client had seen when it made a move, reduced to what it would
// wait for.
type cause struct {
	marks    []mark
	answers  []*move // whose acknowledgements had come since the move before
	errors   int     // protocol:errors that the window had been sent
	statuses int     // task:status that it had been sent, if it leaves
}

// ref is a field of a command that holds an id which the gateway chose.
type ref struct {
	field   string
	id      string // the recorded one
	class   class
	thread  string
	segment int
	n       int
	payload [sha256.Size]byte // of a decision
}
