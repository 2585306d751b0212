package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"tapedeck/player"
	"tapedeck/player/engine"
	"tapedeck/player/scenario"
	"tapedeck/player/tape"
	"tapedeck/protocol/capture"
)

const defaultPlayListen = "127.0.0.1:4081"

func (w *world) playCommand() *cli.Command {
	return &cli.Command{
		Name:      "play",
		Usage:     "stand in as the whole gateway: play a scenario, or what a tape recorded",
		ArgsUsage: "[TAPE]",
		Description: `tapedeck play --scenario approval     point the app at http://` + defaultPlayListen + `
tapedeck play --scenario my.yaml      one of your own; tapedeck scenarios show NAME gives one to start from
tapedeck play bug.tape                what was recorded, faults included, with the caller's own ids

A client chooses another scenario by beginning its text, or its thread's id, with scenario:NAME.`,
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "scenario", Aliases: []string{"s"}, TakesFile: true, Usage: "play a built-in `NAME`, or a YAML file (hello)"},
			&cli.BoolFlag{Name: "watch", Usage: "play the scenario's file anew whenever it changes"},
			&cli.StringFlag{Name: "speed", Value: "1", Usage: "how fast: a `FACTOR` such as 2 or 0.5, or max"},
			&cli.DurationFlag{Name: "max-gap", Usage: "wait no longer than `TIME` between two envelopes"},
			&cli.BoolFlag{Name: "step", Usage: "hold each envelope until a control call lets it go"},
			&cli.Int64Flag{Name: "seed", Usage: "another `NUMBER`, other ids and jitter; the same one, the same bytes"},
		}, tapeFlags(), gatewayFlags(), controlFlags(), doorFlags(defaultPlayListen)),
		Before: useSettings,
		Action: w.play,
	}
}

// tapeFlags are about playing from a tape.
func tapeFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "match", Value: "auto", Usage: "which recorded run answers a run:start: `auto|input|order`"},
		&cli.StringFlag{Name: "on-miss", Value: "fail", Usage: "what to do when none does: `fail|next|scenario:NAME`"},
		&cli.BoolFlag{Name: "with-drops", Usage: "cut the sockets where the gateway did"},
		&cli.IntFlag{Name: "session", Usage: "play session `N` alone"},
		&cli.BoolFlag{Name: "strict", Usage: "end with exit code 1 if anything was asked that the tape does not have"},
	}
}

// gatewayFlags are about how the gateway behaves, whatever it plays.
func gatewayFlags() []cli.Flag {
	return []cli.Flag{
		&cli.IntFlag{Name: "replay-buffer", Usage: "replay at most `N` envelopes of a run in flight; 0 is all"},
		&cli.StringSliceFlag{Name: "known-threads", Usage: "know only the thread `ID`; may be repeated"},
		&cli.BoolFlag{Name: "strict-rooms", Usage: "let thread:messages alone join a thread's room"},
		&cli.StringFlag{Name: "auth", Usage: "ask for `TOKEN`"},
		&cli.StringFlag{Name: "path", Value: "/socket.io/", Usage: "Socket.IO's `PATH`"},
		&cli.StringFlag{Name: "plain-path", Value: "/ws", Usage: "the `PATH` of plain JSON sockets; - for none"},
		&cli.DurationFlag{Name: "ping-interval", Value: 25 * time.Second, Usage: "Engine.IO's pingInterval"},
		&cli.DurationFlag{Name: "ping-timeout", Value: 20 * time.Second, Usage: "Engine.IO's pingTimeout"},
		&cli.StringFlag{Name: "max-payload", Value: "1000000", Usage: "Socket.IO's maxHttpBufferSize, a `SIZE`"},
		&cli.DurationFlag{Name: "recovery", Usage: "recover the state of sockets that come back within `TIME`; 0 is off"},
		&cli.StringSliceFlag{Name: "cors", Usage: "allow cross-origin requests from `ORIGIN`; * for all; may be repeated"},
		&cli.StringFlag{Name: "cookie", Usage: "set a session cookie called `NAME`"},
		&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "tell of sockets and refused commands"},
	}
}

