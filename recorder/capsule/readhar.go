package capsule

import (
	"context"
	"errors"
	"io"
	"iter"

	"tapedeck/protocol/capture"
	"tapedeck/recorder/capsule/har"
)

// writeHAR writes an archive. Connections with very many messages are read once
// more.
func (p *plan) writeHAR(ctx context.Context, w io.Writer) error {
	a := &har.Archive{Tool: p.options.Tool, Redacted: p.header().Redacted}
	for i := range p.parts {
		a.Sessions = append(a.Sessions, har.Session{Row: p.parts[i].session, Frames: func() iter.Seq2[*capture.Frame, error] {
			return p.frames(ctx, &p.parts[i])
		}})
	}
	return har.Write(ctx, w, a)
}

// readHAR imports a HAR.
func (m *importer) readHAR(ctx context.Context, in io.Reader) error {
	log, err := har.Read(ctx, in, m.progress)
	if err != nil {
		return err
	}
	for _, fault := range log.Faults {
		if m.report.Broken++; len(m.report.Skipped) < maxSkipped {
			m.report.Skipped = append(m.report.Skipped, Skipped{Entry: fault.Entry, Err: fault.Err})
		}
	}
	m.report.Redacted = log.Redacted
	if len(log.Sessions) == 0 {
		return errors.New("it has no entries with anything in them")
	}
	for _, s := range log.Sessions {
		if err := m.begin(s.Session); err != nil {
			return err
		}
		for i := range s.Frames {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := m.add(&s.Frames[i], s.Frames[i].Position); err != nil {
				return err
			}
		}
	}
	return m.end()
}
