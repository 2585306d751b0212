package main

import (
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tapedeck/player"
	"tapedeck/player/scenario"
	"tapedeck/player/tape"
	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/wire"
	"tapedeck/recorder"
)

// TestReplay is the honest player's proof with nothing left out: scenarios are
// recorded through the proxy onto tapes, the tapes are played to a client that
// makes the same moves, and that is recorded again. Each socket is sent the same
// envelopes, up to the ids, and the same rules are broken. Package player has the
// same proof for all scenarios, to the millisecond, on a clock of its own.
func TestReplay(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: some scenarios take a quarter of a minute, twice")
	}
	names := []string{"kitchen-sink", "several-interrupts", "disconnect-mid-run", "cancel-mid-text", "detach", "malformed-gap",
		"malformed-wrong-thread", "binary-frame", "auth-refused", "gateway-restart", "unicode"}
	recorded := recordAll(t, names)
	dir := t.TempDir()
	t.Run("all", func(t *testing.T) {
		for _, name := range names {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				first := recorded[name]
				<-first.done
				if first.err != nil {
					t.Fatal(first.err)
				}
				second := filepath.Join(dir, name+".tape")
				playTape(t, first.scenario, first.path, second)
				if diff := cmp.Diff(sent(t, first.path), sent(t, second)); diff != "" {
					t.Errorf("envelopes (-recorded +played):\n%s", diff)
				}
				rules := cmpopts.SortSlices(func(a, b string) bool { return a < b })
				if diff := cmp.Diff(broken(t, first.path), broken(t, second), rules, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("findings (-recorded +played):\n%s", diff)
				}
			})
		}
	})
}

// playTape plays a tape to the client of a scenario, onto another tape.
func playTape(t *testing.T, s *scenario.Scenario, from, to string) {
	t.Helper()
	reader, err := recorder.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	source, err := tape.New(t.Context(), reader, tape.Options{WithDrops: true, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	if err := recordPlayer(player.Config{Source: source, Seed: 3}, s, "another-thread", to); err != nil {
		t.Fatal(err)
	}
	if n := source.Misses(); n != 0 {
		t.Errorf("%d commands found no recorded run", n)
	}
}

var ids = regexp.MustCompile(`"(threadId|runId|messageId|toolCallId|interruptId|taskId|childThreadId|parentMessageId|id)":"([^"]*)"`)

// sent are the envelopes that each socket of a tape was sent, in order, each id
// as the number of its first appearance.
func sent(t *testing.T, path string) map[int][]string {
	t.Helper()
	var decoder wire.Decoder
	numbers := map[string]string{}
	sockets := map[capture.Position]int{}
	out := map[int][]string{}
	for _, f := range framesOf(t, path) {
		if f.Kind == capture.Open {
			sockets[f.Position] = len(sockets) + 1
		}
		for _, p := range decoder.Decode(&f) {
			if p.Name != string(protocol.RunEvent) {
				continue
			}
			line := ids.ReplaceAllFunc(p.Args[0], func(member []byte) []byte {
				id := string(ids.FindSubmatch(member)[2])
				if numbers[id] == "" {
					numbers[id] = strconv.Itoa(len(numbers) + 1)
				}
				return []byte("#" + numbers[id])
			})
			socket := sockets[f.Connection]
			out[socket] = append(out[socket], string(line))
		}
	}
	return out
}

func framesOf(t *testing.T, path string) (all []capture.Frame) {
	t.Helper()
	reader, err := recorder.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	for next := capture.Position(1); ; {
		page, err := reader.Frames(t.Context(), next, settlePage)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			return all
		}
		all = append(all, page...)
		next = page[len(page)-1].Position + 1
	}
}

// broken are the rules that the findings of a tape name.
func broken(t *testing.T, path string) (rules []string) {
	t.Helper()
	reader, err := recorder.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	found, err := reader.Findings(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		rules = append(rules, f.Rule)
	}
	return rules
}
