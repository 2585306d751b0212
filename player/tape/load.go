package tape

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"tapedeck/player/engine"
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

	sockets map[capture.Position]*socket
	known   map[string]*thread
	runs    map[string]*run
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
	bye      bool       // the gateway said DISCONNECT
	asked    []*command // not settled yet, in order
	byPlace  map[capture.Address]*command
	rooms    map[*thread]bool
	latest   *thread
	cursors  map[*run]*cursor
	heard    map[*thread]map[string]int // messages that are no envelopes
	swallow  protocol.Failure           // told by an acknowledgement, and again by protocol:error
	swallows bool
}

// cursor is how far a socket has heard a run.
type cursor struct {
	next   int
	joined bool // its last news was a replay
}

// command is one that waits for its answer.
type command struct {
	protocol.Command
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
		http: map[capture.Position]*exchange{},
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
			heard: map[*thread]map[string]int{},
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

// told takes what a gateway sent to a socket.
func (l *loader) told(s *socket, p *wire.Packet) {
	var first []byte
	if len(p.Args) > 0 {
		first = p.Args[0]
	}
	switch p.Type {
	case wire.Connect:
		l.accepted, s.joined = true, true
	case wire.ConnectError:
		if !l.accepted {
			var r engine.Refusal
			// One that cannot be read is a refusal without words.
			_ = json.Unmarshal(first, &r)
			l.refusals = append(l.refusals, r)
		}
	case wire.Disconnect:
		s.bye = true
	case wire.Ack:
		if asked := s.byPlace[p.Answers]; asked != nil {
			delete(s.byPlace, p.Answers)
			l.answered(s, asked, first)
		}
	case wire.Event, wire.BinaryEvent:
		l.event(s, p, first)
	}
}

func (l *loader) event(s *socket, p *wire.Packet, first []byte) {
	switch name := protocol.Name(p.Name); {
	case name == protocol.Hello:
		if !l.greeted {
			l.greeted, l.hello = true, l.keep(first)
		}
		s.greeted = true
	case name == protocol.RunEvent && first != nil:
		l.envelope(s, p, first)
	case name == protocol.ProtocolError && first != nil:
		failure, _ := protocol.ReadError(first)
		l.failed(s, p, failure)
	default:
		l.message(s, p, first)
	}
}

// message takes a message for a thread's room: task:status, or what the protocol
// does not know.
func (l *loader) message(s *socket, p *wire.Packet, first []byte) {
	var status struct {
		ThreadID string `json:"threadId"`
	}
	// A message of another shape belongs where the socket was last.
	_ = json.Unmarshal(first, &status)
	t := l.known[status.ThreadID]
	if t == nil {
		t = s.latest
	}
	if t == nil || l.second(s, t, p) {
		return
	}
	t.now().add(l.now, &message{name: p.Name, args: l.keepAll(p.Args), attachments: l.keepAll(p.Attachments)})
}

// second reports whether the socket is told what another was told before.
func (l *loader) second(s *socket, t *thread, p *wire.Packet) bool {
	key := string(p.Raw)
	counts := func(of *socket) map[string]int {
		if of.heard[t] == nil {
			of.heard[t] = map[string]int{}
		}
		return of.heard[t]
	}
	counts(s)[key]++
	most := 0
	for _, other := range l.sockets {
		if other != s {
			most = max(most, counts(other)[key])
		}
	}
	return counts(s)[key] <= most
}

// ended takes the end of a connection. One that the gateway or the network ended
// is part of the story.
func (l *loader) ended(f *capture.Frame) {
	s := l.sockets[f.Connection]
	ending, err := capture.Detail[capture.Ending](f)
	if s == nil || err != nil {
		return
	}
	if s.joined && !s.greeted && !l.greeted {
		l.greeted = true // by silence
	}
	if ending.By != capture.FromGateway && !s.bye {
		return
	}
	for t := range s.rooms {
		t.now().add(l.now, &cut{politely: s.bye})
	}
}

// now is where in a thread what comes next belongs.
func (t *thread) now() *segment {
	if t.current != nil {
		return t.current
	}
	return t.root
}

func (g *segment) add(at time.Duration, act any) { g.items = append(g.items, item{at, act}) }

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

// finish closes the books of the session.
func (l *loader) finish() {
	for _, s := range l.sockets {
		if s.joined && !s.greeted && !l.greeted {
			l.greeted = true
		}
	}
	for _, t := range l.own {
		t.child = t.child || l.kids[t.id]
		t.settle()
	}
}

// settle sees which commands were obeyed, now that all is known.
func (t *thread) settle() {
	kept := t.starts[:0]
	for _, s := range t.starts {
		switch {
		case s.refused != nil && (s.busy || s.refused.Code == protocol.DuplicateMessage || s.refused.Code == protocol.ForkPointNotFound):
			continue // the player refuses it by itself
		case s.refused == nil && s.first == nil:
			s.first = &segment{thread: t} // nothing ever came of it
		}
		s.index = len(kept)
		kept = append(kept, s)
	}
	t.starts = kept
	for _, s := range t.starts {
		for g := s.first; g != nil; g = g.next {
			g.settle()
		}
	}
	t.root.settle()
}

// settle marks the cancels and detaches that changed nothing: nobody needs to
// wait for them.
func (g *segment) settle() {
	for i := range g.items {
		switch act := g.items[i].act.(type) {
		case *wait:
			act.void = act.void || !g.heeded(act.command, g.items[i+1:])
		case *opening:
			for inner := act.segment; inner != nil; inner = inner.next {
				inner.settle()
			}
		}
	}
}

// heeded reports whether what follows shows that a command was obeyed.
func (g *segment) heeded(name protocol.Name, after []item) bool {
	for _, i := range after {
		switch act := i.act.(type) {
		case *envelope:
			if name == protocol.ThreadMessages || name == protocol.RunCancel && act.typ == protocol.RunCancelled ||
				name == protocol.RunDetach && act.typ == protocol.SubagentFinished {
				return true
			}
		case *message:
			if name == protocol.RunDetach && act.name == string(protocol.TaskStatus) {
				return true
			}
		}
	}
	return false
}
