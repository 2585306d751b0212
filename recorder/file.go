package recorder

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

const (
	format     = 2 // of the tapes that this package writes
	secretSize = 32

	// The lock is tried for, for a third of a second: often, since those who read
	// have it again and again for a moment only.
	lockTries = 66
	lockPause = 5 * time.Millisecond
)

// tapeFile is an open tape.
type tapeFile struct {
	path string
	file *os.File
	db   *bolt.DB
}

// openFile opens an existing tape. The file is locked and looked through before
// anything in it is trusted, and it is not changed.
func openFile(path string, write bool) (*tapeFile, error) {
	t, err := openLocked(path, write)
	if err != nil {
		return nil, fmt.Errorf("open tape %q: %w", path, explain(path, err))
	}
	return t, nil
}

func openLocked(path string, write bool) (*tapeFile, error) {
	file, err := lockFile(path, write)
	if err != nil {
		return nil, err
	}
	if err := checkFile(file); err != nil {
		file.Close()
		return nil, err
	}
	return mapFile(path, file, write)
}

// checkFile looks through a file before it is mapped.
func checkFile(file *os.File) error {
	info, err := file.Stat()
	switch {
	case err != nil:
		return pathless(err)
	case info.IsDir():
		return errors.New("it is a directory")
	case info.Size() == 0:
		return ErrEmpty
	}
	return checkPages(file, info.Size())
}

// mapFile makes a tape of a locked file that was looked through. If it fails the
// file is closed.
func mapFile(path string, file *os.File, write bool) (*tapeFile, error) {
	t := &tapeFile{path: path, file: file}
	if err := t.open(write); err != nil {
		return nil, err
	}
	if err := guarded(t.checkFormat); err != nil {
		return nil, errors.Join(err, t.db.Close())
	}
	return t, nil
}

var errFault = fmt.Errorf("%w: a page could not be read", ErrDamaged)

// guarded does something with a mapped file. A file that shrinks beneath its map
// is an error then, and not the end of the process.
func guarded(do func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(interface{ Addr() uintptr }); !ok {
				panic(p)
			}
			err = errFault
		}
	}()
	return do()
}

// lockFile opens a file and takes its lock.
func lockFile(path string, write bool) (file *os.File, err error) {
	err = patiently(context.Background(), func() error {
		file, err = tryFile(path, write)
		return err
	})
	return file, err
}

