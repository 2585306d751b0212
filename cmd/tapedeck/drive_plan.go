package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"tapedeck/inspector"
	"tapedeck/player/driver"
	"tapedeck/protocol/capture"
	"tapedeck/proxy"
	"tapedeck/recorder"
	"tapedeck/recorder/live"
)

// drivePlan is what the flags of the drive command ask for.
type drivePlan struct {
	from, to  string
	source    live.Tape
	recording *driver.Recording
	options   driver.Options
	proxy     proxy.Config
	writer    recorder.WriterOptions
	compare   inspector.DiffOptions
}

// planDrive reads the flags.
func planDrive(c *cli.Context, from string) (*drivePlan, error) {
	plan := &drivePlan{from: from, to: c.String("write"), compare: diffOptions(c), writer: recorder.WriterOptions{Redact: c.StringSlice("redact")}}
	if n := c.Int("runs"); n < 1 || n > mostDrives {
		return nil, usageError("drive: --runs is between 1 and %d, not %d", mostDrives, n)
	}
	switch {
	case c.Int("runs") > 1 && c.Bool("keep-ids"):
		return nil, usageError("drive: --keep-ids and --runs exclude each other: a gateway refuses ids that it has seen")
	case sameFile(from, plan.to):
		return nil, usageError("drive: -w %q is the tape to be driven: name another", plan.to)
	}
	var err error
	if plan.options, err = driveOptions(c); err != nil {
		return nil, err
	}
	plan.writer.Redact = slices.AppendSeq(plan.writer.Redact, maps.Keys(plan.options.Header))
	return plan, plan.aim(c)
}

// driveOptions reads what the flags say about the client.
func driveOptions(c *cli.Context) (o driver.Options, err error) {
	o = driver.Options{
		MaxThink: c.Duration("max-think"), Patience: c.Duration("patience"), Limit: c.Duration("limit"), KeepIDs: c.Bool("keep-ids"),
		Header: http.Header{},
	}
	if o.Speed, err = parseSpeed(c.String("speed")); err != nil {
		return o, usageError("drive: --speed is a number above 0, such as 2 or 0.5, or max, not %q", c.String("speed"))
	}
	if o.MaxThink == 0 {
		o.MaxThink = -1 // not at all: the driver's 0 is its default
	}
	for _, name := range []string{"patience", "limit"} {
		if d := c.Duration(name); d <= 0 {
			return o, usageError("drive: --%s %v: nothing could come in that time", name, d)
		}
	}
	if auth := c.String("auth"); auth != "" {
		o.Auth = json.RawMessage(auth)
	}
	for _, line := range c.StringSlice("header") {
		name, value, ok := strings.Cut(line, ":")
		if !ok || strings.TrimSpace(name) == "" {
			return o, usageError("drive: --header needs a name and a value, such as 'Authorization: Bearer …'") // it may be a secret
		}
		o.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	return o, nil
}

// aim reads the gateway's address: the proxy takes its host, the driver the rest.
func (plan *drivePlan) aim(c *cli.Context) error {
	given := c.String("upstream")
	if given == "" {
		return usageError("drive: -u GATEWAY is missing, such as -u http://localhost:3000")
	}
	if !strings.Contains(given, "://") {
		given = "http://" + given
	}
	u, err := url.Parse(given)
	if err != nil {
		return usageError("drive: --upstream: %v", err)
	}
	plan.options.URL = (&url.URL{Scheme: "http", Host: "localhost", Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery}).String()
	if err := plan.options.Validate(); err != nil {
		return usageError("drive: %v", err)
	}
	plan.proxy = proxy.Config{
		Upstream: &url.URL{Scheme: u.Scheme, Host: u.Host, User: u.User}, Insecure: c.Bool("insecure"), Via: http.ProxyFromEnvironment, Sink: &recording{},
	}
	if file := c.String("ca"); file != "" {
		if plan.proxy.RootCAs, err = authorities(file); err != nil {
			return err
		}
	}
	if err := plan.proxy.Validate(); err != nil {
		return usageError("drive: %v", err)
	}
	return nil
}

// load reads the client of a session, or the one that had a run.
func (plan *drivePlan) load(ctx context.Context, session int, run string) error {
	o := driver.LoadOptions{Session: capture.SessionID(session)}
	if run != "" {
		if session != 0 {
			return usageError("drive: a run and --session exclude each other: the run's session is known")
		}
		runs, err := plan.source.Runs(ctx)
		if err != nil {
			return err
		}
		s, err := inspector.Select(runs, run)
		if err != nil {
			return err
		}
		if s.Run == nil {
			return usageError("drive: %q names a position; a run is needed, such as last", run)
		}
		o = driver.LoadOptions{Session: s.Run.Session, Thread: s.Run.Thread}
	}
	var err error
	if plan.recording, err = driver.Load(ctx, plan.source, o); errors.Is(err, driver.ErrNothing) {
		return fmt.Errorf("%s: %w; record one with: tapedeck proxy -u http://GATEWAY", plan.from, err)
	}
	return err
}

// useThreads reads --thread, of which the recording must know the threads.
func (plan *drivePlan) useThreads(given []string) error {
	known := plan.recording.Threads()
	plan.options.Threads = map[string]string{}
	for _, g := range given {
		recorded, id, ok := strings.Cut(g, "=")
		if !ok && len(known) == 1 {
			recorded, id = known[0], g
		}
		if id == "" || !slices.Contains(known, recorded) {
			const shown = 5
			return usageError("drive: --thread %q: say which thread it stands for, as RECORDED=ID; recorded were %q", g, known[:min(shown, len(known))])
		}
		plan.options.Threads[recorded] = id
	}
	return nil
}

// sameFile reports whether two names are those of one file.
func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}
