package conversation

import (
	"slices"
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

// run is what is known of a run.
type run struct {
	Run
	key     RunKey
	thread  *thread
	changed bool

	// cause is the command that began the run, nil if it is not known, and
	// before the run whose pause it resumes. fresh is set if it is known to be
	// no continuation.
	cause  *command
	before *run
	fresh  bool

	startAt capture.Address // of RUN_STARTED
	asked   time.Duration   // from when the first token is waited for
	top     int64           // the highest sequence that was seen
	topAt   capture.Address
	first   time.Duration // of the first envelope
	latest  time.Duration // of the latest live envelope, -1 before one and after a silence that does not count
	seen    record
	pulse   pulse

	// tears counts the holes in what was seen: a construct that began before a
	// hole may have ended in it, and one that is not known may have begun there.
	tears int

	// cut is set while frames were lost behind its latest envelope.
	cut bool

	end     capture.Address // of the event that ended it, zero while it goes on
	endType protocol.EventType

	watchers  int     // sockets that get its envelopes
	lastLeft  *socket // the last of them to leave
	explained bool    // a history shows that it went on
	gone      bool    // it ended while nobody watched

	segment    segment
	decisions  []*decision   // that it asked for, oldest first
	waitsSince time.Duration // when it began to wait, -1 if it does not
	items      items
	tools      map[string]*clientTool // those that its commands declared; nil if no command was seen
	after      *run                   // the thread's run before this one, until RUN_STARTED is judged
	cancel     *command               // a run:cancel that was not refused
	newWork    bool                   // a construct began since the cancel
	detached   bool                   // a subagent of it works on in the background
	differs    bool                   // it was said that two deliveries differ
	rate       rate

	kept      bool // its details are among those of ended runs
	cost      int
	forgotten bool

	lastPost capture.Position              // the latest posted in order
	late     map[capture.Position]struct{} // those posted out of order
	latePost capture.Position              // the highest of them
	conns    []capture.Position            // connections that were posted
}

// segment is what is known of a run's segment: up to its pause or end.
type segment struct {
	interrupts int
	interrupt  capture.Address // the first INTERRUPT
	between    capture.Address // another event between INTERRUPT and RUN_PAUSED, or RUN_PAUSED and RUN_FINISHED
	kind       protocol.EventType
	paused     capture.Address
	pausedAt   time.Duration
	holes      bool // an envelope of it was not seen
}

// thread is what is known of a thread.
type thread struct {
	Thread
	changed   bool
	latest    *run
	starts    []*command // run:start whose run is not known, oldest first
	resumes   []*command // run:resume that nothing has answered yet, oldest first
	decisions map[string]*decision
	order     []*decision
	// known is set once every decision that the thread can wait on was seen.
	known bool
	ids   map[string]capture.Address // messages in the thread, and where they were seen
}

const (
	maxRuns       = 1 << 13 // summaries that can still change
	maxThreads    = 1 << 13
	maxDetailed   = 1 << 12 // ended runs whose details are remembered
	maxPosted     = 1 << 12 // positions of a run
	maxWaiting    = 64      // commands of a thread that wait for their run
	maxMessageIDs = 1 << 14 // of a thread
)

// summary returns a copy of the run's summary.
func (r *run) summary() *Run {
	sum := r.Run
	sum.Pulse = r.pulse.parts(r.Ended - r.first)
	return &sum
}

func (t *thread) summary() *Thread {
	sum := t.Thread
	return &sum
}

// over reports whether the run has ended and does not wait to go on.
func (r *run) over() bool { return !r.end.IsZero() || r.gone }

// tear takes note that envelopes of the run may have been missed.
func (r *run) tear() {
	r.tears++
	r.segment.holes = true
	r.latest = -1
}

// leave takes note that a socket gets the run's envelopes no more.
func (r *run) leave() {
	if r.watchers--; r.watchers == 0 && !r.over() {
		r.latest = -1 // what nobody watches cannot stall
	}
}

// touch puts the run among the changed ones.
func (s *State) touch(r *run) {
	if !r.changed {
		r.changed = true
		s.changedRuns = append(s.changedRuns, r)
	}
}

func (s *State) touchThread(t *thread) {
	if !t.changed {
		t.changed = true
		s.changedThreads = append(s.changedThreads, t)
	}
}

func (s *State) setStatus(r *run, status Status) {
	if r.Status == status {
		return
	}
	r.Status = status
	s.touch(r)
	if r.thread.latest == r {
		r.thread.Status = status
		s.touchThread(r.thread)
	}
}

// threadOf returns the thread of an id, which it makes if it is new.
func (s *State) threadOf(id string) *thread {
	t := s.threads[id]
	if t == nil {
		if len(s.threads) >= maxThreads {
			s.lossy = true
			dropOldest(s.threads, maxThreads/4, func(t *thread) (capture.Position, bool) { return t.Last, true }, nil)
		}
		t = &thread{Thread: Thread{ID: id, First: s.last}, decisions: make(map[string]*decision)}
		s.threads[id] = t
	}
	s.reach(t)
	return t
}

// reach takes note that the frame belongs to a thread.
func (s *State) reach(t *thread) {
	if t.Last != s.last {
		t.Last = s.last
		s.touchThread(t)
	}
}

// newRun returns a run that was not seen before.
func (s *State) newRun(id string, t *thread) *run {
	if len(s.runs) >= maxRuns {
		s.lossy = true
		dropOldest(s.runs, maxRuns/4, func(r *run) (capture.Position, bool) { return r.Last, true }, nil)
	}
	r := &run{
		Run: Run{
			Session: s.session, ID: id, Thread: t.ID, Status: Running,
			First: s.last, Last: s.last, Started: s.now, FirstToken: -1,
		},
		key:    RunKey{s.session, id},
		thread: t,
		asked:  s.now,
		first:  s.now,
		latest: -1,

		waitsSince: -1,
	}
	r.after = t.latest
	s.runs[id] = r
	t.Runs++
	t.latest, t.Status = r, Running
	s.touchThread(t)
	s.touch(r)
	return r
}

// post says that a frame belongs to a run, once.
func (s *State) post(r *run, at capture.Position) {
	switch {
	case at == 0 || at == r.lastPost:
	case at <= max(r.lastPost, r.latePost):
		s.postLate(r, at)
	default:
		r.lastPost = at
		s.posted(r, at)
	}
}

// postLate posts a frame out of its order.
func (s *State) postLate(r *run, at capture.Position) {
	if _, is := r.late[at]; is || at == 0 || at == r.lastPost || len(r.late) >= maxPosted {
		return
	}
	if r.late == nil {
		r.late = make(map[capture.Position]struct{})
	}
	r.late[at] = struct{}{}
	r.latePost = max(r.latePost, at)
	s.posted(r, at)
}

func (s *State) posted(r *run, at capture.Position) {
	s.step.Posts = append(s.step.Posts, Post{r.key, at})
	r.First, r.Last = min(r.First, at), max(r.Last, at)
	s.touch(r)
}

// postMessage posts the frames of a message: its own and those of its
// attachments.
func (s *State) postMessage(r *run, k *socket, m *protocol.Message) {
	if m.Address.Position != m.Last {
		s.postLate(r, m.Address.Position)
		for _, at := range k.conn.parts[m.Direction%3] {
			if at > m.Address.Position && at < m.Last {
				s.postLate(r, at)
			}
		}
	}
	s.post(r, m.Last)
}

// postConnection posts what is needed to read a connection's frames.
func (s *State) postConnection(r *run, c *connection) {
	if slices.Contains(r.conns, c.position) {
		return
	}
	if len(r.conns) < maxPosted {
		r.conns = append(r.conns, c.position)
	}
	for _, at := range c.preamble {
		s.postLate(r, at)
	}
}
