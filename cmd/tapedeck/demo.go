package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	"github.com/urfave/cli/v2"

	"tapedeck/inspector"
	"tapedeck/player"
	"tapedeck/player/actor"
	"tapedeck/player/scenario"
	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
	"tapedeck/proxy"
)

const (
	demoTape     = "demo.tape"
	demoScenario = "kitchen-sink"
	demoSpeed    = 2
	demoLimit    = 14 * time.Second
	demoThink    = 700 * time.Millisecond // that the app's person takes for a decision
)

func (w *world) demoCommand() *cli.Command {
	return &cli.Command{
		Name:  "demo",
		Usage: "show it all on one machine: a gateway, an app, and the proxy between them",
		Description: `A built-in gateway plays a thread of runs to an app, through the proxy. What passes is
shown as it passes, and recorded on a tape that every other command opens.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "write", Aliases: []string{"w"}, Value: demoTape, TakesFile: true, Usage: "the `TAPE` to add a session to"},
			&cli.StringFlag{Name: "scenario", Aliases: []string{"s"}, Value: demoScenario, TakesFile: true, Usage: "what is played: a built-in `NAME`, or a YAML file"},
			&cli.BoolFlag{Name: "ascii", Usage: "print no characters beyond ASCII of our own"},
		},
		Action: w.demo,
	}
}

// demo has a player, a proxy and a client in one process, and shows the tape.
func (w *world) demo(c *cli.Context) error {
	if _, err := arguments(c, 0, 0, ""); err != nil {
		return err
	}
	played, err := findScenario(c.String("scenario"))
	if err != nil {
		return err
	}
	stop := newStopper()
	defer stop.release()
	path := c.String("write")
	ctx, cancel := context.WithTimeout(stop.first, demoLimit)
	defer cancel()
	acted, err := w.actDemo(ctx, stop.second, c, played, path)
	if err != nil {
		return err
	}
	if acted != nil {
		return fmt.Errorf("the demo was cut short; what passed is on %s: %w", path, acted)
	}
	return w.showDemo(c, path)
}

// actDemo plays the scenario through a proxy that records. What went wrong with
// the play itself is apart from what went wrong around it.
func (w *world) actDemo(ctx, hurry context.Context, c *cli.Context, played *scenario.Scenario, path string) (acted, err error) {
	behind, err := startBackstage(player.Config{Scenario: played.Name, Scenarios: []*scenario.Scenario{played}, Speed: demoSpeed})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, behind.end(hurry)) }()
	upstream, err := url.Parse(behind.url)
	if err != nil {
		return nil, err
	}
	listeners, _, err := proxy.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d := &door{listeners: listeners, url: "http://" + listeners[0].Addr().String()}
	defer d.close()
	view := w.printer(w.look(c), inspector.LiveOptions{Format: inspector.FormatText, Started: time.Now()}, protocol.Settings{})
	rec, err := startRecording(recordingOptions{
		path:    path,
		session: capture.Session{Source: "proxy", Gateway: behind.url, Listen: d.url},
		watch:   view.watch,
	})
	if err != nil {
		return nil, errors.Join(err, view.close(hurry))
	}
	p, err := proxy.New(proxy.Config{Upstream: upstream, Sink: rec, FirstPosition: rec.session.First, Start: rec.start})
	if err != nil {
		return nil, errors.Join(err, rec.close(), view.close(hurry))
	}
	w.talk("gateway %s  ⇄  proxy %s  ⇄  an app", behind.url, d.url)
	serving, end := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- p.Serve(serving, listeners...) }()
	acted = actor.Play(ctx, played, actor.Options{URL: d.url, Thread: "demo", Auth: json.RawMessage(`{"token":"demo-secret"}`), Think: demoThink})
	end()
	err = <-served
	p.Shutdown(hurry)
	return acted, errors.Join(err, rec.close(), view.close(hurry))
}

// showDemo shows the run that has most to show, and says what to try next.
func (w *world) showDemo(c *cli.Context, path string) (err error) {
	ctx := context.Background()
	t, err := openTape(ctx, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	runs, err := t.Runs(ctx)
	if err != nil {
		return err
	}
	v := &inspector.View{Source: t, Out: w.stdout, Talk: io.Discard, Look: w.look(c), Flags: flagsFor(path)}
	if _, err := fmt.Fprintln(w.stdout); err != nil {
		return err
	}
	if err := v.Runs(ctx); err != nil {
		return err
	}
	if best := busiest(runs); best != nil {
		if _, err := fmt.Fprintln(w.stdout); err != nil {
			return err
		}
		if err := v.Show(ctx, fmt.Sprintf("%d/%s", best.Session, best.ID), false); err != nil {
			return err
		}
	}
	w.talk("all of it is on %s; next:", path)
	for _, next := range []string{"runs", "show last", "findings", "tail"} {
		w.talk("  %s", command(next, path))
	}
	w.talk("  tapedeck proxy -u http://YOUR-GATEWAY")
	return nil
}

// busiest is the run of the latest session in which a person had most to decide,
// else the one with the most envelopes.
func busiest(runs []conversation.Run) *conversation.Run {
	var best *conversation.Run
	for i := range runs {
		r := &runs[i]
		switch {
		case r.Session != runs[len(runs)-1].Session:
		case best == nil, r.Human > best.Human, r.Human == best.Human && r.Envelopes > best.Envelopes:
			best = r
		}
	}
	return best
}
