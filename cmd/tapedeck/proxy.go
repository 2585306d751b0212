package main

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"

	"github.com/urfave/cli/v2"

	"tapedeck/inspector/tui"
	"tapedeck/proxy"
)

const defaultListen = "127.0.0.1:4080"

func (w *world) proxyCommand() *cli.Command {
	return &cli.Command{
		Name:  "proxy",
		Usage: "stand between an app and its gateway, and record what passes",
		Description: `tapedeck proxy -u https://gateway.example                point the app at http://` + defaultListen + `
tapedeck proxy -u http://localhost:3000 -l localhost:0   any free port; it is printed
tapedeck proxy                                           with the built-in gateway behind it

What passes is forwarded first and looked at afterwards; --enforce turns that around.`,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "upstream", Aliases: []string{"u"}, Usage: "the `GATEWAY`'s address, such as https://gateway.example; without it, the built-in gateway"},
			&cli.StringFlag{Name: "scenario", Value: "kitchen-sink", Usage: "what the built-in gateway plays; tapedeck scenarios lists them"},
			&cli.StringFlag{Name: "write", Aliases: []string{"w"}, Value: defaultTape, TakesFile: true, Usage: "the `TAPE` to add a session to"},
			&cli.BoolFlag{Name: "insecure", Aliases: []string{"k"}, Usage: "accept any certificate of the gateway"},
			&cli.StringFlag{Name: "ca", TakesFile: true, Usage: "trust the authorities in `FILE` (PEM) besides the system's"},
			&cli.StringFlag{Name: "origin", Usage: "send `ORIGIN` to the gateway in place of the client's"},
			&cli.BoolFlag{Name: "keep-cookies", Usage: "leave cookies as they are, even those that the browser will drop"},
			&cli.BoolFlag{Name: "keep-compression", Usage: "let client and gateway compress WebSocket messages"},
			&cli.StringFlag{Name: "body-limit", Value: "64MiB", Usage: "record at most `SIZE` of one body or message; all of it is passed on"},
			&cli.BoolFlag{Name: "keep-secrets", Usage: "record credentials as they are"},
			&cli.StringSliceFlag{Name: "redact", Usage: "redact a header, a field or a JSON pointer `NAME` too; may be repeated"},
			&cli.BoolFlag{Name: "tui", Usage: "look at it in the terminal, as inspect does, instead of printing what passes"},
			&cli.StringFlag{Name: "enforce", Usage: "refuse invalid commands of the client, or hold back invalid messages of `client|both` sides"},
			&cli.StringFlag{Name: "on-record-error", Value: "relay", Usage: "what to do when the tape cannot be written any more: `relay|stop`"},
		}, slices.Concat(doorFlags(defaultListen), judgeFlags(), liveFlags())...),
		Before: useSettings,
		Action: w.proxy,
	}
}

// proxy runs the proxy command: it opens all that can fail before it says that
// it is ready, serves until a signal, and closes in order.
func (w *world) proxy(c *cli.Context) (err error) {
	if _, err := arguments(c, 0, 0, ""); err != nil {
		return err
	}
	plan, err := planProxy(c)
	if err != nil {
		return err
	}
	if plan.tui {
		if !w.canShow() {
			return usageError("proxy: --tui needs a terminal; without it, what passes is printed")
		}
		// Nothing may be printed over the screen: what is said is kept until it
		// is gone.
		said := &keptTalk{}
		defer said.flush(w.stderr)
		w = &world{stdin: w.stdin, stdout: w.stdout, stderr: said, getenv: w.getenv}
	}
	if c.Bool("verbose") {
		plan.config.Logger = w.logger()
	}
	d, err := openDoor(c)
	if err != nil {
		return err
	}
	defer d.close()
	stop := newStopper()
	defer stop.release()
	behind, err := plan.startGateway()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, behind.end(stop.second)) }()
	view, err := w.newLiveView(c, plan.settings)
	if err != nil {
		return err
	}
	rec, err := plan.startRecording(view, d, func(err error) { w.recordingFailed(err, plan.onError, stop) })
	if err != nil {
		return errors.Join(err, view.close(stop.second))
	}
	p, err := proxy.New(*plan.config)
	if err != nil {
		return errors.Join(err, rec.close(), view.close(stop.second))
	}
	w.sayRemarks(plan.schemas)
	w.sayReady(plan, d, behind)
	shown := make(chan error, 1)
	go func() { shown <- w.showLive(c, plan, rec, stop) }()
	served := p.Serve(stop.first, d.listeners...)
	stop.stop() // of the screen, if it was the listener that failed
	served = errors.Join(served, <-shown)
	p.Shutdown(stop.second)
	if err := errors.Join(served, rec.close(), view.close(stop.second)); err != nil {
		return err
	}
	w.sayRecorded(plan, rec)
	if stop.cutShort() {
		return withCode(exitInterrupted, nil)
	}
	return nil
}

// sayRecorded says what became of a session.
func (w *world) sayRecorded(plan *proxyPlan, rec *recording) {
	if n := rec.writer.Waits(); n > 0 {
		w.talk("the traffic had to wait for its tape %d times: this machine is slower than the traffic", n)
	}
	w.talk("session %d is on %s; next: %s", rec.session.ID, plan.tape, command("runs", plan.tape))
}

// recordingFailed says, once, that the tape is not complete.
func (w *world) recordingFailed(err error, onError string, stop *stopper) {
	w.talk("the tape cannot be written any more: %v", err)
	if onError == "stop" {
		w.talk("stopping, as --on-record-error asked")
		stop.stop()
		return
	}
	w.talk("the traffic goes on, unrecorded; this will end with exit code %d", exitFailure)
}

// sayReady tells where it listens and what to do next.
func (w *world) sayReady(plan *proxyPlan, d *door, behind *backstage) {
	cfg := plan.config
	if behind != nil {
		w.talk("gateway built in, since there is no -u: scenario %s", plan.scenario)
	} else {
		w.talk("gateway %s", cfg.Upstream.Redacted())
	}
	if via := viaProxy(cfg); via != "" {
		w.talk("reached through the proxy %s, as the environment says", via)
	}
	w.talk("tape %s", plan.tape)
	if plan.writer.KeepSecrets {
		w.alarm("credentials are recorded as they are")
	}
	w.sayWhere(d) // behind the rest: who waits for it finds all of it
	w.talk("next: point the app at %s, then in another terminal: %s", d.url, command("show last", plan.tape))
}

// viaProxy names the forward proxy of the environment, if one leads to the
// gateway.
func viaProxy(cfg *proxy.Config) string {
	via, err := cfg.Via(&http.Request{URL: cfg.Upstream})
	if err != nil || via == nil {
		return ""
	}
	return via.Redacted()
}

// showLive opens the terminal UI on the recording, if it was asked for, and ends
// the proxy when the user leaves it.
func (w *world) showLive(c *cli.Context, plan *proxyPlan, rec *recording, stop *stopper) error {
	if !plan.tui {
		return nil
	}
	defer stop.stop()
	src := rec.writer.Reader()
	screen := screenOptions(w.look(c), src, plan.tape, "", nil, plan.settings)
	screen.SetMark = rec.writer.SetMark
	return tui.Run(stop.first, src, tui.Options{
		Screen:  screen,
		NoColor: !w.colours(w.stdout),
		Save:    saveCopy,
	})
}

// keptTalk keeps what is said while the screen is not to be written over.
type keptTalk struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write keeps text.
func (k *keptTalk) Write(text []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.text.Write(text)
}

// flush says all that was kept.
func (k *keptTalk) flush(out io.Writer) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.text.WriteTo(out) // nobody is left to tell if that fails
}
