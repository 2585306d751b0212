package recorder

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"tapedeck/protocol/capture"
)

// A reader that is open keeps nobody out, is told while somebody writes, and
// reads on from what was written.
func TestReaderKeepsNobodyOut(t *testing.T) {
	path := tapePath(t)
	w, s := newTape(t, path, WriterOptions{})
	all := frames(s.First, 3000)
	write(w, all)
	closeWriter(t, w, time.Second)
	r := open(t, path)
	if diff := diffFrames(all, readAll(t, r)); diff != "" {
		t.Error(diff)
	}
	read := r.guest.others()

	w, s = newTape(t, path, WriterOptions{})
	if _, err := r.Frames(t.Context(), 1, 1); !errors.Is(err, ErrLocked) {
		t.Errorf("reading while another writes: %v", err)
	}
	more := frames(s.First, 3000)
	write(w, more)
	closeWriter(t, w, time.Second)
	all = append(all, more...)
	if diff := diffFrames(all, readAll(t, r)); diff != "" {
		t.Error(diff)
	}
	if sessions, err := r.Sessions(t.Context()); err != nil || len(sessions) != 2 {
		t.Errorf("%d sessions, %v", len(sessions), err)
	}
	if n := r.guest.others() - read; n != 1 {
		t.Errorf("the pages were looked through %d times, want once", n)
	}

	x, err := OpenIndexer(path, 1)
	if err == nil {
		err = x.Close()
	}
	if err != nil {
		t.Errorf("indexing while another reads: %v", err)
	}
	if _, err := Prune(t.Context(), path, Policy{Last: 1}); err != nil {
		t.Errorf("pruning while another reads: %v", err)
	}
	if diff := diffFrames(more, readAll(t, r)); diff != "" {
		t.Errorf("after the first session was dropped: %s", diff)
	}
}

// Whoever reads all the time lets a writer in too.
func TestBusyReaders(t *testing.T) {
	path := tapePath(t)
	w, s := newTape(t, path, WriterOptions{})
	write(w, frames(s.First, 20_000))
	closeWriter(t, w, time.Second)
	r := open(t, path)
	ctx, stop := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for from := capture.Position(1); ctx.Err() == nil; from += 1000 {
				some, err := r.Frames(ctx, from, 1000)
				if err != nil && !errors.Is(err, ErrLocked) && ctx.Err() == nil {
					t.Error(err)
				}
				if len(some) == 0 {
					from = 1
				}
			}
		})
	}
	for range 5 {
		w, _ := newTape(t, path, WriterOptions{})
		closeWriter(t, w, 0)
	}
	stop()
	readers.Wait()
}

// What becomes of a file while it is open is told as if it were opened then.
func TestReaderOfAnotherFile(t *testing.T) {
	path := tapePath(t)
	w, s := newTape(t, path, WriterOptions{})
	write(w, frames(s.First, 2000))
	closeWriter(t, w, time.Second)
	r := open(t, path)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		make func() error
		want error
	}{
		{"cut", func() error { return os.Truncate(path, int64(len(whole)/2)) }, ErrDamaged},
		{"empty", func() error { return os.Truncate(path, 0) }, ErrEmpty},
		{"whole again", func() error { return os.WriteFile(path, whole, 0o600) }, nil},
		{"gone", func() error { return os.Remove(path) }, os.ErrNotExist},
		{"text", func() error { return os.WriteFile(path, []byte("no tape"), 0o600) }, ErrForeign},
		{"another", func() error { return errors.Join(os.Remove(path), os.WriteFile(path, whole, 0o600)) }, nil},
	} {
		if err := c.make(); err != nil {
			t.Fatal(err)
		}
		frames, err := r.Frames(t.Context(), 1, 1000)
		if !errors.Is(err, c.want) || (err == nil) != (len(frames) == 1000) {
			t.Errorf("%s: %d frames, %v; want %v", c.name, len(frames), err, c.want)
		}
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if _, err := r.Runs(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	// A refusal leaves no lock behind.
	os.Truncate(path, int64(len(whole)/2))
	for range 3 {
		if _, err := OpenWriter(path, &capture.Session{}, WriterOptions{}); !errors.Is(err, ErrDamaged) {
			t.Errorf("opening a damaged tape again: %v", err)
		}
	}
}

// What is missed in a file since another took its place is looked for there.
func TestSteady(t *testing.T) {
	path := tapePath(t)
	for range 2 {
		w, s := newTape(t, path, WriterOptions{})
		write(w, frames(s.First, 100))
		closeWriter(t, w, time.Second)
	}
	r := open(t, path)
	missed := &LostError{First: 1, Last: 1, Reason: errChecksum}
	tries := 0
	found, err := r.steady(func() ([]capture.Frame, error) {
		if tries++; tries > 1 {
			return r.frames(t.Context(), 1, 200)
		}
		if _, err := Prune(t.Context(), path, Policy{Last: 1}); err != nil {
			t.Error(err)
		}
		if _, err := r.Runs(t.Context()); err != nil {
			t.Error(err)
		}
		return nil, missed
	})
	if err != nil || len(found) != 100 || found[0].Position != 101 || tries != 2 {
		t.Errorf("%d frames in %d tries, %v; want those from 101 on in two", len(found), tries, err)
	}
	tries = 0
	_, err = r.steady(func() ([]capture.Frame, error) { tries++; return nil, missed })
	if !errors.Is(err, missed) || tries != 1 {
		t.Errorf("a loss in the same file: %v in %d tries, want it told at once", err, tries)
	}
}

// A file that shrinks while it is read is an error, and its lock is given back.
func TestShrinkingFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a mapped file cannot be cut there")
	}
	path := tapePath(t)
	w, s := newTape(t, path, WriterOptions{})
	write(w, frames(s.First, 20_000))
	closeWriter(t, w, time.Second)
	r := open(t, path)
	err := r.view(t.Context(), func(tx *bolt.Tx) error {
		if err := os.Truncate(path, 2*int64(os.Getpagesize())); err != nil {
			return err
		}
		return tx.Bucket([]byte(frameBucket)).ForEach(func(_, value []byte) error { return nil })
	})
	if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v, want ErrDamaged and the file", err)
	}
	if r.guest.users != 0 {
		t.Errorf("%d transactions are under way", r.guest.users)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	w, _ = newTape(t, path, WriterOptions{})
	closeWriter(t, w, 0)
	if sessions, err := r.Sessions(t.Context()); err != nil || len(sessions) != 1 {
		t.Errorf("a new tape in its place: %d sessions, %v", len(sessions), err)
	}
}
