package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"tapedeck/inspector"
	"tapedeck/player/driver"
	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
	"tapedeck/proxy"
)

// noRun is the label of a side that has none.
const noRun = "no run"

// driven is one drive, on a session of its own.
type driven struct {
	Session capture.SessionID
	Result  *driver.Result
	Chains  []drivenChain
}

// drivenChain is a recorded run with those that go on with it after a pause,
// beside the live ones.
type drivenChain struct {
	Runs []driver.Run
	Diff *inspector.Diff
	// Cut is set if they differ but in where they were cut off, which is never the
	// same place: by a cancel, or because the client left before the end.
	Cut bool
}

// differs reports whether the chain went another way.
func (c *drivenChain) differs() bool { return !c.Diff.Equal() && !c.Cut }

// same reports whether the drive went the way of the recording.
func (d *driven) same() bool {
	for i := range d.Chains {
		if d.Chains[i].differs() {
			return false
		}
	}
	return len(d.Result.Divergences) == 0
}

// driveOnce drives the client once, tells of it meanwhile, and compares.
func (w *world) driveOnce(c *cli.Context, plan *drivePlan, stop *stopper) (*driven, error) {
	bar := w.progress("drive", int64(plan.recording.Summary().Messages))
	defer bar.done()
	plan.options.Step = func(s driver.Step) {
		if s.Message {
			bar.add(1)
		}
		switch {
		case !c.Bool("verbose"):
		case s.Done:
			w.talk("window %d  #%s %s", s.Window, s.At, s.Name)
		default:
			w.talk("window %d  #%s %s left out: %s", s.Window, s.At, s.Name, s.Why)
		}
	}
	d, err := plan.record(stop.first, stop.second)
	if err != nil {
		return nil, err
	}
	return d, d.compare(stop.first, plan)
}

// record drives the client once, through a proxy of our own onto the tape: so
// that its frames are those that passed.
func (plan *drivePlan) record(ctx, cut context.Context) (d *driven, err error) {
	listeners, _, err := proxy.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := listeners[0].Addr().String()
	rec, err := startRecording(recordingOptions{
		path: plan.to, writer: plan.writer,
		session: capture.Session{Source: "proxy", Gateway: plan.proxy.Upstream.Redacted(), Listen: "http://" + address},
	})
	if err != nil {
		return nil, errors.Join(err, listeners[0].Close())
	}
	cfg := plan.proxy
	cfg.Sink, cfg.FirstPosition, cfg.Start = rec, rec.session.First, rec.start
	p, err := proxy.New(cfg)
	if err != nil {
		return nil, errors.Join(err, rec.close(), listeners[0].Close())
	}
	serving, end := context.WithCancel(ctx)
	defer end()
	served := make(chan error, 1)
	go func() { served <- p.Serve(serving, listeners...) }()
	o := plan.options
	o.URL = strings.Replace(o.URL, "localhost", address, 1)
	d = &driven{Session: rec.session.ID}
	var undriven error
	d.Result, undriven = plan.recording.Drive(ctx, o)
	end()
	err = <-served
	p.Shutdown(cut)
	return d, errors.Join(undriven, err, rec.close())
}

// compare compares the recorded runs with those of the drive.
func (d *driven) compare(ctx context.Context, plan *drivePlan) (err error) {
	to, err := openTape(ctx, plan.to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	recorded, err := runsOf(ctx, plan.source, plan.recording.Session.ID)
	if err != nil {
		return err
	}
	live, err := runsOf(ctx, to, d.Session)
	if err != nil {
		return err
	}
	for _, runs := range chains(d.Result.Runs, recorded, live) {
		a, err := normalOfChain(ctx, plan.source, recorded, runs, func(r driver.Run) string { return r.ID })
		if err != nil {
			return err
		}
		b, err := normalOfChain(ctx, to, live, runs, func(r driver.Run) string { return r.LiveID })
		if err != nil {
			return err
		}
		a.Label, b.Label = cmp.Or(a.Label, noRun), "live "+cmp.Or(b.Label, noRun)
		diff := inspector.Compare(a, b, plan.compare)
		d.Chains = append(d.Chains, drivenChain{runs, diff, isCut(runs[len(runs)-1]) && onlyCut(diff)})
	}
	return nil
}

// runsOf returns the runs of a session by their ids.
func runsOf(ctx context.Context, src inspector.Source, session capture.SessionID) (map[string]conversation.Run, error) {
	all, err := src.Runs(ctx)
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	runs := map[string]conversation.Run{}
	for _, r := range all {
		if r.Session == session {
			runs[r.ID] = r
		}
	}
	return runs, nil
}

// chains joins the runs that go on with each other: on the tape, or where the
// gateway has more of them, live.
func chains(runs []driver.Run, recorded, live map[string]conversation.Run) (all [][]driver.Run) {
	goesOn := func(r, before driver.Run) bool {
		if r.ID != "" {
			return r.ID == before.ID || before.ID != "" && recorded[r.ID].Continues == before.ID
		}
		return r.LiveID == before.LiveID || before.LiveID != "" && live[r.LiveID].Continues == before.LiveID
	}
	for _, r := range runs {
		found := false
		for i := len(all) - 1; i >= 0 && !found; i-- {
			for _, before := range all[i] {
				if found = goesOn(r, before); found {
					all[i] = append(all[i], r)
					break
				}
			}
		}
		if !found {
			all = append(all, []driver.Run{r})
		}
	}
	return all
}

// normalOfChain makes the normal form of one side of a chain.
func normalOfChain(ctx context.Context, src inspector.Source, known map[string]conversation.Run, chain []driver.Run, id func(driver.Run) string) (*inspector.Normal, error) {
	var runs []conversation.Run
	var names []string
	for _, pair := range chain {
		if r, ok := known[id(pair)]; ok && (len(runs) == 0 || runs[len(runs)-1].ID != r.ID) {
			runs, names = append(runs, r), append(names, inspector.Clean(r.ID))
		}
	}
	normal, err := inspector.LoadNormal(ctx, src, runs)
	if err != nil {
		return nil, err
	}
	normal.Label = ""
	if len(names) > 0 {
		normal.Label = "run " + strings.Join(names, " → ")
	}
	return normal, nil
}

// isCut reports whether a run was cut off on both sides, or the client did not
// see how it ended.
func isCut(r driver.Run) bool {
	return r.ID != "" && r.LiveID != "" && (r.End == "" || r.End == protocol.RunCancelled && r.LiveEnd == protocol.RunCancelled)
}

// onlyCut reports whether two runs differ but in how far they came: what both
// have of a value is the same, and nothing stands elsewhere.
func onlyCut(d *inspector.Diff) bool {
	for i := range d.Pairs {
		p := &d.Pairs[i]
		if p.Moved {
			return false
		}
		for j := range p.Changes {
			a, b := strings.TrimSuffix(p.Changes[j].A, `"`), strings.TrimSuffix(p.Changes[j].B, `"`)
			if !strings.HasPrefix(a, b) && !strings.HasPrefix(b, a) {
				return false
			}
		}
	}
	return true
}
