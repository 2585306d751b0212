package inspector

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// Stats are the figures of runs, and over all of them. What came in a replay,
// and to further sockets, counts in none.
type Stats struct {
	Runs []RunStats
	All  Sums

	sessions []capture.Session
}

// RunStats are the figures of one run.
type RunStats struct {
	conversation.Run
	Figures
	Calls []CallStats // in order
}

// Sums are the figures over runs.
type Sums struct {
	Figures
	FirstToken Spread // over runs, in which there was one
	Model      Spread // over runs
	Human      time.Duration
	Statuses   map[conversation.Status]int
	Envelopes  int
	Bytes      int64
	ByTool     []ToolStats // by name
}

// Figures are what is measured of one run and of all.
type Figures struct {
	// Gaps are between the envelopes of a run. Times in which a person was
	// waited for are none. Stalls are gaps over two seconds.
	Gaps   Spread
	Stalls int
	// Tools are from the end of a call's arguments to its result, waits for a
	// person aside.
	Tools Spread
	// Tokens counts the deltas of texts and of reasoning, which is as near to
	// tokens as the wire tells, and Rate is how many came in a second, over the
	// time from the first to the last delta of each text.
	Tokens int
	Rate   float64

	streaming time.Duration
	rated     int // of Tokens
}

// CallStats is one tool call with a result.
type CallStats struct {
	Tool string
	At   capture.Address
	Took time.Duration
}

// ToolStats are the calls of one tool.
type ToolStats struct {
	Tool string
	Took Spread
}

// Spread is how values are spread. All are 0 if there is none.
type Spread struct {
	Count         int
	P50, P95, Max time.Duration
	// Shape counts the values in ten steps of the same ratio, from the least to
	// the greatest, for a sparkline.
	Shape []int

	sample sample
}

// LoadStats measures runs, one chain after the other.
func LoadStats(ctx context.Context, src Source, runs []conversation.Run) (*Stats, error) {
	sessions, err := src.Sessions(ctx)
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	runs = slices.Clone(runs)
	sortRuns(runs)
	s := &Stats{sessions: sessions, All: Sums{Statuses: map[conversation.Status]int{}}}
	tools := map[string]*ToolStats{}
	for _, chain := range chains(runs) {
		measured, err := measure(ctx, src, chain)
		if err != nil {
			return nil, err
		}
		for i := range measured {
			s.All.add(&measured[i], tools)
		}
		s.Runs = append(s.Runs, measured...)
	}
	for _, t := range tools {
		t.Took.close()
		s.All.ByTool = append(s.All.ByTool, *t)
	}
	slices.SortFunc(s.All.ByTool, func(a, b ToolStats) int { return strings.Compare(a.Tool, b.Tool) })
	s.All.FirstToken.close()
	s.All.Model.close()
	s.All.Figures.close()
	return s, nil
}

// measure reads a chain of runs once. Its runs are folded together, since a call
// of one may have its result in the next.
func measure(ctx context.Context, src Source, chain []conversation.Run) ([]RunStats, error) {
	stats, byID := make([]RunStats, len(chain)), map[string]*RunStats{}
	for i := range chain {
		stats[i].Run = chain[i]
		byID[chain[i].ID] = &stats[i]
	}
	t := NewTimeline(TimelineOptions{})
	clocks := map[string]*clock{}
	for m, err := range RunMoments(ctx, src, chain, []protocol.Finding{}) {
		if err != nil {
			return nil, err
		}
		t.Add(m)
		if run := byID[m.Run]; run != nil && m.event() != nil {
			if clocks[m.Run] == nil {
				clocks[m.Run] = &clock{}
			}
			clocks[m.Run].tick(m, &run.Figures)
		}
	}
	for _, row := range t.Rows {
		if run := byID[row.Run]; run != nil {
			run.take(row)
		}
	}
	for i := range stats {
		stats[i].Figures.close()
	}
	return stats, nil
}

// clock measures the gaps of one run.
type clock struct {
	top    int64 // the highest sequence
	latest time.Duration
	begun  bool
	waits  bool // a person is waited for
}

func (c *clock) tick(m *Moment, f *Figures) {
	if seq := m.sequence(); seq <= c.top {
		return // it came before
	} else {
		c.top = seq
	}
	if c.begun && !c.waits {
		gap := max(m.At()-c.latest, 0)
		f.Gaps.add(gap)
		if gap > stallAfter {
			f.Stalls++
		}
	}
	c.begun, c.latest = true, max(m.At(), c.latest)
	c.waits = m.Status == conversation.Paused
}

