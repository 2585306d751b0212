package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"tapedeck/inspector"
	"tapedeck/protocol/conversation"
)

func (w *world) exportCommand() *cli.Command {
	return &cli.Command{
		Name:      "export",
		Usage:     "make one file out of runs, to be handed on",
		ArgsUsage: "[RUN…]",
		Description: `tapedeck export last -o bug.html       a page for a ticket: opens without a network
tapedeck export 7f3a c0ff -o bug.html --title "Cut off" --comment "Seen twice today"

With a run go those that it continues. The file's ending says what it becomes.`,
		Flags: []cli.Flag{
			readFlag(), ruleFlag(),
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, TakesFile: true, Usage: "the `FILE` to make"},
			&cli.StringFlag{Name: "title", Usage: "what it is about"},
			&cli.StringFlag{Name: "comment", Usage: "what there is to say about it"},
		},
		Before: useSettings,
		Action: w.export,
	}
}

func (w *world) export(c *cli.Context) (err error) {
	out := c.String("output")
	switch {
	case out == "":
		return usageError("export: -o FILE is missing, such as -o bug.html")
	case !slices.Contains([]string{".html", ".htm"}, strings.ToLower(filepath.Ext(out))):
		return usageError("export: %q does not end in .html, which is what there is", out)
	}
	chosen, err := settings(c)
	if err != nil {
		return err
	}
	stop := newStopper()
	defer stop.release()
	t, err := openTape(stop.first, c.String("read"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	src := &withSettings{t, chosen}
	names := c.Args().Slice()
	if len(names) == 0 {
		names = []string{"last"}
	}
	var runs []conversation.Run
	for _, name := range names {
		chain, err := chosenRuns(stop.first, src, name)
		if err != nil {
			return err
		}
		for _, r := range chain {
			if !slices.ContainsFunc(runs, func(o conversation.Run) bool { return o.Session == r.Session && o.ID == r.ID }) {
				runs = append(runs, r)
			}
		}
	}
	o := inspector.HTMLOptions{Title: c.String("title"), Comment: c.String("comment"), Tool: version(), Zone: time.Local}
	if err := exportHTML(stop.first, src, runs, out, o); err != nil {
		return err
	}
	w.talk("%s holds %s, as they were said: nothing is redacted but credentials", out, inspector.FormatCount(len(runs), "run"))
	return nil
}

func exportHTML(ctx context.Context, src inspector.Source, runs []conversation.Run, out string, o inspector.HTMLOptions) error {
	return replaceFile(out, func(file io.Writer) error { return inspector.WriteHTML(ctx, file, src, runs, o) })
}

// replaceFile writes a file under another name, and gives it its own when it is
// whole: what is interrupted leaves nothing behind.
func replaceFile(name string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*") // of mode 0600
	if err != nil {
		return fmt.Errorf("write %q: %w", name, err)
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	if err := errors.Join(write(f), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return fmt.Errorf("write %q: %w", name, err)
	}
	return nil
}
