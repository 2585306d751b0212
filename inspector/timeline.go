package inspector

import (
	"maps"
	"sort"
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

// Timeline folds the moments of a session, or of some runs of it, into rows,
// one a construct. It grows by one moment at a time, at a cost that does not
// depend on what it holds already. Use NewTimeline. A Timeline is not safe for
// concurrent use.
type Timeline struct {
	// Rows are in the order in which they began.
	Rows []*Row
	// Waits are the times in which a person was waited for.
	Waits []Wait
	// Loose are findings that are about no row.
	Loose []protocol.Finding

	options TimelineOptions
	judge   *protocol.Validator // reads the envelopes of replays
	runs    map[string]*runFold
	threads map[string]*threadFold
	pending []*Row // commands that nothing answered yet
	flows   map[capture.Position]*Row
	places  []place // in the order of their addresses
	touched []*Row
	trimmed int // rows that were forgotten
}

// TimelineOptions configure a Timeline.
type TimelineOptions struct {
	// Wire adds rows for what is no message: packets, connections, exchanges.
	Wire bool
	// Housekeeping adds pings, pongs and the like to those.
	Housekeeping bool
	// Filter marks the rows that hold a moment it wants.
	Filter *Filter
}

// Wait is a time in which a person was waited for.
type Wait struct {
	Thread     string
	Start, End time.Duration
}

// place remembers which row a packet went into.
type place struct {
	address capture.Address
	row     *Row
}

// runFold is what folding knows of a run.
type runFold struct {
	id, thread string
	open       map[construct]*Row
	unknown    map[string]*Row // by type
	seen       map[int64]delivery
	paused     *Row // its RUN_PAUSED, until it goes on
	ended      bool
	lanes      uint64 // of its subagents that are open now
}

// delivery is the first time that an envelope came.
type delivery struct {
	sum        uint64
	connection capture.Position
	row        *Row
}

// threadFold is what folding knows of a thread: what outlives a run.
type threadFold struct {
	calls     map[string]*Row
	decisions map[string]*Row
	agents    map[string]*Row // by task id
	todos     []Todo
	owner     *Row // the subagent whose own thread this is
	quiet     time.Duration
	waiting   bool
}

// NewTimeline returns an empty timeline.
func NewTimeline(o TimelineOptions) *Timeline {
	return &Timeline{
		options: o, judge: protocol.NewValidator(protocol.Options{}), runs: map[string]*runFold{}, threads: map[string]*threadFold{},
		flows: map[capture.Position]*Row{},
	}
}

// Add folds a moment in, and returns the rows that it began or changed, valid
// until the next call. It keeps nothing that the moment points to.
func (t *Timeline) Add(m *Moment) []*Row {
	t.touched = t.touched[:0]
	switch {
	case m.Message == nil:
		t.addWire(m)
	case m.Message.Envelope != nil:
		t.addEnvelope(m, m.Message.Envelope, false)
	case m.Command != nil:
		t.addCommand(m)
	case m.Message.Answer:
		t.addAnswer(m)
	default:
		t.addMessage(m)
	}
	if len(t.touched) == 0 {
		return nil
	}
	first := t.touched[0]
	first.Matched = first.Matched || t.options.Filter.Match(m)
	first.Findings = append(first.Findings, m.Findings...)
	return t.touched
}

// AddFinding gives a finding to the row that it is about, and returns the row;
// nil if there is none.
func (t *Timeline) AddFinding(f protocol.Finding) *Row {
	r := t.RowAt(f.At)
	if r == nil {
		t.Loose = append(t.Loose, f)
		return nil
	}
	r.Findings = append(r.Findings, f)
	return r
}

// RowAt returns the row that the packet at an address went into, nil if none
// did. A frame as a whole stands for its first packet.
func (t *Timeline) RowAt(a capture.Address) *Row {
	a.Packet = max(a.Packet, 1)
	i := sort.Search(len(t.places), func(i int) bool { return t.places[i].address.Compare(a) >= 0 })
	if i < len(t.places) && t.places[i].address == a {
		return t.places[i].row
	}
	return nil
}

// Finish says that no more will come: what is open now was cut short.
func (t *Timeline) Finish() {
	for _, r := range t.Rows {
		if r.State == Open {
			r.State = Cut
		}
	}
}

// Trim forgets what is over and printed, so that a session can be followed for
// days: rows that ended, but for the latest, and the runs that did. Rows keep
// their Index.
func (t *Timeline) Trim(rows int) {
	if extra := len(t.Rows) - rows; extra > 0 {
		kept := make([]*Row, 0, rows)
		for i, r := range t.Rows {
			if i >= extra || r.State == Open {
				kept = append(kept, r)
			}
		}
		t.trimmed += len(t.Rows) - len(kept)
		t.Rows = kept
	}
	if extra := len(t.places) - 16*rows; extra > 0 {
		t.places = append([]place(nil), t.places[extra:]...)
	}
	if len(t.runs) > rows {
		maps.DeleteFunc(t.runs, func(_ string, r *runFold) bool { return r.ended })
	}
	if extra := len(t.pending) - rows; extra > 0 {
		t.pending = append([]*Row(nil), t.pending[extra:]...)
	}
	if extra := len(t.Waits) - rows; extra > 0 {
		t.Waits = append([]Wait(nil), t.Waits[extra:]...)
	}
}

// Pending returns the commands that nothing answered yet.
func (t *Timeline) Pending() []*Row { return t.pending }

// row begins a row at a moment.
func (t *Timeline) row(m *Moment, kind Kind, name, id string) *Row {
	r := &Row{
		Index: t.trimmed + len(t.Rows), Kind: kind, Name: name, ID: id,
		Where: Where{Connection: m.Connection(), Direction: m.Direction(), Thread: m.Thread, Run: m.Run},
		Span:  Span{First: m.Address(), Start: m.At()},
	}
	if run := t.runs[m.Run]; run != nil {
		r.Lanes = t.lanes(run)
	}
	if thread := t.threads[m.Thread]; thread != nil && thread.owner != nil {
		r.Lane = thread.owner.Lane
	}
	t.Rows = append(t.Rows, r)
	t.extend(r, m)
	return r
}

// lanes are the lanes that are open beside a run: its own, and those of the
// runs above it, whose subagent's thread it is in.
func (t *Timeline) lanes(run *runFold) uint64 {
	lanes := run.lanes
	for range 8 { // threads that own each other are hostile, and end here
		thread := t.threads[run.thread]
		if thread == nil || thread.owner == nil || t.runs[thread.owner.Run] == nil {
			break
		}
		run = t.runs[thread.owner.Run]
		lanes |= run.lanes
	}
	return lanes
}

// extend makes a row reach to a moment.
func (t *Timeline) extend(r *Row, m *Moment) {
	r.Last, r.End = m.Address(), m.At()
	if seq := m.sequence(); seq != 0 && m.Run == r.Run {
		if r.FirstSeq == 0 {
			r.FirstSeq = seq
		}
		r.LastSeq = seq
	}
	t.note(r, m)
}

// note remembers that a moment belongs to a row.
func (t *Timeline) note(r *Row, m *Moment) {
	a := m.Address()
	a.Packet = max(a.Packet, 1)
	if n := len(t.places); n == 0 || t.places[n-1].address.Compare(a) < 0 {
		t.places = append(t.places, place{a, r})
	}
	for _, known := range t.touched {
		if known == r {
			return
		}
	}
	t.touched = append(t.touched, r)
}

func (t *Timeline) run(m *Moment) *runFold {
	run := t.runs[m.Run]
	if run == nil {
		run = &runFold{id: m.Run, thread: m.Thread, open: map[construct]*Row{}, unknown: map[string]*Row{}, seen: map[int64]delivery{}}
		t.runs[m.Run] = run
	}
	return run
}

func (t *Timeline) thread(id string) *threadFold {
	thread := t.threads[id]
	if thread == nil {
		thread = &threadFold{calls: map[string]*Row{}, decisions: map[string]*Row{}, agents: map[string]*Row{}}
		t.threads[id] = thread
	}
	return thread
}
