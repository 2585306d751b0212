//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"tapedeck/player"
	"tapedeck/player/client"
	"tapedeck/player/engine"
	"tapedeck/player/scenario"
)

// steady streams five hundred envelopes a second for some seconds.
const steady = `
title: A steady stream
pace: {ttft: 1ms, rate: 500, jitter: 0, chunk: 1}
steps: [{text: {fill: 1500}}]
`

// TestFrozenReaders freezes all who look on: nobody reads what the proxy prints,
// and a viewer that is attached to it is stopped by a signal. The sockets stay up
// though they are pinged every 300 ms, the client gets all of it, and so does the
// viewer once it goes on (E11).
func TestFrozenReaders(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it takes seconds")
	}
	s, err := scenario.Parse("steady", []byte(steady))
	if err != nil {
		t.Fatal(err)
	}
	const patience = 300 * time.Millisecond
	behind, err := startBackstage(player.Config{
		Scenario: s.Name, Scenarios: []*scenario.Scenario{s}, Engine: engine.Config{PingInterval: patience, PingTimeout: patience},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer behind.end(t.Context())
	binary, path := buildTapedeck(t), filepath.Join(t.TempDir(), "frozen.tape")
	proxy := exec.Command(binary, "proxy", "-u", behind.url, "-l", "127.0.0.1:0", "-w", path)
	unread, err := proxy.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := proxy.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := proxy.Start(); err != nil {
		t.Fatal(err)
	}
	defer proxy.Process.Kill()
	seen := &seenEnvelopes{}
	seen.more.L = &seen.mu
	c, err := client.Dial(t.Context(), client.Options{URL: listensAt(t, stderr), Event: seen.add})
	if err != nil {
		t.Fatal(err)
	}
	viewer := startViewer(t, binary, path)
	start, err := json.Marshal(map[string]string{"threadId": "t", "messageId": "m", "input": "go"})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Emit("run:start", start); err != nil {
		t.Fatal(err)
	}
	viewer.freeze()
	const envelopes = 1504 // with the run's beginning and end
	seen.wait(envelopes)
	select {
	case <-c.Done():
		t.Error("the socket was closed")
	default:
	}
	viewer.thaw()
	viewer.wait(envelopes)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	go io.Copy(io.Discard, unread) // or it could not say goodbye
	if err := proxy.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, stderr)
	if err := proxy.Wait(); err != nil {
		t.Errorf("the proxy ended with %v", err)
	}
}

// viewer is a process that looks on.
type viewer struct {
	t   *testing.T
	cmd *exec.Cmd

	mu    sync.Mutex
	more  sync.Cond // on mu
	lines int       // envelopes that it showed
}

func startViewer(t *testing.T, binary, path string) *viewer {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	v := &viewer{t: t, cmd: exec.CommandContext(ctx, binary, "tail", "-r", path, "--raw", "--format", "jsonl", "-q")}
	v.more.L = &v.mu
	v.cmd.Stdout = v
	if err := v.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		v.cmd.Wait() // it is killed: the error says so
	})
	return v
}

// Write counts what it shows.
func (v *viewer) Write(text []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.lines += bytes.Count(text, []byte(`"name":"run:event"`))
	v.more.Broadcast()
	return len(text), nil
}

// freeze stops it in the middle of the run.
func (v *viewer) freeze() {
	v.wait(100)
	if err := v.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		v.t.Fatal(err)
	}
}

func (v *viewer) thaw() {
	if err := v.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		v.t.Fatal(err)
	}
}

// wait waits until it has shown so many envelopes.
func (v *viewer) wait(n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for v.lines < n {
		v.more.Wait()
	}
}
