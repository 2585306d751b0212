package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"tapedeck/inspector"
	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
	"tapedeck/recorder/capsule"
	"tapedeck/recorder/capsule/reduce"
)

func (w *world) reduceCommand() *cli.Command {
	return &cli.Command{
		Name:      "reduce",
		Usage:     "make the smallest capsule that still shows a finding, or still fails a command",
		ArgsUsage: "[RUN]",
		Description: `tapedeck reduce last -o small.tape                        the latest run's first error
tapedeck reduce 7f3a -o small.jsonl --rule sequence-gap   that rule
tapedeck reduce last -o small.tape --while 'node render.js {}'

With --while, what is left still ends the command as the whole run does, which must not be with 0.
It finds the capsule that is tried in place of {}, and in $TAPEDECK_CAPSULE. Whole connections, threads
and runs are taken out first, then constructs, then single messages. Ctrl-C writes what was reached by then.`,
		Flags: []cli.Flag{
			readFlag(),
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, TakesFile: true, Usage: "the `FILE` to make: .tape or .jsonl"},
			&cli.StringFlag{Name: "rule", Usage: "keep a finding of the rule `ID`; by default of the first error, or warning"},
			&cli.StringFlag{Name: "while", Usage: "take out what `COMMAND` fails without"},
			&cli.DurationFlag{Name: "try-limit", Value: 30 * time.Second, Usage: "give the command `TIME` for each try"},
			&cli.IntFlag{Name: "max-tries", Usage: "try at most `N` times; 0 is as often as it takes"},
			&cli.DurationFlag{Name: "limit", Usage: "stop after `TIME`, with what was reached by then"},
			&cli.StringFlag{Name: "title", Usage: "what it is about"},
			&cli.StringFlag{Name: "comment", Usage: "what there is to say about it"},
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "show what the command prints"},
		},
		Before: useSettings,
		Action: w.reduce,
	}
}

// reduction is what reduce was asked for.
type reduction struct {
	run, out, rule string
	command        *probe // nil if a rule is to be kept
	format         capsule.Format
	session        capture.Session
	frames         []capture.Frame
	options        reduce.Options
	notes          capsule.Options
}

func (w *world) reduce(c *cli.Context) (err error) {
	r, err := w.reduction(c)
	if err != nil {
		return err
	}
	stop := newStopper()
	defer stop.release()
	if err := w.loadReduction(stop.first, c.String("read"), r); err != nil {
		return err
	}
	if r.command != nil {
		if err := r.command.open(r); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, r.command.close()) }()
		r.options.Still = r.command.still
	}
	ctx, cancel := stop.first, context.CancelFunc(func() {})
	if limit := c.Duration("limit"); limit > 0 {
		ctx, cancel = context.WithTimeout(ctx, limit)
	}
	defer cancel()
	bar := w.progress("reduce", int64(len(r.frames)))
	r.options.Progress = func(frames, _ int) { bar.to(int64(len(r.frames)-frames), int64(len(r.frames))) }
	result, err := reduce.Frames(ctx, r.session.ID, r.frames, r.options)
	bar.done()
	switch {
	case errors.Is(err, reduce.ErrNotShown) && r.command != nil:
		return fmt.Errorf("reduce: the command does not fail on the whole run: %s", r.command.line)
	case err != nil:
		return fmt.Errorf("reduce run %q: %w", r.run, err)
	}
	if r.command != nil && ctx.Err() == nil {
		if still, err := r.command.still(stop.second, result.Frames); err != nil || !still {
			w.talk("the command did not fail once more on what is left: it does not fail each time, and the result may not show it")
		}
	}
	if _, err := capsule.ExportFile(stop.second, capsule.Hold(r.session, result.Frames), nil, r.out, r.notes); err != nil {
		return err
	}
	return w.sayReduced(stop.second, r, result)
}

// reduction reads the flags.
func (w *world) reduction(c *cli.Context) (*reduction, error) {
	args, err := arguments(c, 0, 1, "one run, such as last")
	if err != nil {
		return nil, err
	}
	r := &reduction{run: "last", out: c.String("output"), rule: c.String("rule")}
	if len(args) == 1 {
		r.run = args[0]
	}
	r.options.Tries = c.Int("max-tries")
	line := c.String("while")
	switch {
	case r.out == "":
		return nil, usageError("reduce: -o FILE is missing, such as -o small.tape")
	case r.rule != "" && line != "":
		return nil, usageError("reduce: --rule and --while exclude each other")
	case r.options.Tries < 0 || c.Duration("limit") < 0 || c.Duration("try-limit") <= 0:
		return nil, usageError("reduce: --max-tries, --limit and --try-limit are above 0")
	}
	if r.format, err = exportFormat("", r.out); err != nil || r.format != capsule.Tape && r.format != capsule.JSONL {
		return nil, usageError("reduce: %q does not end in .tape or .jsonl", r.out)
	}
	if err := mayReplace(r.out, c.String("read")); err != nil {
		return nil, err
	}
	if r.rule != "" {
		if err := knownRule(r.rule); err != nil {
			return nil, err
		}
	}
	if line != "" {
		r.command = &probe{line: line, limit: c.Duration("try-limit")}
		if c.Bool("verbose") {
			r.command.out = w.stderr
		}
	}
	r.notes = capsule.Options{Format: r.format, Tool: version(), Title: c.String("title"), Comment: c.String("comment")}
	return r, nil
}