// patiently tries for a lock for a third of a second.
func patiently(ctx context.Context, try func() error) error {
	for range lockTries - 1 {
		if err := try(); !errors.Is(err, ErrLocked) {
			return err
		}
		select {
		case <-time.After(lockPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return try()
}

// tryFile opens a file and takes its lock, or returns ErrLocked at once. Whoever
// had the lock may have put another file in its place.
func tryFile(path string, write bool) (*os.File, error) {
	flag := os.O_RDONLY
	if write {
		flag = os.O_RDWR
	}
	file, err := os.OpenFile(path, flag, 0)
	if err != nil {
		return nil, pathless(err)
	}
	ok, err := tryLock(file, write)
	switch {
	case err != nil:
		err = fmt.Errorf("lock: %w", err)
	case !ok || !stillThere(path, file):
		err = ErrLocked
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

func stillThere(path string, file *os.File) bool {
	there, err := os.Stat(path)
	if err != nil {
		return false
	}
	mine, err := file.Stat()
	return err == nil && os.SameFile(there, mine)
}

// open hands the file to bbolt, which closes it from now on.
func (t *tapeFile) open(write bool) (err error) {
	// bbolt panics on what it does not expect, and a file that shrinks beneath its
	// map is a fault. Neither may take the process with it.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			// What bbolt mapped stays mapped, and would keep the lock.
			unlock(t.file)
			t.file.Close()
			err = fmt.Errorf("%w: %v", ErrDamaged, r)
		}
	}()
	options := &bolt.Options{
		Timeout:        lockTries * lockPause,
		ReadOnly:       !write,
		NoFreelistSync: true,
		FreelistType:   bolt.FreelistMapType,
		NoStatistics:   true,
		OpenFile:       func(string, int, os.FileMode) (*os.File, error) { return t.file, nil },
	}
	if write && math.MaxInt > math.MaxInt32 && runtime.GOOS != "windows" {
		// Address space only. A map that must grow waits for all who read.
		options.InitialMmapSize = 1 << 30
	}
	if t.db, err = bolt.Open(t.path, 0o600, options); err != nil {
		t.file.Close()
		if errors.Is(err, berrors.ErrTimeout) {
			return ErrLocked
		}
		return fmt.Errorf("map the file: %v", err)
	}
	t.db.AllocSize = 1 << 20
	return nil
}

// checkFormat refuses what is no tape, and a tape that is too new.
func (t *tapeFile) checkFormat() error {
	return t.db.View(func(tx *bolt.Tx) error {
		meta := tx.Bucket([]byte(metaBucket))
		if meta == nil || meta.Get([]byte("format")) == nil {
			return ErrForeign
		}
		text, err := getMeta(tx, "format")
		if err != nil {
			return err
		}
		version, err := strconv.Atoi(string(text))
		if err != nil || version < 1 {
			return fmt.Errorf("%w: its format is %q", ErrDamaged, text)
		}
		if version > format {
			tool, err := getMeta(tx, "tool")
			if err != nil {
				tool = []byte("unknown")
			}
			return fmt.Errorf("its format is %d (tapedeck %q), and this tapedeck knows %d: %w", version, tool, format, ErrNewer)
		}
		for _, b := range buckets() {
			if tx.Bucket([]byte(b)) == nil {
				return fmt.Errorf("%w: it has no %s", ErrDamaged, b)
			}
		}
		return nil
	})
}

func getMeta(tx *bolt.Tx, key string) ([]byte, error) {
	value, err := unseal(metaBucket, []byte(key), tx.Bucket([]byte(metaBucket)).Get([]byte(key)))
	if err != nil {
		return nil, fmt.Errorf("%w: its %s cannot be read: %w", ErrDamaged, key, err)
	}
	return append([]byte(nil), value...), nil
}

// close gives back the end of the file that is not in use, and closes it.
func (t *tapeFile) close() error {
	if !t.db.IsReadOnly() && runtime.GOOS != "windows" {
		var size int64
		err := t.db.View(func(tx *bolt.Tx) error { size = tx.Size(); return nil })
		if info, serr := t.file.Stat(); err == nil && serr == nil && info.Size() > size {
			t.file.Truncate(size) // an unused end does no harm
		}
	}
	return t.db.Close()
}

// createFile makes an empty tape at path, whole or not at all: it is made beside
// it and then given its name, which no other file may have.
func createFile(path, tool string, secret []byte) error {
	temporary, err := createTemporary(path, tool, secret)
	if err == nil {
		err = giveName(temporary, path)
	}
	if err != nil {
		return fmt.Errorf("create tape %q: %w", path, err)
	}
	return nil
}

// giveName gives a temporary file a name that no file has yet. If it fails the
// file is removed.
func giveName(temporary, path string) error {
	defer os.Remove(temporary)
	err := os.Link(temporary, path)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return pathless(err)
	}
	// Not every file system has links.
	if _, err := os.Lstat(path); err == nil {
		return fs.ErrExist
	}
	return pathless(os.Rename(temporary, path))
}

// createTemporary makes an empty tape beside path and returns its name.
func createTemporary(path, tool string, secret []byte) (string, error) {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return "", pathless(err)
	}
	name := file.Name()
	t := &tapeFile{path: name, file: file}
	if err = t.open(true); err == nil {
		err = t.db.Update(func(tx *bolt.Tx) error { return initTape(tx, tool, secret) })
		err = errors.Join(err, t.close())
	}
	if err != nil {
		os.Remove(name)
		return "", err
	}
	return name, nil
}

func initTape(tx *bolt.Tx, tool string, secret []byte) error {
	for _, b := range buckets() {
		if _, err := tx.CreateBucket([]byte(b)); err != nil {
			return err
		}
	}
	for _, row := range []struct{ key, value string }{
		{"tool", tool}, {"secret", string(secret)},
	} {
		if err := put(tx, metaBucket, []byte(row.key), append(make([]byte, sealSize), row.value...)); err != nil {
			return err
		}
	}
	return putFormat(tx)
}

// putFormat says that the tape may hold what this format does. What older ones
// hold is read as it stands.
func putFormat(tx *bolt.Tx) error {
	return put(tx, metaBucket, []byte("format"), strconv.AppendInt(make([]byte, sealSize), format, 10))
}

func newSecret() []byte {
	secret := make([]byte, secretSize)
	rand.Read(secret) // never fails
	return secret
}

// explain adds what to do.
func explain(path string, err error) error {
	switch {
	case errors.Is(err, ErrDamaged):
		return fmt.Errorf("%w\nSave what can be read of it with: tapedeck repair %s", err, path)
	case errors.Is(err, ErrForeign):
		return fmt.Errorf("%w\nIf it once was one, save what can be read of it with: tapedeck repair %s", err, path)
	}
	return err
}

// pathless takes the path out of an error whose caller names it.
func pathless(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	return err
}
