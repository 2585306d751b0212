package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"tapedeck/inspector"
	"tapedeck/protocol/capture"
	"tapedeck/recorder"
	"tapedeck/recorder/capsule"
)

func (w *world) importCommand() *cli.Command {
	return &cli.Command{
		Name:      "import",
		Usage:     "put recordings of elsewhere on a tape: HAR files of browsers, JSONL, other tapes",
		ArgsUsage: "FILE…",
		Description: `tapedeck import trace.har                what Chrome, Firefox or Playwright saved, WebSockets included
tapedeck import bug.jsonl -w bug.tape    a capsule that was kept in git
gunzip < bug.jsonl.gz | tapedeck import -

Each file becomes sessions of the tape, marked as imported and judged like live traffic.
A line that cannot be read is named and skipped, and a gap stands for it.`,
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "write", Aliases: []string{"w"}, Value: defaultTape, TakesFile: true, Usage: "the `TAPE` to add to"},
			&cli.BoolFlag{Name: "strict", Usage: "end with exit code 1 if anything was skipped"},
			&cli.BoolFlag{Name: "keep-secrets", Usage: "keep credentials as they are"},
			&cli.StringSliceFlag{Name: "redact", Usage: "redact a header, a field or a JSON pointer `NAME` too; may be repeated"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "tell of nothing but trouble"},
		}, judgeFlags()),
		Before: useSettings,
		Action: w.importFiles,
	}
}

func (w *world) importFiles(c *cli.Context) (err error) {
	files := c.Args().Slice()
	if len(files) == 0 {
		return usageError("import: FILE is missing; try: tapedeck import --help")
	}
	judging, schemas, err := judgeOptions(c)
	if err != nil {
		return err
	}
	w.sayRemarks(schemas)
	to := c.String("write")
	if slices.ContainsFunc(files, func(file string) bool { return sameFile(file, to) }) {
		return usageError("import: %q is the tape that it would be added to: name another one with -w", to)
	}
	stop := newStopper()
	defer stop.release()
	o := capsule.SinkOptions{
		CopierOptions: recorder.CopierOptions{Tool: version(), KeepSecrets: c.Bool("keep-secrets"), Redact: c.StringSlice("redact")},
		Judge:         judging,
	}
	var imported []capture.Session
	skipped := 0
	for _, file := range files {
		report, err := w.importOne(stop.first, file, to, o)
		if err != nil {
			return err
		}
		skipped += report.Broken
		imported = append(imported, report.Sessions...)
		if !c.Bool("quiet") {
			w.talk("%s: %s in %s", file, inspector.FormatCount(int(report.Frames), "frame"), inspector.FormatCount(len(report.Sessions), "session"))
		}
	}
	if !c.Bool("quiet") {
		if err := w.sayImported(stop.first, to, imported); err != nil {
			return err
		}
	}
	if skipped > 0 && c.Bool("strict") {
		return withCode(exitFindings, nil)
	}
	return nil
}

// importOne adds what a file holds to the tape at to.
func (w *world) importOne(ctx context.Context, file, to string, o capsule.SinkOptions) (*capsule.Report, error) {
	sink, err := capsule.OpenSink(to, o)
	if err != nil {
		return nil, err
	}
	report, err := w.importFile(ctx, file, sink)
	if err != nil {
		return nil, errors.Join(err, sink.Discard())
	}
	w.saySkipped(file, report)
	return report, sink.Close()
}

// sayImported tells what the judge makes of what was imported, and what to do
// with it.
func (w *world) sayImported(ctx context.Context, path string, sessions []capture.Session) (err error) {
	t, err := openTape(ctx, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	runs, err := t.Runs(ctx)
	if err != nil {
		return fmt.Errorf("read tape %q: %w", path, err)
	}
	count, errs, warnings := 0, 0, 0
	for _, r := range runs {
		if slices.ContainsFunc(sessions, func(s capture.Session) bool { return s.ID == r.Session }) {
			count, errs, warnings = count+1, errs+r.Errors, warnings+r.Warnings
		}
	}
	w.talk("%s, with %s and %s of theirs", inspector.FormatCount(count, "run"), inspector.FormatCount(errs, "error"), inspector.FormatCount(warnings, "warning"))
	w.talk("next: %s", command("runs", path))
	return nil
}