// play runs the play command: it serves until a signal.
func (w *world) play(c *cli.Context) error {
	args, err := arguments(c, 0, 1, "one tape")
	if err != nil {
		return err
	}
	cfg, err := playerConfig(c)
	if err != nil {
		return err
	}
	var apart string
	if cfg.Control, apart, err = playerControl(c); err != nil {
		return err
	}
	if c.Bool("verbose") {
		cfg.Logger = w.logger()
	}
	var recorded *tape.Source
	if len(args) == 1 {
		if recorded, err = w.tapeSource(c, args[0], cfg); err != nil {
			return err
		}
	}
	d, err := openDoor(c)
	if err != nil {
		return err
	}
	defer d.close()
	if !d.loopback && cfg.Control.Token == "" && !cfg.Control.Apart {
		// Whoever can reach the port must not drive it unasked.
		cfg.Control.Off = true
	}
	var desk *desk
	if apart != "" {
		if desk, err = openDesk(c.Context, apart, cfg.Control); err != nil {
			return err
		}
		defer desk.close()
	}
	g, err := newGateway(*cfg)
	if err != nil {
		return err
	}
	if desk != nil {
		desk.server.Handler = g.player.ControlAPI()
		g.desk = desk
	}
	stop := newStopper()
	defer stop.release()
	if c.Bool("watch") {
		file, err := watchScenario(c.String("scenario"), g.player.Replace)
		if err != nil {
			return errors.Join(err, g.close(stop.second))
		}
		defer file.run(stop.first, w.talk)()
	}
	w.sayPlayed(c, recorded, cfg, g.player.Seed())
	w.sayWhere(d)
	if desk != nil {
		w.talk("control API at %s", desk.url())
	}
	w.talk("next: point the app at %s in place of its gateway", d.url)
	err = errors.Join(g.serve(stop.first, d.listeners...), g.close(stop.second))
	switch {
	case err != nil:
		return err
	case stop.cutShort():
		return withCode(exitInterrupted, nil)
	case recorded != nil && c.Bool("strict") && recorded.Misses() > 0:
		return withCode(exitFindings, fmt.Errorf("%d things were asked that the tape does not have", recorded.Misses()))
	}
	return nil
}

// sayPlayed tells what is played.
func (w *world) sayPlayed(c *cli.Context, recorded *tape.Source, cfg *player.Config, seed uint64) {
	if recorded != nil {
		s := recorded.Summary()
		w.talk("tape %s: %d runs of %d threads, %d answers over HTTP", c.Args().First(), s.Starts, s.Threads, s.Exchanges)
		for _, remark := range recorded.Remarks() {
			w.talk("not played: %s", remark)
		}
	} else {
		w.talk("scenario %s, seed %d; another one: begin the text with scenario:NAME (tapedeck scenarios lists them)", cfg.Scenario, seed)
	}
	if cfg.Control.Off && c.String("control") != "off" {
		w.talk("the control API is off, since this is not the loopback: --control-token TOKEN turns it on")
	}
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
			Path: c.String("path"), PlainPath: c.String("plain-path"), Recovery: c.Duration("recovery"),
			PingInterval: c.Duration("ping-interval"), PingTimeout: c.Duration("ping-timeout"), MaxPayload: payload,
			Origins: c.StringSlice("cors"), Cookie: c.String("cookie"),
		},
	}
	if c.NArg() > 0 {
		if c.IsSet("scenario") {
			return nil, usageError("play: a tape and --scenario exclude each other; --on-miss scenario:NAME plays one where the tape has nothing")
		}
		return cfg, nil
	}
	own, err := findScenario(cmp.Or(c.String("scenario"), "hello"))
	if err != nil {
		return nil, err
	}
	cfg.Scenario, cfg.Scenarios = own.Name, []*scenario.Scenario{own}
	return cfg, nil
}

// tapeSource has the player play what a tape recorded.
func (w *world) tapeSource(c *cli.Context, path string, cfg *player.Config) (source *tape.Source, err error) {
	o := tape.Options{
		Session: capture.SessionID(c.Int("session")), Match: tape.Match(c.String("match")), OnMiss: tape.OnMiss(c.String("on-miss")),
		WithDrops: c.Bool("with-drops"), Seed: cfg.Seed, Logger: cfg.Logger,
	}
	if name, ok := strings.CutPrefix(c.String("on-miss"), "scenario:"); ok {
		if o.Fallback, err = findScenario(name); err != nil {
			return nil, err
		}
		o.OnMiss = tape.MissScenario
	}
	t, err := w.openRecording(c.Context, path)
	if err != nil {
		return nil, err
	}
	source, err = tape.New(c.Context, t, o)
	if err := errors.Join(err, t.Close()); err != nil {
		return nil, fmt.Errorf("play tape %q: %w", path, err)
	}
	cfg.Source = source
	return source, nil
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