func knownRule(id string) error {
	if _, ok := protocol.RuleByID(id); ok {
		return nil
	}
	var ids []string
	for _, rule := range protocol.Rules() {
		ids = append(ids, rule.ID)
	}
	if near := protocol.Nearest(id, ids); near != "" {
		return usageError("reduce: no rule %q; did you mean %q?", id, near)
	}
	return usageError("reduce: no rule %q; tapedeck rules lists them", id)
}

// loadReduction loads the run with what it needs to be read, and chooses the rule
// if none was named.
func (w *world) loadReduction(ctx context.Context, path string, r *reduction) (err error) {
	t, err := w.openRecording(ctx, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	runs, err := chosenRuns(ctx, t, r.run)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tapedeck-")
	if err != nil {
		return fmt.Errorf("reduce: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	small := filepath.Join(dir, "run.tape")
	if _, err := capsule.ExportFile(ctx, t, keysOf(runs), small, capsule.Options{Tool: version()}); err != nil {
		return err
	}
	tape, err := openTape(ctx, small)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tape.Close()) }()
	sessions, err := tape.Sessions(ctx)
	if err != nil {
		return err
	}
	r.session = sessions[0]
	if r.frames, err = allFrames(ctx, tape, &r.session); err != nil {
		return err
	}
	found, err := tape.Findings(ctx, nil)
	if err != nil {
		return err
	}
	if r.command == nil {
		if r.rule, err = chooseRule(r.rule, r.run, found); err != nil {
			return err
		}
	}
	r.options.Rule = r.rule
	r.describe(runs, path)
	return nil
}

// describe has the capsule say where it comes from.
func (r *reduction) describe(runs []conversation.Run, path string) {
	what := "what fails: "
	if r.command != nil {
		what += r.command.line
	} else {
		what = r.rule
	}
	if r.notes.Title == "" {
		r.notes.Title = what
	}
	from := fmt.Sprintf("Reduced by tapedeck %s from %s of run %s in %s.", version(), inspector.FormatCount(len(r.frames), "frame"), runs[0].ID, filepath.Base(path))
	r.notes.Comment = strings.TrimSpace(r.notes.Comment + "\n" + from)
}

// maxReduced bounds what is held in memory at once, in bytes.
const maxReduced = 1 << 30

// allFrames reads a session.
func allFrames(ctx context.Context, src inspector.Source, s *capture.Session) (frames []capture.Frame, err error) {
	size := int64(0)
	for from := s.First; from != 0 && from <= s.Last; {
		page, err := src.Frames(ctx, from, settlePage)
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			break
		}
		for i := range page {
			size += int64(len(page[i].Data))
		}
		if size > maxReduced {
			return nil, fmt.Errorf("reduce: the run and what it needs take more than %s: export less of it first", inspector.FormatSize(maxReduced))
		}
		frames = append(frames, page...)
		from = page[len(page)-1].Position + 1
	}
	return frames, nil
}

// chooseRule returns the rule that was named, if it was broken, or else that of
// the first of the worst findings.
func chooseRule(named, run string, found []protocol.Finding) (string, error) {
	var ids []string
	worst := protocol.Finding{}
	for _, f := range found {
		if f.Rule == named {
			return named, nil
		}
		if f.Severity > worst.Severity {
			worst = f
		}
		ids = append(ids, f.Rule)
	}
	switch {
	case len(found) == 0:
		return "", withCode(exitNothing, fmt.Errorf("reduce: no rule is broken in run %q; --while COMMAND reduces to what fails a command", run))
	case named != "":
		return "", withCode(exitNothing, fmt.Errorf("reduce: %q is not broken in run %q; there are %s", named, run, strings.Join(unique(ids), ", ")))
	}
	return worst.Rule, nil
}

// unique returns the texts in order, each once.
func unique(list []string) (once []string) {
	seen := map[string]bool{}
	for _, text := range list {
		if !seen[text] {
			seen[text] = true
			once = append(once, text)
		}
	}
	return once
}

// sayReduced tells what is left.
func (w *world) sayReduced(ctx context.Context, r *reduction, result *reduce.Result) error {
	cut := ""
	if !result.Whole {
		cut = "; it was cut short, and there may be more to take out"
	}
	w.talk("%d of %s are left, after %s%s", len(result.Frames), inspector.FormatCount(len(r.frames), "frame"), inspector.FormatCount(result.Tries, "trial"), cut)
	if result.Renumbered {
		w.talk("sequences were counted anew where envelopes were taken out")
	}
	if r.command == nil {
		if err := w.sayKept(ctx, r); err != nil {
			return err
		}
	}
	w.talk("next: tapedeck open %s", r.out)
	return nil
}

// sayKept tells the finding as the capsule has it, whose frames are numbered anew.
func (w *world) sayKept(ctx context.Context, r *reduction) (err error) {
	t, err := w.openRecording(ctx, r.out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	found, err := t.Findings(ctx, nil)
	for _, f := range found {
		if f.Rule == r.rule {
			w.talk("#%s %s: %s", f.At, f.Rule, f.Text)
			break
		}
	}
	return err
}
