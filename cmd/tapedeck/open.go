package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"tapedeck/inspector"
)

func (w *world) openCommand() *cli.Command {
	return &cli.Command{
		Name:      "open",
		Usage:     "open a capsule: what it says of itself, and what can be done with it",
		ArgsUsage: "FILE",
		Description: `tapedeck open bug.tape     a tape, a .jsonl capsule, or a HAR of a browser

Tells its notes, its runs and what is wrong with them. At a terminal it then steps
through it, checks it or serves it, as you choose.`,
		Flags:  viewFlags(),
		Before: useSettings,
		Action: w.open,
	}
}

func (w *world) open(c *cli.Context) error {
	args, err := arguments(c, 1, 1, "one file, such as bug.tape")
	if err != nil {
		return err
	}
	path := args[0]
	if err := w.viewFile(c, path, func(ctx context.Context, v *inspector.View) error { return v.About(ctx) }); err != nil {
		return err
	}
	if !w.canShow() || !w.canAsk() || path == "-" {
		w.sayWays(path)
		return nil
	}
	return w.askWay(c, path)
}

// sayWays tells what can be done with a capsule.
func (w *world) sayWays(path string) {
	w.talk("step through it: tapedeck inspect %s", path)
	w.talk("check it:        tapedeck check -r %s", path)
	w.talk("serve it:        tapedeck play %s", path)
}

// askWay asks what to do with a capsule until nothing is chosen.
func (w *world) askWay(c *cli.Context, path string) error {
	in := bufio.NewReader(w.stdin)
	for {
		fmt.Fprint(w.stderr, "\n[i] step through it  [c] check it  [s] serve it, until Ctrl-C  [q] quit: ")
		answer, err := in.ReadString('\n')
		if err != nil {
			fmt.Fprintln(w.stderr)
			return nil
		}
		switch strings.ToLower(strings.TrimSpace(answer)) {
		case "i", "":
			err = w.inspect(c, path)
		case "c":
			err = w.command(c, "check", "-r", path)
		case "s":
			err = w.command(c, "play", path)
		case "q":
			return nil
		default:
			continue
		}
		if err != nil {
			if code := w.exit(err); code != exitFindings {
				return withCode(code, nil)
			}
		}
	}
}

// command runs another command of ours.
func (w *world) command(c *cli.Context, args ...string) error {
	sorted, err := sortArgs(c.App.Commands, append([]string{c.App.Name}, args...))
	if err != nil {
		return err
	}
	if err := newApp(w).RunContext(c.Context, sorted); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
