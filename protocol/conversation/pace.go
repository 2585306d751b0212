package conversation

import (
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

// Pace are the thresholds of the notes on pace. The zero value of a field means
// its default, a negative one turns its note off.
type Pace struct {
	FirstToken time.Duration // first-token-slow, over 5 s
	Stall      time.Duration // stall, over 10 s without an event in a live run
	Rate       int           // chatty, over 200 events of a run within a second
	Envelope   int           // envelope-large, over 256 KiB
}

func (p Pace) withDefaults() Pace {
	return Pace{
		FirstToken: or(p.FirstToken, 5*time.Second),
		Stall:      or(p.Stall, 10*time.Second),
		Rate:       or(p.Rate, 200),
		Envelope:   or(p.Envelope, 256<<10),
	}
}

// or returns a threshold or its default.
func or[T time.Duration | int](given, byDefault T) T {
	if given == 0 {
		return byDefault
	}
	return given
}

// over reports whether a figure is over a threshold that is not off.
func over[T time.Duration | int](figure, threshold T) bool {
	return threshold >= 0 && figure > threshold
}

// rate counts a run's events within a second.
type rate struct {
	since time.Duration
	count int
	told  bool
}

// paced judges the pace of a live envelope.
func (s *State) paced(r *run, size int) {
	if over(size, s.pace.Envelope) {
		s.note("envelope-large", capture.Address{}, "%d B, and %d B is much for one envelope", size, s.pace.Envelope)
	}
	if r.latest >= 0 && r.end.IsZero() && r.segment.paused.IsZero() {
		if gap := s.now - r.latest; over(gap, s.pace.Stall) && r.waiting() == nil {
			s.note("stall", r.topAt, "%s without an event, after #%s", brief(gap), r.topAt)
		}
	}
	if q := &r.rate; s.now-q.since >= time.Second || q.count == 0 {
		q.since, q.count = s.now, 1
	} else if q.count++; over(q.count, s.pace.Rate) && !q.told {
		q.told = true
		s.note("chatty", capture.Address{}, "over %d events in %s: send fewer, longer deltas", s.pace.Rate, brief(s.now-q.since))
	}
}

// firstToken takes the first delta of a run.
func (s *State) firstToken(r *run) {
	if r.FirstToken >= 0 || s.turn.replayed {
		return
	}
	r.FirstToken = max(s.now-r.asked, 0)
	if over(r.FirstToken, s.pace.FirstToken) && r.tears == 0 {
		since := r.startAt
		if r.cause != nil {
			since = r.cause.at
		}
		s.note("first-token-slow", since, "the first delta comes %s after #%s", brief(r.FirstToken), since)
	}
}

// note adds a note on pace: it stands beside whatever else is said of the
// envelope.
func (s *State) note(rule string, other capture.Address, format string, args ...any) {
	f := s.finding(rule, protocol.Note, s.turn.m.Address, other)
	f.Sequence = s.turn.seq
	s.blame(f, format, args...)
}
