package recorder

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"tapedeck/protocol/capture"
)

// goodTape returns the bytes of a tape with three sessions, whose trees have
// branches, and its frames.
func goodTape(t testing.TB) ([]byte, []capture.Frame) {
	t.Helper()
	path := tapePath(t)
	var all []capture.Frame
	for range 3 {
		w, s := newTape(t, path, WriterOptions{})
		some := frames(s.First, 7000)
		some[500].Data = bytes.Repeat([]byte("a long one "), 20_000)
		some[500].Size = int64(len(some[500].Data))
		write(w, some)
		all = append(all, some...)
		closeWriter(t, w, time.Second)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text, all
}

// rootPage returns the page with the buckets that is in use.
func rootPage(tape []byte) []byte {
	size := uint64(native.Uint32(tape[pageHeader+8:]))
	root := liveRoot(tape)
	return tape[root*size : (root+1)*size]
}

// branchPage returns a branch page that is in use: the root of a bucket's tree.
func branchPage(t *testing.T, tape []byte) []byte {
	t.Helper()
	size := uint64(native.Uint32(tape[pageHeader+8:]))
	root := rootPage(tape)
	for i := range int(native.Uint16(root[10:])) {
		e := root[pageHeader+i*pageElement:]
		id := native.Uint64(e[native.Uint32(e[4:])+native.Uint32(e[8:]):])
		if page := tape[id*size : (id+1)*size]; id != 0 && native.Uint16(page[8:]) == pageBranch {
			return page
		}
	}
	t.Fatal("no bucket has a branch")
	return nil
}

// editMetas changes the meta pages and seals them again.
func editMetas(tape []byte, edit func(meta []byte)) {
	size := int(native.Uint32(tape[pageHeader+8:]))
	for _, at := range []int{0, size} {
		meta := tape[at+pageHeader : at+pageHeader+metaSize]
		edit(meta)
		sum := fnv.New64a()
		sum.Write(meta[:metaSize-8])
		native.PutUint64(meta[metaSize-8:], sum.Sum64())
	}
}

func liveRoot(tape []byte) uint64 {
	m, _ := readMeta(bytes.NewReader(tape), int64(len(tape)))
	return m.root
}

// What is no tape, or no whole one, is refused with a reason and a way out, and
// not a byte of it changes (B06, B10).
func TestRefused(t *testing.T) {
	good, _ := goodTape(t)
	pageSize := int(native.Uint32(good[pageHeader+8:]))
	for _, c := range []struct {
		name string
		make func(t *testing.T, tape []byte) []byte
		want error
		text string
	}{
		{"empty", func(*testing.T, []byte) []byte { return nil }, ErrEmpty, "remove it, or name another"},
		{"text", func(*testing.T, []byte) []byte { return []byte(strings.Repeat("no tape\n", 3000)) }, ErrForeign, "not a tape"},
		{"one byte", func(*testing.T, []byte) []byte { return []byte{0} }, ErrForeign, "not a tape"},
		{"another bbolt file", func(t *testing.T, _ []byte) []byte { return otherDatabase(t) }, ErrForeign, "not a tape"},
		{"newer", func(t *testing.T, tape []byte) []byte { return newerTape(t, tape) }, ErrNewer, "update this one"},
		{"zeroed", func(_ *testing.T, tape []byte) []byte { clear(tape); return tape }, ErrForeign, "tapedeck repair"},
		{"zeroed head", func(_ *testing.T, tape []byte) []byte { clear(tape[:2*pageSize]); return tape }, ErrForeign, "tapedeck repair"},
		{"zeroed tail", func(_ *testing.T, tape []byte) []byte { clear(tape[len(tape)/2:]); return tape }, ErrDamaged, "tapedeck repair"},
		{"cut to a half", func(_ *testing.T, tape []byte) []byte { return tape[:len(tape)/2] }, ErrDamaged, "cut off after"},
		{"cut in the first page", func(_ *testing.T, tape []byte) []byte { return tape[:100] }, ErrDamaged, "cut off after"},
		{"both metas damaged", func(_ *testing.T, tape []byte) []byte {
			tape[pageHeader+20]++
			tape[pageSize+pageHeader+20]++
			return tape
		}, ErrDamaged, "neither of its two first pages"},
		{"a page below itself", func(t *testing.T, tape []byte) []byte {
			page := branchPage(t, tape)
			native.PutUint64(page[pageHeader+8:], native.Uint64(page))
			return tape
		}, ErrDamaged, "page"},
		{"the root below itself", func(t *testing.T, tape []byte) []byte {
			page := rootPage(tape)
			// Its first bucket that has a tree gets the root as its tree.
			for i := range int(native.Uint16(page[10:])) {
				e := page[pageHeader+i*pageElement:]
				value := e[native.Uint32(e[4:])+native.Uint32(e[8:]):]
				if native.Uint64(value) != 0 {
					native.PutUint64(value, liveRoot(tape))
					return tape
				}
			}
			t.Fatal("no bucket has a tree")
			return nil
		}, ErrDamaged, "in two places"},
		{"a root that is not there", func(_ *testing.T, tape []byte) []byte {
			editMetas(tape, func(meta []byte) { native.PutUint64(meta[16:], 1<<60) })
			return tape
		}, ErrDamaged, "does not exist"},
		{"more pages than a file has", func(_ *testing.T, tape []byte) []byte {
			editMetas(tape, func(meta []byte) { native.PutUint64(meta[40:], 1<<62) })
			return tape
		}, ErrDamaged, "cut off after"},
		{"an odd page size", func(_ *testing.T, tape []byte) []byte {
			editMetas(tape, func(meta []byte) { native.PutUint32(meta[8:], 4097) })
			return tape
		}, ErrDamaged, "its pages cannot have 4097 bytes"},
		{"two page sizes", func(_ *testing.T, tape []byte) []byte {
			// The younger page says where the root is, the first one how large a page is.
			n := 0
			editMetas(tape, func(meta []byte) {
				if n++; n == 2 {
					native.PutUint32(meta[8:], uint32(2*pageSize))
					native.PutUint64(meta[48:], 1<<40)
				}
			})
			return tape
		}, ErrDamaged, fmt.Sprintf("its pages cannot have %d bytes", 2*pageSize)},
		{"a free page in use", func(t *testing.T, tape []byte) []byte {
			// A list of free pages in the place of some other page, naming the root.
			free := bytes.Repeat([]byte{0}, pageSize)
			pages := uint64(len(tape) / pageSize)
			native.PutUint64(free, pages)
			native.PutUint16(free[8:], pageFreelist)
			native.PutUint16(free[10:], 1)
			native.PutUint64(free[16:], liveRoot(tape))
			editMetas(tape, func(meta []byte) {
				native.PutUint64(meta[32:], pages)
				native.PutUint64(meta[40:], pages+1)
			})
			return append(tape, free...)
		}, ErrDamaged, "is free and in use"},
		{"keys out of order", func(t *testing.T, tape []byte) []byte {
			e := rootPage(tape)[pageHeader:]
			e[native.Uint32(e[4:])] = 'z' // its first key
			return tape
		}, ErrDamaged, "out of order"},
		{"no buckets", func(t *testing.T, tape []byte) []byte {
			return edited(t, tape, func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte(postBucket)) })
		}, ErrDamaged, "it has no posts"},
		{"a format that is no number", func(t *testing.T, tape []byte) []byte {
			return edited(t, tape, func(tx *bolt.Tx) error {
				return put(tx, metaBucket, []byte("format"), append(make([]byte, sealSize), "one"...))
			})
		}, ErrDamaged, `its format is "one"`},
		{"a format with a wrong seal", func(t *testing.T, tape []byte) []byte {
			return edited(t, tape, func(tx *bolt.Tx) error {
				return tx.Bucket([]byte(metaBucket)).Put([]byte("format"), []byte("xxxx1"))
			})
		}, ErrDamaged, "its format cannot be read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "bad.tape")
			text := c.make(t, bytes.Clone(good))
			if err := os.WriteFile(path, text, 0o644); err != nil {
				t.Fatal(err)
			}
			_, reading := Open(path)
			_, writing := OpenWriter(path, &capture.Session{}, WriterOptions{})
			_, indexing := OpenIndexer(path, 1)
			_, pruning := Prune(t.Context(), path, Policy{Last: 1})
			for _, err := range []error{reading, writing, indexing, pruning} {
				if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) || !strings.Contains(err.Error(), "bad.tape") {
					t.Errorf("got %v\nwant %v, with %q", err, c.want, c.text)
				} else if strings.Count(err.Error(), "\n") > 4 {
					t.Errorf("the reason has over five lines:\n%v", err)
				}
			}
			if now, err := os.ReadFile(path); err != nil || sha256.Sum256(now) != sha256.Sum256(text) {
				t.Errorf("the file was changed (%v)", err)
			}
			onlyFile(t, path)
		})
	}
}

