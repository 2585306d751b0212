package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"tapedeck/inspector"
	"tapedeck/player/client"
	"tapedeck/player/driver"
	"tapedeck/protocol"
)

// drivenTape is where a drive is recorded unless told otherwise.
const drivenTape = "driven.tape"

func (w *world) driveCommand() *cli.Command {
	return &cli.Command{
		Name:      "drive",
		Usage:     "do what the recorded client did, to a real gateway, and compare what comes of it",
		ArgsUsage: "TAPE [RUN]",
		Description: `tapedeck drive bug.tape -u http://localhost:3000      exit 1 if it goes another way
tapedeck drive bug.tape 7f3a -u https://gw.example    only the client that had this run
tapedeck drive bug.tape -u http://gw:3000 --runs 5    how often it goes the same way

A message is sent when what the client had seen before it has come again: the answer, the end
of the run, the decision. Ids are the gateway's new ones, decisions get the recorded answers. It
is all recorded on a tape of its own, and each run is compared with the recorded one.

Credentials are not on the tape: give yours with --header, or with --auth or TAPEDECK_AUTH,
which is what CONNECT carries, such as {"token": "…"}.

What it cannot promise: a model says the same otherwise each time (--ignore, --runs); a cancel
never falls on the same envelope; HTTP requests, uploads and what the gateway knew before are
not repeated; and all sockets speak WebSocket, those too that polled.`,
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
	if plan.source, err = w.openRecording(stop.first, args[0]); err != nil {
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
