package main

import (
	"context"
	"time"

	"github.com/urfave/cli/v2"

	"tapedeck/inspector"
	"tapedeck/protocol"
	"tapedeck/protocol/conversation"
)

// liveFlags are those of the commands that print what passes as it passes.
func liveFlags() []cli.Flag {
	return []cli.Flag{
		filterFlag(),
		&cli.StringFlag{Name: "format", Value: "text", Usage: "print what passes as `text|jsonl`"},
		&cli.BoolFlag{Name: "ascii", Usage: "print no characters beyond ASCII of our own"},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print nothing of what passes"},
		&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "tell of connections and of trouble, and print heartbeats too"},
	}
}

// liveView prints what passes, one line a construct. It is the judge's to call.
// It never makes the judge wait.
type liveView struct {
	feed     *inspector.Feed
	live     *inspector.Live
	settings protocol.Settings
	out      *trickle
}

// newLiveView returns the view that the flags ask for; with --quiet, one that
// prints nothing.
func (w *world) newLiveView(c *cli.Context, settings protocol.Settings) (*liveView, error) {
	format, err := inspector.ParseFormat(c.String("format"))
	if err != nil || format == inspector.FormatJSON {
		return nil, usageError("%s: --format is text or jsonl, not %q", c.Command.Name, c.String("format"))
	}
	filter, err := parseFilter(c)
	if err != nil {
		return nil, err
	}
	if c.Bool("quiet") || c.Bool("tui") {
		return &liveView{}, nil
	}
	return w.printer(w.look(c), inspector.LiveOptions{
		TimelineOptions: inspector.TimelineOptions{Wire: true, Housekeeping: c.Bool("verbose"), Filter: filter},
		Format:          format, Started: time.Now(),
	}, settings), nil
}

// printer returns a view that prints.
func (w *world) printer(look inspector.Look, o inspector.LiveOptions, settings protocol.Settings) *liveView {
	v := &liveView{feed: inspector.NewFeed(nil), settings: settings, out: newTrickle(w.stdout)}
	v.live = inspector.NewLive(v.out, &look, o)
	return v
}

// watch prints what a step has to say. An error of the writer is its own to
// remember: the session goes on without a reader.
func (v *liveView) watch(step *conversation.Step) {
	if v.live == nil {
		return
	}
	moments := v.feed.Step(step)
	for i := range moments {
		moments[i].Findings = v.settings.Apply(moments[i].Findings)
		v.live.Add(&moments[i])
	}
	for _, f := range v.settings.Apply(v.feed.Late()) {
		v.live.Find(f)
	}
}

// close prints what is still open, and waits until it is written, or for ctx.
func (v *liveView) close(ctx context.Context) error {
	if v.live == nil {
		return nil
	}
	v.live.Finish()
	if err := v.out.close(ctx); err != nil && !isBrokenPipe(err) {
		return err
	}
	return nil
}

func (w *world) tailCommand() *cli.Command {
	return &cli.Command{
		Name:  "tail",
		Usage: "follow the last session, from its beginning or from now",
		Description: `tapedeck tail                     the session that a proxy records now, or the last one recorded
tapedeck tail --new               what passes from now on
tapedeck tail --raw               one message a line, its bytes as they passed`,
		Flags: viewFlags(filterFlag(),
			&cli.BoolFlag{Name: "new", Aliases: []string{"n"}, Usage: "leave out what passed before now"},
			&cli.BoolFlag{Name: "raw", Usage: "one message a line, its bytes as they passed"},
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "heartbeats and the like too"},
		),
		Before: useSettings,
		Action: func(c *cli.Context) error {
			if _, err := arguments(c, 0, 0, ""); err != nil {
				return err
			}
			o := inspector.TailOptions{New: c.Bool("new"), Raw: c.Bool("raw"), Housekeeping: c.Bool("verbose")}
			return w.view(c, func(ctx context.Context, v *inspector.View) error { return v.Tail(ctx, o) })
		},
	}
}
