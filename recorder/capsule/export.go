package capsule

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
	"tapedeck/recorder/capsule/scrub"
	"tapedeck/recorder/capsule/story"
)

// Exported tells what was exported.
type Exported struct {
	Format   Format
	Frames   uint64
	Sessions []capture.Session // as the capsule tells them
	Bytes    int64             // of the file; 0 of Export
	Redacted string            // what was taken out, in words
	Verified int               // secrets that were looked for and not found
}

// Export writes a capsule of some runs to w, or of the whole tape if there are
// none; see ExportFile, which also makes tapes.
func Export(ctx context.Context, src Source, runs []conversation.RunKey, w io.Writer, o Options) (*Exported, error) {
	if o.Format == Tape {
		return nil, errors.New("export: a tape cannot be written to a stream: name a file")
	}
	p, v, err := start(ctx, src, runs, &o)
	if err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	if err := p.write(ctx, w, v); err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	return p.exported(), nil
}

// ExportFile writes a capsule to a file, in the form that its ending or the
// options name. It is written beside path, mode 0600, and takes that name when it
// is whole: what is cut short leaves nothing there, and changes nothing.
func ExportFile(ctx context.Context, src Source, runs []conversation.RunKey, path string, o Options) (*Exported, error) {
	done, err := exportFile(ctx, src, runs, path, o)
	if err != nil {
		return nil, fmt.Errorf("export to %q: %w", path, err)
	}
	return done, nil
}

func exportFile(ctx context.Context, src Source, runs []conversation.RunKey, path string, o Options) (done *Exported, err error) {
	if o.Format == "" {
		if o.Format, err = FormatOf(path); err != nil {
			return nil, err
		}
	}
	p, v, err := start(ctx, src, runs, &o)
	if err != nil {
		return nil, err
	}
	if o.Format == Tape {
		err = p.writeTape(ctx, path, v)
	} else {
		err = atomically(path, func(w io.Writer) error { return p.write(ctx, w, v) })
	}
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	done = p.exported()
	done.Bytes = info.Size()
	return done, nil
}

// start reads the tape and makes ready.
func start(ctx context.Context, src Source, runs []conversation.RunKey, o *Options) (*plan, *scrub.Verifier, error) {
	if err := o.check(); err != nil {
		return nil, nil, err
	}
	p, err := prepare(ctx, src, runs, *o)
	if err != nil || len(o.Secrets) == 0 {
		return p, nil, err
	}
	return p, scrub.NewVerifier(o.Secrets), nil
}

func (p *plan) exported() *Exported {
	h := p.header()
	return &Exported{
		Format: p.options.Format, Frames: uint64(p.size()), Sessions: h.Sessions, Redacted: h.Redacted, Verified: len(p.options.Secrets),
	}
}

// write writes a form that is text. The verifier, if there is one, sees both what
// the frames say and what is written of them.
func (p *plan) write(ctx context.Context, w io.Writer, v *scrub.Verifier) error {
	if p.verifier = v; v != nil {
		w = v.Writer(w, "what was written")
	}
	switch p.options.Format {
	case JSONL:
		return p.writeJSONL(ctx, w)
	case HAR:
		return p.writeHAR(ctx, w)
	case AGUI:
		return story.WriteAGUI(w, p.header().Redacted, p.stories(ctx))
	case Scenario:
		return story.WriteScenario(w, p.header().Redacted, p.stories(ctx))
	}
	return fmt.Errorf("there is no format %q", p.options.Format)
}

// stories are the sessions for the forms that tell them in other words.
func (p *plan) stories(ctx context.Context) (list []story.Session) {
	for i := range p.parts {
		c := &p.parts[i]
		list = append(list, story.Session{Row: c.session, Runs: c.runs, Frames: p.frames(ctx, c)})
	}
	return list
}

// atomically writes a file beside path and gives it that name when it is whole.
func atomically(path string, write func(io.Writer) error) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	err = write(file)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
