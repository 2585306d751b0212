package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"tapedeck/player"
	"tapedeck/player/client"
	"tapedeck/player/scenario"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
	"tapedeck/recorder/live"
)

// burst streams some thousand envelopes a second for as long as a test lasts.
const burst = `
title: A burst
pace: {ttft: 1ms, rate: 3000, jitter: 0, chunk: 1}
steps: [{text: {fill: 30000}}]
`

// TestKill kills a recording proxy in the middle of a burst, again and again:
// what its client had seen 100 ms before is on the tape, in order, and the
// session says that it did not end cleanly (B02).
func TestKill(t *testing.T) {
	rounds := 4
	if os.Getenv("CI") == "true" {
		rounds = 20
	}
	if testing.Short() {
		rounds = 1
	}
	if n, err := strconv.Atoi(os.Getenv("TAPEDECK_KILL_ROUNDS")); err == nil {
		rounds = n // as .ci/crash asks
	}
	s, err := scenario.Parse("burst", []byte(burst))
	if err != nil {
		t.Fatal(err)
	}
	behind, err := startBackstage(player.Config{Scenario: s.Name, Scenarios: []*scenario.Scenario{s}})
	if err != nil {
		t.Fatal(err)
	}
	defer behind.end(t.Context())
	binary := buildTapedeck(t)
	path := filepath.Join(t.TempDir(), "killed.tape")
	for round := range rounds {
		killOnce(t, binary, behind.url, path, round)
	}
}

// buildTapedeck builds the command as a user has it.
func buildTapedeck(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "tapedeck")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return binary
}

// killOnce records one more session and kills the proxy at some moment.
func killOnce(t *testing.T, binary, gateway, path string, round int) {
	t.Helper()
	cmd := exec.Command(binary, "proxy", "-q", "-u", gateway, "-l", "127.0.0.1:0", "-w", path)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	address := listensAt(t, stderr)
	seen := &seenEnvelopes{}
	seen.more.L = &seen.mu
	c, err := client.Dial(t.Context(), client.Options{URL: address, Event: seen.add})
	if err != nil {
		t.Fatal(err)
	}
	thread := "thread-" + strconv.Itoa(round)
	start, err := json.Marshal(map[string]string{"threadId": thread, "messageId": "m", "input": "go"})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Emit("run:start", start); err != nil {
		t.Fatal(err)
	}
	seen.wait(100)
	slow := slowest(t, filepath.Dir(path), 150*time.Millisecond+rand.N(400*time.Millisecond)) // some moment of the burst
	killed := time.Now()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait() // it was killed: the error says so
	<-c.Done()
	c.Close()
	lost := 100 * time.Millisecond
	if slow > lost/5 { // a commit waits for the one before, and both for this disk
		lost += 3 * slow
	}
	want := seen.before(killed.Add(-lost))
	got := recordedEnvelopes(t, path)
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			t.Fatalf("round %d: of %d envelopes that the client had seen, the tape has %d; number %d differs", round, len(want), len(got), i+1)
		}
	}
	t.Logf("round %d: %d envelopes seen %v before the kill, %d on the tape", round, len(want), lost, len(got))
}

// slowest writes to the disk for a while, as a recorder does, and returns the
// longest time that one write took to be there: what a machine that is busy with
// other things adds to the time that is lost.
func slowest(t *testing.T, dir string, during time.Duration) (longest time.Duration) {
	t.Helper()
	f, err := os.CreateTemp(dir, "probe")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for end := time.Now().Add(during); time.Now().Before(end); {
		began := time.Now()
		time.Sleep(5 * time.Millisecond)
		if _, err := f.WriteAt(make([]byte, 4096), 0); err != nil {
			t.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
		longest = max(longest, time.Since(began)-5*time.Millisecond)
	}
	return longest
}

var listenLine = regexp.MustCompile(`listening on (\S+)`)

// listensAt reads what a proxy says until it listens.
func listensAt(t *testing.T, stderr io.Reader) string {
	t.Helper()
	lines := bufio.NewScanner(stderr)
	said := ""
	for lines.Scan() {
		said += lines.Text() + "\n"
		if m := listenLine.FindStringSubmatch(lines.Text()); m != nil {
			return m[1]
		}
	}
	t.Fatalf("the proxy does not listen:\n%s", said)
	return ""
}

// seenEnvelopes are those that a client got, with when it got them.
type seenEnvelopes struct {
	mu       sync.Mutex
	more     sync.Cond // on mu
	payloads []string
	at       []time.Time
}

func (s *seenEnvelopes) add(name string, args []json.RawMessage) {
	if name != "run:event" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.payloads = append(s.payloads, string(args[0]))
	s.at = append(s.at, time.Now())
	s.more.Broadcast()
}

// wait waits until n were seen.
func (s *seenEnvelopes) wait(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.at) < n {
		s.more.Wait()
	}
}

func (s *seenEnvelopes) before(t time.Time) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for n < len(s.at) && s.at[n].Before(t) {
		n++
	}
	return s.payloads[:n]
}

// recordedEnvelopes are those of the tape's last session, which must say that it
// was cut off.
func recordedEnvelopes(t *testing.T, path string) []string {
	t.Helper()
	ctx := context.Background()
	tape, err := openTape(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	defer tape.Close()
	sessions, err := tape.Sessions(ctx)
	if err != nil {
		t.Fatal(err)
	}
	last := sessions[len(sessions)-1]
	if last.Clean || last.Live {
		t.Errorf("the session that was killed says clean %v, live %v", last.Clean, last.Live)
	}
	if last.Judged != last.Last {
		t.Errorf("judged up to %d of %d, though it was opened", last.Judged, last.Last)
	}
	return envelopesOf(t, tape, last)
}

func envelopesOf(t *testing.T, tape live.Tape, s capture.Session) []string {
	t.Helper()
	state := conversation.New(conversation.Options{})
	var payloads []string
	for position := s.First; position <= s.Last; {
		page, err := tape.Frames(t.Context(), position, 4096)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for i := range page {
			for _, m := range state.Observe(&page[i]).Messages {
				if m.Envelope != nil {
					payloads = append(payloads, string(m.Payload))
				}
			}
		}
		position = page[len(page)-1].Position + 1
	}
	return payloads
}
