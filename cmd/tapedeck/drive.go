package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"tapedeck/inspector"
	"tapedeck/player/client"
	"tapedeck/player/driver"
	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/proxy"
	"tapedeck/recorder"
	"tapedeck/recorder/live"
)

// drivenTape is where a drive is recorded unless told otherwise.
const drivenTape = "driven.tape"

func (w *world) driveCommand() *cli.Command {
	return &cli.Command{
		Name:      "drive",
		Usage:     "do what the recorded client did, to a real gateway, and compare what comes of it",
		ArgsUsage: "TAPE [RUN]",
		Description: `tapedeck drive bug.tape -u http://localhost:3000        exit 1 if it goes another way
tapedeck drive bug.tape 7f3a -u https://gw.example     only the client that had this run, with all it did
tapedeck drive bug.tape -u http://gw:3000 --runs 5     how often it goes the same way, and what differs

A message is sent when what the client had seen before it has come again: the answer, the end of
the run, the decision. Ids are the gateway's new ones, decisions get the recorded answers. It is all
recorded on a tape of its own, and each run is compared with the recorded one.

Credentials are not on the tape: give yours with --header, or with --auth or TAPEDECK_AUTH, which is
what CONNECT carries, such as {"token": "…"}.

What it cannot promise: a model says the same thing otherwise each time (--ignore, --runs); a cancel
never falls on the same envelope; HTTP requests, uploads and what the gateway knew before are not
repeated; and all sockets speak WebSocket, those too that polled.`,
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "upstream", Aliases: []string{"u"}, Usage: "the `GATEWAY`'s address, such as http://localhost:3000; a path or query goes with each handshake"},
			&cli.StringFlag{Name: "write", Aliases: []string{"w"}, Value: drivenTape, TakesFile: true, Usage: "the `TAPE` to record it on, a session for each drive"},
			&cli.IntFlag{Name: "session", Usage: "drive session `N`; without it, the last that has a client"},
			&cli.StringFlag{Name: "auth", Usage: "the `JSON` object that CONNECT carries"},
			&cli.StringSliceFlag{Name: "header", Usage: "send `NAME: VALUE` with each handshake; the value is not recorded; may be repeated"},
			&cli.IntFlag{Name: "runs", Value: 1, Usage: "drive it `N` times, and tell how often it went the same way"},
			&cli.StringFlag{Name: "speed", Value: "1", Usage: "how fast the client thinks: a `FACTOR` such as 2 or 0.5, or max"},
			&cli.DurationFlag{Name: "max-think", Value: driver.MaxThinkDefault, Usage: "think no longer than `TIME` before a message"},
			&cli.DurationFlag{Name: "patience", Value: driver.PatienceDefault, Usage: "give up what does not come when nothing has come for `TIME`"},
			&cli.DurationFlag{Name: "limit", Value: driver.LimitDefault, Usage: "end each drive after `TIME`"},
			&cli.StringSliceFlag{Name: "thread", Usage: "use the gateway's thread `ID`, or RECORDED=ID where there are several; may be repeated"},
			&cli.BoolFlag{Name: "keep-ids", Usage: "send the client's ids of threads and messages as recorded, for a gateway that has not seen them"},
			&cli.BoolFlag{Name: "insecure", Aliases: []string{"k"}, Usage: "accept any certificate of the gateway"},
			&cli.StringFlag{Name: "ca", TakesFile: true, Usage: "trust the authorities in `FILE` (PEM) besides the system's"},
			&cli.StringSliceFlag{Name: "redact", Usage: "redact a header, a field or a JSON pointer `NAME` too; may be repeated"},
			&cli.StringFlag{Name: "format", Value: "text", Usage: "write `text|json|junit`"},
			&cli.BoolFlag{Name: "ascii", Usage: "write no characters beyond ASCII of our own"},
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "tell of each message as it is sent"},
		}, diffFlags()),
		Before: useSettings,
		Action: w.drive,
	}
}

// mostDrives bounds --runs: each is a session on the tape, and a row in a table.
const mostDrives = 1000

