package conversation

import (
	"strings"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

// cursor is how far a socket has come in a run.
type cursor struct {
	last   int64 // the highest sequence that it got, live or by a replay
	lastAt capture.Address
	live   int64 // the highest that it got live
	first  int64 // the first that it got live
	// seam is the last sequence of a replay that no live envelope has followed
	// yet, 0 if there is none, and seamAt is where the replay passed.
	seam   int64
	seamAt capture.Address
	posted bool // the connection was posted to the run
	told   bool // an overlap with the replay was reported
}

// delivered takes a run:event.
func (s *State) delivered(k *socket, m *protocol.Message) {
	e := m.Envelope
	if e == nil {
		return
	}
	t := &s.turn
	t.thread, t.seq = e.ThreadID, e.Sequence
	r := k.latest
	if r == nil || r.ID != e.RunID {
		if r = s.runOf(e); r == nil {
			return
		}
	}
	t.run = r
	s.touch(r)
	s.reach(r.thread)
	cur := s.cursorOf(k, r)
	if cur == nil || !cur.posted {
		s.postConnection(r, k.conn)
	}
	s.postMessage(r, k, m)
	if r.thread.ID != e.ThreadID && e.ThreadID != "" {
		s.report("run-two-threads", protocol.Error, r.startAt, "run %s belongs to thread %s and comes here under thread %s",
			short(r.ID), short(r.thread.ID), short(e.ThreadID))
	}
	s.envelopeVersion(k, e)
	if e.Sequence < 1 { // the validator says so; what it carries still counts
		t.told = true
		s.apply(r, e)
		return
	}
	fresh := s.arrive(k, r, cur, e)
	if fresh {
		s.apply(r, e)
	}
}

// runOf returns the run of an envelope, nil if it names none.
func (s *State) runOf(e *protocol.Envelope) *run {
	if e.RunID == "" {
		return nil
	}
	if r := s.runs[e.RunID]; r != nil {
		return r
	}
	if e.ThreadID == "" {
		return nil
	}
	return s.newRun(strings.Clone(e.RunID), s.threadOf(strings.Clone(e.ThreadID)))
}

// cursorOf returns the socket's cursor in a run, nil if it has none yet.
func (s *State) cursorOf(k *socket, r *run) *cursor {
	if k.latest != r {
		k.latest, k.latestCur = r, k.cursors[r]
	}
	return k.latestCur
}

// newCursor gives the socket a cursor in a run.
func (k *socket) newCursor(r *run) *cursor {
	if len(k.cursors) >= maxCursors {
		for old := range k.cursors {
			if old.over() {
				delete(k.cursors, old)
			}
		}
		if len(k.cursors) >= maxCursors {
			clear(k.cursors)
		}
	}
	cur := &cursor{}
	k.cursors[r] = cur
	k.latest, k.latestCur = r, cur
	r.watchers++
	return cur
}

// arrive judges an envelope's place in its run, as this socket sees it, and
// counts it. It reports whether the envelope tells something new.
func (s *State) arrive(k *socket, r *run, cur *cursor, e *protocol.Envelope) (fresh bool) {
	at := s.turn.m.Address
	known := r.seen.get(e.Sequence)
	what := s.hash(&e.Event)
	if cur == nil {
		cur = k.newCursor(r)
		s.joins(k, r, cur, e)
	} else if !s.advances(r, cur, e.Sequence, known, what) {
		return false
	}
	cur.posted = true
	cur.last, cur.lastAt, cur.live = max(cur.last, e.Sequence), at, max(cur.live, e.Sequence)
	if cur.first == 0 {
		cur.first = e.Sequence
	}
	if known == nil && r.mayKnow(e.Sequence) {
		return false // it was seen and forgotten, or nobody can say
	}
	if known == nil {
		r.seen.put(delivery{e.Sequence, what, at, true})
		s.counted(r)
		s.advance(r, e.Sequence, at)
		return true
	}
	if known.what != what {
		s.differs(r, known)
	}
	if !known.live {
		known.live = true
		s.counted(r)
	}
	return false
}

// advances judges an envelope of a run that the socket knows. It reports
// whether the envelope is to be counted at all.
func (s *State) advances(r *run, cur *cursor, seq int64, known *delivery, what uint64) bool {
	seam, seamAt := cur.seam, cur.seamAt
	switch {
	case seq == cur.last+1:
		cur.seam = 0
	case seq > cur.last && seam > 0:
		cur.seam = 0
		s.report("replay-seam", protocol.Error, seamAt, "the replay at #%s ended with sequence %d, and the room goes on with %d: %s",
			seamAt, seam, seq, missing(cur.last+1, seq-1))
	case seq > cur.last:
		s.report("sequence-gap", protocol.Warning, cur.lastAt, "%s: the one before, at #%s, was %d",
			missing(cur.last+1, seq-1), cur.lastAt, cur.last)
	case seq > cur.live && seamAt != (capture.Address{}):
		// The socket had it by the replay only.
		if known != nil && known.what != what {
			return true // differs says so
		}
		if !cur.told {
			s.report("replay-seam", protocol.Error, seamAt, "the replay at #%s ended with sequence %d, and the room begins again with %d: it overlaps",
				seamAt, cur.last, seq)
		}
		cur.told, cur.seam = true, 0
	case known != nil && known.what == what:
		s.report("sequence-repeated", protocol.Warning, known.at, "sequence %d came before, at #%s, the same", seq, known.at)
		return false
	case known == nil && r.mayKnow(seq):
		s.skip("sequence-not-increasing", "what came under that sequence is forgotten")
		return false
	default:
		s.report("sequence-not-increasing", protocol.Error, cur.lastAt, "sequence %d comes after %d, at #%s", seq, cur.last, cur.lastAt)
		if known != nil {
			s.turn.told = true
			s.apply(r, s.turn.m.Envelope) // another event under a number that is taken
			return false
		}
	}
	return true
}

// missing says which sequences did not come.
func missing(from, to int64) string {
	if from == to {
		return "sequence " + itoa(from) + " is missing"
	}
	return "sequences " + itoa(from) + " to " + itoa(to) + " are missing"
}

// differs reports two deliveries of one envelope that do not say the same, once
// a run.
func (s *State) differs(r *run, known *delivery) {
	if r.differs {
		s.turn.told = true
		return
	}
	r.differs = true
	if !known.live {
		s.report("replay-differs", protocol.Error, known.at, "sequence %d says something else than in the replay at #%s", s.turn.seq, known.at)
		return
	}
	s.report("run-differs-by-socket", protocol.Error, known.at, "sequence %d says something else than at #%s", s.turn.seq, known.at)
}

// advance takes note how far the run has come, whatever socket said so.
func (s *State) advance(r *run, seq int64, at capture.Address) {
	if seq != r.top+1 && (seq > r.top || r.top == 0) {
		r.tear()
	}
	if seq > r.top {
		r.top, r.topAt, r.cut = seq, at, false
	}
}

// counted counts an envelope that was delivered live for the first time.
func (s *State) counted(r *run) {
	size := len(s.turn.m.Payload)
	r.Envelopes++
	r.Bytes += int64(size)
	if r.Envelopes == 1 {
		r.first = s.now
	}
	r.Ended = s.now
	r.pulse.add(s.now - r.first)
	s.paced(r, size)
	r.latest = s.now
}

// joins judges the first envelope of a run that a socket gets.
func (s *State) joins(k *socket, r *run, cur *cursor, e *protocol.Envelope) {
	cur.last = e.Sequence - 1
	room := k.rooms[r.thread.ID]
	if room == nil || room.asked.IsZero() && !room.started {
		s.uninvited(k, r, room)
	}
	if e.Sequence == 1 || r.top > 0 || r.before != nil {
		return
	}
	const rule = "run-not-started"
	switch {
	case k.parting:
		s.skip(rule, "the client had left, and this was under way to it")
	case s.lossy || k.conn.partial || k.recovered || k.recovering != nil:
		s.skip(rule, "the beginning of the connection was not seen")
	case room == nil || room.asked.IsZero() && !room.started:
		s.skip(rule, "the socket never asked for the thread")
	case room.answered.IsZero():
		s.skip(rule, "no history had been answered before, so the run may have been in flight")
	case room.waiting || len(r.thread.resumes) > 0:
		s.skip(rule, "the thread waited on a decision, and the run may go on from there")
	case e.Event.Type == protocol.SubagentStarted || e.Event.Type == protocol.SubagentFinished:
		s.skip(rule, "the event may be of a subagent that works on in the background")
	default:
		s.report(rule, protocol.Error, room.answered, "run %s begins here with sequence %d; its RUN_STARTED, sequence 1, should have come after #%s",
			short(r.ID), e.Sequence, room.answered)
	}
}

// uninvited notes that a socket gets envelopes of a thread that it never asked
// for, once a thread.
func (s *State) uninvited(k *socket, r *run, place *room) {
	const rule = "room-not-joined"
	if k.parting {
		s.skip(rule, "the client had left, and this was under way to it")
		return
	}
	if k.conn.partial || k.recovered || k.recovering != nil || s.lossy {
		s.skip(rule, "the beginning of the connection was not seen")
		return
	}
	if place != nil && place.strange {
		return
	}
	k.place(r.thread.ID).strange = true
	s.report(rule, protocol.Note, capture.Address{}, "the socket never asked for thread %s and started no run in it", short(r.thread.ID))
}

// mayKnow reports whether an envelope of a sequence may have been seen, though
// it is not remembered.
func (r *run) mayKnow(seq int64) bool {
	return r.forgotten && seq <= r.top || seq <= r.top-maxSlots
}
