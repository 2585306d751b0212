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
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
	"tapedeck/recorder/capsule"
	"tapedeck/recorder/capsule/scrub"
	"tapedeck/recorder/live"
)

func (w *world) exportCommand() *cli.Command {
	return &cli.Command{
		Name:      "export",
		Usage:     "make one file out of runs, to be handed on",
		ArgsUsage: "[RUN…]",
		Description: `tapedeck export last -o bug.html           a page for a ticket: opens without a network
tapedeck export 7f3a -o bug.tape           a small tape with that run alone
tapedeck export 7f3a -o bug.jsonl          the same as lines of text, to live in git
tapedeck export last -o bug.har            for the network tab of a browser
tapedeck export last -o mine.yaml          a scenario for tapedeck play, to edit
tapedeck export last -o bug.agui.jsonl     AG-UI events, for its own tools

tapedeck export last -o bug.tape --redact all --verify-secret secrets.txt
tapedeck export last -o bug.tape --redact text,tool-args,/event/customer,field:card,'pattern:\d{16}'

With a run go those that it continues. The file's ending says what it becomes.
What can be redacted: ` + strings.Join(scrub.Groups(), ", ") + `.
Lengths, the borders of deltas and the shape of JSON stay, so that it is judged and played as before.`,
		Flags: []cli.Flag{
			readFlag(), ruleFlag(),
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, TakesFile: true, Usage: "the `FILE` to make; - for standard output"},
			&cli.StringFlag{Name: "format", Usage: "what it becomes, whatever its ending says: `tape|jsonl|har|html|scenario|agui`"},
			&cli.BoolFlag{Name: "all", Usage: "export the whole tape"},
			&cli.StringSliceFlag{Name: "redact", Usage: "take out `WHAT`, such as text,tool-args, or all; may be repeated"},
			&cli.StringFlag{Name: "verify-secret", TakesFile: true, Usage: "prove that no line of `FILE` is left, in any encoding, or make nothing"},
			&cli.StringFlag{Name: "title", Usage: "what it is about"},
			&cli.StringFlag{Name: "comment", Usage: "what there is to say about it"},
			&cli.StringSliceFlag{Name: "mark", Usage: "a place to look at, as `POSITION=WORDS`; may be repeated"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "do not tell what was made"},
		},
		Before: useSettings,
		Action: w.export,
	}
}

// page is the form that capsule does not know: a report.
const page capsule.Format = "html"

// exportJob is what export was asked for.
type exportJob struct {
	out     string
	options capsule.Options
	all     bool
	names   []string // of runs
}

