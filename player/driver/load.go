package driver

import (
	"context"
	"fmt"
	"strings"
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/wire"
)

// pageFrames is how many frames are read at once.
const pageFrames = 4096

// Load reads what the client of a recorded session did, and what it had seen
// before it did it.
func Load(ctx context.Context, r Reader, o LoadOptions) (*Recording, error) {
	if o.Limit == 0 {
		o.Limit = LoadLimit
	}
	sessions, err := r.Sessions(ctx)
	if err != nil {
		return nil, fmt.Errorf("read sessions: %w", err)
	}
	var remarks []string
	for i := len(sessions) - 1; i >= 0; i-- {
		s := sessions[i]
		if o.Session != 0 && s.ID != o.Session {
			continue
		}
		rec, err := loadSession(ctx, r, s, o)
		if err != nil {
			return nil, fmt.Errorf("read session %d: %w", s.ID, err)
		}
		if rec.Summary().Messages > 0 {
			return rec, nil
		}
		remarks = append(remarks, rec.remarks...)
	}
	why := ""
	switch {
	case len(remarks) > 0:
		why = ": " + strings.Join(remarks, "; ")
	case o.Session != 0:
		why = fmt.Sprintf(": session %d is not on the tape, or no client sent anything in it", o.Session)
	case o.Thread != "":
		why = fmt.Sprintf(": no client spoke of thread %q", o.Thread)
	}
	return nil, fmt.Errorf("%w%s", ErrNothing, why)
}

func loadSession(ctx context.Context, r Reader, s capture.Session, o LoadOptions) (*Recording, error) {
	l := newLoader(s)
	for position := s.First; position != 0 && position <= s.Last; {
		n := int(min(capture.Position(pageFrames), s.Last-position+1))
		page, err := r.Frames(ctx, position, n)
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			break
		}
		for i := range page {
			if page[i].Position <= s.Last {
				l.frame(&page[i])
			}
		}
		switch {
		case l.size > o.Limit:
			return nil, fmt.Errorf("the commands are larger than %d bytes: export the runs that matter, and drive that tape", o.Limit)
		case len(l.windows) > MostWindow:
			return nil, fmt.Errorf("there are more than %d windows: export the runs that matter, and drive that tape", MostWindow)
		}
		position = page[len(page)-1].Position + 1
	}
	l.finish(o.Thread)
	return l.Recording, nil
}

// loader reads a session, frame by frame.
type loader struct {
	*Recording
	decoder     wire.Decoder
	connections map[capture.Position]*capture.Opening
	sockets     map[socketKey]*socket
	open        []*socket // in the order in which they opened
	moves       []*move
	moved       map[string]moment          // by thread, the latest move
	aged        map[string]bool            // threads that had messages before
	broke       map[string]capture.Address // by thread, where it stood when a connection broke off
	parted      time.Duration              // when a socket ended last
	now         moment
}

// socketKey names a socket: a connection has one for each namespace, and one of
// plain JSON has one that has no namespace.
type socketKey struct {
	connection capture.Position
	namespace  string
}

// socket is a window while its session is read.
type socket struct {
	*window
	connect  *move
	spoken   bool             // it has sent something
	before   map[string]point // what was known when it connected; until it has spoken
	bye      bool             // the gateway said DISCONNECT
	asked    map[capture.Address]*move
	answers  []*move // that came since the latest move
	answered moment
	greeted  moment
	said     *move         // the latest message
	errors   int           // protocol:error
	failed   moment        // the latest of them
	statuses int           // task:status
	informed moment        // the latest of them
	moved    moment        // the latest move
	parted   time.Duration // when another socket had ended, as this one connected
}

// point is where a thread stood, and when the last was heard or said of it.
type point struct {
	marks []mark
	last  time.Duration
}

func newLoader(s capture.Session) *loader {
	l := &loader{
		Recording:   &Recording{Session: s, recorded: newStory(), chosen: map[string]bool{}},
		connections: map[capture.Position]*capture.Opening{}, sockets: map[socketKey]*socket{}, moved: map[string]moment{}, aged: map[string]bool{},
		broke: map[string]capture.Address{},
	}
	l.recorded.born = l.bear
	return l
}

// bear takes note of the thread that a subagent has of its own.
func (l *loader) bear(g *segment, child string) {
	if t := l.recorded.thread(child); t.parent == "" && child != g.thread.id {
		t.parent = g.thread.id
	}
}

// frame takes the next frame: what the client sent, whatever became of it, and
// what the client was sent, whoever sent it.
func (l *loader) frame(f *capture.Frame) {
	packets := l.decoder.Decode(f)
	switch {
	case f.Kind == capture.Open:
		l.opened(f)
		return
	case f.Kind == capture.End:
		l.now = moment{capture.Address{Position: f.Position}, f.At}
		l.closed(f)
		return
	case f.Kind == capture.Gap:
		l.remark("frames are missing at #%d: what the client did there is not repeated", f.Position)
		return
	case f.Direction == capture.FromClient && f.Flags.Has(capture.Injected),
		f.Direction == capture.FromGateway && f.Flags.Has(capture.Withheld):
		return
	case f.Flags.Has(capture.Cut) && f.Direction == capture.FromClient && f.Kind != capture.Body:
		l.remark("the message at #%d was recorded in part, and is not sent", f.Position)
		return
	}
	for i := range packets {
		l.now = moment{packets[i].Address, f.At}
		l.packet(f, &packets[i])
	}
}

