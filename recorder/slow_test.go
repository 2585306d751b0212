package recorder

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tapedeck/protocol/capture"
)

// On a slow disk the frames wait, 4 MiB of them, and then whoever brings them.
// Nothing is lost.
func TestSlowDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := tapePath(t)
		w, _ := newTape(t, path, WriterOptions{})
		disk := make(chan struct{})
		w.mu.Lock()
		w.gate = func() { <-disk }
		w.mu.Unlock()
		all := frames(1, 3000)
		for i := range all {
			all[i].Data = append(all[i].Data, strings.Repeat(string(all[i].Data[:80]), 100)...)
			all[i].Size = int64(len(all[i].Data))
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			write(w, all)
		}()
		synctest.Wait()
		select {
		case <-done:
			t.Fatal("24 MB were taken at once")
		default:
		}
		w.mu.Lock()
		waiting := w.waiting().all
		w.mu.Unlock()
		if waiting > maxPending || waiting < maxPending-10_000 {
			t.Errorf("%d bytes wait, want just under %d", waiting, maxPending)
		}
		close(disk)
		<-done
		closeWriter(t, w, time.Second)
		if diff := diffFrames(all, readAll(t, open(t, path))); diff != "" {
			t.Error(diff)
		}
	})
}

// While what was written waits to be observed, so do the frames behind it, also
// when the tape cannot be written any more. All are observed, in their order.
func TestSlowObserver(t *testing.T) {
	for _, broken := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			look := make(chan struct{})
			var seen []capture.Frame
			w, _ := newTape(t, tapePath(t), WriterOptions{Observe: func(frames []capture.Frame) {
				<-look
				for _, f := range frames {
					f.Data = bytes.Clone(f.Data)
					seen = append(seen, f)
				}
			}})
			if broken {
				w.mu.Lock()
				w.err = errors.New("the disk is gone")
				w.mu.Unlock()
			}
			all := frames(1, 3000)
			for i := range all {
				all[i].Data = append(all[i].Data, strings.Repeat(string(all[i].Data[:80]), 100)...)
				all[i].Size = int64(len(all[i].Data))
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				write(w, all)
			}()
			synctest.Wait()
			select {
			case <-done:
				t.Fatal("24 MB were taken at once")
			default:
			}
			if w.Waits() != 1 {
				t.Errorf("%d waits, want 1", w.Waits())
			}
			close(look)
			<-done
			w.Drain()
			if diff := diffFrames(all, seen); diff != "" {
				t.Error(diff)
			}
			w.Index(&Index{Judged: 3000})
			if err := w.Close(time.Second); !errors.Is(err, w.err) {
				t.Errorf("Close returned %v", err)
			}
			if w.session.Judged != 3000 && !broken {
				t.Errorf("judged up to %d, want 3000", w.session.Judged)
			}
		})
	}
}

// Long frames that wait leave the short ones their room.
func TestShortBesideLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := make(chan struct{})
		path := tapePath(t)
		w, _ := newTape(t, path, WriterOptions{})
		w.mu.Lock()
		w.gate = func() { <-disk }
		w.mu.Unlock()
		all := frames(1, 8)
		for i := range 3 {
			all[2*i].Data = bytes.Repeat([]byte{byte(i)}, 5<<20)
			all[2*i].Size = 5 << 20
		}
		write(w, all) // three long ones, and five short ones among them
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.Frame(&capture.Frame{Position: 9, Kind: capture.Text, Size: 5 << 20, Data: make([]byte, 5<<20)})
		}()
		synctest.Wait()
		select {
		case <-done:
			t.Fatal("a fourth long frame was taken")
		default:
		}
		close(disk)
		<-done
		closeWriter(t, w, time.Second)
		if got := readAll(t, open(t, path)); len(got) != 9 || diffFrames(all, got[:8]) != "" {
			t.Errorf("%d frames: %s", len(got), diffFrames(all, got[:8]))
		}
	})
}

// A frame over the limit passes alone.
func TestLongFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := tapePath(t)
		w, _ := newTape(t, path, WriterOptions{})
		all := frames(1, 3)
		all[0].Data = bytes.Repeat([]byte("0123456789abcdef"), maxLong/16+1)
		all[1].Data = bytes.Repeat([]byte("fedcba9876543210"), maxLong/16+1)
		write(w, all)
		closeWriter(t, w, time.Second)
		if diff := diffFrames(all, readAll(t, open(t, path))); diff != "" {
			t.Error(diff)
		}
	})
}

// A Frame that does not follow the one before is a fault, not a hole.
func TestPositionsAreDense(t *testing.T) {
	path := tapePath(t)
	w, _ := newTape(t, path, WriterOptions{})
	write(w, frames(1, 10))
	w.Frame(&capture.Frame{Position: 12})
	if err := w.Close(0); err == nil || !strings.Contains(err.Error(), "record frame 12: the next one is 11") {
		t.Errorf("Close returned %v", err)
	}
	w.Frame(&capture.Frame{Position: 13})
	w.Index(&Index{Judged: 13})
	if err := w.Close(0); err != nil {
		t.Errorf("a second Close returned %v", err)
	}
	sessions, err := open(t, path).Sessions(t.Context())
	if err != nil || sessions[0].Clean || sessions[0].Fault == "" {
		t.Errorf("sessions %+v, %v", sessions, err)
	}
}

// A frame is on the disk 15 ms after it came, or at once if 1,000 or 1 MiB of them
// wait.
func TestGroupCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := newTape(t, tapePath(t), WriterOptions{})
		kept := func(want int) {
			t.Helper()
			synctest.Wait()
			got, err := w.Reader().Frames(t.Context(), 1, 10_000)
			if err != nil || len(got) != want {
				t.Errorf("%d frames are committed, %v; want %d", len(got), err, want)
			}
		}
		all := frames(1, 2+commitFrames)
		write(w, all[:1])
		kept(0)
		time.Sleep(commitDelay - time.Nanosecond)
		kept(0)
		time.Sleep(time.Nanosecond)
		kept(1)
		write(w, all[1:commitFrames])
		kept(1)
		write(w, all[commitFrames:1+commitFrames])
		kept(1 + commitFrames)
		long := all[1+commitFrames]
		long.Data = bytes.Repeat([]byte{'x'}, commitBytes)
		w.Frame(&long)
		kept(2 + commitFrames)
	})
}
