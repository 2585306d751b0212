package main

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"

	"tapedeck/inspector/tui"
	"tapedeck/player"
	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/proxy"
	"tapedeck/recorder"
)

const defaultListen = "127.0.0.1:4080"

func (w *world) proxyCommand() *cli.Command {
	return &cli.Command{
		Name:  "proxy",
		Usage: "stand between an app and its gateway, and record what passes",
		Description: `tapedeck proxy -u https://gateway.example          point the app at http://` + defaultListen + `
tapedeck proxy -u http://localhost:3000 -l :0      any free port; it is printed
tapedeck proxy                                     with the built-in gateway behind it

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
	if c.Bool("tui") {
		if !w.canShow() {
			return usageError("proxy: --tui needs a terminal; without it, what passes is printed")
		}
		// Nothing may be printed over the screen: what is said is kept until it
		// is gone.
		said := &keptTalk{}
		defer said.flush(w.stderr)
		w = &world{stdin: w.stdin, stdout: w.stdout, stderr: said, getenv: w.getenv}
	}
	onError := c.String("on-record-error")
	if onError != "relay" && onError != "stop" {
		return usageError("proxy: --on-record-error is relay or stop, not %q", onError)
	}
	cfg, err := proxyConfig(c)
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
	gate, err := newEnforcer(c.String("enforce"), chosen, schemas)
	if err != nil {
		return err
	}
	view, err := w.newLiveView(c, chosen)
	if err != nil {
		return err
	}
	d, err := openDoor(c)
	if err != nil {
		return err
	}
	defer d.close()
	stop := newStopper()
	defer stop.release()
	var behind *backstage
	if cfg.Upstream == nil {
		if behind, err = startBackstage(player.Config{Scenario: c.String("scenario")}); err != nil {
			return err
		}
		if cfg.Upstream, err = url.Parse(behind.url); err != nil {
			return err
		}
	}
	defer func() { err = errors.Join(err, behind.end(stop.second)) }()

	rec, err := startRecording(recordingOptions{
		path:    c.String("write"),
		session: capture.Session{Source: "proxy", Gateway: cfg.Upstream.Redacted(), Listen: d.url},
		writer: recorder.WriterOptions{
			KeepSecrets: c.Bool("keep-secrets"),
			Redact:      c.StringSlice("redact"),
			OnError:     func(err error) { w.recordingFailed(err, onError, stop) },
		},
		judge: judging,
		watch: view.watch,
	})
	if err != nil {
		return err
	}
	cfg.Sink, cfg.FirstPosition, cfg.Start = rec, rec.session.First, rec.start
	if gate != nil {
		cfg.Gate, rec.gate = gate, gate
	}
	p, err := proxy.New(*cfg)
	if err != nil {
		return errors.Join(usageError("proxy: %v", err), rec.close())
	}
	w.sayRemarks(schemas)
	w.sayReady(c, cfg, d, behind)
	shown := make(chan error, 1)
	go func() { shown <- w.showLive(c, rec, stop, chosen) }()
	served := p.Serve(stop.first, d.listeners...)
	stop.stop()
	served = errors.Join(served, <-shown)
	p.Shutdown(stop.second)
	err = errors.Join(served, rec.close(), view.close(stop.second))
	if rec.waited > 0 {
		w.talk("the traffic had to wait for its judge %d times: this machine is slower than the traffic", rec.waited)
	}
	w.talk("session %d is on %s; next: %s", rec.session.ID, c.String("write"), command("runs", c.String("write")))
	if err == nil && stop.cutShort() {
		return withCode(exitInterrupted, nil)
	}
	return err
}

// proxyConfig reads what the flags say about the way through.
func proxyConfig(c *cli.Context) (*proxy.Config, error) {
	limit, err := parseSize(c.String("body-limit"))
	if err != nil {
		return nil, usageError("proxy: --body-limit: %v", err)
	}
	cfg := &proxy.Config{
		BodyLimit: limit, Origin: c.String("origin"), KeepCookies: c.Bool("keep-cookies"),
		KeepCompression: c.Bool("keep-compression"), Insecure: c.Bool("insecure"), Via: http.ProxyFromEnvironment,
	}
	if address := c.String("upstream"); address != "" {
		if cfg.Upstream, err = parseGateway(address); err != nil {
			return nil, err
		}
	}
	if file := c.String("ca"); file != "" {
		if cfg.RootCAs, err = authorities(file); err != nil {
			return nil, err
		}
	}
	return cfg, nil
}

// parseGateway reads the gateway's address, which may lack its scheme.
func parseGateway(address string) (*url.URL, error) {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, usageError("proxy: --upstream: %v", err)
	}
	return u, nil
}

func authorities(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read authorities: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, usageError("proxy: --ca: no certificate in %q; it must be PEM", file)
	}
	return pool, nil
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
func (w *world) sayReady(c *cli.Context, cfg *proxy.Config, d *door, behind *backstage) {
	tape := c.String("write")
	if behind != nil {
		w.talk("gateway built in, since there is no -u: scenario %s", c.String("scenario"))
	} else {
		w.talk("gateway %s", cfg.Upstream.Redacted())
	}
	if via := viaProxy(cfg); via != "" {
		w.talk("reached through the proxy %s, as the environment says", via)
	}
	w.talk("tape %s", tape)
	if c.Bool("keep-secrets") {
		w.alarm("credentials are recorded as they are")
	}
	w.sayWhere(d) // behind the rest: who waits for it finds all of it
	w.talk("next: point the app at %s, then in another terminal: %s", d.url, command("show last", tape))
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
func (w *world) showLive(c *cli.Context, rec *recording, stop *stopper, chosen protocol.Settings) error {
	if !c.Bool("tui") {
		return nil
	}
	defer stop.stop()
	path, src := c.String("write"), rec.writer.Reader()
	return tui.Run(stop.first, src, tui.Options{
		Screen:  screenOptions(w.look(c), src, path, "", nil, chosen),
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
