package player_test

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tapedeck/player"
	"tapedeck/player/scenario"
	"tapedeck/player/tape"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// parse reads a scenario that a test wrote down.
func parse(t *testing.T, text string) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse("test", []byte("title: test\nabout: test\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// record plays a scenario with its own client.
func record(t *testing.T, s *scenario.Scenario) frames {
	t.Helper()
	return player.Rehearse(t, player.Config{Scenario: s.Name, Scenarios: []*scenario.Scenario{s}}, s, "thread-1")
}

// replay plays a recording to a client that makes the moves of text.
func replay(t *testing.T, recorded frames, o tape.Options, c player.Config, moves string) []capture.Frame {
	t.Helper()
	source, err := tape.New(t.Context(), recorded, o)
	if err != nil {
		t.Fatal(err)
	}
	c.Source = source
	return player.Rehearse(t, c, parse(t, "steps: [{text: x}]\n"+moves), "live")
}

// events are the envelopes that a client was sent: their times, their threads,
// and what they are without their ids.
func events(list []capture.Frame) (lines []string, times []time.Duration) {
	for _, f := range list {
		data, ok := strings.CutPrefix(string(f.Data), `42["run:event",`)
		if !ok || f.Direction != capture.FromGateway {
			continue
		}
		var e struct {
			ThreadID string
			Sequence int
			Event    struct{ Type, Delta, Status string }
		}
		if json.Unmarshal([]byte(strings.TrimSuffix(data, "]")), &e) != nil {
			continue
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %d %s %s%s", e.ThreadID, e.Sequence, e.Event.Type, e.Event.Delta, e.Event.Status)))
		times = append(times, f.At)
	}
	return lines, times
}

// clean fails if a client was sent what it should not be.
func clean(t *testing.T, list []capture.Frame, allowed ...string) {
	t.Helper()
	state := conversation.New(conversation.Options{})
	for i := range list {
		for _, f := range state.Observe(&list[i]).Findings {
			if !slices.Contains(allowed, f.Rule) {
				t.Errorf("%s at %s: %s", f.Rule, f.At, f.Text)
			}
		}
	}
}

const letter = `
seed: 3
steps:
  - text: {fill: 600}
client:
  - join: true
  - start: Write
  - when: RUN_FINISHED
    await: true
`

const cancelled = `
seed: 3
steps:
  - text: {fill: 6000}
client:
  - join: true
  - start: Write
  - when: TEXT_MESSAGE_CONTENT*100
    cancel: run
  - when: RUN_CANCELLED
    await: true
`

// TestCancelled: a run:cancel ends a recorded run at any moment, with the next
// number, whether one was recorded or not. The recorded one is waited for.
func TestCancelled(t *testing.T) {
	for _, c := range []struct {
		name, recorded, moves string
		last                  string
		least, most           int // envelopes
	}{
		{"none was recorded", letter, "client: [{start: Write}, {when: TEXT_MESSAGE_CONTENT*5, cancel: run}]", "RUN_CANCELLED", 8, 8},
		{"long before the recorded one", cancelled, "client: [{start: Write}, {when: TEXT_MESSAGE_CONTENT*3, cancel: run}]", "RUN_CANCELLED", 6, 6},
		{"shortly before the recorded one", cancelled, "client: [{start: Write}, {when: TEXT_MESSAGE_CONTENT*90, cancel: run}]", "RUN_CANCELLED", 103, 103},
		{"long after the recorded one", cancelled, "client: [{start: Write}, {when: TEXT_MESSAGE_CONTENT*100, after: 1h, cancel: run}]", "RUN_CANCELLED", 103, 103},
		{"never", cancelled, "client: [{start: Write}, {when: TEXT_MESSAGE_CONTENT*100, after: 1h, await: true}]", "TEXT_MESSAGE_CONTENT", 102, 102},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := replay(t, record(t, parse(t, c.recorded)), tape.Options{}, player.Config{}, c.moves)
			lines, _ := events(got)
			if n := len(lines); n < c.least || n > c.most || !strings.Contains(lines[n-1], c.last) {
				t.Errorf("%d envelopes, the last of them %q; want %d to %d and %s", n, lines[n-1], c.least, c.most, c.last)
			}
			clean(t, got, "run-open-items", "run-unfinished", "stall")
		})
	}
}

// TestDetached: a subagent that was never detached in the recording can be, and
// one that was waits for its run:detach.
func TestDetached(t *testing.T) {
	work := `
seed: 4
steps:
  - subagent:
      id: one
      name: researcher
      prompt: Read.
      steps:
        - text: I begin with the first manual.
        - tool: {name: read_manual, arguments: {number: 1}, took: 5s, result: read}
        - text: Done.
      result: read
  - text: That was all.
client:
  - join: true
  - start: Read
  - when: `
	alone := record(t, parse(t, work+"RUN_FINISHED\n    await: true"))
	detached := record(t, parse(t, work+"TEXT_MESSAGE_END\n    detach: all\n  - when: task:status*2\n    await: true"))
	moves := "client: [{start: Read}, {when: TEXT_MESSAGE_END, detach: all}, {when: RUN_FINISHED, thread: task, join: true}, {after: 30s, await: true}]"
	for name, recorded := range map[string]frames{"none was recorded": alone, "one was recorded": detached} {
		t.Run(name, func(t *testing.T) {
			got := replay(t, recorded, tape.Options{}, player.Config{}, moves)
			all := ""
			for _, f := range got {
				all += string(f.Data) + "\n"
			}
			for _, want := range []string{`"detached":true`, `42["task:status"`, `"status":"running"`, `"type":"RUN_FINISHED"`} {
				if !strings.Contains(all, want) {
					t.Errorf("%s did not come", want)
				}
			}
			clean(t, got)
		})
	}
	got := replay(t, detached, tape.Options{}, player.Config{}, "client: [{start: Read}, {after: 1h, await: true}]")
	if lines, _ := events(got); strings.Contains(strings.Join(lines, "\n"), "RUN_FINISHED") {
		t.Errorf("the run went on without the run:detach that it waited for: %q", lines)
	}
}

// TestHumansAreNotSlept: what a person took on the tape is not waited for, and
// the person of today may take as long as they like, and answer in any order.
func TestHumansAreNotSlept(t *testing.T) {
	recorded := record(t, parse(t, `
steps:
  - interrupt: {id: first, payload: {question: "Send?"}}
  - interrupt: {id: second, payload: {question: "Charge?"}}
  - text: Thank you.
client:
  - join: true
  - start: Settle it
  - when: RUN_FINISHED
    after: 20m
    resume: true
  - after: 20m
    resume: false
  - when: RUN_FINISHED
    await: true
`))
	for _, wait := range []string{"0s", "3h"} {
		got := replay(t, recorded, tape.Options{}, player.Config{}, `
client:
  - start: Settle it
  - {when: RUN_FINISHED, after: `+wait+`, which: "2", resume: false}
  - {resume: true}
  - {when: RUN_FINISHED, await: true}`)
		lines, times := events(got)
		clean(t, got)
		length, err := time.ParseDuration(wait)
		if err != nil {
			t.Fatal(err)
		}
		if took := times[len(times)-1] - length; took > 5*time.Second || !strings.Contains(lines[len(lines)-1], "RUN_FINISHED") {
			t.Errorf("with a wait of %s the run took %v besides, and ended with %q", wait, took, lines[len(lines)-1])
		}
	}
}

// TestOtherAnswer: an answer of which another recording of the question tells
// leads to where it led there; with --match input, an answer that was never
// given is refused by name.
func TestOtherAnswer(t *testing.T) {
	approval := func(answer string) string {
		return `
steps:
  - interrupt: {id: go, payload: {question: "Shall I?"}}
  - answer:
      - {if: yes, steps: [{text: I did.}]}
      - steps: [{text: I did not.}]
client:
  - {start: Do it}
  - {when: RUN_FINISHED, resume: ` + answer + `}
  - {when: RUN_FINISHED, await: true}
`
	}
	both := record(t, parse(t, strings.Replace(approval("yes"), "await: true}", "thread: -b, start: Do it}\n  - {when: RUN_FINISHED, thread: -b, resume: no}\n  - {when: RUN_FINISHED, await: true}", 1)))
	got := replay(t, both, tape.Options{}, player.Config{}, "client: [{start: Do it}, {when: RUN_FINISHED, resume: no}, {when: RUN_FINISHED, await: true}]")
	lines, _ := events(got)
	if said := strings.Join(lines, ""); !strings.Contains(said, "not.") {
		t.Errorf("the answer no led to %q", lines)
	}
	clean(t, got)
	got = replay(t, both, tape.Options{Match: tape.MatchInput}, player.Config{},
		"client: [{start: Do it}, {when: RUN_FINISHED, resume: maybe, refused: INVALID_COMMAND}]")
	clean(t, got)
}

// TestCallers (P01, P06): two threads play one recording at once. Each gets the
// whole run, once and in order, and no id of the other or of the tape.
func TestCallers(t *testing.T) {
	recorded := record(t, parse(t, letter))
	got := replay(t, recorded, tape.Options{Seed: 5}, player.Config{Seed: 5}, `
client:
  - {start: Write}
  - {after: 200ms, thread: -b, window: 1, start: Write}
  - {after: 5m, await: true}`)
	clean(t, got)
	want, _ := events(recorded)
	lines, _ := events(got)
	for _, thread := range []string{"live", "live-b"} {
		var own []string
		for _, line := range lines {
			if rest, ok := strings.CutPrefix(line, thread+" "); ok {
				own = append(own, "thread-1 "+rest)
			}
		}
		if !slices.Equal(own, want) {
			t.Errorf("%s got %d envelopes, %d were recorded, or in another order", thread, len(own), len(want))
		}
	}
	ids := regexp.MustCompile(`(run|msg)_[0-9a-z-]+`)
	owners := map[string]int{}
	for _, f := range got {
		for _, id := range ids.FindAllString(string(f.Data), -1) {
			if there, ok := owners[id]; ok && there != int(f.Connection) {
				t.Fatalf("%s is told on two sockets", id)
			}
			owners[id] = int(f.Connection)
		}
	}
	for _, f := range recorded {
		for _, id := range ids.FindAllString(string(f.Data), -1) {
			if _, ok := owners[id]; ok {
				t.Fatalf("%s is the tape's", id)
			}
		}
	}
}

// TestSeed (P04): the same seed gives the same bytes, another one other ids.
func TestSeed(t *testing.T) {
	recorded := record(t, parse(t, letter))
	said := func(seed uint64) string {
		all := ""
		for _, f := range replay(t, recorded, tape.Options{Seed: seed}, player.Config{Seed: seed}, "client: [{start: Write}, {when: RUN_FINISHED, join: true}]") {
			all += string(f.Data)
		}
		return all
	}
	first, again, other := said(1), said(1), said(2)
	if first != again {
		t.Error("one seed gave two streams")
	}
	if first == other {
		t.Error("two seeds gave one stream")
	}
}

// TestPace (P03): gaps are as they were recorded, halved at twice the speed, left
// out at the highest, and bounded by the longest that is wished; over 10,000
// envelopes nothing adds up.
func TestPace(t *testing.T) {
	recorded := record(t, parse(t, `
pace: {rate: max, ttft: 0s}
steps:
  - todos: []
  - wait: 100ms
  - todos: []
  - wait: 1s
  - todos: []
  - wait: 5s
  - todos: []
client:
  - {start: Go}
  - {when: RUN_FINISHED, await: true}
`))
	for _, c := range []struct {
		config player.Config
		want   []time.Duration
	}{
		{player.Config{}, []time.Duration{100, 1000, 5000}},
		{player.Config{Speed: 2}, []time.Duration{50, 500, 2500}},
		{player.Config{Speed: math.Inf(1)}, []time.Duration{0, 0, 0}},
		{player.Config{MaxGap: 2 * time.Second}, []time.Duration{100, 1000, 2000}},
	} {
		_, times := events(replay(t, recorded, tape.Options{}, c.config, "client: [{start: Go}, {when: RUN_FINISHED, await: true}]"))
		for i, want := range c.want {
			if got := times[i+2] - times[i+1]; got != want*time.Millisecond {
				t.Errorf("speed %g, max gap %v: gap %d is %v, want %dms", c.config.Speed, c.config.MaxGap, i+1, got, want)
			}
		}
	}
	long := record(t, parse(t, "steps: [{text: {fill: 10000, chunk: char, rate: 100}}]\nclient: [{start: Go}, {when: RUN_FINISHED, await: true}]"))
	_, first := events(long)
	_, second := events(replay(t, long, tape.Options{}, player.Config{}, "client: [{start: Go}, {when: RUN_FINISHED, await: true}]"))
	if n := len(first); n < 10_000 || len(second) != n || second[n-1]-second[0] != first[n-1]-first[0] {
		t.Errorf("%d envelopes took %v, and %d took %v", len(first), first[len(first)-1]-first[0], len(second), second[len(second)-1]-second[0])
	}
}

// TestDropsAreAsked: without --with-drops a socket that was cut in the recording
// stays, and hears all of the run, what was sent while nobody listened included.
func TestDropsAreAsked(t *testing.T) {
	s, err := scenario.Builtin("flapping")
	if err != nil {
		t.Fatal(err)
	}
	recorded := record(t, s)
	got := replay(t, recorded, tape.Options{}, player.Config{}, "client: [{start: Go on}, {when: RUN_FINISHED, await: true}]")
	clean(t, got)
	for _, f := range got {
		if f.Kind == capture.End {
			t.Error("the socket was cut")
		}
	}
	lines, _ := events(got)
	for i, line := range lines {
		if !strings.HasPrefix(line, fmt.Sprintf("live %d ", i+1)) {
			t.Fatalf("envelope %d is %q", i+1, line)
		}
	}
}

// TestJoinAnywhere: a second window may join a recorded run at any moment, and a
// reload after its end shows what the recorded one showed.
func TestJoinAnywhere(t *testing.T) {
	recorded := record(t, parse(t, letter))
	for _, when := range []string{"RUN_STARTED", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CONTENT*40", "RUN_FINISHED"} {
		got := replay(t, recorded, tape.Options{}, player.Config{}, "client: [{join: true}, {start: Write}, {when: "+when+", window: 1, join: true}, {after: 5m, await: true}]")
		clean(t, got)
	}
}

// TestMissIsExplained (P05): a run:start that no recorded run fits is refused at
// once, by what differs; or it is answered as --on-miss says.
func TestMissIsExplained(t *testing.T) {
	recorded := record(t, parse(t, letter))
	missed := "client: [{start: Wrote, refused: INVALID_COMMAND}]"
	got := replay(t, recorded, tape.Options{Match: tape.MatchInput}, player.Config{}, missed)
	said := string(got[len(got)-1].Data)
	for _, want := range []string{"nearest", "thread-1", `input is \"Write\"`, `here is \"Wrote\"`} {
		if !strings.Contains(said, want) {
			t.Errorf("the refusal does not say %s: %s", want, said)
		}
	}
	hello, err := scenario.Builtin("hello")
	if err != nil {
		t.Fatal(err)
	}
	any := "client: [{start: Wrote}, {when: RUN_FINISHED, start: And again}, {when: RUN_FINISHED, await: true}]"
	for _, o := range []tape.Options{
		{Match: tape.MatchInput, OnMiss: tape.MissNext},
		{Match: tape.MatchInput, OnMiss: tape.MissScenario, Fallback: hello},
	} {
		clean(t, replay(t, recorded, o, player.Config{}, any))
	}
}

// TestHonestForms: what no built-in scenario has is proved, too: a run that goes
// on under its own id, tools and attachments in a command, another window that
// answers.
func TestHonestForms(t *testing.T) {
	for name, text := range map[string]string{
		"the same run goes on": `
resume: same-run
steps:
  - text: First.
  - interrupt: {id: a, payload: {question: "One?"}}
  - text: Second.
  - interrupt: {id: b, payload: {question: "Two?"}}
  - text: Third.
client:
  - {join: true}
  - {start: Go}
  - {when: RUN_FINISHED, after: 5s, window: 1, join: true}
  - {window: 1, resume: 1}
  - {when: RUN_FINISHED, resume: 2}
  - {when: RUN_FINISHED, join: true}
`,
		"questions again and again": `
runs:
  - steps: [{text: "{{input}} it is."}]
client:
  - {start: Blue}
  - {when: RUN_FINISHED, start: Blue}
  - {when: RUN_FINISHED, start: Red}
  - {when: RUN_FINISHED, start: Blue}
  - {when: RUN_FINISHED, thread: -b, start: Blue}
  - {when: RUN_FINISHED, join: true}
`,
	} {
		t.Run(name, func(t *testing.T) {
			s := parse(t, "seed: 9\n"+text)
			first := record(t, s)
			source, err := tape.New(t.Context(), first, tape.Options{})
			if err != nil {
				t.Fatal(err)
			}
			same(t, first, player.Rehearse(t, player.Config{Source: source}, s, "live"))
		})
	}
}
