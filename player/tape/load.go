package tape

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/wire"
)

// Reader is a tape that can be played. recorder.Reader is one.
type Reader interface {
	// Sessions returns the sessions in order.
	Sessions(ctx context.Context) ([]capture.Session, error)
	// Frames returns at most n frames from a position on.
	Frames(ctx context.Context, from capture.Position, n int) ([]capture.Frame, error)
}

const (
	pageFrames = 4096    // read at once
	arenaBlock = 1 << 20 // bytes that payloads are kept in
)

// load reads the sessions of a tape, or the one that only names.
func load(ctx context.Context, r Reader, only capture.SessionID, limit int) (*recording, error) {
	sessions, err := r.Sessions(ctx)
	if err != nil {
		return nil, fmt.Errorf("read sessions: %w", err)
	}
	rec := &recording{}
	found := false
	for _, s := range sessions {
		if only != 0 && s.ID != only {
			continue
		}
		found = true
		if err := loadSession(ctx, r, s, rec, limit); err != nil {
			return nil, fmt.Errorf("read session %d: %w", s.ID, err)
		}
	}
	if !found && only != 0 {
		return nil, fmt.Errorf("there is no session %d: the tape has %d", only, len(sessions))
	}
	return rec, nil
}

func loadSession(ctx context.Context, r Reader, s capture.Session, rec *recording, limit int) error {
	l := newLoader(rec)
	for position := s.First; position != 0 && position <= s.Last; {
		n := int(min(capture.Position(pageFrames), s.Last-position+1))
		page, err := r.Frames(ctx, position, n)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}
		for i := range page {
			if page[i].Position <= s.Last {
				l.frame(&page[i])
			}
		}
		if rec.size > limit {
			return fmt.Errorf("what would be played is larger than %d bytes: export the runs that matter, and play that tape", limit)
		}
		position = page[len(page)-1].Position + 1
	}
	l.finish()
	return nil
}

// loader reads a session, frame by frame.
type loader struct {
	*recording
	decoder   wire.Decoder
	validator *protocol.Validator
	findings  []protocol.Finding // a scratch pad: nobody asks here
	arena     []byte
	now       time.Duration
	at        capture.Position

	sockets map[capture.Position]*socket // that have not ended
	asked   []*command                   // of all sockets, in order; settled ones go when others come
	known   map[string]*thread
	runs    map[string]*run
	heard   map[heard]int   // the most that one socket was told
	kids    map[string]bool // threads that a subagent was said to have
	own     []*thread       // of this session
	http    map[capture.Position]*exchange
}

// run is a recorded run id.
type run struct {
	id      string
	thread  *thread
	segment *segment // the latest
	stream  []*envelope
	last    map[int64]int // by sequence, where in the stream; made when it is asked for
}

// socket is a recorded connection.
type socket struct {
	greeted  bool
	joined   bool
	bye      bool // the gateway said DISCONNECT
	byPlace  map[capture.Address]*command
	rooms    map[*thread]bool
	latest   *thread
	cursors  map[*run]*cursor
	heard    map[heard]int    // messages that are no envelopes, and how often
	swallow  protocol.Failure // told by an acknowledgement, and again by protocol:error
	swallows bool
}

// cursor is how far a socket has heard a run.
type cursor struct {
	next   int
	joined bool // its last news was a replay
}

// heard is a message to the room of a thread.
type heard struct {
	thread *thread
	sum    [sha256.Size]byte
}

// command is one that waits for its answer.
type command struct {
	protocol.Command
	socket  *socket
	at      time.Duration
	thread  *thread
	start   *start
	wait    *wait
	run     *run
	settled bool
}

func newLoader(rec *recording) *loader {
	return &loader{
		recording: rec, validator: protocol.NewValidator(protocol.Options{}),
		sockets: map[capture.Position]*socket{}, known: map[string]*thread{}, runs: map[string]*run{}, kids: map[string]bool{},
		http: map[capture.Position]*exchange{}, heard: map[heard]int{},
	}
}

// keep copies bytes that outlive their frame.
func (l *loader) keep(b []byte) []byte {
	if b == nil {
		return nil
	}
	l.size += len(b)
	if len(b) > arenaBlock/4 {
		return bytes.Clone(b)
	}
	if cap(l.arena)-len(l.arena) < len(b) {
		l.arena = make([]byte, 0, arenaBlock)
	}
	from := len(l.arena)
	l.arena = append(l.arena, b...)
	return l.arena[from:len(l.arena):len(l.arena)]
}

func (l *loader) keepAll(list [][]byte) [][]byte {
	out := make([][]byte, len(list))
	for i, b := range list {
		out[i] = l.keep(b)
	}
	return out
}

func (l *loader) remark(format string, args ...any) {
	const most = 100
	if len(l.remarks) < most {
		l.remarks = append(l.remarks, fmt.Sprintf(format, args...))
	}
}

// frame takes the next frame.
func (l *loader) frame(f *capture.Frame) {
	l.now, l.at = f.At, f.Position
	packets := l.decoder.Decode(f)
	switch f.Kind {
	case capture.Open:
		l.sockets[f.Position] = &socket{
			byPlace: map[capture.Address]*command{}, rooms: map[*thread]bool{}, cursors: map[*run]*cursor{},
			heard: map[heard]int{},
		}
	case capture.End:
		l.ended(f)
	case capture.Request, capture.Response, capture.Body, capture.Done:
		l.exchange(f)
	case capture.Gap:
		l.remark("frames are missing at %d: what was lost cannot be played", f.Position)
	default:
		l.packets(f, packets)
	}
}

// packets takes what passed on a connection: what the client sent, and what the
// client was sent.
func (l *loader) packets(f *capture.Frame, packets []wire.Packet) {
	s := l.sockets[f.Connection]
	if s == nil || f.Direction == capture.FromClient && f.Flags.Has(capture.Injected) ||
		f.Direction == capture.FromGateway && f.Flags.Has(capture.Withheld) {
		return
	}
	if f.Flags.Has(capture.Cut) {
		l.remark("the message at %d was recorded in part, and cannot be played", f.Position)
		return
	}
	for i := range packets {
		p := &packets[i]
		switch {
		case p.Engine != wire.EngineMessage && p.Engine != wire.PlainJSON:
		case f.Direction == capture.FromClient:
			if p.Type == wire.Event {
				l.command(s, p)
			}
		default:
			l.told(s, p)
		}
	}
}

// thread returns the thread of an id, and makes it.
func (l *loader) thread(id string) *thread {
	t := l.known[id]
	if t == nil {
		t = &thread{id: string([]byte(id)), at: l.at, child: l.kids[id]}
		t.root = &segment{thread: t, at: l.now}
		l.known[t.id] = t
		l.threads = append(l.threads, t)
		l.own = append(l.own, t)
	}
	return t
}
