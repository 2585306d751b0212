package capsule

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
	"tapedeck/recorder/capsule/scrub"
)

// plan is what goes into a capsule: which frames, and under which numbers.
type plan struct {
	src      Source
	options  Options
	parts    []chosen
	scrubber *scrub.Scrubber // nil if nothing is redacted
	verifier *scrub.Verifier // nil if nothing is to be proved
	tick     func()
}

// chosen is a session's part of a plan.
type chosen struct {
	session capture.Session // as the capsule tells it
	source  capture.Session // as the tape does
	taken   *set
	base    capture.Position // of the capsule's frames before it
	runs    []string         // that were asked for, and theirs; none is the whole session
}

// prepare reads the tape and makes a plan.
func prepare(ctx context.Context, src Source, keys []conversation.RunKey, o Options) (*plan, error) {
	p := &plan{src: src, options: o}
	all, err := resolve(ctx, src, keys)
	if err != nil {
		return nil, err
	}
	p.count(all)
	for _, w := range all {
		s, err := take(ctx, src, w, p.tick)
		if err != nil {
			return nil, err
		}
		c := chosen{source: w.session, runs: w.ids(), base: p.size()}
		if c.taken, err = s.choose(ctx, src, p.tick); err != nil {
			return nil, err
		}
		c.session = p.session(&c)
		p.parts = append(p.parts, c)
	}
	for _, m := range o.Marks {
		if !slices.ContainsFunc(p.parts, func(c chosen) bool { return c.taken.has(m.At.Position) }) {
			return nil, fmt.Errorf("mark #%s: it is not among the frames that are exported", m.At)
		}
	}
	if len(o.Redact) == 0 {
		return p, nil
	}
	return p, p.redact(ctx)
}

// count makes tick, which says how far the work is. A session is read once if it
// is taken whole, thrice if it is not, and once more to find patterns.
func (p *plan) count(all []wanted) {
	if p.options.Progress == nil {
		p.tick = func() {}
		return
	}
	var done, total int64
	for _, w := range all {
		n := int64(w.session.Last - w.session.First + 1)
		if total += 2 * n; w.runs != nil {
			total += n
		}
		if scrub.NeedsPlan(p.options.Redact) {
			total += n
		}
	}
	p.tick = func() {
		done++
		p.options.Progress(min(done, total), total)
	}
}

// size is the number of frames.
func (p *plan) size() (n capture.Position) {
	for i := range p.parts {
		n += capture.Position(p.parts[i].taken.size)
	}
	return n
}

// session tells a session as the capsule does: numbered anew, with its notes,
// and in words that are the same wherever the capsule was in between.
func (p *plan) session(c *chosen) capture.Session {
	s := c.source
	s.ID, s.Judged, s.Rules, s.Live = capture.SessionID(len(p.parts)+1), 0, 0, false
	s.First, s.Last = c.base+1, c.base+capture.Position(c.taken.size)
	s.Started = s.Started.UTC().Round(0)
	if !s.Ended.IsZero() {
		s.Ended = s.Ended.UTC().Round(0)
	}
	s.Secrets = s.Secrets && len(p.options.Redact) == 0
	var notes capture.Notes
	if c.source.Notes != nil {
		notes = *c.source.Notes
	}
	notes.Catalogue = cmp.Or(notes.Catalogue, c.source.Rules, protocol.CatalogueVersion)
	if notes.Source != "" {
		s.Source, notes.Source = notes.Source, ""
	}
	notes.Title, notes.Comment = cmp.Or(p.options.Title, notes.Title), cmp.Or(p.options.Comment, notes.Comment)
	if len(c.runs) > 0 {
		notes.Runs = c.runs
	}
	notes.Marks = slices.Clone(notes.Marks)
	for _, m := range p.options.Marks {
		if m.At.Position >= c.source.First && m.At.Position <= c.source.Last && !slices.Contains(notes.Marks, m) {
			notes.Marks = append(notes.Marks, m)
		}
	}
	notes.Marks = slices.DeleteFunc(notes.Marks, func(m capture.Mark) bool { return !c.taken.has(m.At.Position) })
	for i := range notes.Marks {
		notes.Marks[i].At.Position = c.number(notes.Marks[i].At.Position)
	}
	for _, name := range scrub.Names(p.options.Redact) {
		if !slices.Contains(notes.Redacted, name) {
			notes.Redacted = append(slices.Clip(notes.Redacted), name)
		}
	}
	s.Notes = &notes
	return s
}

// number is the number of a frame in the capsule, 0 if it is not in it.
func (c *chosen) number(p capture.Position) capture.Position {
	if rank := c.taken.rank(p); rank > 0 {
		return c.base + capture.Position(rank)
	}
	return 0
}

// renumber makes f a frame of the capsule. It does not change f's data, which is
// shared.
func (c *chosen) renumber(f *capture.Frame) error {
	f.Position = c.number(f.Position)
	f.Connection, f.Exchange = c.number(f.Connection), c.number(f.Exchange)
	f.Flags &^= capture.Imported // so that it reads the same wherever it was in between
	return remapDeed(f, c.number)
}

// remapDeed renumbers the frames that an Act frame names.
func remapDeed(f *capture.Frame, number func(capture.Position) capture.Position) error {
	if f.Kind != capture.Act {
		return nil
	}
	deed, err := capture.Detail[capture.Deed](f)
	if err != nil {
		return nil // it names nothing that anybody could read
	}
	was := deed
	if deed.Of, deed.Sent = number(deed.Of), number(deed.Sent); deed == was {
		return nil
	}
	if f.Data, err = json.Marshal(deed); err != nil {
		return fmt.Errorf("renumber the deed at %d: %w", f.Position, err)
	}
	f.Size = int64(len(f.Data))
	return nil
}

// raw yields the frames of a part as the tape has them.
func (p *plan) raw(ctx context.Context, c *chosen) iter.Seq2[*capture.Frame, error] {
	return func(yield func(*capture.Frame, error) bool) {
		for f, err := range framesOf(ctx, p.src, &c.source) {
			p.tick()
			if err == nil && !c.taken.has(f.Position) {
				continue
			}
			if !yield(f, err) || err != nil {
				return
			}
		}
	}
}

// frames yields the frames of a part as the capsule has them. A frame is valid
// until the next one.
func (p *plan) frames(ctx context.Context, c *chosen) iter.Seq2[*capture.Frame, error] {
	return func(yield func(*capture.Frame, error) bool) {
		if p.scrubber != nil {
			p.scrubber.Rewind()
		}
		for f, err := range p.raw(ctx, c) {
			if err != nil {
				yield(nil, err)
				return
			}
			if p.scrubber != nil {
				f = p.scrubber.Frame(f)
			}
			out := *f
			err := c.renumber(&out)
			if err == nil && p.verifier != nil {
				err = p.verifier.Frame(&out)
			}
			if !yield(&out, err) || err != nil {
				return
			}
		}
	}
}

// redact makes the scrubber, which has to have seen all before it can replace
// what is cut over several messages.
func (p *plan) redact(ctx context.Context) (err error) {
	if p.scrubber, err = scrub.New(p.options.key(), p.options.Redact); err != nil {
		return err
	}
	if !scrub.NeedsPlan(p.options.Redact) {
		return nil
	}
	for i := range p.parts {
		for f, err := range p.raw(ctx, &p.parts[i]) {
			if err != nil {
				return err
			}
			p.scrubber.Look(f)
		}
	}
	p.scrubber.Looked()
	return nil
}
