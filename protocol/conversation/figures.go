package conversation

import (
	"slices"
	"time"
)

// logical is a logical run that is being folded.
type logical struct {
	segments   []*segmentFold
	first      int           // where its blocks begin
	since      time.Duration // the command, or the first event
	asked      time.Duration // the latest command, from which the first token is waited for
	latest     time.Duration // the latest live event of the segment, -1 before one
	events     int
	bytes      int64
	firstToken time.Duration
	human      time.Duration
	waitsSince time.Duration // when a decision began to be waited for, -1
	gaps       gaps
	max        time.Duration
	stalls     int
}

// segmentFold is a segment that is being folded.
type segmentFold struct {
	Segment
	top    int64 // the highest sequence folded
	live   int64 // the highest that came live
	paused bool
	ended  bool
}

// gaps keeps the gaps between events: all of them up to a limit, then every
// second one, every fourth, and so on.
type gaps struct {
	list   []time.Duration
	stride int
	skip   int
}

const maxGaps = 1 << 14

func (g *gaps) add(gap time.Duration) {
	if g.skip > 0 {
		g.skip--
		return
	}
	if len(g.list) >= maxGaps {
		for i := range len(g.list) / 2 {
			g.list[i] = g.list[2*i]
		}
		g.list = g.list[:len(g.list)/2]
		g.stride = max(g.stride, 1) * 2
	}
	g.list = append(g.list, gap)
	g.skip = max(g.stride, 1) - 1
}

// quantile returns the gap that a share of all does not exceed.
func quantile(sorted []time.Duration, share float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)]
}

func (l *logical) clone() *logical {
	c := *l
	c.gaps.list = slices.Clone(l.gaps.list)
	c.segments = make([]*segmentFold, len(l.segments))
	for i, s := range l.segments {
		c.segments[i] = copied(s)
	}
	return &c
}

func (l *logical) last() *segmentFold { return l.segments[len(l.segments)-1] }

func (l *logical) segmentOf(run string) *segmentFold {
	for _, s := range slices.Backward(l.segments) {
		if s.Run == run {
			return s
		}
	}
	return l.last()
}

// resumable reports whether the run pauses, so that another run may go on from
// it.
func (l *logical) resumable() bool { return l.last().paused && !l.last().ended }

// counts reports whether a live envelope is one that no socket got before.
func (l *logical) counts(run string, sequence int64) bool {
	s := l.segmentOf(run)
	if sequence <= s.live {
		return false
	}
	s.live = sequence
	return true
}

// count counts a live envelope.
func (l *logical) count(now time.Duration, size int, stall time.Duration) {
	l.events++
	l.bytes += int64(size)
	if l.latest >= 0 && l.waitsSince < 0 {
		gap := now - l.latest
		l.gaps.add(gap)
		l.max = max(l.max, gap)
		if over(gap, stall) {
			l.stalls++
		}
	}
	l.latest = now
}

// waits begins the time in which a human is waited for.
func (l *logical) waits(since time.Duration) {
	if l.waitsSince < 0 {
		l.waitsSince = since
	}
}

// answered ends it, unless another decision is open.
func (l *logical) answered(now time.Duration, more bool) {
	if l.waitsSince >= 0 && !more {
		l.human += now - l.waitsSince
		l.waitsSince = -1
		l.latest = -1 // the next gap would be the human's
	}
}

// summary returns the run as it stands.
func (l *logical) summary(now time.Duration) LogicalRun {
	r := LogicalRun{Segments: make([]Segment, len(l.segments)), Status: l.last().Status}
	end := l.since
	for i, s := range l.segments {
		r.Segments[i] = s.Segment
		end = max(end, s.Ended)
	}
	if l.resumable() {
		r.Status = Paused
	}
	human := l.human
	if l.waitsSince >= 0 {
		human += now - l.waitsSince
		end = now
	}
	sorted := slices.Sorted(slices.Values(l.gaps.list))
	r.Figures = Figures{
		Events: l.events, Bytes: l.bytes,
		Wall: end - l.since, Human: human, Model: end - l.since - human,
		FirstToken: l.firstToken,
		GapMedian:  quantile(sorted, 0.5), Gap95: quantile(sorted, 0.95), GapMax: l.max, Stalls: l.stalls,
	}
	return r
}