// drive runs the drive command.
func (w *world) drive(c *cli.Context) (err error) {
	args, err := arguments(c, 1, 2, "a tape, and maybe one run of it")
	if err != nil {
		return err
	}
	plan, err := planDrive(c, args[0])
	if err != nil {
		return err
	}
	write, err := driveWriter(c.String("format"), w.look(c))
	if err != nil {
		return err
	}
	stop := newStopper()
	defer stop.release()
	if plan.source, err = openTape(stop.first, args[0]); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plan.source.Close()) }()
	if err := plan.load(stop.first, c.Int("session"), first(args[1:])); err != nil {
		return err
	}
	if err := plan.useThreads(c.StringSlice("thread")); err != nil {
		return err
	}
	w.sayDriving(plan)
	report := &driveReport{Tape: plan.from, Session: plan.recording.Session.ID, Gateway: plan.proxy.Upstream.String(), Driven: plan.to}
	var failed error
	for len(report.Drives) < c.Int("runs") && failed == nil {
		d, err := w.driveOnce(c, plan, stop)
		if failed = err; err == nil {
			report.Drives = append(report.Drives, d)
		}
	}
	if len(report.Drives) > 0 {
		if err := write(report, w.stdout); err != nil {
			return err
		}
	}
	if failed != nil && stop.first.Err() == nil {
		return explainDrive(failed)
	}
	return w.sayDriven(report, stop)
}

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
	for name, d := range map[string]time.Duration{"patience": o.Patience, "limit": o.Limit} {
		if d <= 0 {
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

func (w *world) sayDriving(plan *drivePlan) {
	sum := plan.recording.Summary()
	w.talk("driving session %d of %s against %s: %s in %s, %s", plan.recording.Session.ID, plan.from, plan.proxy.Upstream.Redacted(),
		inspector.FormatCount(sum.Messages, "message"), inspector.FormatCount(sum.Windows, "window"), inspector.FormatCount(sum.Clients, "client"))
	for _, remark := range plan.recording.Remarks() {
		w.talk("not driven: %s", remark)
	}
	if sum.Plain > 0 && plan.options.Auth != nil {
		w.talk("plain JSON sockets have no CONNECT, and so no --auth: give them a --header, or a query with -u")
	}
}

// explainDrive says what to do about a drive that could not begin.
func explainDrive(err error) error {
	const secrets = "the recorded credentials are not on the tape: give yours with --header 'NAME: VALUE', or with --auth or TAPEDECK_AUTH"
	var answer *client.HandshakeError
	switch {
	case errors.Is(err, client.ErrRefused):
		return fmt.Errorf("%w; %s", err, secrets)
	case errors.As(err, &answer) && answer.Status == http.StatusBadGateway && answer.Body != "":
		return errors.New(strings.TrimPrefix(strings.TrimSpace(answer.Body), "tapedeck: ")) // our proxy has said what to do
	case errors.As(err, &answer) && (answer.Status == http.StatusUnauthorized || answer.Status == http.StatusForbidden):
		return fmt.Errorf("%w; %s", err, secrets)
	case errors.As(err, &answer):
		return fmt.Errorf("%w; drive speaks WebSocket at the recorded path: check that the gateway takes it there, or give -u a path", err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("drive: %v", err) // the folder of -w: no tape is to be recorded first, as exit would hint
	}
	return err
}

// unknownThread reports whether the gateway did not know a thread.
func unknownThread(d driver.Divergence) bool {
	return strings.Contains(d.Got, string(protocol.ConversationNotFound))
}

// sayDriven says what it came to, and returns the error that is its exit code.
func (w *world) sayDriven(report *driveReport, stop *stopper) error {
	n := len(report.Drives)
	if stop.first.Err() != nil {
		w.talk("interrupted after %s; what passed is on %s", inspector.FormatCount(n, "drive"), report.Driven)
		return withCode(exitInterrupted, nil)
	}
	latest := report.Drives[n-1]
	w.talk("session %d is on %s; next: %s", latest.Session, report.Driven, command("runs", report.Driven))
	if slices.ContainsFunc(latest.Result.Divergences, unknownThread) {
		w.talk("if threads must be made there first: make one, and name it with --thread ID")
	}
	switch {
	case report.same() == n:
		w.talk("this is as far as a drive can tell: HTTP requests, and what the gateway knew before, are not repeated")
		return nil
	case n == 1:
		w.talk("one drive is no proof: --runs 5 tells how often it goes this way, --ignore FIELD leaves out what may differ")
	}
	return withCode(exitFindings, nil)
}
