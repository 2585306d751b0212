package inspector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// ErrNothing is returned when what was asked for is not on the tape: no run of
// that name, no frame at that position, no row that the filter wants.
var ErrNothing = errors.New("nothing matched")

// nothing is an ErrNothing with a sentence of its own.
type nothing struct{ text string }

func (n nothing) Error() string        { return n.text }
func (n nothing) Is(target error) bool { return target == ErrNothing }

func nothingf(format string, args ...any) error { return nothing{fmt.Sprintf(format, args...)} }

// Selection is what a name on the command line stands for.
type Selection struct {
	Run *conversation.Run // nil if only a position was named
	At  capture.Address   // zero if no position was named
}

// Select finds what a name stands for: "last" or "" is the run that began last,
// "last~2" the second before it, "7f3a" the one run whose id begins so, "2/7f3a"
// that of session 2, and any of them may be followed by a position,
// "7f3a@1042.3". "@1042" is a position alone. Which run is the last does not
// depend on the order of runs.
func Select(runs []conversation.Run, name string) (Selection, error) {
	var s Selection
	runs = slices.Clone(runs)
	sortRuns(runs)
	id, at, hasPosition := cutLast(name, "@")
	if hasPosition {
		a, err := capture.ParseAddress(at)
		if err != nil {
			return s, err
		}
		if a.IsZero() {
			return s, fmt.Errorf("position %q: positions are counted from 1", at)
		}
		if s.At = a; id == "" {
			return s, nil
		}
	}
	run, err := selectRun(runs, id)
	s.Run = run
	return s, err
}

// cutLast cuts around the last separator: a run's id may hold one itself.
func cutLast(s, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(s, separator); i >= 0 {
		return s[:i], s[i+len(separator):], true
	}
	return s, "", false
}

func selectRun(runs []conversation.Run, name string) (*conversation.Run, error) {
	if len(runs) == 0 {
		return nil, nothingf("no run %q: the tape holds no runs yet", name)
	}
	if name == "" || name == "last" {
		return &runs[len(runs)-1], nil
	}
	if back, is := strings.CutPrefix(name, "last~"); is {
		n, err := strconv.Atoi(back)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("run %q: behind last~ stands a number, such as last~2", name)
		}
		if n >= len(runs) {
			return nil, nothingf("no run %q: the tape holds %s", name, FormatCount(len(runs), "run"))
		}
		return &runs[len(runs)-1-n], nil
	}
	found := withPrefix(runs, name)
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, ambiguous(name, found)
	}
	return nil, noRun(runs, name)
}

// withPrefix returns the runs that a name may stand for. An id given whole
// stands for itself, though others begin with it.
func withPrefix(runs []conversation.Run, name string) (found []*conversation.Run) {
	session := capture.SessionID(0)
	if number, rest, cut := strings.Cut(name, "/"); cut {
		if n, err := strconv.ParseUint(number, 10, 32); err == nil {
			session, name = capture.SessionID(n), rest
		}
	}
	var exact []*conversation.Run
	for i := range runs {
		r := &runs[i]
		switch {
		case session != 0 && r.Session != session:
		case r.ID == name:
			exact = append(exact, r)
		case strings.HasPrefix(r.ID, name):
			found = append(found, r)
		}
	}
	if len(exact) > 0 {
		return exact
	}
	return found
}

// maxNamed is how many runs an error names.
const maxNamed = 8

func ambiguous(name string, found []*conversation.Run) error {
	var names []string
	for _, r := range found[:min(len(found), maxNamed)] {
		names = append(names, fmt.Sprintf("%d/%s", r.Session, Clean(r.ID)))
	}
	more := ""
	if n := len(found) - maxNamed; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Errorf("run %q may be any of %s%s: write more of it", name, strings.Join(names, ", "), more)
}

func noRun(runs []conversation.Run, name string) error {
	var ids []string
	for i := len(runs) - 1; i >= 0; i-- {
		ids = append(ids, runs[i].ID, cutBytes(runs[i].ID, max(len(name), 1)))
	}
	if near := protocol.Nearest(name, ids); near != "" {
		i := slices.IndexFunc(runs, func(r conversation.Run) bool { return strings.HasPrefix(r.ID, near) })
		return nothingf("no run begins with %q; did you mean %s?", name, Clean(runs[i].ID))
	}
	var last []string
	for _, r := range runs[max(len(runs)-maxNamed, 0):] {
		last = append(last, Clean(r.ID))
	}
	return nothingf("no run begins with %q; the latest are %s", name, strings.Join(last, ", "))
}

// Chain returns a run with the runs that it continues and those that continue
// it, from pause to pause, in order: what a person sees as one run.
func Chain(runs []conversation.Run, run *conversation.Run) []conversation.Run {
	in := map[string]bool{run.ID: true}
	before := run.Continues
	for i := len(runs) - 1; i >= 0 && before != ""; i-- {
		if r := &runs[i]; r.Session == run.Session && r.ID == before && !in[before] {
			in[before] = true
			before = r.Continues
		}
	}
	var chain []conversation.Run
	for _, r := range runs {
		if r.Session == run.Session && (in[r.ID] || r.Continues != "" && in[r.Continues]) {
			in[r.ID] = true
			chain = append(chain, r)
		}
	}
	sortRuns(chain)
	return chain
}

// sortRuns puts runs in the order in which they began. Several may have their
// first frame in common: the beginning of their connection.
func sortRuns(runs []conversation.Run) {
	slices.SortStableFunc(runs, func(a, b conversation.Run) int {
		return cmp.Or(cmp.Compare(a.Session, b.Session), cmp.Compare(a.Started, b.Started), cmp.Compare(a.First, b.First), cmp.Compare(a.ID, b.ID))
	})
}

// runs returns the source's runs in the order in which they began.
func (v *View) runs(ctx context.Context) ([]conversation.Run, error) { return LoadRuns(ctx, v.Source) }

// LoadRuns returns the runs of a source in the order in which they began.
func LoadRuns(ctx context.Context, src Source) ([]conversation.Run, error) {
	runs, err := src.Runs(ctx)
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	runs = slices.Clone(runs) // the source's own may be shared
	sortRuns(runs)
	return runs, nil
}
