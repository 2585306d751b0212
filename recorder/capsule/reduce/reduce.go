package reduce

import (
	"context"
	"errors"
	"fmt"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// Options say what to keep to.
type Options struct {
	// Rule is the rule that must stay broken. With Still it is not used.
	Rule string
	// Still reports whether frames still show the fault. It is called with fewer
	// and fewer of them, and with the whole recording first.
	Still func(ctx context.Context, frames []capture.Frame) (bool, error)
	// Tries is how often something is tried at most, 0 for as often as it takes.
	Tries int
	// Progress is called now and then, with how many frames are left after how
	// many tries; nil is nobody.
	Progress func(frames, tries int)
}

// Result is what is left.
type Result struct {
	Frames []capture.Frame
	// Finding is that of the rule, in the frames that are left.
	Finding protocol.Finding
	// Renumbered is set if sequences were counted anew.
	Renumbered bool
	// Whole is set if nothing more can be taken out, and not if it was cut short.
	Whole bool
	Tries int
}

// ErrNotShown is returned when the whole recording does not show the fault.
var ErrNotShown = errors.New("the recording does not show it")

// errEnough ends the work before its end.
var errEnough = errors.New("enough was tried")

// Frames takes out of a session's frames what is not needed. If ctx ends, or
// after Options.Tries, the result is what was reached by then.
func Frames(ctx context.Context, session capture.SessionID, frames []capture.Frame, o Options) (*Result, error) {
	r := &reducer{ctx: ctx, o: o, session: session, material: takeApart(session, frames)}
	r.kept = make([]bool, len(r.material.units))
	for i := range r.kept {
		r.kept[i] = true
	}
	if o.Still == nil {
		r.before = r.broken(frames)
		if _, is := r.before[o.Rule]; !is {
			return nil, fmt.Errorf("rule %q: %w", o.Rule, ErrNotShown)
		}
	} else if still, err := o.Still(ctx, frames); err != nil || !still {
		return nil, errors.Join(err, notShown(still))
	}
	err := r.all()
	if err != nil && !errors.Is(err, errEnough) && ctx.Err() == nil {
		return nil, err
	}
	result := &Result{Whole: err == nil, Tries: r.tries}
	result.Frames, result.Renumbered = r.material.build(r.kept)
	if o.Still == nil {
		result.Finding = r.broken(result.Frames)[o.Rule]
	}
	return result, nil
}

func notShown(still bool) error {
	if still {
		return nil
	}
	return ErrNotShown
}

// reducer is a reduction at work.
type reducer struct {
	ctx      context.Context
	o        Options
	session  capture.SessionID
	material *material
	kept     []bool
	before   map[string]protocol.Finding // a finding of each rule that was broken at first
	tries    int
}

// all takes out larger parts first, and goes on until no construct and no message
// can be taken out.
func (r *reducer) all() error {
	for _, part := range []func(*unit) string{
		func(u *unit) string { return fmt.Sprint("connection ", u.connection) },
		func(u *unit) string { return "thread " + u.thread },
		func(u *unit) string { return "run " + u.run },
	} {
		if _, err := r.parts(part); err != nil {
			return err
		}
	}
	for {
		constructs, err := r.parts(func(u *unit) string { return fmt.Sprintf("%d %s %s", u.connection, u.run, u.construct) })
		if err != nil {
			return err
		}
		units, err := r.parts(nil)
		if err != nil || !constructs && !units {
			return err
		}
	}
}

// parts takes out parts of one kind: half of them at once, then a quarter, down
// to each by itself, until none of them can be. It reports whether any was. Nil
// makes each unit a part.
func (r *reducer) parts(name func(*unit) string) (any bool, err error) {
	var parts [][]int
	known := map[string]int{}
	for id, kept := range r.kept {
		if !kept || r.material.units[id].greets {
			continue
		}
		if name == nil {
			parts = append(parts, []int{id})
			continue
		}
		key := name(&r.material.units[id])
		at, ok := known[key]
		if !ok {
			at = len(parts)
			known[key], parts = at, append(parts, nil)
		}
		parts[at] = append(parts[at], id)
	}
	for size := max(len(parts)/2, 1); len(parts) > 0; {
		again := false
		for from := 0; from < len(parts); {
			to := min(from+size, len(parts))
			gone, err := r.without(parts[from:to])
			if err != nil {
				return any, err
			}
			if gone {
				parts = append(parts[:from:from], parts[to:]...)
				any, again = true, true
			} else {
				from = to
			}
		}
		if size == 1 && !again {
			return any, nil
		}
		size = max(size/2, 1)
	}
	return any, nil
}

// without takes parts out, if the fault is shown without them.
func (r *reducer) without(parts [][]int) (bool, error) {
	if err := r.ctx.Err(); err != nil {
		return false, err
	}
	if r.o.Tries > 0 && r.tries >= r.o.Tries {
		return false, errEnough
	}
	r.tries++
	for _, part := range parts {
		for _, id := range part {
			r.kept[id] = false
		}
	}
	frames, _ := r.material.build(r.kept)
	still, err := r.still(frames)
	if r.o.Progress != nil {
		r.o.Progress(len(frames), r.tries)
	}
	if still && err == nil {
		return true, nil
	}
	for _, part := range parts {
		for _, id := range part {
			r.kept[id] = true
		}
	}
	return false, err
}

func (r *reducer) still(frames []capture.Frame) (bool, error) {
	if r.o.Still != nil {
		return r.o.Still(r.ctx, frames)
	}
	now := r.broken(frames)
	for rule, f := range now {
		if _, was := r.before[rule]; !was && f.Severity >= protocol.Warning {
			return false, nil
		}
	}
	_, is := now[r.o.Rule]
	return is, nil
}

// broken returns a finding of each rule that frames break.
func (r *reducer) broken(frames []capture.Frame) map[string]protocol.Finding {
	found := map[string]protocol.Finding{}
	take := func(list []protocol.Finding) {
		for _, f := range list {
			if _, known := found[f.Rule]; !known {
				found[f.Rule] = f
			}
		}
	}
	state := conversation.New(conversation.Options{Session: r.session})
	for i := range frames {
		take(state.Observe(&frames[i]).Findings)
	}
	take(state.End().Findings)
	return found
}