// take measures a construct.
func (r *RunStats) take(row *Row) {
	switch d := row.Detail.(type) {
	case *Stream:
		r.Tokens += d.Deltas
		if d.Deltas > 1 {
			r.rated += d.Deltas - 1
			r.streaming += max(d.Last-d.First, 0)
		}
	case *Call:
		if d.Result != nil && d.Complete {
			r.Tools.add(d.Result.After)
			r.Calls = append(r.Calls, CallStats{row.Name, row.First, d.Result.After})
		}
	}
}

func (f *Figures) close() {
	f.Gaps.close()
	f.Tools.close()
	if f.streaming > 0 {
		f.Rate = float64(f.rated) / f.streaming.Seconds()
	}
}

// add counts a run in.
func (s *Sums) add(r *RunStats, tools map[string]*ToolStats) {
	s.Statuses[r.Status]++
	s.Envelopes += r.Envelopes
	s.Bytes += r.Bytes
	s.Human += r.Run.Human
	s.Model.add(ModelTime(&r.Run))
	if r.FirstToken >= 0 {
		s.FirstToken.add(r.FirstToken)
	}
	s.Gaps.merge(&r.Gaps)
	s.Tools.merge(&r.Tools)
	s.Stalls += r.Stalls
	s.Tokens += r.Tokens
	s.rated += r.rated
	s.streaming += r.streaming
	for _, c := range r.Calls {
		if tools[c.Tool] == nil {
			tools[c.Tool] = &ToolStats{Tool: c.Tool}
		}
		tools[c.Tool].Took.add(c.Took)
	}
}

func (s *Spread) add(d time.Duration) {
	s.Count++
	s.Max = max(s.Max, d)
	s.sample.add(d)
}

func (s *Spread) merge(other *Spread) {
	s.Count += other.Count
	s.Max = max(s.Max, other.Max)
	s.sample.merge(&other.sample)
}

// close makes the figures of what was added.
func (s *Spread) close() {
	kept := slices.Sorted(slices.Values(s.sample.kept))
	if len(kept) == 0 {
		return
	}
	s.P50, s.P95 = rank(kept, 50), rank(kept, 95)
	s.Shape = shape(kept, s.Max)
}

// rank is the least value that a share of all does not exceed.
func rank(sorted []time.Duration, percent int) time.Duration {
	return sorted[max((len(sorted)*percent+99)/100-1, 0)]
}

// shapeSteps is how many columns a sparkline has.
const shapeSteps = 10

// shape counts values in steps of the same ratio.
func shape(sorted []time.Duration, most time.Duration) []int {
	least := max(sorted[0], 100*time.Microsecond)
	counts := make([]int, shapeSteps)
	ratio := math.Log(float64(max(most, least))/float64(least)) / shapeSteps
	for _, d := range sorted {
		step := 0
		if d > least && ratio > 0 {
			step = min(int(math.Log(float64(d)/float64(least))/ratio), shapeSteps-1)
		}
		counts[step]++
	}
	return counts
}

// sampleLimit bounds what is kept of values: up to it all, then every second
// one, every fourth, and so on.
const sampleLimit = 1 << 15

type sample struct {
	kept   []time.Duration
	stride int // 0 is 1
	skip   int
}

func (s *sample) add(d time.Duration) {
	if s.skip > 0 {
		s.skip--
		return
	}
	if len(s.kept) >= sampleLimit {
		s.thin()
	}
	s.kept = append(s.kept, d)
	s.skip = max(s.stride, 1) - 1
}

// thin keeps every second value.
func (s *sample) thin() {
	half := s.kept[:0]
	for i := 0; i < len(s.kept); i += 2 {
		half = append(half, s.kept[i])
	}
	s.kept, s.stride = half, 2*max(s.stride, 1)
}

// merge adds the values of another sample, thinned to the same measure.
func (s *sample) merge(other *sample) {
	kept := other.kept
	if s.stride = max(s.stride, 1); s.stride < other.stride {
		for s.stride < other.stride {
			s.thin()
		}
	}
	for i := 0; i < len(kept); i += s.stride / max(other.stride, 1) {
		for len(s.kept) >= sampleLimit {
			s.thin()
		}
		s.kept = append(s.kept, kept[i])
	}
}
