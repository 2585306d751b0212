package recorder

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"tapedeck/protocol/capture"
)

// disk is what a writer's file lies on.
type disk struct {
	fd, kept int
}

// fill makes the disk beneath a writer full: its file is from now on the device
// that takes nothing.
func fill(t *testing.T, w *Writer) *disk {
	t.Helper()
	d := &disk{fd: int(w.tape.file.Fd())}
	var err error
	if d.kept, err = syscall.Dup(d.fd); err != nil {
		t.Fatal(err)
	}
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	if err := syscall.Dup3(int(full.Fd()), d.fd, syscall.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	return d
}

// makeRoom lets the disk take something again.
func (d *disk) makeRoom() { syscall.Dup3(d.kept, d.fd, syscall.O_CLOEXEC) }

// letGo closes what kept the file, and its lock.
func (d *disk) letGo() { syscall.Close(d.kept) }

// recordOntoFullDisk writes 100 frames, and 5,000 more when the disk is full.
func recordOntoFullDisk(t *testing.T, path string) (*Writer, *disk) {
	t.Helper()
	told := make(chan error, 2)
	w, _ := newTape(t, path, WriterOptions{OnError: func(err error) { told <- err }})
	all := frames(1, 5100)
	write(w, all[:100])
	for f := range w.Reader().Follow(t.Context(), 1) {
		if f.Position == 100 {
			break
		}
	}
	d := fill(t, w)
	for i := range all[100:] { // more than may wait: it must not
		f := all[100+i]
		f.Data = append(f.Data, strings.Repeat("x", 4000)...)
		w.Frame(&f)
	}
	err := <-told
	if err == nil || !strings.Contains(err.Error(), "record frames from 101 on") || w.Err() != err {
		t.Errorf("told %v, and kept %v", err, w.Err())
	}
	w.Index(&Index{Judged: 100})
	if len(told) > 0 {
		t.Error("the error was told twice")
	}
	return w, d
}

func TestFullDisk(t *testing.T) {
	path := tapePath(t)
	w, d := recordOntoFullDisk(t, path)
	fault := w.Err()
	if err := w.Close(time.Second); !errors.Is(err, fault) {
		t.Errorf("Close returned %v, want %v", err, fault)
	}
	d.letGo()
	checkBolt(t, path)
	r := open(t, path)
	sessions, err := r.Sessions(t.Context())
	if err != nil || len(sessions) != 1 || sessions[0].Clean || !sessions[0].Ended.IsZero() || sessions[0].Last != 100 {
		t.Errorf("sessions %+v, %v", sessions, err)
	}
	if diff := diffFrames(frames(1, 5100)[:100], readAll(t, r)); diff != "" {
		t.Error(diff)
	}
	r.Close()
	w, s := newTape(t, path, WriterOptions{})
	if s.First != 101 {
		t.Errorf("the next session begins at %d, want 101", s.First)
	}
	closeWriter(t, w, 0)
}

// When there is room again at the end, the tape says what is missing from it.
func TestFullDiskWithRoomAtTheEnd(t *testing.T) {
	path := tapePath(t)
	w, d := recordOntoFullDisk(t, path)
	d.makeRoom()
	if err := w.Close(time.Second); !errors.Is(err, w.Err()) {
		t.Errorf("Close returned %v", err)
	}
	d.letGo()
	r := open(t, path)
	sessions, err := r.Sessions(t.Context())
	if err != nil || len(sessions) != 1 {
		t.Fatalf("sessions %+v, %v", sessions, err)
	}
	s := sessions[0]
	if s.Clean || s.Last != 101 || !strings.HasPrefix(s.Fault, "5000 frames (") || !s.Ended.Equal(epoch.Add(time.Second)) {
		t.Errorf("session %+v", s)
	}
	all := readAll(t, r)
	if len(all) != 101 || all[100].Kind != capture.Gap {
		t.Fatalf("%d frames, the last is %s", len(all), all[len(all)-1].Kind)
	}
	loss, err := capture.Detail[capture.Loss](&all[100])
	if err != nil || loss.Frames != 5000 || loss.Bytes < 20_000_000 || loss.Error == "" {
		t.Errorf("loss %+v, %v", loss, err)
	}
}
