package live

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"tapedeck/protocol/capture"
	"tapedeck/recorder"
)

// recorderTape is set where this program is to record on the tape it names,
// until it is killed.
const recorderTape = "TAPEDECK_TEST_RECORD"

func recordUntilKilled(path string) {
	s := &capture.Session{Started: epoch, Source: "proxy", Tool: "test"}
	w := must(recorder.OpenWriter(path, s, recorder.WriterOptions{}))
	l := must(Listen(path))
	go Serve(context.Background(), l, w.Reader(), w.SetMark)
	fmt.Println("recording")
	for p := s.First; ; p++ {
		f := frame(p)
		w.Frame(f)
		time.Sleep(100 * time.Microsecond)
	}
}

// startRecorder returns when another process records on the tape, and what kills
// it.
func startRecorder(t *testing.T, path string) (kill func()) {
	t.Helper()
	child := exec.Command(must(os.Executable()))
	child.Env = append(os.Environ(), recorderTape+"="+path)
	child.Stderr = os.Stderr
	out := must(child.StdoutPipe())
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	kill = func() {
		child.Process.Kill()
		child.Wait()
	}
	t.Cleanup(kill)
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("the other process says %q: %v", line, err)
	}
	return kill
}

// A reader that is open goes with the tape: to the process that begins to write
// it, back to the file when that is killed, and to the next one.
func TestReaderGoesWithTheTape(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.tape")
	w := must(recorder.OpenWriter(path, &capture.Session{Started: epoch}, recorder.WriterOptions{}))
	for p := capture.Position(1); p <= 10; p++ {
		w.Frame(frame(p))
	}
	if err := w.Close(time.Second); err != nil {
		t.Fatal(err)
	}
	r := must(Open(path))
	defer r.Close()
	live := func(session int, want bool) {
		t.Helper()
		sessions, err := r.Sessions(t.Context())
		if err != nil || len(sessions) != session || sessions[session-1].Live != want {
			t.Fatalf("sessions %+v, %v; want %d, the last one live: %v", sessions, err, session, want)
		}
	}
	live(1, false)
	for session := 2; session < 4; session++ {
		kill := startRecorder(t, path)
		live(session, true)
		first := r.client
		next := capture.Position(1)
		for f, err := range r.Follow(t.Context(), 1) {
			if err != nil || f.Position != next {
				t.Fatalf("followed to %d: frame %d, %v", next, f.Position, err)
			}
			if next++; next == capture.Position(500*session) {
				live(session, true)
				if r.client != first {
					t.Error("the process was dialed for another call")
				}
				kill()
			}
		}
		live(session, false)
		asked := r.asked
		frames, err := r.Frames(t.Context(), next-1, 10)
		if err != nil || len(frames) != 1 {
			t.Errorf("the follower stopped at %d: %d frames from there on, %v", next-1, len(frames), err)
		}
		if asked == nil || r.asked != asked {
			t.Error("the socket of a killed process was dialed for another call")
		}
		if left, err := r.Unjudged(t.Context()); err != nil || len(left) != session {
			t.Errorf("%d sessions are unjudged, %v; want %d", len(left), err, session)
		}
	}
}

// Where the file is locked and nobody answers, each call says so.
func TestReaderOfALockedFile(t *testing.T) {
	path, w := recording(t)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	l := must(Listen(path))
	go func() { served <- Serve(ctx, l, w.Reader(), w.SetMark) }()
	r := must(Open(path))
	defer r.Close()
	if _, err := r.Runs(t.Context()); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	for range 2 {
		if _, err := r.Runs(t.Context()); !errors.Is(err, recorder.ErrLocked) {
			t.Errorf("nobody answers: %v, want ErrLocked", err)
		}
	}
	for _, err := range r.Follow(t.Context(), 1) {
		if !errors.Is(err, recorder.ErrLocked) {
			t.Errorf("following where nobody answers: %v, want ErrLocked", err)
		}
	}
	again := must(Listen(path))
	serve(t, again, w.Reader())
	if runs, err := r.Runs(t.Context()); err != nil || len(runs) != 1 {
		t.Errorf("somebody answers again: %d runs, %v", len(runs), err)
	}
	if err := w.Close(time.Second); err != nil {
		t.Error(err)
	}
	// It still answers, and has the tape no more.
	if runs, err := r.Runs(t.Context()); err != nil || len(runs) != 1 {
		t.Errorf("after the session: %d runs, %v", len(runs), err)
	}
}
