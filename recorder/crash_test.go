package recorder

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"tapedeck/protocol/capture"
)

// crashTape makes this test binary a recorder that is going to be killed.
const crashTape = "RECORDER_TEST_CRASH_TAPE"

// crashFrame is what the killed recorder wrote at a position.
func crashFrame(p capture.Position) capture.Frame {
	rng := rand.New(rand.NewPCG(7, uint64(p)))
	f := capture.Frame{Position: p, At: time.Duration(p) * time.Millisecond, Kind: capture.Text,
		Direction: capture.FromGateway, Data: envelope(rng, "run", int(p))}
	if rng.IntN(500) == 0 {
		f.Data = []byte(strings.Repeat(string(f.Data), 1000)) // a blob
	}
	f.Size = int64(len(f.Data))
	return f
}

// recordUntilKilled writes bursts of frames, and prints the position of each that
// those who follow the tape were shown, line by line.
func recordUntilKilled(path string) {
	s := &capture.Session{Started: epoch}
	w, err := OpenWriter(path, s, WriterOptions{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	go func() {
		for f := range w.Reader().Follow(context.Background(), s.First) {
			fmt.Println(f.Position)
		}
	}()
	for p := s.First; ; time.Sleep(time.Duration(rand.IntN(4)) * time.Millisecond) {
		for range rand.IntN(20) {
			f := crashFrame(p)
			w.Frame(&f)
			p++
		}
	}
}

// A recorder that is killed loses nothing that anybody was shown, and the tape
// stays whole (B02). How soon frames are committed is TestGroupCommit's business.
func TestKilled(t *testing.T) {
	rounds := 5
	if os.Getenv("CI") == "true" {
		rounds = 20
	}
	path := tapePath(t)
	for round := range rounds {
		seen := killRecorder(t, path, time.Duration(150+rand.IntN(300))*time.Millisecond)
		checkBolt(t, path)
		r, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		sessions, err := r.Sessions(t.Context())
		if err != nil || len(sessions) != round+1 {
			t.Fatalf("%d sessions after %d rounds, %v", len(sessions), round+1, err)
		}
		s := sessions[round]
		if s.Clean || !s.Ended.IsZero() || s.Last < seen {
			t.Errorf("session %+v claims to have ended in order, or misses frames up to %d", s, seen)
		}
		all := readAll(t, r)
		if len(all) != int(s.Last) {
			t.Errorf("%d frames, and the last has position %d", len(all), s.Last)
		}
		for i := range all {
			want := crashFrame(capture.Position(i + 1))
			if diff := diffFrames([]capture.Frame{want}, all[i:i+1]); diff != "" {
				t.Fatal(diff)
			}
		}
		if left, err := r.Unjudged(t.Context()); err != nil || len(left) != round+1 {
			t.Errorf("%d sessions are not judged, %v", len(left), err)
		}
		r.Close()
		onlyFile(t, path)
	}
}

// killRecorder runs a recorder for a while, and returns the last position that
// it showed.
func killRecorder(t *testing.T, path string, after time.Duration) capture.Position {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), crashTape+"="+path)
	out, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Scan() // it records
	timer := time.AfterFunc(after, func() { child.Process.Kill() })
	defer timer.Stop()
	last := lines.Text()
	for lines.Scan() {
		last = lines.Text()
	}
	err = child.Wait()
	seen, perr := strconv.ParseUint(last, 10, 64)
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.Exited() || perr != nil {
		t.Fatalf("the recorder ended by itself: %v, %q", err, last)
	}
	return capture.Position(seen)
}

// checkBolt runs bbolt's own check.
func checkBolt(t *testing.T, path string) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.View(func(tx *bolt.Tx) error {
		for err := range tx.Check() {
			t.Error(err)
		}
		return nil
	})
}
