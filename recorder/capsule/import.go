package capsule

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sort"
	"time"

	"tapedeck/protocol/capture"
)

// Sink takes what is imported: sessions one after the other, each with its
// frames. A TapeSink is one.
type Sink interface {
	// Begin begins a session: it sets ID and First.
	Begin(s *capture.Session) error
	// Frame takes the next frame, whose data it must copy if it keeps them.
	Frame(f *capture.Frame) error
	// End ends the session, as s says that it ended.
	End(s *capture.Session) error
}

// ImportOptions say how to import. Its zero value is ready to use.
type ImportOptions struct {
	// Name is what the sessions call the file.
	Name string
	// Progress is called now and then with how many bytes, or frames of a tape,
	// were read; nil is nobody.
	Progress func(done int64)
}

// Report tells what was imported.
type Report struct {
	Sessions []capture.Session
	Frames   uint64
	// Redacted is what a capsule says of itself, "" if the file is none.
	Redacted string
	// Skipped are the lines or entries that could not be read, the first 100 of
	// them, and Broken is how many there were.
	Skipped []Skipped
	Broken  int
}

// Skipped is what was skipped, and why.
type Skipped struct {
	Line  int    // of the JSONL form, counted from 1; 0 for an entry of a HAR
	Entry string // of a HAR, as log.entries[3]
	Err   error
}

// String names the place and the reason.
func (s Skipped) String() string {
	if s.Line == 0 {
		return fmt.Sprintf("%s: %v", s.Entry, s.Err)
	}
	return fmt.Sprintf("line %d: %v", s.Line, s.Err)
}

const maxSkipped = 100

func (r *Report) skip(line int, err error) {
	if r.Broken++; len(r.Skipped) < maxSkipped {
		r.Skipped = append(r.Skipped, Skipped{Line: line, Err: err})
	}
}

// Import reads a HAR or a JSONL capsule and gives what it holds to sink. What
// cannot be read of it is named in the report, and the rest imported. It returns
// an error if nothing can be read, or if the sink fails; what the sink has by
// then is its to keep or to drop.
func Import(ctx context.Context, in io.Reader, sink Sink, o ImportOptions) (*Report, error) {
	m := &importer{sink: sink, options: o, report: &Report{}}
	kind, in, err := sniff(in)
	if err != nil {
		return nil, fmt.Errorf("import %q: %w", o.Name, err)
	}
	if kind == HAR {
		err = m.readHAR(ctx, in)
	} else {
		err = m.readJSONL(ctx, in)
	}
	if err != nil {
		return m.report, fmt.Errorf("import %q: %w", o.Name, err)
	}
	return m.report, nil
}

// ImportTape gives the sessions of another tape to sink.
func ImportTape(ctx context.Context, src Source, sink Sink, o ImportOptions) (*Report, error) {
	m := &importer{sink: sink, options: o, report: &Report{}}
	if err := m.readTape(ctx, src); err != nil {
		return m.report, fmt.Errorf("import %q: %w", o.Name, err)
	}
	return m.report, nil
}

func (m *importer) readTape(ctx context.Context, src Source) error {
	sessions, err := src.Sessions(ctx)
	if err != nil {
		return err
	}
	var done int64
	for _, s := range sessions {
		if err := m.begin(s); err != nil {
			return err
		}
		for f, err := range framesOf(ctx, src, &s) {
			if err != nil {
				return err
			}
			copied := *f
			if err := m.add(&copied, f.Position); err != nil {
				return err
			}
			done++
			m.progress(done)
		}
		if n := s.Notes; n != nil && len(n.Redacted) > 0 {
			m.report.Redacted = fmt.Sprint(n.Redacted)
		}
	}
	return m.end()
}

// importer puts what is read onto a sink.
type importer struct {
	sink    Sink
	options ImportOptions
	report  *Report
	refused error

	open    bool
	session capture.Session // that is open
	next    capture.Position
	latest  time.Duration
	shifts  []shift // where the file's numbers and the tape's part, in order
}

// shift says that from a number of the file on, the tape's are so much more.
type shift struct {
	from, to capture.Position
}

func (m *importer) progress(done int64) {
	if m.options.Progress != nil {
		m.options.Progress(done)
	}
}

// begin ends the session that is open and begins another, which is told as the
// file tells it.
func (m *importer) begin(told capture.Session) error {
	if err := m.end(); err != nil {
		return err
	}
	s := told
	notes := capture.Notes{}
	if told.Notes != nil {
		notes = *told.Notes
		notes.Marks = slices.Clone(notes.Marks)
	}
	if notes.Source == "" {
		notes.Source = told.Source
	}
	s.Notes, s.Source = &notes, m.options.Name
	if err := m.sink.Begin(&s); err != nil {
		return err
	}
	m.open, m.session, m.next, m.shifts, m.latest = true, s, s.First, nil, 0
	return nil
}

// end ends the session that is open, if one is.
func (m *importer) end() error {
	if !m.open {
		return nil
	}
	m.open = false
	if n := m.session.Notes; n != nil {
		for i := range n.Marks {
			n.Marks[i].At.Position = m.number(n.Marks[i].At.Position)
		}
		n.Marks = slices.DeleteFunc(n.Marks, func(mark capture.Mark) bool { return mark.At.Position == 0 })
	}
	if err := m.sink.End(&m.session); err != nil {
		return err
	}
	m.report.Sessions = append(m.report.Sessions, m.session)
	return nil
}

// add puts the next frame on the sink. Number is the file's for it; what the
// frame refers to is in the file's numbers, too.
func (m *importer) add(f *capture.Frame, number capture.Position) error {
	f.Position = m.next
	if n := len(m.shifts); n == 0 || number-m.shifts[n-1].from != m.next-m.shifts[n-1].to {
		m.shifts = append(m.shifts, shift{number, m.next})
	}
	f.Connection, f.Exchange = m.number(f.Connection), m.number(f.Exchange)
	f.Flags |= capture.Imported
	if err := remapDeed(f, m.number); err != nil {
		return err
	}
	return m.put(f)
}

func (m *importer) put(f *capture.Frame) error {
	if err := m.sink.Frame(f); err != nil {
		return err
	}
	m.next++
	m.latest = f.At
	m.report.Frames++
	return nil
}

// number is the tape's number of a frame of the file, 0 if it is none of the
// session or comes later.
func (m *importer) number(p capture.Position) capture.Position {
	i := sort.Search(len(m.shifts), func(i int) bool { return m.shifts[i].from > p }) - 1
	if p == 0 || i < 0 {
		return 0
	}
	s := m.shifts[i]
	to := s.to + (p - s.from)
	if i+1 < len(m.shifts) && to >= m.shifts[i+1].to || to > m.next {
		return 0
	}
	return to
}

// gap says on the tape that a line is missing.
func (m *importer) gap(line int, why error) error {
	loss, err := json.Marshal(capture.Loss{Frames: 1, Error: fmt.Sprintf("line %d of %q: %v", line, m.options.Name, why)})
	if err != nil {
		return err
	}
	return m.put(&capture.Frame{
		Position: m.next, At: m.latest, Kind: capture.Gap, Flags: capture.Imported, Size: int64(len(loss)), Data: loss,
	})
}
