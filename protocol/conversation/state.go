package conversation

import (
	"hash/maphash"
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/wire"
)

// Options configure a State. The zero value is ready to use.
type Options struct {
	// Session is the session that the frames belong to; it becomes part of the
	// keys of runs.
	Session capture.SessionID
	// Validator judges the single messages; nil is one that judges by the page
	// alone.
	Validator *protocol.Validator
	// Pace are the thresholds of the notes on pace.
	Pace Pace
}

// State is what is known of a session after the frames seen so far. Use New. A
// State is not safe for concurrent use.
type State struct {
	session   capture.SessionID
	validator *protocol.Validator
	pace      Pace
	decoder   wire.Decoder
	seed      maphash.Seed

	step      Step
	envelopes []*protocol.Envelope // one for each run:event of a frame, used again
	scratch   protocol.Envelope    // for the envelopes of a replay
	turn      turn
	like      wire.Like // what the packet being judged is like

	// now is the time of the latest frame. It never runs back, though the
	// stamps of an imported session may.
	now  time.Duration
	last capture.Position

	connections map[capture.Position]*connection
	runs        map[string]*run
	threads     map[string]*thread
	pids        map[string]*socket // sockets that connection state recovery can bring back
	exchanges   map[capture.Position]*exchange
	greeting    greetings
	tasks       map[string]*run     // runs by the tasks that their subagents are
	sent        map[uint64]*command // commands by what they ask, to find one sent again
	doubted     []*command          // answers that the gateway should refuse, oldest first
	detailed    []*run              // runs that have ended and whose details are kept, oldest first
	cost        int                 // of their details

	changedRuns    []*run
	changedThreads []*thread
	skipped        map[Skip]*Skipped
	lossy          bool // frames were lost, or something was forgotten: what was not seen may have been
}

// New returns the state of a session of which nothing was seen yet.
func New(o Options) *State {
	if o.Validator == nil {
		o.Validator = protocol.NewValidator(protocol.Options{})
	}
	return &State{
		session:     o.Session,
		validator:   o.Validator,
		pace:        o.Pace.withDefaults(),
		seed:        maphash.MakeSeed(),
		connections: make(map[capture.Position]*connection),
		runs:        make(map[string]*run),
		threads:     make(map[string]*thread),
		pids:        make(map[string]*socket),
		exchanges:   make(map[capture.Position]*exchange),
		tasks:       make(map[string]*run),
		sent:        make(map[uint64]*command),
		skipped:     make(map[Skip]*Skipped),
	}
}

// Step is what one frame told. It is valid until the next call of Observe.
type Step struct {
	Frame *capture.Frame
	// Packets are the packets that the frame completed.
	Packets []wire.Packet
	// Messages are those among them that are the protocol's.
	Messages []protocol.Message
	// Posts say which frames belong to which run. A frame may be posted later
	// than it passed: a run:start is, once the run that it started is known. A
	// position is posted once to a run.
	Posts []Post
	// Findings are the rules that were broken. A finding may name a place before
	// this frame, where only this frame shows that a rule was broken there.
	Findings []protocol.Finding
}

// turn is the message being judged.
type turn struct {
	m      *protocol.Message
	socket *socket
	flags  capture.Flags
	thread string
	run    *run
	seq    int64
	// told is set once an order rule spoke about the message: the most specific
	// one comes first, and one place has one finding.
	told bool
	// replayed is set for an envelope out of a history's replay.
	replayed bool
}

// Observe takes the next frame.
func (s *State) Observe(f *capture.Frame) *Step {
	s.begin(f)
	s.greeted()
	s.overdue()
	s.step.Packets = s.decoder.Decode(f)
	switch f.Kind {
	case capture.Open:
		s.open(f)
	case capture.End:
		s.ended(f)
	case capture.Request, capture.Response, capture.Body, capture.Done:
		s.exchange(f)
	case capture.Gap:
		s.gap(f)
	case capture.Act:
		s.act(f)
	default:
		s.packets(f)
	}
	s.turn = turn{}
	return &s.step
}

func (s *State) begin(f *capture.Frame) {
	s.step.Frame = f
	s.step.Packets = nil
	if cap(s.step.Messages) > keptMessages {
		s.step, s.envelopes = Step{Frame: f}, nil // a polling body of thousands is rare
	}
	s.step.Messages = s.step.Messages[:0]
	s.step.Posts = s.step.Posts[:0]
	s.step.Findings = s.step.Findings[:0]
	if f == nil {
		return
	}
	s.now = max(s.now, f.At)
	s.last = f.Position
}

// keptMessages is how many messages' room is kept for the next frame.
const keptMessages = 1 << 10

// gap takes note that frames passed which are not on the tape. Nothing can be
// held against a peer for what may have been among them.
func (s *State) gap(f *capture.Frame) {
	s.lossy = true
	for _, r := range s.runs {
		r.tear()
		r.cut = true
	}
	for _, c := range s.connections {
		for _, k := range c.sockets {
			k.forgetCursors()
			k.hello.awaited = false
			for _, q := range k.commands {
				q.lost = true
			}
		}
	}
}

// End closes the books when the recording stops, and returns what can only be
// said then. A State is not used after End.
func (s *State) End() *Step {
	s.begin(nil)
	s.turn = turn{}
	s.closeBooks()
	return &s.step
}

// Changed returns the runs whose summaries changed since the last call. They
// are copies. Until it is called, a State remembers all of them.
func (s *State) Changed() []*Run {
	runs := make([]*Run, len(s.changedRuns))
	for i, r := range s.changedRuns {
		r.changed = false
		runs[i] = r.summary()
	}
	s.changedRuns = s.changedRuns[:0]
	return runs
}

// ChangedThreads returns the threads whose summaries changed since the last
// call. They are copies.
func (s *State) ChangedThreads() []*Thread {
	threads := make([]*Thread, len(s.changedThreads))
	for i, t := range s.changedThreads {
		t.changed = false
		threads[i] = t.summary()
	}
	s.changedThreads = s.changedThreads[:0]
	return threads
}
