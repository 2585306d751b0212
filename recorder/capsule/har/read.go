package har

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"tapedeck/protocol/capture"
)

// Log is what was read: sessions with their frames, numbered from 1 in each.
type Log struct {
	Redacted string // what an archive of our own says of itself
	Sessions []Told
	Faults   []Fault
}

// Told is a session that was read.
type Told struct {
	Session capture.Session
	Frames  []capture.Frame
}

// Fault is an entry, or a part of one, that was skipped.
type Fault struct {
	Entry string // such as log.entries[3]
	Err   error
}

var errNoArchive = errors.New("it is no HTTP Archive: it has no log.entries")

// longest bounds times, so that sums of them stay numbers.
const longest = 1 << 60 * time.Nanosecond

// maxFaults bounds what is told of a hostile archive.
const maxFaults = 1000

// Read reads an archive. What cannot be read of it is named in Faults, and the
// rest returned. It holds what it returns in memory, and one entry besides.
func Read(ctx context.Context, in io.Reader, progress func(read int64)) (*Log, error) {
	r := &reader{log: &Log{}, groups: map[int]*group{}}
	d := json.NewDecoder(in)
	err := r.document(ctx, d, progress)
	if err != nil && (ctx.Err() != nil || r.entries == 0) {
		return nil, err
	}
	if err != nil {
		r.fault(fmt.Sprintf("after log.entries[%d]", r.entries-1), err)
	}
	r.finish()
	return r.log, nil
}

// reader gathers the frames of an archive.
type reader struct {
	log     *Log
	entries int
	rows    []capture.Session
	groups  map[int]*group // by session
}

func (r *reader) fault(entry string, err error) {
	if len(r.log.Faults) < maxFaults {
		r.log.Faults = append(r.log.Faults, Fault{entry, err})
	}
}

// document walks to log.entries and reads one entry after the other.
func (r *reader) document(ctx context.Context, d *json.Decoder, progress func(int64)) error {
	return members(d, func(name string) error {
		if name != "log" {
			return skip(d)
		}
		return members(d, func(name string) error {
			switch name {
			case "_tape":
				return r.about(d)
			case "_tapeRest":
				return r.rest(d)
			case "entries":
				return r.all(ctx, d, progress)
			}
			return skip(d)
		})
	})
}

// members calls visit for each member of the object that comes next.
func members(d *json.Decoder, visit func(name string) error) error {
	start, err := d.Token()
	if err != nil {
		return broken(err)
	}
	if start != json.Delim('{') {
		return errNoArchive
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return broken(err)
		}
		text, _ := name.(string) // a member's name is one
		if err := visit(text); err != nil {
			return err
		}
	}
	if _, err = d.Token(); err != nil {
		return broken(err)
	}
	return nil
}

func broken(err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("it breaks off: %w", io.ErrUnexpectedEOF)
	}
	return err
}

func skip(d *json.Decoder) error {
	var ignored json.RawMessage
	return broken2(d.Decode(&ignored))
}

func broken2(err error) error {
	if err == nil {
		return nil
	}
	return broken(err)
}

// about reads what an archive of our own says of its sessions.
func (r *reader) about(d *json.Decoder) error {
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		return broken(err)
	}
	var about struct {
		Redacted string            `json:"redacted"`
		Sessions []capture.Session `json:"sessions"`
	}
	if err := json.Unmarshal(raw, &about); err != nil {
		r.fault("log._tape", err)
		return nil
	}
	r.log.Redacted, r.rows = about.Redacted, about.Sessions
	return nil
}

func (r *reader) rest(d *json.Decoder) error {
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		return broken(err)
	}
	var rest []leftover
	if err := json.Unmarshal(raw, &rest); err != nil {
		r.fault("log._tapeRest", err)
		return nil
	}
	for i := range rest {
		l := &rest[i]
		switch l.Kind {
		case capture.End, capture.Gap, capture.Act:
			g := r.group(l.Session)
			g.add(&item{frame: l.frame(l.Kind), n: l.N, exact: true, of: g.numbered(l.Conn)})
		}
	}
	return nil
}

// frame makes a frame of a mark.
func (m *mark) frame(kind capture.Kind) capture.Frame {
	f := capture.Frame{At: m.At, Kind: kind, Direction: m.Dir, Flags: m.Flags, Data: m.Detail, Size: int64(len(m.Detail))}
	if m.Size > 0 {
		f.Size = m.Size
	}
	return f
}

func (r *reader) all(ctx context.Context, d *json.Decoder, progress func(int64)) error {
	start, err := d.Token()
	if err != nil {
		return broken(err)
	}
	if start != json.Delim('[') {
		return errNoArchive
	}
	for d.More() {
		if err := ctx.Err(); err != nil {
			return err
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return broken(err)
		}
		name := fmt.Sprintf("log.entries[%d]", r.entries)
		r.entries++
		if err := r.entry(name, raw); err != nil {
			r.fault(name, err)
		}
		progress(d.InputOffset())
	}
	_, err = d.Token()
	return broken2(err)
}

