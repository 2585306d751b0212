package main

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"tapedeck/player"
	"tapedeck/player/engine"
	"tapedeck/player/scenario"
)

const defaultPlayListen = "127.0.0.1:4081"

func (w *world) playCommand() *cli.Command {
	return &cli.Command{
		Name:  "play",
		Usage: "stand in as the whole gateway, and play a scenario to any client",
		Description: `tapedeck play --scenario approval            point the app at http://` + defaultPlayListen + `
tapedeck play --scenario my.yaml             one of your own; tapedeck scenarios show NAME gives one to start from

A client chooses another scenario by beginning its text, or its thread's id, with scenario:NAME.`,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "scenario", Aliases: []string{"s"}, Value: "hello", TakesFile: true, Usage: "what is played: a built-in `NAME`, or a YAML file"},
			&cli.StringFlag{Name: "speed", Value: "1", Usage: "how fast: a `FACTOR` such as 2 or 0.5, or max"},
			&cli.DurationFlag{Name: "max-gap", Usage: "wait no longer than `TIME` between two envelopes"},
			&cli.BoolFlag{Name: "step", Usage: "hold each envelope until a control call lets it go"},
			&cli.Int64Flag{Name: "seed", Usage: "another `NUMBER`, other ids and jitter; the same one, the same bytes"},
			&cli.IntFlag{Name: "replay-buffer", Usage: "replay at most `N` envelopes of a run in flight; 0 is all"},
			&cli.StringSliceFlag{Name: "known-threads", Usage: "know only the thread `ID`; may be repeated"},
			&cli.BoolFlag{Name: "strict-rooms", Usage: "let thread:messages alone join a thread's room"},
			&cli.StringFlag{Name: "auth", Usage: "ask for `TOKEN`"},
			&cli.DurationFlag{Name: "ping-interval", Value: 25 * time.Second, Usage: "Engine.IO's pingInterval"},
			&cli.DurationFlag{Name: "ping-timeout", Value: 20 * time.Second, Usage: "Engine.IO's pingTimeout"},
			&cli.StringFlag{Name: "max-payload", Value: "1000000", Usage: "Socket.IO's maxHttpBufferSize, a `SIZE`"},
			&cli.StringSliceFlag{Name: "cors", Usage: "allow cross-origin requests from `ORIGIN`; * for all; may be repeated"},
			&cli.StringFlag{Name: "cookie", Usage: "set a session cookie called `NAME`"},
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "tell of sockets and refused commands"},
		}, doorFlags(defaultPlayListen)...),
		Before: useSettings,
		Action: w.play,
	}
}

// play runs the play command: it serves until a signal.
func (w *world) play(c *cli.Context) (err error) {
	if _, err := arguments(c, 0, 0, ""); err != nil {
		return err
	}
	cfg, err := playerConfig(c)
	if err != nil {
		return err
	}
	if c.Bool("verbose") {
		cfg.Logger = slog.New(slog.NewTextHandler(w.stderr, nil))
	}
	g, err := newGateway(*cfg)
	if err != nil {
		return err
	}
	d, err := openDoor(c)
	if err != nil {
		return err
	}
	stop := newStopper()
	defer stop.release()
	w.sayWhere(d)
	w.talk("scenario %s; another one: begin the text with scenario:NAME (tapedeck scenarios lists them)", c.String("scenario"))
	w.talk("next: point the app at %s in place of its gateway", d.url)
	err = errors.Join(g.serve(stop.first, d.listeners...), g.close(stop.second))
	if err == nil && stop.cutShort() {
		return withCode(exitInterrupted, nil)
	}
	return err
}

// playerConfig reads what the flags say about the player.
func playerConfig(c *cli.Context) (*player.Config, error) {
	speed, err := parseSpeed(c.String("speed"))
	if err != nil {
		return nil, err
	}
	payload, err := parseSize(c.String("max-payload"))
	if err != nil {
		return nil, usageError("play: --max-payload: %v", err)
	}
	cfg := &player.Config{
		Seed: uint64(c.Int64("seed")), Speed: speed, MaxGap: c.Duration("max-gap"), Step: c.Bool("step"),
		ReplayBuffer: c.Int("replay-buffer"), KnownThreads: c.StringSlice("known-threads"), StrictRooms: c.Bool("strict-rooms"),
		Token: c.String("auth"),
		Engine: engine.Config{
			PingInterval: c.Duration("ping-interval"), PingTimeout: c.Duration("ping-timeout"), MaxPayload: payload,
			Origins: c.StringSlice("cors"), Cookie: c.String("cookie"),
		},
	}
	own, err := findScenario(c.String("scenario"))
	if err != nil {
		return nil, err
	}
	cfg.Scenario, cfg.Scenarios = own.Name, []*scenario.Scenario{own}
	return cfg, nil
}

// findScenario returns a built-in scenario, or the one in a file.
func findScenario(name string) (*scenario.Scenario, error) {
	if strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml") {
		return scenario.Load(name)
	}
	return scenario.Builtin(name)
}

func parseSpeed(s string) (float64, error) {
	if s == "max" {
		return math.Inf(1), nil
	}
	speed, err := strconv.ParseFloat(strings.TrimSuffix(s, "x"), 64)
	if err != nil || !(speed > 0) {
		return 0, usageError("play: --speed is a number above 0, such as 2 or 0.5, or max, not %q", s)
	}
	return speed, nil
}

func (w *world) scenariosCommand() *cli.Command {
	return &cli.Command{
		Name:        "scenarios",
		Usage:       "list the built-in scenarios",
		Description: "tapedeck scenarios show approval > mine.yaml    then edit it, and: tapedeck play --scenario mine.yaml",
		Action: func(c *cli.Context) error {
			if _, err := arguments(c, 0, 0, "none; to see one: tapedeck scenarios show NAME"); err != nil {
				return err
			}
			return w.listScenarios()
		},
		Subcommands: []*cli.Command{{
			Name:      "show",
			Usage:     "print a scenario, as YAML",
			ArgsUsage: "NAME",
			Action: func(c *cli.Context) error {
				args, err := arguments(c, 1, 1, "a scenario's name")
				if err != nil {
					return err
				}
				text, err := scenario.Source(args[0])
				if err != nil {
					return withCode(exitNothing, err)
				}
				_, err = w.stdout.Write(text)
				return err
			},
		}},
	}
}

func (w *world) listScenarios() error {
	names := scenario.Names()
	width := 0
	for _, name := range names {
		width = max(width, len(name))
	}
	for _, name := range names {
		s, err := scenario.Builtin(name)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w.stdout, "%-*s  %s\n", width, name, s.Title); err != nil {
			return err
		}
	}
	return nil
}
