package recorder

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

const (
	// maxAnswer is how many bytes of data a call returns at most, unless a single
	// frame is longer.
	maxAnswer = 32 << 20
	// followFrames is how many frames Follow reads ahead.
	followFrames = 1024
)

// Reader reads a tape. Each call is one short transaction after the other, and
// nothing is locked between them: a Reader of a file keeps nobody from writing
// it, and reads on when it was changed. Its methods are safe for concurrent use.
// The Data of the frames it returns is shared: it may be kept, and must not be
// changed.
type Reader struct {
	path  string
	tape  *tapeFile // of the Writer or Indexer that the Reader belongs to
	guest *guest    // or of its own
	tail  *beacon   // nil if nobody writes the tape
	cache *blockCache
}

// Open opens the tape at path for reading, and changes nothing in it. It returns
// ErrLocked within a second if another process is writing to it, and so do the
// Reader's methods while one does.
func Open(path string) (*Reader, error) {
	r := &Reader{path: path, guest: &guest{path: path}, cache: &blockCache{}}
	if err := r.view(context.Background(), func(*bolt.Tx) error { return nil }); err != nil {
		return nil, err
	}
	return r, nil
}

func newReader(tape *tapeFile, tail *beacon) *Reader {
	return &Reader{path: tape.path, tape: tape, tail: tail, cache: &blockCache{}}
}

// Close closes the file; of a Writer's or an Indexer's Reader it does nothing.
func (r *Reader) Close() error {
	if r.guest == nil {
		return nil
	}
	if err := r.guest.close(); err != nil {
		return fmt.Errorf("close tape %q: %w", r.path, err)
	}
	return nil
}

// view runs a transaction.
func (r *Reader) view(ctx context.Context, do func(*bolt.Tx) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	tape := r.tape
	if r.guest != nil {
		if tape, err = r.guest.enter(ctx); err != nil {
			return err
		}
		defer r.guest.leave()
	}
	err = guarded(func() error { return tape.db.View(do) })
	switch {
	case errors.Is(err, berrors.ErrDatabaseNotOpen):
		err = ErrClosed
	case !errors.Is(err, errFault):
		return err
	}
	return fmt.Errorf("read tape %q: %w", r.path, err)
}

// rows decodes the JSON of the entries of a bucket whose keys begin with prefix.
func rows[T any](ctx context.Context, r *Reader, b bucket, prefix []byte) (found []T, err error) {
	err = r.view(ctx, func(tx *bolt.Tx) (err error) {
		found, err = rowsIn[T](tx, r.path, b, prefix)
		return err
	})
	return found, err
}

func rowsIn[T any](tx *bolt.Tx, path string, b bucket, prefix []byte) (found []T, err error) {
	c := tx.Bucket([]byte(b)).Cursor()
	for key, value := c.Seek(prefix); key != nil && bytes.HasPrefix(key, prefix); key, value = c.Next() {
		payload, err := unseal(b, key, value)
		var row T
		if err == nil {
			err = json.Unmarshal(payload, &row)
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", b, explain(path, fmt.Errorf("%w: %w", ErrDamaged, err)))
		}
		found = append(found, row)
	}
	return found, nil
}

// Sessions returns the sessions in order. Last is set also for one that was cut
// off or still goes on.
func (r *Reader) Sessions(ctx context.Context) (sessions []capture.Session, err error) {
	err = r.view(ctx, func(tx *bolt.Tx) (err error) {
		if sessions, err = rowsIn[capture.Session](tx, r.path, sessionBucket, nil); err != nil {
			return err
		}
		for i := range sessions {
			s := &sessions[i]
			if s.Ended.IsZero() {
				s.Last = lastOf(tx, s)
				s.Live = r.tail != nil && i == len(sessions)-1
			}
		}
		return nil
	})
	return sessions, err
}

// lastOf finds the last frame of a session by its last block; if that cannot be
// read, its first frame will do.
func lastOf(tx *bolt.Tx, s *capture.Session) capture.Position {
	c := tx.Bucket([]byte(frameBucket)).Cursor()
	var key, value []byte
	if next, payload := tx.Bucket([]byte(sessionBucket)).Cursor().Seek(sessionKey(s.ID + 1)); next == nil {
		key, value = c.Last()
	} else {
		var after capture.Session
		if text, err := unseal(sessionBucket, next, payload); err != nil || json.Unmarshal(text, &after) != nil {
			return 0
		}
		if key, _ = c.Seek(positionKey(after.First)); key == nil {
			key, value = c.Last()
		} else {
			key, value = c.Prev()
		}
	}
	if key == nil {
		return 0
	}
	first, h, err := readHeader(key, value)
	if err != nil {
		h.count = 1
	}
	if last := first + capture.Position(h.count) - 1; last >= s.First {
		return last
	}
	return 0
}