// onlyFile checks that nothing was left beside a file.
func onlyFile(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("beside the tape: %v, %v", entries, err)
	}
}

func otherDatabase(t *testing.T) []byte {
	path := filepath.Join(t.TempDir(), "other")
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		b, err := tx.CreateBucket([]byte("meta"))
		return errors.Join(err, b.Put([]byte("k"), []byte("v")))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// edited changes a tape behind this package's back.
func edited(t *testing.T, tape []byte, edit func(*bolt.Tx) error) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "edited")
	if err := os.WriteFile(path, tape, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{NoFreelistSync: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(edit), db.Close()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func newerTape(t *testing.T, tape []byte) []byte {
	return edited(t, tape, func(tx *bolt.Tx) error {
		next := fmt.Append(make([]byte, sealSize), format+1)
		return put(tx, metaBucket, []byte("format"), next)
	})
}

// Before anything is changed: a place where no tape can be (B06).
func TestNoPlace(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "file")
	os.WriteFile(file, nil, 0o600)
	for name, c := range map[string]struct {
		path string
		text string
	}{
		"a folder":         {folder, "is a directory"},
		"no folder":        {filepath.Join(folder, "none", "a.tape"), "no such file"},
		"a file as folder": {filepath.Join(file, "a.tape"), "not a directory"},
	} {
		if _, err := OpenWriter(c.path, &capture.Session{}, WriterOptions{}); err == nil || !strings.Contains(err.Error(), c.text) || !strings.Contains(err.Error(), c.path) {
			t.Errorf("%s: got %v, want %q", name, err, c.text)
		}
	}
	if _, err := Open(filepath.Join(folder, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading no tape: %v", err)
	}
	if runtime.GOOS == "windows" || os.Getuid() == 0 {
		return // who may do everything is refused nothing
	}
	path := filepath.Join(folder, "read-only.tape")
	w, _ := newTape(t, path, WriterOptions{})
	closeWriter(t, w, 0)
	os.Chmod(path, 0o400)
	if _, err := OpenWriter(path, &capture.Session{}, WriterOptions{}); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("writing a tape that may only be read: %v", err)
	}
	open(t, path)
}

// One process has the tape, and the others are told so at once (B01). Two open
// files of one process exclude each other as two processes do.
func TestLocked(t *testing.T) {
	path := tapePath(t)
	w, _ := newTape(t, path, WriterOptions{})
	_, reading := Open(path)
	_, writing := OpenWriter(path, &capture.Session{}, WriterOptions{})
	_, indexing := OpenIndexer(path, 1)
	_, pruning := Prune(t.Context(), path, Policy{Last: 1})
	_, repairing := Repair(t.Context(), path, path+"2")
	for i, err := range []error{reading, writing, indexing, pruning, repairing} {
		if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "wait until that ends") {
			t.Errorf("%d: got %v, want ErrLocked, the file and what to do", i, err)
		}
	}
	closeWriter(t, w, 0)
	open(t, path)
	open(t, path) // many may read, and are in nobody's way
	w, _ = newTape(t, path, WriterOptions{})
	closeWriter(t, w, 0)
}
