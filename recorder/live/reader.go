package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net"
	"os"
	"sync"
	"syscall"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
	"tapedeck/recorder"
)

// maxMoves is how often a call goes after the tape: to the process that began to
// write it, back to the file when that ended, and to the next one.
const maxMoves = 3

// Reader reads a tape where it is, which each call finds out anew: in the file,
// or through the process that writes it while one does. Its methods keep nobody
// from writing the tape, are safe for concurrent use, and do what those of a
// recorder.Reader do. They return recorder.ErrLocked within a second if the file
// is locked and nobody answers for it.
type Reader struct {
	path   string
	socket string

	mu     sync.Mutex       // guards what follows
	file   *recorder.Reader // nil until it is needed
	client *Client          // nil while nobody writes the tape
	asked  fs.FileInfo      // the socket that was asked last, nil if there was none
	closed bool
}

// Open opens the tape at path, wherever it is now.
func Open(path string) (*Reader, error) {
	socket, err := socketName(path)
	if err != nil {
		if e, ok := errors.AsType[*fs.PathError](err); ok {
			err = e.Err
		}
		return nil, fmt.Errorf("open tape %q: %w", path, err)
	}
	r := &Reader{path: path, socket: socket}
	if err := r.with(context.Background(), func(Tape) error { return nil }); err != nil {
		return nil, err
	}
	return r, nil
}

// Close lets go of the file and of the process.
func (r *Reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if r.client != nil {
		r.client.Close()
	}
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}

// with does something with the tape where it is, and again where it went
// meanwhile.
func (r *Reader) with(ctx context.Context, do func(Tape) error) error {
	tape, err := r.find()
	for moves := 0; ; moves++ {
		if err == nil {
			err = do(tape)
		}
		if err == nil || ctx.Err() != nil || moves == maxMoves {
			return err
		}
		if tape, err = r.next(tape, err); tape == nil {
			return err
		}
	}
}

// find returns where the tape is, as far as can be told without asking anyone
// again.
func (r *Reader) find() (Tape, error) {
	r.mu.Lock()
	client, asked := r.client, r.asked
	r.mu.Unlock()
	if client != nil {
		return client, nil
	}
	if info, err := os.Lstat(r.socket); err == nil && !sameSocket(info, asked) {
		if tape, err := r.ask(); !nobody(err) {
			return tape, err
		}
	}
	return r.open()
}

func sameSocket(a, b fs.FileInfo) bool {
	return b != nil && os.SameFile(a, b) && a.ModTime().Equal(b.ModTime())
}

// next returns where the tape went, if the error says that it is not where it
// was; otherwise nil and the error.
func (r *Reader) next(tape Tape, err error) (Tape, error) {
	if client, ok := tape.(*Client); ok && ended(err) {
		r.drop(client)
		if tape, err = r.open(); err == nil {
			return tape, nil
		}
	}
	if errors.Is(err, recorder.ErrLocked) {
		if tape, asking := r.ask(); !nobody(asking) {
			return tape, asking
		}
	}
	return nil, err
}

// ended reports whether an error of a Client means that its process writes the
// tape no more.
func ended(err error) bool {
	if broken, ok := errors.AsType[*net.OpError](err); ok {
		return !broken.Timeout()
	}
	return errors.Is(err, recorder.ErrClosed) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// nobody reports whether there is no process to ask, so that the file is the
// place to look.
func nobody(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, errPlace)
}

// ask dials the process that writes the tape.
func (r *Reader) ask() (Tape, error) {
	info, serr := os.Lstat(r.socket) // before: one that is made now is asked the next time
	client, err := Dial(r.path)
	r.mu.Lock()
	defer r.mu.Unlock()
	if serr == nil && (err == nil || nobody(err)) {
		r.asked = info
	}
	switch {
	case err != nil:
		return nil, err
	case r.closed:
		client.Close()
		return nil, r.errClosed()
	case r.client != nil: // another call was faster
		client.Close()
	default:
		r.client = client
	}
	return r.client, nil
}

// drop lets go of a process that writes the tape no more.
func (r *Reader) drop(client *Client) {
	client.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.client == client {
		r.client = nil
	}
}

