package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/urfave/cli/v2"

	"tapedeck/inspector"
	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
	"tapedeck/recorder/live"
)

func (w *world) findingsCommand() *cli.Command {
	return &cli.Command{
		Name:        "findings",
		Usage:       "list the rules that were broken, each with its places",
		ArgsUsage:   "[RUN]",
		Description: "tapedeck findings last    those of the latest run, with those that it continues",
		Flags:       viewFlags(),
		Before:      useSettings,
		Action: func(c *cli.Context) error {
			args, err := arguments(c, 0, 1, "one run, such as last")
			if err != nil {
				return err
			}
			return w.view(c, func(ctx context.Context, v *inspector.View) error { return v.Findings(ctx, first(args)) })
		},
	}
}

// first returns the first argument, "" if there is none.
func first(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

func (w *world) checkCommand() *cli.Command {
	return &cli.Command{
		Name:      "check",
		Usage:     "judge a tape, and fail on findings: for scripts and CI",
		ArgsUsage: "[RUN]",
		Description: `tapedeck check -r bug.tape                          exit 1 if there is an error
tapedeck check --fail-on warning --max-warnings 3   exit 1 on errors, or on more than three warnings
tapedeck check --again --rule sequence-gap=error    judge the frames again, as this version does
tapedeck check --format junit > report.xml          or sarif, for code hosts
tapedeck check last --golden run.golden             compare with what was kept; --update keeps it`,
		Flags: slices.Concat([]cli.Flag{
			readFlag(),
			&cli.StringFlag{Name: "golden", TakesFile: true, Usage: "compare the runs with the normal form in `FILE`, and fail if they differ"},
			&cli.BoolFlag{Name: "update", Usage: "write the golden file instead"},
			&cli.StringFlag{Name: "format", Value: "text", Usage: "write `text|json|jsonl|junit|sarif`"},
			&cli.StringFlag{Name: "fail-on", Value: "error", Usage: "the least severity that fails: `error|warning|note|none`"},
			&cli.IntFlag{Name: "max-warnings", Value: -1, Usage: "fail on more than `N` warnings"},
			&cli.BoolFlag{Name: "again", Usage: "judge the frames again, by this version's rules and these flags"},
			&cli.BoolFlag{Name: "ascii", Usage: "write no characters beyond ASCII of our own"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "write the report alone"},
		}, judgeFlags(), diffFlags()),
		Before: useSettings,
		Action: w.check,
	}
}

func (w *world) check(c *cli.Context) error {
	args, err := arguments(c, 0, 1, "one run, such as last")
	if err != nil {
		return err
	}
	if c.String("golden") != "" {
		return w.checkAgainstGolden(c, first(args))
	}
	if c.Bool("update") {
		return usageError("check: --update writes a golden file: name it with --golden FILE")
	}
	failOn, err := parseFailOn(c.String("fail-on"))
	if err != nil {
		return err
	}
	write, err := reportWriter(c.String("format"), w.look(c))
	if err != nil {
		return err
	}
	chosen, err := settings(c)
	if err != nil {
		return err
	}
	judging, schemas, err := judgeOptions(c)
	if err != nil {
		return err
	}
	again := c.Bool("again")
	if schemas != nil && !again {
		return usageError("check: --schemas judges the frames again: add --again")
	}
	w.sayRemarks(schemas)
	var report *inspector.Report
	err = w.withRecording(c.String("read"), func(ctx context.Context, t live.Tape) (err error) {
		if report, err = inspector.LoadReport(ctx, t, first(args)); err == nil && again {
			report.Findings, err = w.judgeAgain(ctx, t, report, first(args) == "", judging)
		}
		return err
	})
	if err != nil {
		return err
	}
	report.Tool, report.Tape, report.FailOn = version(), c.String("read"), failOn
	report.Findings = chosen.Apply(report.Findings)
	if err := write(report, w.stdout); err != nil {
		return err
	}
	return w.verdict(c, report)
}

// verdict says what a report came to, and returns the error that is its exit
// code.
func (w *world) verdict(c *cli.Context, report *inspector.Report) error {
	if !c.Bool("quiet") {
		look := inspector.Look{ASCII: c.Bool("ascii")}
		w.talk("%s", report.Verdict(&look))
	}
	for i := range report.Sessions {
		s := &report.Sessions[i]
		if text := inspector.Incomplete(s); text != "" {
			w.talk("%s", text)
		}
		if s.Rules != 0 && s.Rules != protocol.CatalogueVersion && !c.Bool("again") {
			w.talk("session %d was judged by version %d of the rules; --again judges it by version %d", s.ID, s.Rules, protocol.CatalogueVersion)
		}
	}
	most := c.Int("max-warnings")
	if n := report.Count(protocol.Warning); most >= 0 && n > most {
		w.talk("%d warnings are more than --max-warnings %d", n, most)
		return withCode(exitFindings, nil)
	}
	if report.Failed() {
		return withCode(exitFindings, nil)
	}
	return nil
}

// parseFailOn reads a severity, or none.
func parseFailOn(name string) (protocol.Severity, error) {
	if name == "none" {
		return protocol.Off, nil
	}
	s, err := protocol.ParseSeverity(name)
	if err != nil || s == protocol.Off {
		return s, usageError("check: --fail-on is error, warning, note or none, not %q", name)
	}
	return s, nil
}

// reportWriter returns what writes a report in a format.
func reportWriter(format string, look inspector.Look) (func(*inspector.Report, io.Writer) error, error) {
	switch format {
	case "text":
		return func(r *inspector.Report, out io.Writer) error { return r.WriteFindings(out, &look) }, nil
	case "json", "jsonl":
		return func(r *inspector.Report, out io.Writer) error { return r.WriteJSON(out, inspector.Format(format)) }, nil
	case "junit":
		return (*inspector.Report).WriteJUnit, nil
	case "sarif":
		return (*inspector.Report).WriteSARIF, nil
	}
	return nil, usageError("check: --format is text, json, jsonl, junit or sarif, not %q", format)
}

// judgeAgain judges all frames of the report's sessions, and returns the
// findings, of the report's runs alone unless all are wanted. The tape stays as
// it is.
func (w *world) judgeAgain(ctx context.Context, src inspector.Source, report *inspector.Report, all bool, o conversation.Options) ([]protocol.Finding, error) {
	wanted := map[conversation.RunKey]bool{}
	for _, r := range report.Runs {
		wanted[conversation.RunKey{Session: r.Session, Run: r.ID}] = true
	}
	found := []protocol.Finding{}
	for _, s := range report.Sessions {
		take := func(f protocol.Finding) {
			if all || wanted[conversation.RunKey{Session: s.ID, Run: f.Run}] {
				found = append(found, f)
			}
		}
		if err := w.judgeSession(ctx, src, s, o, take); err != nil {
			return nil, fmt.Errorf("judge session %d again: %w", s.ID, err)
		}
	}
	return found, nil
}

// judgeSession observes the frames of a session, with progress on a terminal.
func (w *world) judgeSession(ctx context.Context, src inspector.Source, s capture.Session, o conversation.Options, take func(protocol.Finding)) error {
	o.Session = s.ID
	state := conversation.New(o)
	bar := w.progress(fmt.Sprintf("session %d", s.ID), int64(s.Last-s.First+1))
	defer bar.done()
	for position := s.First; position != 0 && position <= s.Last; {
		page, err := src.Frames(ctx, position, min(settlePage, int(s.Last-position)+1))
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}
		for i := range page {
			for _, f := range state.Observe(&page[i]).Findings {
				take(f)
			}
		}
		bar.add(len(page))
		position = page[len(page)-1].Position + 1
	}
	for _, f := range state.End().Findings {
		take(f)
	}
	for _, k := range state.Skipped() {
		w.talk("session %d: %s was not applied %d times: %s (first at #%s)", s.ID, k.Rule, k.Count, k.Reason, k.First)
	}
	return nil
}
