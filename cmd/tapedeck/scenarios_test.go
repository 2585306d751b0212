package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tapedeck/player"
	"tapedeck/player/actor"
	"tapedeck/player/scenario"
	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
	"tapedeck/proxy"
	"tapedeck/recorder"
)

// TestScenariosThroughTheProxy plays every built-in scenario to a client that
// does what the scenario expects, through the proxy and onto a tape, in real
// time: the tape must hold exactly the findings that the scenario lists, notes
// included, and judging the tape again must give the same.
func TestScenariosThroughTheProxy(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: some scenarios take half a minute")
	}
	recorded := recordAll(t, scenario.Names())
	for _, name := range scenario.Names() {
		t.Run(name, func(t *testing.T) {
			r := recorded[name]
			<-r.done
			if r.err != nil {
				t.Fatal(r.err)
			}
			s, path := r.scenario, r.path
			tape, err := recorder.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer tape.Close()
			found, err := tape.Findings(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			sameFindings(t, s, found)
			if diff := cmp.Diff(found, judgedAgain(t, tape), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("judged live and judged again (-live +again):\n%s", diff)
			}
		})
	}
}

// played is a scenario on its way to a tape.
type played struct {
	scenario *scenario.Scenario
	path     string
	done     chan struct{} // closed when path and err can be used
	err      error
}

// recordAll plays scenarios, many at once: they wait more than they work, and
// t.Parallel would play but one on each processor.
func recordAll(t *testing.T, names []string) map[string]*played {
	t.Helper()
	const atOnce = 32
	dir, places := t.TempDir(), make(chan struct{}, atOnce)
	all := map[string]*played{}
	var waiting sync.WaitGroup
	t.Cleanup(waiting.Wait)
	for _, name := range names {
		s, err := scenario.Builtin(name)
		if err != nil {
			t.Fatal(err)
		}
		p := &played{scenario: s, path: filepath.Join(dir, name+".tape"), done: make(chan struct{})}
		all[name] = p
		waiting.Go(func() {
			defer close(p.done)
			places <- struct{}{}
			defer func() { <-places }()
			p.err = recordScenario(s, p.path)
		})
	}
	return all
}

// recordScenario plays s through a proxy onto a tape.
func recordScenario(s *scenario.Scenario, path string) error {
	return recordPlayer(player.Config{Scenario: s.Name, Scenarios: []*scenario.Scenario{s}}, s, "thread-1", path)
}

// recordPlayer plays the client of s in a thread of a player, through a proxy
// onto a tape.
func recordPlayer(cfg player.Config, s *scenario.Scenario, thread, path string) error {
	return recordThrough(cfg, path, func(ctx context.Context, _, proxy string) error {
		return actor.Play(ctx, s, actor.Options{URL: proxy, Thread: thread, Patience: time.Minute, Linger: 3 * time.Second})
	})
}

// recordThrough starts a player and a proxy in front of it that records on a
// tape, and has somebody act.
func recordThrough(cfg player.Config, path string, act func(ctx context.Context, gateway, proxy string) error) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	behind, err := startBackstage(cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, behind.end(ctx)) }()
	upstream, err := url.Parse(behind.url)
	if err != nil {
		return err
	}
	listeners, _, err := proxy.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		return err
	}
	rec, err := startRecording(recordingOptions{path: path, session: capture.Session{Source: "proxy"}})
	if err != nil {
		return err
	}
	p, err := proxy.New(proxy.Config{Upstream: upstream, Sink: rec, FirstPosition: rec.session.First, Start: rec.start})
	if err != nil {
		return errors.Join(err, rec.close())
	}
	serving, end := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- p.Serve(serving, listeners...) }()
	acted := act(ctx, behind.url, "http://"+listeners[0].Addr().String())
	end()
	err = <-served
	p.Shutdown(ctx)
	return errors.Join(acted, err, rec.close())
}

// sameFindings compares what was found with what a scenario lists.
func sameFindings(t *testing.T, s *scenario.Scenario, found []protocol.Finding) {
	t.Helper()
	var got []string
	for _, f := range found {
		got = append(got, f.Rule)
	}
	if diff := cmp.Diff(counted(expectedRules(s)), counted(got)); diff != "" {
		t.Errorf("findings (-listed +found):\n%s", diff)
		for _, f := range found {
			t.Logf("#%s %s: %s", f.At, f.Rule, f.Text)
		}
	}
}

func expectedRules(s *scenario.Scenario) []string {
	var rules []string
	for _, f := range s.Findings {
		for range max(f.Times, 1) {
			rules = append(rules, f.Rule)
		}
	}
	return rules
}

// counted writes "rule" or "rule × n", sorted.
func counted(rules []string) []string {
	times := map[string]int{}
	for _, rule := range rules {
		times[rule]++
	}
	lines := []string{}
	for rule, n := range times {
		lines = append(lines, strings.TrimSuffix(fmt.Sprintf("%s × %d", rule, n), " × 1"))
	}
	slices.Sort(lines)
	return lines
}

// judgedAgain judges the frames of a tape with one session.
func judgedAgain(t *testing.T, tape *recorder.Reader) []protocol.Finding {
	t.Helper()
	w := &world{stderr: t.Output()}
	sessions, err := tape.Sessions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	again := []protocol.Finding{}
	for _, s := range sessions {
		err := w.judgeSession(t.Context(), tape, s, conversation.Options{}, func(f protocol.Finding) { again = append(again, f) })
		if err != nil {
			t.Fatal(err)
		}
	}
	return again
}
