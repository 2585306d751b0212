package main

import (
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tapedeck/inspector"
	"tapedeck/player"
	"tapedeck/player/driver"
	"tapedeck/player/scenario"
	"tapedeck/proxy"
)

// TestDrive is the driver's proof in real time: scenarios are recorded through
// the proxy, and the recorded client is driven against a gateway that does the
// same again, onto another tape: it must find the same way through, and the runs
// must be the same, construct by construct.
func TestDrive(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: some scenarios take seconds, twice")
	}
	names := []string{"several-interrupts", "cancel-mid-text", "two-threads", "gateway-restart", "auth-refused", "disconnect-mid-run"}
	dir := t.TempDir()
	recorded := recordAll(t, names)
	var driving sync.WaitGroup
	defer driving.Wait()
	for _, name := range names {
		driving.Go(func() {
			first := recorded[name]
			if <-first.done; first.err != nil {
				t.Errorf("%s: %v", name, first.err)
				return
			}
			d, err := driveScenario(t, first, filepath.Join(dir, name+".tape"))
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			var text strings.Builder
			if err := d.write(&text, &inspector.Look{}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if _, left := d.Result.Sent(); !d.same() || left > 0 || len(d.Result.Notes) > 0 {
				t.Errorf("%s went another way:\n%s", name, text.String())
			}
		})
	}
}

// driveScenario drives the recorded client of a scenario against a player of it,
// onto another tape.
func driveScenario(t *testing.T, first *played, to string) (*driven, error) {
	behind, err := startBackstage(player.Config{Scenario: first.scenario.Name, Scenarios: []*scenario.Scenario{first.scenario}, Seed: 7, Speed: 4})
	if err != nil {
		return nil, err
	}
	defer behind.end(t.Context())
	upstream, err := url.Parse(behind.url)
	if err != nil {
		return nil, err
	}
	plan := &drivePlan{
		from: first.path, to: to, proxy: proxy.Config{Upstream: upstream},
		options: driver.Options{URL: "http://localhost", Patience: 20 * time.Second, Speed: 4},
	}
	if plan.source, err = openTape(t.Context(), plan.from); err != nil {
		return nil, err
	}
	defer plan.source.Close()
	if err := plan.load(t.Context(), 0, ""); err != nil {
		return nil, err
	}
	if remarks := plan.recording.Remarks(); len(remarks) > 0 {
		t.Errorf("%s: not driven: %q", first.scenario.Name, remarks)
	}
	d, err := plan.record(t.Context(), t.Context())
	if err != nil {
		return nil, err
	}
	return d, d.compare(t.Context(), plan)
}