// row returns a session's row, as far as anybody told it.
func (r *reader) row(index int) capture.Session {
	if index < len(r.rows) {
		return r.rows[index]
	}
	return capture.Session{}
}

func (r *reader) group(index int) *group {
	g := r.groups[index]
	if g == nil {
		g = &group{polls: map[string]*link{}, links: map[capture.Position]*link{}}
		r.groups[index] = g
	}
	return g
}

// group is a session that is being read.
type group struct {
	items []*item
	polls map[string]*link           // Engine.IO sessions by their sid
	links map[capture.Position]*link // connections by their numbers, in an archive of our own
	host  string                     // of the first entry with a socket
}

// link is a connection or an exchange: its number is that of its first frame,
// which is known once the frames are in order.
type link struct {
	first *item
	at    capture.Position
}

// item is a frame that waits for its place.
type item struct {
	frame capture.Frame
	wall  int64            // nanoseconds since 1970, if At is not exact
	key   int64            // by which it is ordered, if it has no number
	n     capture.Position // in an archive of our own
	exact bool             // At is
	of    *link
	via   *link
}

func (g *group) add(i *item) { g.items = append(g.items, i) }

// numbered is the connection of a number.
func (g *group) numbered(n capture.Position) *link {
	if n == 0 {
		return nil
	}
	if g.links[n] == nil {
		g.links[n] = &link{}
	}
	return g.links[n]
}

// finish puts the frames of each session in order and numbers them.
func (r *reader) finish() {
	indexes := []int{}
	for i := range r.groups {
		indexes = append(indexes, i)
	}
	slices.Sort(indexes)
	for _, i := range indexes {
		g, row := r.groups[i], r.row(i)
		if len(g.items) == 0 {
			continue
		}
		told := Told{Session: row, Frames: g.ordered(&row)}
		told.Session.Started, told.Session.Gateway = row.Started, cmp.Or(row.Gateway, g.host)
		told.Session.First, told.Session.Last = 1, capture.Position(len(told.Frames))
		if n := row.Notes; n != nil { // its marks are in the numbers that were
			notes := *n
			notes.Marks = slices.Clone(n.Marks)
			for k := range notes.Marks {
				notes.Marks[k].At.Position = g.placeOf(notes.Marks[k].At.Position)
			}
			told.Session.Notes = &notes
		}
		r.log.Sessions = append(r.log.Sessions, told)
	}
}

// placeOf is where the frame of a number went, 0 if it is not there.
func (g *group) placeOf(n capture.Position) capture.Position {
	for i, item := range g.items {
		if item.n == n {
			return capture.Position(i + 1)
		}
	}
	return 0
}

// ordered returns the frames in order, with times since the session began.
func (g *group) ordered(row *capture.Session) []capture.Frame {
	slices.SortStableFunc(g.items, func(a, b *item) int {
		if a.n != 0 && b.n != 0 {
			return cmp.Compare(a.n, b.n)
		}
		return cmp.Compare(a.key, b.key)
	})
	if row.Started.IsZero() {
		first := int64(math.MaxInt64)
		for _, i := range g.items {
			if !i.exact {
				first = min(first, i.wall)
			}
		}
		if first == math.MaxInt64 {
			first = 0
		}
		row.Started = time.Unix(0, first).UTC()
	}
	frames := make([]capture.Frame, len(g.items))
	for i, item := range g.items {
		for _, l := range []*link{item.of, item.via} {
			if l != nil && l.first == item {
				l.at = capture.Position(i + 1)
			}
		}
		f := &frames[i]
		*f = item.frame
		f.Position = capture.Position(i + 1)
		if !item.exact {
			f.At = time.Duration(item.wall - row.Started.UnixNano())
		}
		f.At = max(min(f.At, longest), -longest)
	}
	for i, item := range g.items {
		if item.of != nil && (frames[i].Kind == capture.Open || item.of.at < frames[i].Position) {
			frames[i].Connection = item.of.at
		}
		if item.via != nil {
			frames[i].Exchange = item.via.at
		}
	}
	return frames
}

// decode reads JSON whose text may hold anything.
func decode(raw []byte, v any) error {
	if err := json.Unmarshal(raw, v); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return fmt.Errorf("%s is a %s", wrong.Field, wrong.Value)
		}
		return err
	}
	return nil
}

// jsonOf writes one of capture's details, of which none can fail.
func jsonOf(detail any) []byte {
	text, err := json.Marshal(detail)
	if err != nil {
		panic("har: encode detail: " + err.Error())
	}
	return bytes.Clone(text)
}