func (w *world) export(c *cli.Context) (err error) {
	job, err := w.exportJob(c)
	if err != nil {
		return err
	}
	chosen, err := settings(c)
	if err != nil {
		return err
	}
	path := c.String("read")
	if err := mayReplace(job.out, path); err != nil {
		return err
	}
	stop := newStopper()
	defer stop.release()
	t, err := w.openRecording(stop.first, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	src := &withSettings{t, chosen}
	var runs []conversation.Run
	if !job.all || job.options.Format == page {
		if runs, err = namedRuns(stop.first, src, job.names); err != nil {
			return err
		}
	}
	if len(job.options.Redact) > 0 && path != "-" {
		// The same tape gives the same capsule each time, if it can be asked for its key.
		if key, err := capsule.Key(stop.first, path); err == nil {
			job.options.Key = key
		}
	}
	bar := w.progress("export", 1)
	job.options.Progress = bar.to
	if job.options.Format == page {
		err = w.exportPage(stop.first, src, runs, job)
	} else {
		err = w.exportCapsule(stop.first, src, keysOf(runs), job, !c.Bool("quiet"))
	}
	bar.done()
	if err == nil && job.options.Format == page && !c.Bool("quiet") {
		w.talk("%s holds %s, %s", job.out, inspector.FormatCount(len(runs), "run"), orUnredacted(strings.Join(scrub.Names(job.options.Redact), ", ")))
	}
	return err
}

// exportJob reads what export is asked for, but for the tape.
func (w *world) exportJob(c *cli.Context) (job *exportJob, err error) {
	job = &exportJob{out: c.String("output"), all: c.Bool("all"), names: c.Args().Slice()}
	if job.out == "" {
		return nil, usageError("export: -o FILE is missing, such as -o bug.html or -o bug.tape")
	}
	if job.all && len(job.names) > 0 {
		return nil, usageError("export: --all and the names of runs exclude each other")
	}
	o := &job.options
	o.Title, o.Comment, o.Tool, o.Redact = c.String("title"), c.String("comment"), version(), listed(c.StringSlice("redact"))
	if o.Format, err = exportFormat(c.String("format"), job.out); err != nil {
		return nil, usageError("export: %v", err)
	}
	if o.Format == capsule.Tape && job.out == "-" {
		return nil, usageError("export: a tape cannot be written to standard output: name a file, or choose --format jsonl")
	}
	if _, err := scrub.New(make([]byte, 32), o.Redact); err != nil {
		return nil, usageError("export: --%v", err)
	}
	for _, text := range c.StringSlice("mark") {
		at, words, _ := strings.Cut(text, "=")
		m := capture.Mark{Text: words}
		if m.At, err = capture.ParseAddress(at); err != nil {
			return nil, usageError("export: --mark %q: %v", text, err)
		}
		o.Marks = append(o.Marks, m)
	}
	if file := c.String("verify-secret"); file != "" {
		if o.Secrets, err = readSecrets(file); err != nil {
			return nil, err
		}
	}
	return job, nil
}

// exportFormat tells the form by its name, or else by the file's ending.
func exportFormat(name, out string) (capsule.Format, error) {
	ending := strings.ToLower(filepath.Ext(out))
	switch {
	case name == string(page) || name == "" && (ending == ".html" || ending == ".htm"):
		return page, nil
	case name != "":
		return capsule.ParseFormat(name)
	case out == "-":
		return "", errors.New("-o - has no ending: name a form with --format")
	}
	return capsule.FormatOf(out)
}

// listed splits what was given with commas in between. A pattern may hold one
// itself.
func listed(given []string) (list []string) {
	for _, text := range given {
		if strings.HasPrefix(text, "pattern:") {
			list = append(list, text)
			continue
		}
		for part := range strings.SplitSeq(text, ",") {
			if part = strings.TrimSpace(part); part != "" {
				list = append(list, part)
			}
		}
	}
	return list
}

func readSecrets(file string) (secrets []scrub.Secret, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read secrets: %w", err)
	}
	defer f.Close()
	secrets, err = scrub.ReadSecrets(f)
	if err == nil && len(secrets) == 0 {
		err = fmt.Errorf("read secrets: %q has none; it holds one a line", file)
	}
	return secrets, err
}

// mayReplace refuses to write over a tape: what it holds cannot be had again.
func mayReplace(out, tape string) error {
	if sameFile(out, tape) {
		return usageError("export: %q is the tape itself: name another file", out)
	}
	if f, err := os.Open(out); err == nil && out != "-" {
		defer f.Close()
		start := make([]byte, 64)
		if n, _ := io.ReadFull(f, start); capsule.IsTape(start[:n]) {
			return usageError("export: %q is a tape already: remove it, or name another file", out)
		}
	}
	return nil
}

// namedRuns are the runs of some names, the last one if there are none, with
// those that they continue.
func namedRuns(ctx context.Context, src inspector.Source, names []string) (runs []conversation.Run, err error) {
	if len(names) == 0 {
		names = []string{"last"}
	}
	for _, name := range names {
		chain, err := chosenRuns(ctx, src, name)
		if err != nil {
			return nil, err
		}
		for _, r := range chain {
			if !slices.ContainsFunc(runs, func(o conversation.Run) bool { return o.Session == r.Session && o.ID == r.ID }) {
				runs = append(runs, r)
			}
		}
	}
	return runs, nil
}

func keysOf(runs []conversation.Run) (keys []conversation.RunKey) {
	for _, r := range runs {
		keys = append(keys, conversation.RunKey{Session: r.Session, Run: r.ID})
	}
	return keys
}

