package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"tapedeck/protocol/conversation"
	"tapedeck/recorder"
	"tapedeck/recorder/capsule"
	"tapedeck/recorder/live"
)

// openRecording opens whatever there is to read: a tape, as openTape does, or a
// capsule of another form, which is put on a tape of its own first; "-" is one on
// standard input.
func (w *world) openRecording(ctx context.Context, path string) (live.Tape, error) {
	if path != "-" && !forImport(path) {
		return openTape(ctx, path)
	}
	dir, err := os.MkdirTemp("", "tapedeck-")
	if err != nil {
		return nil, fmt.Errorf("open %q: %w", path, err)
	}
	tape, err := w.unpack(ctx, path, filepath.Join(dir, "capsule.tape"))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &unpacked{tape, dir}, nil
}

// withRecording opens what there is to read, until a signal or the end of what is
// done with it.
func (w *world) withRecording(path string, do func(ctx context.Context, t live.Tape) error) (err error) {
	stop := newStopper()
	defer stop.release()
	t, err := w.openRecording(stop.first, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	return do(stop.first, t)
}

// forImport reports whether a file may be a capsule in a form that is no tape.
// What cannot be read is explained by who opens it as a tape.
func forImport(path string) bool {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	start := make([]byte, 4<<10)
	n, _ := io.ReadFull(f, start)
	return capsule.ForImport(start[:n])
}

// unpacked is a capsule on a tape of its own, which goes when it is closed.
type unpacked struct {
	live.Tape
	dir string
}

// Close removes the tape.
func (u *unpacked) Close() error { return errors.Join(u.Tape.Close(), os.RemoveAll(u.dir)) }

// unpack puts a capsule on a new tape. Credentials are taken out, as of anything
// that is recorded: a browser's HAR is full of them.
func (w *world) unpack(ctx context.Context, path, to string) (live.Tape, error) {
	sink, err := capsule.OpenSink(to, capsule.SinkOptions{
		CopierOptions: recorder.CopierOptions{Tool: version()},
		Judge:         conversation.Options{},
	})
	if err != nil {
		return nil, err
	}
	report, err := w.importFile(ctx, path, sink)
	if err != nil {
		return nil, errors.Join(err, sink.Discard())
	}
	if err := sink.Close(); err != nil {
		return nil, err
	}
	w.saySkipped(path, report)
	return openTape(ctx, to)
}

// importFile gives what a capsule or a tape holds to a sink.
func (w *world) importFile(ctx context.Context, path string, sink capsule.Sink) (*capsule.Report, error) {
	in, size := w.stdin, int64(-1)
	name := "standard input"
	if path != "-" {
		f, err := openInput(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			size = info.Size()
		}
		in, name = f, filepath.Base(path)
	}
	bar := w.progress("import "+name, size)
	defer bar.done()
	o := capsule.ImportOptions{Name: name, Progress: func(done int64) { bar.to(done, max(size, done)) }}
	start := bufio.NewReaderSize(in, 64<<10)
	if head, _ := start.Peek(64); capsule.IsTape(head) {
		if path == "-" {
			return nil, usageError("a tape cannot be read from standard input: name the file")
		}
		return importTape(ctx, path, sink, o)
	}
	return capsule.Import(ctx, start, sink, o)
}

// openInput opens a file to import, and nothing that would never end.
func openInput(path string) (*os.File, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("import %q: there is no such file", path)
	case err != nil:
		return nil, fmt.Errorf("import: %w", err)
	case info.IsDir():
		return nil, fmt.Errorf("import %q: it is a directory", path)
	case info.Mode()&os.ModeDevice != 0:
		return nil, fmt.Errorf("import %q: it is a device", path)
	}
	return os.Open(path)
}

func importTape(ctx context.Context, path string, sink capsule.Sink, o capsule.ImportOptions) (*capsule.Report, error) {
	t, err := openTape(ctx, path)
	if err != nil {
		return nil, err
	}
	report, err := capsule.ImportTape(ctx, t, sink, o)
	return report, errors.Join(err, t.Close())
}

// maxNamed is how many broken lines are named.
const maxNamed = 5

// saySkipped names what could not be read of a capsule.
func (w *world) saySkipped(path string, report *capsule.Report) {
	for i, s := range report.Skipped {
		if i == maxNamed {
			break
		}
		w.talk("%s: %s; skipped", path, s)
	}
	if more := report.Broken - maxNamed; more > 0 {
		w.talk("%s: and %d more were skipped", path, more)
	}
}
