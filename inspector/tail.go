package inspector

import (
	"context"
	"fmt"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// TailOptions configure Tail.
type TailOptions struct {
	// New leaves out what passed before now.
	New bool
	// Raw writes one message a line, and what is no message too.
	Raw bool
	// Housekeeping shows pings and the like.
	Housekeeping bool
}

// Tail follows the last session: from its beginning, or from now, until ctx or
// the session ends.
func (v *View) Tail(ctx context.Context, o TailOptions) error {
	sessions, err := v.Source.Sessions(ctx)
	if err != nil {
		return fmt.Errorf("list sessions: %w", err)
	}
	if len(sessions) == 0 {
		return nothing{NoRuns(nil)}
	}
	s := &sessions[len(sessions)-1]
	if s.Live {
		v.talk("Following session %d at %s; end with Ctrl-C.", s.ID, address(s.Listen))
	}
	t := v.newTail(s, o)
	for frame, err := range v.Source.Follow(ctx, max(s.First, 1)) {
		if err != nil {
			if ctx.Err() != nil {
				break
			}
			return fmt.Errorf("follow session %d: %w", s.ID, err)
		}
		if err := t.frame(&frame); err != nil {
			return err
		}
	}
	return t.finish(!s.Live)
}

// tail prints a session as it is followed.
type tail struct {
	options TailOptions
	rules   protocol.Settings
	filter  *Filter
	shown   capture.Position // what passed up to here is not printed
	feed    *Feed
	live    *Live
	raw     *Raw
}

func (v *View) newTail(s *capture.Session, o TailOptions) *tail {
	t := &tail{options: o, rules: v.Rules, filter: v.Filter, feed: NewFeedFrom(conversation.New(v.Judge), nil)}
	if o.New {
		t.shown = s.Last
	}
	t.live = NewLive(v.Out, &v.Look, LiveOptions{
		TimelineOptions: TimelineOptions{Wire: true, Housekeeping: o.Housekeeping, Filter: v.Filter}, Format: v.Format, Started: s.Started,
	})
	t.raw = NewRaw(v.Out, v.Format, &v.Look)
	if v.Format == FormatJSON {
		t.raw.format = FormatJSONL // a stream has no end to close an array at
	}
	return t
}

func (t *tail) frame(f *capture.Frame) error {
	moments := t.feed.Frame(f)
	for i := range moments {
		m := &moments[i]
		m.Findings = t.rules.Apply(m.Findings)
		var err error
		switch {
		case t.options.Raw:
			if f.Position > t.shown && t.filter.Match(m) && (t.options.Housekeeping || !isHousekeeping(m)) {
				err = t.raw.Add(m)
			}
		case f.Position <= t.shown:
			t.live.Skip(m)
		default:
			err = t.live.Add(m)
		}
		if err != nil {
			return err
		}
	}
	if t.options.Raw || f.Position <= t.shown {
		return nil
	}
	return t.found(t.feed.Late())
}

func (t *tail) found(findings []protocol.Finding) error {
	for _, f := range t.rules.Apply(findings) {
		if err := t.live.Find(f); err != nil {
			return err
		}
	}
	return nil
}

// finish prints what is open, and, if the session ended, what can only be said
// then: whoever stops looking does not end the session.
func (t *tail) finish(ended bool) error {
	if t.options.Raw {
		return nil
	}
	if err := t.live.Finish(); err != nil || !ended {
		return err
	}
	return t.found(t.feed.End())
}
