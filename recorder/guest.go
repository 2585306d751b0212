package recorder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"tapedeck/protocol/capture"
)

// guest reads a tape's file that others may write: it has the lock for a
// transaction only, and looks each time whether the file is still the same. The
// pages are looked through again only if it is not.
type guest struct {
	path string

	mu     sync.Mutex // guards what follows
	users  int        // transactions under way; the file is locked while there are any
	tape   *tapeFile  // nil if it is not open
	stamp  stamp      // of the file whose pages were looked through last
	other  int        // how often it was another file than before
	closed bool
}

// stamp tells a file from others, and from what it was before it was changed.
type stamp struct {
	info fs.FileInfo
	meta pageMeta
}

func stampOf(file *os.File) (s stamp, err error) {
	if s.info, err = file.Stat(); err == nil {
		s.meta, err = readMeta(file, s.info.Size())
	}
	return s, err
}

func (s stamp) is(o stamp) bool {
	return s.info != nil && o.info != nil && s.meta == o.meta && os.SameFile(s.info, o.info) &&
		s.info.Size() == o.info.Size() && s.info.ModTime().Equal(o.info.ModTime())
}

// enter locks the file, until leave is called. It returns ErrLocked within a
// second if another process is writing to it.
func (g *guest) enter(ctx context.Context) (tape *tapeFile, err error) {
	err = patiently(ctx, func() error {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.closed {
			return ErrClosed
		}
		if g.users == 0 {
			if err := g.open(); err != nil {
				return err
			}
		}
		g.users++
		tape = g.tape
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("open tape %q: %w", g.path, explain(g.path, err))
	}
	return tape, nil
}

// open locks the file, and opens it if it is not open yet or another one now.
func (g *guest) open() error {
	if g.tape != nil {
		ok, err := tryLock(g.tape.file, false)
		if err == nil && !ok {
			return ErrLocked
		}
		if now, err := stampOf(g.tape.file); err == nil && ok && now.is(g.stamp) && stillThere(g.path, g.tape.file) {
			return nil
		}
		g.tape.close() // what is gone from it is gone
		g.tape = nil
	}
	file, err := tryFile(g.path, false)
	if err != nil {
		return err
	}
	now, err := stampOf(file)
	if err != nil || !now.is(g.stamp) {
		if err := checkFile(file); err != nil {
			file.Close()
			return err
		}
		g.stamp = now
		g.other++
	}
	g.tape, err = mapFile(g.path, file, false)
	return err
}

// leave gives the lock back when the last transaction is over. The file stays
// open where it can be open without its lock.
func (g *guest) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.users--; g.users == 0 && g.tape != nil && !unlock(g.tape.file) {
		g.tape.close()
		g.tape = nil
	}
}

// steady does again what met a loss while the file became another, in which what
// was looked for need not be any more.
func (r *Reader) steady(do func() ([]capture.Frame, error)) ([]capture.Frame, error) {
	if r.guest == nil {
		return do()
	}
	for {
		other := r.guest.others()
		frames, err := do()
		if _, lost := errors.AsType[*LostError](err); !lost || r.guest.others() == other {
			return frames, err
		}
	}
}

// others returns how often the file was another than before.
func (g *guest) others() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.other
}

// close closes the file when the transactions under way are over.
func (g *guest) close() error {
	g.mu.Lock()
	tape := g.tape
	g.tape, g.closed = nil, true
	g.mu.Unlock()
	if tape == nil {
		return nil
	}
	return tape.close()
}
