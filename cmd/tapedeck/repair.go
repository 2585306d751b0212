package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"tapedeck/protocol/conversation"
	"tapedeck/recorder"
)

func (w *world) repairCommand() *cli.Command {
	return &cli.Command{
		Name:      "repair",
		Usage:     "save what can be read of a damaged tape into a new one",
		ArgsUsage: "TAPE",
		Description: `The damaged tape is not changed. What was derived from the frames (runs, findings)
is made again, so this also brings a sound tape up to the rules of this version.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, TakesFile: true, Usage: "the new `TAPE`; by default NAME.repaired.tape"},
		},
		Action: w.repair,
	}
}

// maxLost is how many lost ranges are named.
const maxLost = 5

func (w *world) repair(c *cli.Context) error {
	args, err := arguments(c, 1, 1, "the damaged tape")
	if err != nil {
		return err
	}
	in, out := args[0], c.String("output")
	if out == "" {
		out = strings.TrimSuffix(in, filepath.Ext(in)) + ".repaired.tape"
	}
	stop := newStopper()
	defer stop.release()
	saved, err := recorder.Repair(stop.first, in, out)
	if err != nil {
		return err
	}
	r, err := recorder.Open(out)
	if err != nil {
		return err
	}
	unjudged, err := r.Unjudged(stop.first)
	if err := errors.Join(err, r.Close()); err != nil {
		return err
	}
	if err := settle(stop.first, out, unjudged, conversation.Options{}); err != nil {
		return err
	}
	w.sayRepaired(saved)
	w.talk("next: tapedeck runs -r %s", out)
	return nil
}

func (w *world) sayRepaired(saved *recorder.Repaired) {
	w.talk("saved %d frames of %d sessions", saved.Frames, saved.Sessions)
	for i, lost := range saved.Lost {
		if i == maxLost {
			w.talk("and %d more gaps", len(saved.Lost)-maxLost)
			break
		}
		w.talk("lost: frames %s", lost)
	}
	if n := len(saved.Cut); n > 0 {
		w.talk("the data of %d frames is lost; they are marked as cut", n)
	}
	if saved.Secret {
		w.talk("the key of redaction is lost: from now on the same secret gets another token")
	}
}

func (w *world) pruneCommand() *cli.Command {
	return &cli.Command{
		Name:  "prune",
		Usage: "drop old sessions from a tape, and give their space back",
		Description: `tapedeck prune --last 5                    keep the five latest sessions
tapedeck prune --older-than 168h --last 1  drop what is older than a week, but never the latest
tapedeck prune                             drop nothing, and give back space that is not in use`,
		Flags: []cli.Flag{
			readFlag(),
			&cli.DurationFlag{Name: "older-than", Usage: "drop sessions that began longer than `TIME` ago"},
			&cli.IntFlag{Name: "last", Usage: "keep the `N` latest sessions"},
			&cli.StringSliceFlag{Name: "keep", Usage: "keep sessions with a run whose id begins with `RUN`; may be repeated"},
		},
		Before: useSettings,
		Action: w.prune,
	}
}

func (w *world) prune(c *cli.Context) error {
	if _, err := arguments(c, 0, 0, ""); err != nil {
		return err
	}
	if c.Int("last") < 0 || c.Duration("older-than") < 0 {
		return usageError("prune: --last and --older-than are above 0")
	}
	policy := recorder.Policy{Last: c.Int("last")}
	if age := c.Duration("older-than"); age > 0 {
		policy.Before = time.Now().Add(-age)
	}
	if keep := c.StringSlice("keep"); len(keep) > 0 {
		policy.Keep = func(r *conversation.Run) bool {
			return slices.ContainsFunc(keep, func(prefix string) bool { return strings.HasPrefix(r.ID, prefix) })
		}
	}
	stop := newStopper()
	defer stop.release()
	pruned, err := recorder.Prune(stop.first, c.String("read"), policy)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w.stdout, "dropped %d sessions and %d frames; %d bytes given back, %d left\n",
		len(pruned.Dropped), pruned.Frames, pruned.Before-pruned.After, pruned.After)
	return err
}