// exportCapsule writes a capsule, and says what is in it.
func (w *world) exportCapsule(ctx context.Context, src live.Tape, keys []conversation.RunKey, job *exportJob, say bool) error {
	var made *capsule.Exported
	var err error
	if job.out == "-" {
		made, err = capsule.Export(ctx, src, keys, w.stdout, job.options)
	} else {
		made, err = capsule.ExportFile(ctx, src, keys, job.out, job.options)
	}
	if err != nil || !say {
		return err
	}
	where := job.out
	if where == "-" {
		where = "it"
	}
	w.talk("%s holds %s in %s, %s", where, inspector.FormatCount(int(made.Frames), "frame"),
		inspector.FormatSize(made.Bytes), orUnredacted(strings.Join(scrub.Names(job.options.Redact), ", ")))
	if made.Verified > 0 {
		w.talk("none of %s is left in it, in any form", inspector.FormatCount(made.Verified, "secret"))
	}
	if job.out != "-" {
		w.sayNext(job)
	}
	return nil
}

// orUnredacted says what was taken out.
func orUnredacted(names string) string {
	if names == "" {
		return "unredacted: all that was said, without credentials"
	}
	return "redacted: " + names
}

// sayNext tells what can be done with a capsule.
func (w *world) sayNext(job *exportJob) {
	switch job.options.Format {
	case capsule.Tape, capsule.JSONL:
		w.talk("next: tapedeck open %s", job.out)
	case capsule.HAR:
		w.talk("next: drop it on a browser's network tab, or: tapedeck open %s", job.out)
	case capsule.Scenario:
		w.talk("next: tapedeck play --scenario %s --watch", job.out)
	}
}

// exportPage writes a report. Where something is to be taken out or proved, it
// is a report of a capsule.
func (w *world) exportPage(ctx context.Context, src live.Tape, runs []conversation.Run, job *exportJob) error {
	o := job.options
	html := inspector.HTMLOptions{Title: o.Title, Comment: o.Comment, Tool: o.Tool, Zone: time.Local}
	if len(o.Redact) == 0 && len(o.Secrets) == 0 {
		return w.writePage(ctx, src, runs, job, html)
	}
	dir, err := os.MkdirTemp("", "tapedeck-")
	if err != nil {
		return fmt.Errorf("export to %q: %w", job.out, err)
	}
	defer os.RemoveAll(dir)
	o.Format = capsule.Tape
	path := filepath.Join(dir, "capsule.tape")
	if _, err := capsule.ExportFile(ctx, src, keysOf(runs), path, o); err != nil {
		return err
	}
	redacted, err := openTape(ctx, path)
	if err != nil {
		return err
	}
	kept, err := redacted.Runs(ctx)
	if err == nil {
		kept = slices.DeleteFunc(kept, func(r conversation.Run) bool {
			return !slices.ContainsFunc(runs, func(o conversation.Run) bool { return o.ID == r.ID })
		})
		html.Comment = strings.TrimSpace(html.Comment + "\n" + orUnredacted(strings.Join(scrub.Names(o.Redact), ", ")))
		err = w.writePage(ctx, redacted, kept, job, html)
	}
	return errors.Join(err, redacted.Close())
}

func (w *world) writePage(ctx context.Context, src live.Tape, runs []conversation.Run, job *exportJob, o inspector.HTMLOptions) error {
	write := func(out io.Writer) error {
		if len(job.options.Secrets) > 0 {
			out = scrub.NewVerifier(job.options.Secrets).Writer(out, "the page")
		}
		return inspector.WriteHTML(ctx, out, src, runs, o)
	}
	if job.out == "-" {
		return write(w.stdout)
	}
	return replaceFile(job.out, write)
}

// exportChain writes runs to a file as its ending says, unredacted. The tape that
// they are on is not written over.
func exportChain(ctx context.Context, src inspector.Source, runs []conversation.Run, out, tape string) error {
	format, err := exportFormat("", out)
	if err == nil {
		err = mayReplace(out, tape)
	}
	switch {
	case err != nil:
		return err
	case format == page:
		o := inspector.HTMLOptions{Tool: version(), Zone: time.Local}
		return replaceFile(out, func(file io.Writer) error { return inspector.WriteHTML(ctx, file, src, runs, o) })
	}
	_, err = capsule.ExportFile(ctx, src, keysOf(runs), out, capsule.Options{Format: format, Tool: version()})
	return err
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
