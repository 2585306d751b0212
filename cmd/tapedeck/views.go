package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"tapedeck/inspector"
	"tapedeck/recorder/live"
)

// viewFlags are those of the commands that show what is on a tape.
func viewFlags(more ...cli.Flag) []cli.Flag {
	return append([]cli.Flag{
		readFlag(), ruleFlag(),
		&cli.StringFlag{Name: "format", Value: "text", Usage: "write `text|json|jsonl`"},
		&cli.BoolFlag{Name: "ascii", Usage: "write no characters beyond ASCII of our own"},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "write the data alone: no hints, no warnings"},
	}, more...)
}

func filterFlag() cli.Flag {
	return &cli.StringFlag{Name: "filter", Aliases: []string{"f"}, Usage: "show what matches `FILTER`, such as 'type:TOOL_CALL_* -has:finding'; --filter help explains"}
}

// look says how text comes out on standard output.
func (w *world) look(c *cli.Context) inspector.Look {
	l := inspector.Look{Width: w.width(w.stdout), ASCII: c.Bool("ascii"), Zone: time.Local}
	if w.colours(w.stdout) {
		l.Palette = inspector.NewPalette()
	}
	return l
}

// parseFilter reads --filter. A nil filter wants all.
func parseFilter(c *cli.Context) (*inspector.Filter, error) {
	text := c.String("filter")
	if text == "" {
		return nil, nil
	}
	f, err := inspector.ParseFilter(text)
	if err != nil {
		var bad *inspector.FilterError
		if errors.As(err, &bad) {
			return nil, usageError("%s: --filter: %v\n%s", c.Command.Name, err, bad.Pointed())
		}
		return nil, usageError("%s: --filter: %v", c.Command.Name, err)
	}
	return f, nil
}

// view opens the tape that --read names and shows it.
func (w *world) view(c *cli.Context, show func(context.Context, *inspector.View) error) error {
	return w.viewFile(c, c.String("read"), show)
}

// viewFile opens a tape or a capsule and shows it.
func (w *world) viewFile(c *cli.Context, path string, show func(context.Context, *inspector.View) error) error {
	if c.String("filter") == "help" {
		_, err := fmt.Fprint(w.stdout, inspector.FilterHelp())
		return err
	}
	format, err := inspector.ParseFormat(c.String("format"))
	if err != nil {
		return usageError("%s: %v", c.Command.Name, err)
	}
	filter, err := parseFilter(c)
	if err != nil {
		return err
	}
	chosen, err := settings(c)
	if err != nil {
		return err
	}
	return w.withRecording(path, func(ctx context.Context, t live.Tape) error {
		v := &inspector.View{Source: &withSettings{t, chosen}, Out: w.stdout, Format: format, Look: w.look(c), Filter: filter, Flags: flagsFor(path)}
		if !c.Bool("quiet") {
			v.Talk = w.stderr
		}
		return show(ctx, v)
	})
}

// flagsFor are the flags with which a command finds the tape again.
func flagsFor(path string) string {
	if path == defaultTape {
		return ""
	}
	return "-r " + path
}

func (w *world) runsCommand() *cli.Command {
	return &cli.Command{
		Name:   "runs",
		Usage:  "list the runs on a tape",
		Flags:  viewFlags(),
		Before: useSettings,
		Action: func(c *cli.Context) error {
			if _, err := arguments(c, 0, 0, ""); err != nil {
				return err
			}
			return w.view(c, func(ctx context.Context, v *inspector.View) error { return v.Runs(ctx) })
		},
	}
}

func (w *world) threadsCommand() *cli.Command {
	return &cli.Command{
		Name:   "threads",
		Usage:  "list the threads on a tape",
		Flags:  viewFlags(),
		Before: useSettings,
		Action: func(c *cli.Context) error {
			if _, err := arguments(c, 0, 0, ""); err != nil {
				return err
			}
			return w.view(c, func(ctx context.Context, v *inspector.View) error { return v.Threads(ctx) })
		},
	}
}

func (w *world) showCommand() *cli.Command {
	return &cli.Command{
		Name:      "show",
		Usage:     "show a run, one row a construct; or one packet of it, whole",
		ArgsUsage: "[RUN][@POSITION]",
		Description: `tapedeck show last               the latest run, with those that it continues
tapedeck show 7f3a               the run whose id begins so
tapedeck show last~2             the second before the latest
tapedeck show 7f3a@1042          one packet: its bytes, where it passed, what is wrong with it
tapedeck show last --raw         every message, one a line
tapedeck show last --filter 'type:TOOL_CALL_* OR has:finding'`,
		Flags:  viewFlags(filterFlag(), &cli.BoolFlag{Name: "raw", Usage: "one message a line, its bytes as they passed"}),
		Before: useSettings,
		Action: func(c *cli.Context) error {
			args, err := arguments(c, 0, 1, "one run, such as last")
			if err != nil {
				return err
			}
			name := "last"
			if len(args) == 1 {
				name = args[0]
			}
			return w.view(c, func(ctx context.Context, v *inspector.View) error { return v.Show(ctx, name, c.Bool("raw")) })
		},
	}
}

// command is a command line that shows the tape at path.
func command(words, path string) string {
	return strings.TrimSpace("tapedeck " + words + " " + flagsFor(path))
}
