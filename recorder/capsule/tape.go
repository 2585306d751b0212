package capsule

import (
	"context"
	"encoding/json"
	"errors"

	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
	"tapedeck/recorder"
	"tapedeck/recorder/capsule/scrub"
)

// TapeSink puts sessions on a tape, and judges them as they come, as live traffic
// is judged.
type TapeSink struct {
	copier *recorder.Copier
	judge  conversation.Options
	state  *conversation.State
	s      capture.Session
	index  recorder.Index
	frames int // since the index was written
}

// SinkOptions configure a TapeSink.
type SinkOptions struct {
	recorder.CopierOptions
	// Judge says how to judge; its Session is not used.
	Judge conversation.Options
}

// OpenSink opens the tape at path to add to it, and makes it if it is not there.
// It returns recorder.ErrLocked within a second if another process has it open.
func OpenSink(path string, o SinkOptions) (*TapeSink, error) {
	c, err := recorder.AppendCopy(path, o.CopierOptions)
	if err != nil {
		return nil, err
	}
	return &TapeSink{copier: c, judge: o.Judge}, nil
}

// indexFrames is how many frames are judged before the index is written.
const indexFrames = 4096

// Begin begins a session: it sets ID and First.
func (t *TapeSink) Begin(s *capture.Session) error {
	if err := t.copier.Begin(s); err != nil {
		return err
	}
	t.judge.Session = s.ID
	t.state, t.s = conversation.New(t.judge), *s
	return nil
}

// Frame adds the next frame, and judges it as the tape has it.
func (t *TapeSink) Frame(f *capture.Frame) error {
	kept, err := t.copier.Frame(f)
	if err != nil {
		return err
	}
	t.observe(t.state.Observe(kept), f.Position)
	if t.frames++; t.frames < indexFrames {
		return nil
	}
	return t.flush()
}

func (t *TapeSink) observe(step *conversation.Step, judged capture.Position) {
	t.index.Posts = append(t.index.Posts, step.Posts...)
	t.index.Findings = append(t.index.Findings, step.Findings...)
	t.index.Judged = max(t.index.Judged, judged)
}

func (t *TapeSink) flush() error {
	t.index.Runs, t.index.Threads = t.state.Changed(), t.state.ChangedThreads()
	err := t.copier.Index(&t.s, &t.index)
	t.index, t.frames = recorder.Index{}, 0
	return err
}

// End ends the session, as s says that it ended.
func (t *TapeSink) End(s *capture.Session) error {
	t.observe(t.state.End(), t.s.Judged)
	if err := t.flush(); err != nil {
		return err
	}
	s.Judged = t.s.Judged
	return t.copier.End(s)
}

// Close commits what is left and closes the tape.
func (t *TapeSink) Close() error { return t.copier.Close() }

// Discard gives up: a tape that was not there before is not there afterwards, and
// on one that was, a session that was begun says that it was cut short.
func (t *TapeSink) Discard() error { return t.copier.Discard() }

// writeTape makes a tape of the plan.
func (p *plan) writeTape(ctx context.Context, path string, v *scrub.Verifier) error {
	c, err := recorder.CreateCopy(path, recorder.CopierOptions{Tool: p.options.Tool, KeepSecrets: true})
	if err != nil {
		return err
	}
	sink := &TapeSink{copier: c}
	p.verifier = v
	if err := p.fill(ctx, sink); err != nil {
		return errors.Join(err, c.Discard())
	}
	return c.Close()
}

// fill gives the frames of the plan to a sink.
func (p *plan) fill(ctx context.Context, sink *TapeSink) error {
	if p.verifier != nil {
		head, err := json.Marshal(p.header())
		if err != nil {
			return err
		}
		if err := p.verifier.Bytes(head, "what the capsule says of itself"); err != nil {
			return err
		}
	}
	for i := range p.parts {
		s := p.parts[i].session
		secrets := s.Secrets
		if err := sink.Begin(&s); err != nil {
			return err
		}
		s.Secrets = secrets
		for f, err := range p.frames(ctx, &p.parts[i]) {
			if err != nil {
				return err
			}
			if err := sink.Frame(f); err != nil {
				return err
			}
		}
		if err := sink.End(&s); err != nil {
			return err
		}
	}
	return nil
}
