package recorder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// Policy says which sessions Prune drops: those that began before Before, are
// none of the Last latest, and have no run that Keep wants. With neither Before
// nor Last it drops none, and only gives back space that is not in use.
type Policy struct {
	Before time.Time // zero: however young
	Last   int
	Keep   func(*conversation.Run) bool // nil keeps none
}

// Pruned tells what Prune did.
type Pruned struct {
	Dropped []capture.Session
	Frames  uint64 // that were dropped with them
	// Before and After are the lengths of the file, in bytes.
	Before, After int64
}

// Prune drops sessions from the tape at path, with all that belongs to them, and
// writes the rest into a new file that then takes the old one's place. Positions
// stay as they were. If it fails, or is interrupted, the tape is as it was.
func Prune(ctx context.Context, path string, policy Policy) (*Pruned, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, fmt.Errorf("prune tape: %w", err)
	}
	tape, err := openFile(path, true)
	if err != nil {
		return nil, err
	}
	done, err := pruneTape(ctx, tape, policy)
	if err := errors.Join(err, tape.close()); err != nil {
		return nil, fmt.Errorf("prune tape %q: %w", path, explain(path, err))
	}
	return done, nil
}

func pruneTape(ctx context.Context, tape *tapeFile, policy Policy) (*Pruned, error) {
	r := newReader(tape, nil)
	keep, drop, err := policy.divide(ctx, r)
	if err != nil {
		return nil, err
	}
	info, err := tape.file.Stat()
	if err != nil {
		return nil, err
	}
	done := &Pruned{Dropped: drop, Before: info.Size()}
	for _, s := range drop {
		if s.Last >= s.First {
			done.Frames += uint64(s.Last - s.First + 1)
		}
	}
	var tool, secret []byte
	err = r.view(ctx, func(tx *bolt.Tx) (err error) {
		if tool, err = getMeta(tx, "tool"); err == nil {
			secret, err = getMeta(tx, "secret")
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	name, size, err := buildTape(tape.path, string(tool), secret, func(b *builder) error {
		for i := range keep {
			if err := copySession(ctx, b, r, &keep[i]); err != nil {
				return fmt.Errorf("copy session %d: %w", keep[i].ID, err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(drop) == 0 && size >= done.Before {
		done.After = done.Before // it is as small as it gets
		return done, os.Remove(name)
	}
	done.After = size
	return done, replace(tape, name)
}

// replace puts a new file in a tape's place, while the tape is still locked: who
// waits for the lock looks then whether the file is still there.
func replace(tape *tapeFile, name string) error {
	if runtime.GOOS == "windows" { // an open file cannot be replaced there
		if err := tape.db.Close(); err != nil {
			return errors.Join(err, os.Remove(name))
		}
	}
	if err := os.Rename(name, tape.path); err != nil {
		return errors.Join(pathless(err), os.Remove(name))
	}
	folder, err := os.Open(filepath.Dir(tape.path))
	if err != nil {
		return nil // the file is there; when its name reaches the disk is the system's business
	}
	folder.Sync()
	return folder.Close()
}

// divide says which sessions stay and which go.
func (p Policy) divide(ctx context.Context, r *Reader) (keep, drop []capture.Session, err error) {
	sessions, err := r.Sessions(ctx)
	if err != nil {
		return nil, nil, err
	}
	if p.Before.IsZero() && p.Last == 0 {
		return sessions, nil, nil
	}
	runs, err := r.Runs(ctx)
	if err != nil {
		return nil, nil, err
	}
	for i, s := range sessions {
		wanted := i >= len(sessions)-p.Last || !p.Before.IsZero() && !s.Started.Before(p.Before)
		wanted = wanted || p.Keep != nil && slices.ContainsFunc(runs, func(run conversation.Run) bool {
			return run.Session == s.ID && p.Keep(&run)
		})
		if wanted {
			keep = append(keep, s)
		} else {
			drop = append(drop, s)
		}
	}
	return keep, drop, nil
}

// copySession adds a session to a tape, with its frames and what was derived.
func copySession(ctx context.Context, b *builder, r *Reader, s *capture.Session) error {
	if err := b.session(s); err != nil {
		return err
	}
	for from := s.First; from <= s.Last; {
		frames, err := r.Frames(ctx, from, 1024)
		if err != nil {
			return err
		}
		if len(frames) == 0 {
			break
		}
		for i := range frames {
			f := &frames[i]
			if from = f.Position + 1; f.Position > s.Last {
				break
			}
			if err := b.frame(s.ID, f); err != nil {
				return err
			}
		}
	}
	for _, to := range []bucket{runBucket, threadBucket, postBucket, findingBucket} {
		if err := copyRows(ctx, b, r, to, sessionKey(s.ID)); err != nil {
			return err
		}
	}
	return nil
}

// copyRows copies the rows of a bucket whose keys begin with prefix, some at a
// time.
func copyRows(ctx context.Context, b *builder, r *Reader, of bucket, prefix []byte) error {
	type row struct{ key, value []byte }
	for from := prefix; from != nil; {
		var some []row
		err := r.view(ctx, func(tx *bolt.Tx) error {
			c := tx.Bucket([]byte(of)).Cursor()
			key, value := c.Seek(from)
			for ; bytes.HasPrefix(key, prefix) && len(some) < 1000; key, value = c.Next() {
				if _, err := unseal(of, key, value); err != nil {
					return fmt.Errorf("%w: a row of the %s: %w", ErrDamaged, of, err)
				}
				some = append(some, row{bytes.Clone(key), bytes.Clone(value)})
			}
			from = nil
			if bytes.HasPrefix(key, prefix) {
				from = bytes.Clone(key)
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, row := range some {
			if err := b.row(of, row.key, row.value); err != nil {
				return err
			}
		}
	}
	return nil
}