// readHeader reads the header of a block, whose key is its first position.
func readHeader(key, value []byte) (first capture.Position, h blockHeader, err error) {
	first = parsePositionKey(key)
	payload, err := unseal(frameBucket, key, value)
	if err != nil {
		return first, h, err
	}
	p := parser{rest: payload}
	h, err = p.blockHeader()
	return first, h, err
}

// parsePositionKey returns 0 for what is no such key.
func parsePositionKey(key []byte) capture.Position {
	if len(key) != 8 {
		return 0
	}
	return capture.Position(binary.BigEndian.Uint64(key))
}

func parseSessionKey(key []byte) capture.SessionID {
	if len(key) < 4 {
		return 0
	}
	return capture.SessionID(binary.BigEndian.Uint32(key))
}

// Runs returns the runs in order of their first frames.
func (r *Reader) Runs(ctx context.Context) ([]conversation.Run, error) {
	runs, err := rows[conversation.Run](ctx, r, runBucket, nil)
	slices.SortStableFunc(runs, func(a, b conversation.Run) int { return cmp.Compare(a.First, b.First) })
	return runs, err
}

// Threads returns the threads in order of their first frames. What several
// sessions say of the same thread is one thread.
func (r *Reader) Threads(ctx context.Context) ([]conversation.Thread, error) {
	all, err := rows[conversation.Thread](ctx, r, threadBucket, nil)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b conversation.Thread) int { return cmp.Compare(a.First, b.First) })
	var threads []conversation.Thread
	places := map[string]int{}
	for _, t := range all {
		i, ok := places[t.ID]
		if !ok {
			places[t.ID] = len(threads)
			threads = append(threads, t)
			continue
		}
		known := &threads[i]
		known.Runs += t.Runs
		known.Errors += t.Errors
		known.Warnings += t.Warnings
		known.Task = known.Task || t.Task
		if t.Last > known.Last {
			known.Last, known.Status = t.Last, t.Status
		}
	}
	return threads, nil
}

// Findings returns the findings of a run, or all if run is nil, in order.
func (r *Reader) Findings(ctx context.Context, run *conversation.RunKey) ([]protocol.Finding, error) {
	var prefix []byte
	if run != nil {
		prefix = sessionKey(run.Session)
	}
	found, err := rows[protocol.Finding](ctx, r, findingBucket, prefix)
	if run != nil {
		found = slices.DeleteFunc(found, func(f protocol.Finding) bool { return f.Run != run.Run })
	}
	return found, err
}

// Unjudged returns the sessions whose derived rows do not reach their last
// frame, as after a crash. See OpenIndexer.
func (r *Reader) Unjudged(ctx context.Context) ([]capture.Session, error) {
	sessions, err := r.Sessions(ctx)
	return slices.DeleteFunc(sessions, func(s capture.Session) bool { return s.Judged >= s.Last }), err
}

// Follow yields the frames from a position on, and goes on with those that
// come, until ctx ends or the session does. After a LostError it goes on behind
// the gap; after any other error it ends.
func (r *Reader) Follow(ctx context.Context, from capture.Position) iter.Seq2[capture.Frame, error] {
	return func(yield func(capture.Frame, error) bool) {
		if r.tail != nil {
			r.tail.enter()
			defer r.tail.leave()
		}
		for {
			more, over := (<-chan struct{})(nil), true
			if r.tail != nil {
				more, over = r.tail.watch()
			}
			frames, err := r.Frames(ctx, from, followFrames)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				lost, ok := errors.AsType[*LostError](err)
				if !yield(capture.Frame{}, err) || !ok {
					return
				}
				from = lost.Last + 1
			case len(frames) > 0:
				for _, f := range frames {
					if !yield(f, nil) {
						return
					}
				}
				from = frames[len(frames)-1].Position + 1
			case over:
				return
			default:
				select {
				case <-more:
				case <-ctx.Done():
					return
				}
			}
		}
	}
}