// open returns the file.
func (r *Reader) open() (Tape, error) {
	r.mu.Lock()
	file, closed := r.file, r.closed
	r.mu.Unlock()
	if closed {
		return nil, r.errClosed()
	}
	if file != nil {
		return file, nil
	}
	file, err := recorder.Open(r.path)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return nil, errors.Join(r.errClosed(), file.Close())
	case r.file != nil: // another call was faster
		return r.file, file.Close()
	}
	r.file = file
	return file, nil
}

func (r *Reader) errClosed() error {
	return fmt.Errorf("read tape %q: %w", r.path, recorder.ErrClosed)
}

// list returns what a call of the tape does.
func list[T any](ctx context.Context, r *Reader, call func(Tape) ([]T, error)) (found []T, err error) {
	err = r.with(ctx, func(tape Tape) (err error) {
		found, err = call(tape)
		return err
	})
	return found, err
}

// Sessions returns the sessions in order.
func (r *Reader) Sessions(ctx context.Context) ([]capture.Session, error) {
	return list(ctx, r, func(tape Tape) ([]capture.Session, error) { return tape.Sessions(ctx) })
}

// Unjudged returns the sessions that were not judged to the end, and none while
// another process writes the tape. See recorder.OpenIndexer.
func (r *Reader) Unjudged(ctx context.Context) ([]capture.Session, error) {
	return list(ctx, r, func(tape Tape) ([]capture.Session, error) {
		file, ok := tape.(*recorder.Reader)
		if !ok {
			return nil, nil // its last session is being judged, and no other can be
		}
		return file.Unjudged(ctx)
	})
}

// Runs returns the runs in order of their first frames.
func (r *Reader) Runs(ctx context.Context) ([]conversation.Run, error) {
	return list(ctx, r, func(tape Tape) ([]conversation.Run, error) { return tape.Runs(ctx) })
}

// Threads returns the threads in order of their first frames.
func (r *Reader) Threads(ctx context.Context) ([]conversation.Thread, error) {
	return list(ctx, r, func(tape Tape) ([]conversation.Thread, error) { return tape.Threads(ctx) })
}

// Rows returns frames posted to a run, as a recorder.Reader does.
func (r *Reader) Rows(ctx context.Context, run conversation.RunKey, from, n int) ([]capture.Frame, error) {
	return list(ctx, r, func(tape Tape) ([]capture.Frame, error) { return tape.Rows(ctx, run, from, n) })
}

// Frames returns frames from a position on, as a recorder.Reader does.
func (r *Reader) Frames(ctx context.Context, from capture.Position, n int) ([]capture.Frame, error) {
	return list(ctx, r, func(tape Tape) ([]capture.Frame, error) { return tape.Frames(ctx, from, n) })
}

// Findings returns the findings of a run, or all if run is nil, in order.
func (r *Reader) Findings(ctx context.Context, run *conversation.RunKey) ([]protocol.Finding, error) {
	return list(ctx, r, func(tape Tape) ([]protocol.Finding, error) { return tape.Findings(ctx, run) })
}

// SetMark marks a place of the tape, in the file or through the process that
// writes it. See recorder.SetMark.
func (r *Reader) SetMark(ctx context.Context, m capture.Mark) error {
	return r.with(ctx, func(tape Tape) error {
		if client, ok := tape.(*Client); ok {
			return client.SetMark(ctx, m)
		}
		return recorder.SetMark(r.path, m)
	})
}

// Follow yields frames from a position on, as a recorder.Reader does. When the
// process that writes the tape ends in disorder, what it committed is read from
// the file.
func (r *Reader) Follow(ctx context.Context, from capture.Position) iter.Seq2[capture.Frame, error] {
	return func(yield func(capture.Frame, error) bool) {
		err := r.with(ctx, func(tape Tape) error {
			for f, err := range tape.Follow(ctx, from) {
				lost, isLost := errors.AsType[*recorder.LostError](err)
				switch {
				case isLost:
					from = lost.Last + 1
				case err != nil:
					return err
				default:
					from = f.Position + 1
				}
				if !yield(f, err) {
					return nil
				}
			}
			return nil
		})
		if err != nil && ctx.Err() == nil {
			yield(capture.Frame{}, err)
		}
	}
}
