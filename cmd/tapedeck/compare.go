package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"tapedeck/inspector"
	"tapedeck/protocol/conversation"
	"tapedeck/recorder/live"
)

func (w *world) statsCommand() *cli.Command {
	return &cli.Command{
		Name:        "stats",
		Usage:       "print the figures of runs: first token, gaps, stalls, tools, tokens",
		ArgsUsage:   "[RUN]",
		Description: "tapedeck stats last --format csv    one run alone, for a spreadsheet",
		Flags: []cli.Flag{
			readFlag(),
			&cli.StringFlag{Name: "format", Value: "text", Usage: "write `text|json|jsonl|csv`"},
			&cli.BoolFlag{Name: "ascii", Usage: "write no characters beyond ASCII of our own"},
		},
		Before: useSettings,
		Action: w.stats,
	}
}

func (w *world) stats(c *cli.Context) error {
	args, err := arguments(c, 0, 1, "one run, such as last")
	if err != nil {
		return err
	}
	look := w.look(c)
	var write func(*inspector.Stats) error
	switch format := c.String("format"); format {
	case "text":
		write = func(s *inspector.Stats) error { return s.Write(w.stdout, &look) }
	case "json", "jsonl":
		write = func(s *inspector.Stats) error { return s.WriteJSON(w.stdout, inspector.Format(format)) }
	case "csv":
		write = func(s *inspector.Stats) error { return s.WriteCSV(w.stdout) }
	default:
		return usageError("stats: --format is text, json, jsonl or csv, not %q", format)
	}
	return w.withRecording(c.String("read"), func(ctx context.Context, t live.Tape) error {
		runs, err := chosenRuns(ctx, t, first(args))
		if err != nil {
			return err
		}
		figures, err := inspector.LoadStats(ctx, t, runs)
		if err != nil {
			return err
		}
		return write(figures)
	})
}

// chosenRuns returns the runs that a name stands for, with those that they
// continue; all of them if there is no name.
func chosenRuns(ctx context.Context, src inspector.Source, name string) ([]conversation.Run, error) {
	runs, err := inspector.LoadRuns(ctx, src)
	if err != nil || name == "" {
		return runs, err
	}
	s, err := inspector.Select(runs, name)
	if err != nil {
		return nil, err
	}
	if s.Run == nil {
		return nil, usageError("%q names a position; a run is needed, such as last", name)
	}
	return inspector.Chain(runs, s.Run), nil
}

// diffFlags are about what makes a difference.
func diffFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "strict", Usage: "compare where deltas were cut, and the order of what overlaps"},
		&cli.BoolFlag{Name: "timing", Usage: "show how long each construct took; time alone makes no difference"},
		&cli.StringSliceFlag{Name: "ignore", Usage: "leave out `FIELD`, a name or a path such as /arguments/price; may be repeated"},
	}
}

func diffOptions(c *cli.Context) inspector.DiffOptions {
	return inspector.DiffOptions{Strict: c.Bool("strict"), Timing: c.Bool("timing"), Ignore: c.StringSlice("ignore")}
}

func (w *world) diffCommand() *cli.Command {
	return &cli.Command{
		Name:      "diff",
		Usage:     "compare two runs, construct by construct; exit 1 if they differ",
		ArgsUsage: "A B",
		Description: `tapedeck diff last~1 last                   two runs of the tape
tapedeck diff before.tape after.tape        the last runs of two tapes
tapedeck diff bug.tape:7f3a last            a run of another tape, and one of this

Ids and times make no difference, nor do the borders of deltas unless --strict asks.`,
		Flags: append([]cli.Flag{
			readFlag(),
			&cli.StringFlag{Name: "format", Value: "text", Usage: "write `text|json|junit`"},
			&cli.BoolFlag{Name: "ascii", Usage: "write no characters beyond ASCII of our own"},
		}, diffFlags()...),
		Before: useSettings,
		Action: w.diff,
	}
}

func (w *world) diff(c *cli.Context) error {
	args, err := arguments(c, 2, 2, "two runs, such as last~1 last")
	if err != nil {
		return err
	}
	write, err := diffWriter(c, w.look(c))
	if err != nil {
		return err
	}
	stop := newStopper()
	defer stop.release()
	var sides [2]*inspector.Normal
	for i, arg := range args {
		if sides[i], err = w.normalOf(stop.first, c.String("read"), arg); err != nil {
			return err
		}
	}
	d := inspector.Compare(sides[0], sides[1], diffOptions(c))
	if err := write(d, w.stdout); err != nil {
		return err
	}
	return differs(d)
}

// differs is the exit code of a comparison.
func differs(d *inspector.Diff) error {
	if !d.Equal() {
		return withCode(exitFindings, nil)
	}
	return nil
}

func diffWriter(c *cli.Context, look inspector.Look) (func(*inspector.Diff, io.Writer) error, error) {
	switch format := c.String("format"); format {
	case "text":
		return func(d *inspector.Diff, out io.Writer) error { return d.Write(out, &look) }, nil
	case "json":
		return (*inspector.Diff).WriteJSON, nil
	case "junit":
		return (*inspector.Diff).WriteJUnit, nil
	default:
		return nil, usageError("%s: --format is text, json or junit, not %q", c.Command.Name, format)
	}
}

// normalOf loads the run that an argument stands for: RUN, FILE or FILE:RUN,
// where a tape or a capsule is told by its ending.
func (w *world) normalOf(ctx context.Context, path, arg string) (normal *inspector.Normal, err error) {
	run := arg
	for _, ending := range []string{".tape", ".jsonl", ".har"} {
		if before, after, ok := strings.Cut(arg, ending); ok && (after == "" || after[0] == ':') {
			path, run = before+ending, strings.TrimPrefix(after, ":")
		}
	}
	if run == "" {
		run = "last"
	}
	t, err := w.openRecording(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	runs, err := chosenRuns(ctx, t, run)
	if err != nil {
		return nil, err
	}
	return inspector.LoadNormal(ctx, t, runs)
}

// checkAgainstGolden compares runs with the normal form that a file keeps, or
// writes it.
func (w *world) checkAgainstGolden(c *cli.Context, name string) error {
	write, err := diffWriter(c, w.look(c))
	if err != nil {
		return err
	}
	var now *inspector.Normal
	err = w.withRecording(c.String("read"), func(ctx context.Context, t live.Tape) error {
		runs, err := chosenRuns(ctx, t, name)
		if err == nil {
			now, err = inspector.LoadNormal(ctx, t, runs)
		}
		return err
	})
	if err != nil {
		return err
	}
	file := c.String("golden")
	if c.Bool("update") {
		return writeGolden(file, now, c.Bool("strict"))
	}
	kept, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read golden file: %w; write it first with --update", err)
	}
	d, err := inspector.CompareNormal(kept, now, diffOptions(c))
	if err != nil {
		return fmt.Errorf("golden file %q: %w", file, err)
	}
	if d.Equal() {
		w.talk("the same as %s", file)
		return nil
	}
	if err := write(d, w.stdout); err != nil {
		return err
	}
	return differs(d)
}

func writeGolden(file string, now *inspector.Normal, strict bool) (err error) {
	f, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("write golden file: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return now.Write(f, strict)
}