func (l *loader) packet(f *capture.Frame, p *wire.Packet) {
	s := l.sockets[socketKey{f.Connection, p.Namespace}]
	switch {
	case p.Engine == wire.PlainJSON && s == nil:
		if !protocol.Name(p.Name).Known() {
			return // it may be another application's
		}
		s = l.socket(f, p.Namespace)
		s.plain = true
	case p.Engine != wire.PlainJSON && p.Engine != wire.EngineMessage:
		return
	}
	switch {
	case f.Direction == capture.FromClient:
		l.did(f, p)
	case s != nil:
		l.told(s, p)
	}
}

func (l *loader) opened(f *capture.Frame) {
	// An Opening that cannot be read leaves the default path.
	opening, _ := capture.Detail[capture.Opening](f)
	l.connections[f.Position] = &opening
}

// socket returns that of a packet, and opens it.
func (l *loader) socket(f *capture.Frame, namespace string) *socket {
	key := socketKey{f.Connection, namespace}
	if s := l.sockets[key]; s != nil {
		return s
	}
	s := &socket{
		window: &window{index: len(l.windows), connection: f.Connection, namespace: namespace},
		asked:  map[capture.Address]*move{}, before: l.points(), moved: l.now, parted: l.parted,
	}
	if o := l.connections[f.Connection]; o != nil {
		s.target = o.Target
		_, _, redacted := handshake(o.Target)
		for _, name := range redacted {
			l.remark("the parameter %q of the handshake at #%d was redacted, and is left out: give it with the gateway's address", name, f.Connection)
		}
	}
	s.connect = &move{kind: connect, window: s.window, at: l.now}
	l.moves = append(l.moves, s.connect)
	l.windows = append(l.windows, s.window)
	l.sockets[key] = s
	l.open = append(l.open, s)
	return s
}

// points returns where all threads stand.
func (l *loader) points() map[string]point {
	points := map[string]point{}
	for _, t := range l.recorded.order {
		p := point{last: l.moved[t.id].when}
		if k, ok := l.stands(t.id); ok {
			p.marks, p.last = []mark{k}, max(p.last, k.when)
		}
		points[t.id] = p
	}
	return points
}

// did takes what the client sent.
func (l *loader) did(f *capture.Frame, p *wire.Packet) {
	switch p.Type {
	case wire.Connect:
		l.socket(f, p.Namespace)
	case wire.Disconnect:
		if s := l.sockets[socketKey{f.Connection, p.Namespace}]; s != nil {
			l.end(s, leave)
		}
	case wire.Event:
		if f.Flags.Has(capture.Redacted) {
			l.remark("%s at #%s was redacted, and is sent as the tape has it", p.Name, p.Address)
		}
		l.sent(l.socket(f, p.Namespace), p)
	case wire.BinaryEvent:
		l.remark("%s at #%s has binary attachments, and is not sent", p.Name, p.Address)
	case wire.Ack, wire.BinaryAck:
		l.remark("the acknowledgement at #%s is not repeated", p.Address)
	}
}

// told takes what a socket was sent.
func (l *loader) told(s *socket, p *wire.Packet) {
	var first []byte
	if len(p.Args) > 0 {
		first = p.Args[0]
	}
	switch p.Type {
	case wire.ConnectError:
		s.refused = true
	case wire.Disconnect:
		s.bye = true
	case wire.Ack:
		if m := s.asked[p.Answers]; m != nil {
			delete(s.asked, p.Answers)
			s.answers, s.answered = append(s.answers, m), l.now
			m.answer = readOutcome(first)
			l.before(m, first)
			l.recorded.replay(first, l.now)
		}
	case wire.Event, wire.BinaryEvent:
		switch protocol.Name(p.Name) {
		case protocol.Hello:
			if s.hello == nil && first != nil {
				s.hello, s.greeted = l.keep(first), l.now
			}
		case protocol.RunEvent:
			l.recorded.envelope(first, l.now)
		case protocol.ProtocolError:
			s.errors++
			s.failed = l.now
		case protocol.TaskStatus:
			s.statuses++
			s.informed = l.now
		}
	}
}

// before remarks on messages that a thread had before anything was seen of it.
func (l *loader) before(m *move, answer []byte) {
	h, _ := protocol.ReadHistory(answer)
	if t := l.recorded.threads[m.thread]; len(h.Messages) > 0 && t == nil && !l.aged[m.thread] {
		l.aged[m.thread] = true
		l.remark("thread %q had %d messages before the recording began: a fresh one has none of them", m.thread, len(h.Messages))
	}
}

func readOutcome(answer []byte) *outcome {
	h, ok := protocol.ReadHistory(answer)
	if !ok {
		return nil
	}
	return &outcome{h.OK, string(h.Error.Code)}
}

// keep copies bytes that outlive their frame.
func (l *loader) keep(b []byte) []byte {
	l.size += len(b)
	return append([]byte{}, b...)
}
