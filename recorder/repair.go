package recorder

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"tapedeck/protocol/capture"
)

// Range is some frames, from the first to the last.
type Range struct{ First, Last capture.Position }

// String returns "7" or "7 to 12".
func (r Range) String() string {
	if r.First == r.Last {
		return fmt.Sprint(r.First)
	}
	return fmt.Sprintf("%d to %d", r.First, r.Last)
}

// Repaired tells what Repair saved and what it could not.
type Repaired struct {
	Sessions int
	Frames   uint64
	// Lost are the frames of known sessions that are not there any more.
	Lost []Range
	// Cut are the frames whose data is not there any more; they are marked so.
	Cut []capture.Position
	// Secret is set if the key of redaction is lost: the same secret will have
	// another token from now on.
	Secret bool
}

// Repair saves what can be read of the tape at in into a new one at out, which
// must not be there. It trusts nothing in the file but what has the right
// checksum, wherever that lies, and reads as much memory as one frame takes.
// Positions stay as they were. What was derived is left to be made again, see
// Unjudged.
func Repair(ctx context.Context, in, out string) (*Repaired, error) {
	if _, err := os.Lstat(out); err == nil {
		return nil, fmt.Errorf("repair into %q: the file is there already; name another", out)
	}
	file, err := lockFile(in, false)
	if err != nil {
		return nil, fmt.Errorf("repair tape %q: %w", in, err)
	}
	defer file.Close()
	found, err := search(ctx, file)
	if err == nil && len(found.sessions) == 0 && len(found.blocks) == 0 {
		err = fmt.Errorf("%w, and nothing of one is in it", ErrForeign)
	}
	if err != nil {
		return nil, fmt.Errorf("repair tape %q: %w", in, err)
	}
	r := &rebuild{salvage: found, report: &Repaired{Secret: found.secret == nil}}
	if found.secret == nil {
		found.secret = newSecret()
	}
	name, _, err := buildTape(out, found.tool, found.secret, func(b *builder) error { return r.fill(ctx, b) })
	if err == nil {
		err = giveName(name, out)
	}
	if err != nil {
		return nil, fmt.Errorf("repair into %q: %w", out, err)
	}
	return r.report, nil
}

// rebuild makes a tape of what was found.
type rebuild struct {
	*salvage
	report *Repaired
	unpack *unpacker
	saved  map[capture.SessionID][]Range
	last   capture.Position
}

func (r *rebuild) fill(ctx context.Context, b *builder) (err error) {
	if r.unpack, err = newUnpacker(); err != nil {
		return err
	}
	defer r.unpack.close()
	r.saved = map[capture.SessionID][]Range{}
	for _, first := range slices.Sorted(maps.Keys(r.blocks)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.block(b, first); err != nil {
			return err
		}
	}
	for id, saved := range r.saved {
		if _, ok := r.sessions[id]; !ok {
			r.sessions[id] = capture.Session{ID: id, First: saved[0].First, Source: "repair", Fault: "what was known of the session is lost"}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(r.sessions)) {
		s := r.sessions[id]
		r.session(&s)
		if err := b.session(&s); err != nil {
			return err
		}
	}
	r.report.Sessions = len(r.sessions)
	return nil
}

// block adds the frames of a block that can be read. Those that came already,
// with another block, are left out.
func (r *rebuild) block(b *builder, first capture.Position) error {
	value, err := r.value(r.blocks[first])
	if err != nil {
		return nil // it was read before: what is gone is told as lost
	}
	blk, err := decodeBlock(r.unpack, first, value)
	if err != nil {
		return nil
	}
	for i := range blk.records {
		rec := &blk.records[i]
		if rec.Position <= r.last {
			continue
		}
		f := rec.Frame
		if rec.blob != nil {
			if f.Data = r.blob(rec.blob); f.Data == nil {
				f.Flags |= capture.Cut
				r.report.Cut = append(r.report.Cut, f.Position)
			}
		}
		if err := b.frame(blk.session, &f); err != nil {
			return err
		}
		r.last = f.Position
		r.report.Frames++
		r.save(blk.session, f.Position)
	}
	return nil
}

func (r *rebuild) blob(ref *blobRef) []byte {
	at, ok := r.blobs[ref.key]
	if !ok {
		return nil
	}
	value, err := r.value(at)
	if err != nil {
		return nil
	}
	data, err := decodeBlob(r.unpack, ref.key[:], value)
	if err != nil || len(data) != ref.size {
		return nil
	}
	return data
}

// save notes that a frame of a session is there.
func (r *rebuild) save(id capture.SessionID, p capture.Position) {
	ranges := r.saved[id]
	if n := len(ranges); n > 0 && ranges[n-1].Last+1 == p {
		ranges[n-1].Last = p
		return
	}
	r.saved[id] = append(ranges, Range{p, p})
}

// session says in a session's row what is missing from it.
func (r *rebuild) session(s *capture.Session) {
	var lost []Range
	next := s.First
	for _, there := range r.saved[s.ID] {
		if there.First > next {
			lost = append(lost, Range{next, there.First - 1})
		}
		next = there.Last + 1
	}
	if s.Last >= next {
		lost = append(lost, Range{next, s.Last})
	}
	s.Last, s.Judged = max(s.Last, next-1), 0
	if next == s.First {
		s.Last = 0 // nothing is left of it
	}
	if len(lost) > 0 {
		s.Clean = false
		s.Fault = strings.TrimPrefix(s.Fault+"; frames "+joinRanges(lost)+" are lost", "; ")
	}
	r.report.Lost = append(r.report.Lost, lost...)
}

// joinRanges names some ranges, not all of many.
func joinRanges(ranges []Range) string {
	const most = 20
	var names []string
	for _, r := range ranges[:min(most, len(ranges))] {
		names = append(names, r.String())
	}
	if more := len(ranges) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d other ranges", more))
	}
	return strings.Join(names, ", ")
}
