package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"tapedeck/inspector"
	"tapedeck/inspector/tui"
	"tapedeck/player"
	"tapedeck/player/tape"
	"tapedeck/protocol"
	"tapedeck/protocol/conversation"
	"tapedeck/recorder/live"
)

func (w *world) inspectCommand() *cli.Command {
	return &cli.Command{
		Name:      "inspect",
		Usage:     "look at a tape in the terminal: runs, timelines, and each moment of them",
		ArgsUsage: "[TAPE]",
		Description: `tapedeck inspect               the tape of this folder, also while a proxy records on it
tapedeck inspect bug.tape --run last
The key ? shows the keys. Where there is no terminal, the runs are listed.`,
		Flags:  viewFlags(filterFlag(), &cli.StringFlag{Name: "run", Usage: "open `RUN` at once, such as last"}),
		Before: useSettings,
		Action: func(c *cli.Context) error {
			args, err := arguments(c, 0, 1, "one tape")
			if err != nil {
				return err
			}
			path := c.String("read")
			if len(args) == 1 {
				path = args[0]
			}
			return w.inspect(c, path)
		},
	}
}

// inspect opens the terminal UI on a tape, or lists its runs where there is no
// terminal to open it on.
func (w *world) inspect(c *cli.Context, path string) (err error) {
	filter, err := parseFilter(c)
	if err != nil {
		return err
	}
	chosen, err := settings(c)
	if err != nil {
		return err
	}
	stop := newStopper()
	defer stop.release()
	t, err := w.openRecording(stop.first, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if !w.canShow() {
		v := &inspector.View{Source: &withSettings{t, chosen}, Out: w.stdout, Talk: w.stderr, Look: w.look(c), Filter: filter, Flags: flagsFor(path)}
		return v.Runs(stop.first)
	}
	screen := screenOptions(w.look(c), t, path, c.String("run"), filter, chosen)
	if keeper, ok := t.(*live.Reader); ok { // the tape that was made of a capsule goes with the screen
		screen.SetMark = keeper.SetMark
	}
	return tui.Run(stop.first, t, tui.Options{
		Screen:  screen,
		NoColor: !w.colours(w.stdout),
		Save:    saveCopy,
	})
}

// canShow reports whether there is a terminal that the UI can be shown on.
func (w *world) canShow() bool {
	_, out := terminal(w.stdout)
	return out && w.getenv("TERM") != "dumb" && w.getenv("TERM") != ""
}

// screenOptions are those of a screen on a tape.
func screenOptions(look inspector.Look, src inspector.Source, path, run string, filter *inspector.Filter, chosen protocol.Settings) inspector.ScreenOptions {
	return inspector.ScreenOptions{
		Look: look, Tape: path, Flags: flagsFor(path), Run: run, Filter: filter, Rules: chosen, Now: time.Now,
		Export: func(ctx context.Context, chain []conversation.Run, file string) (string, error) {
			if file == "" {
				file = freeName(safeName(chain[0].ID), ".tape")
			}
			return file, exportChain(ctx, src, chain, file, path)
		},
		Serve: func(ctx context.Context, run conversation.Run, say func(string)) error {
			return serveRun(ctx, src, run, say)
		},
	}
}

// freeName returns the first of NAME.tape, NAME-2.tape and so on that is not
// there yet.
func freeName(name, ending string) string {
	file := name + ending
	for n := 2; ; n++ {
		if _, err := os.Lstat(file); err != nil {
			return file
		}
		file = fmt.Sprintf("%s-%d%s", name, n, ending)
	}
}

// serveRun stands in as the gateway that a run came from, until ctx ends.
func serveRun(ctx context.Context, src inspector.Source, run conversation.Run, say func(string)) (err error) {
	source, err := tape.New(ctx, src, tape.Options{Session: run.Session})
	if err != nil {
		return err
	}
	g, err := newGateway(player.Config{Source: source})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return errors.Join(err, g.close(ctx))
	}
	say(fmt.Sprintf("session %d is played at http://%s; R again ends it", run.Session, l.Addr()))
	err = g.serve(ctx, l)
	ended, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return errors.Join(err, g.close(ended))
}

// safeName makes a part of a file's name of an id, which is the gateway's and may
// hold anything.
func safeName(id string) string {
	name := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, id)
	return name[:min(len(name), 40)]
}

// saveCopy keeps what was copied in a file, for terminals that do not pass it on
// to a clipboard.
func saveCopy(text string) (file string, err error) {
	f, err := os.CreateTemp("", "tapedeck-copy-*.txt")
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(text)
	return f.Name(), errors.Join(err, f.Close())
}

// onlyTape returns the tape of the working folder, if there is exactly one.
func onlyTape() string {
	found, err := filepath.Glob("*.tape")
	if err != nil || len(found) != 1 {
		return ""
	}
	return found[0]
}
