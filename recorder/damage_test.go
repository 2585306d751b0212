package recorder

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"

	"tapedeck/protocol/capture"
)

// readDamaged reads what can be read of a tape, and returns what is lost.
func readDamaged(t *testing.T, r *Reader) (all []capture.Frame, lost []Range) {
	t.Helper()
	for f, err := range r.Follow(t.Context(), 1) {
		if err == nil {
			all = append(all, f)
			continue
		}
		gap, ok := errors.AsType[*LostError](err)
		if !ok || !errors.Is(err, ErrDamaged) {
			t.Fatalf("%v, want a LostError", err)
		}
		lost = append(lost, Range{gap.First, gap.Last})
	}
	return all, lost
}

// A block that is damaged costs its own frames and no others, also if it is the
// last one (B02).
func TestDamagedBlocks(t *testing.T) {
	good, all := goodTape(t)
	var firsts []capture.Position
	damage := func(at ...int) []byte {
		firsts = nil
		return edited(t, good, func(tx *bolt.Tx) error {
			rows := tx.Bucket([]byte(frameBucket))
			for key, _ := rows.Cursor().First(); key != nil; {
				firsts = append(firsts, parsePositionKey(key))
				c := rows.Cursor()
				c.Seek(key)
				key, _ = c.Next()
			}
			for _, i := range at {
				i = (i + len(firsts)) % len(firsts)
				key := positionKey(firsts[i])
				value := bytes.Clone(rows.Get(key))
				value[len(value)/2] ^= 0x10
				if err := rows.Put(key, value); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for _, c := range []struct {
		name string
		at   []int
	}{{"none", nil}, {"first", []int{0}}, {"one", []int{5}}, {"two in a row", []int{5, 6}}, {"last", []int{-1}}, {"last two", []int{-2, -1}}} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "bad.tape")
			if err := os.WriteFile(path, damage(c.at...), 0o600); err != nil {
				t.Fatal(err)
			}
			var want []capture.Frame
			var wantLost []Range
			rest := all
			for i, first := range firsts {
				end := capture.Position(len(all)) + 1
				if i+1 < len(firsts) {
					end = firsts[i+1]
				}
				block := rest[:end-first]
				rest = rest[end-first:]
				bad := false
				for _, at := range c.at {
					bad = bad || i == (at+len(firsts))%len(firsts)
				}
				if bad {
					wantLost = append(wantLost, Range{first, end - 1})
				} else {
					want = append(want, block...)
				}
			}
			got, lost := readDamaged(t, open(t, path))
			if diff := diffFrames(want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(wantLost, lost); diff != "" {
				t.Errorf("lost (-want +got):\n%s", diff)
			}
		})
	}
}

// Whatever bytes of a tape change, it is opened or refused, and what is read of
// it is what was written.
func TestRandomDamage(t *testing.T) {
	good, all := goodTape(t)
	rng := rand.New(rand.NewPCG(3, 4))
	path := filepath.Join(t.TempDir(), "bad.tape")
	refused, rounds := 0, 40
	if os.Getenv("CI") == "true" {
		rounds = 100
	}
	for range rounds {
		tape := bytes.Clone(good)
		size := len(tape)
		for range 1 + rng.IntN(4) {
			at := rng.IntN(size)
			if rng.IntN(2) == 0 { // more harm is done where the trees are
				at = at&^0xFFF + rng.IntN(200)
			}
			for i := at; i < min(size, at+1+rng.IntN(64)); i++ {
				tape[i] = byte(rng.Uint32())
			}
		}
		if err := os.WriteFile(path, tape, 0o600); err != nil {
			t.Fatal(err)
		}
		w, err := OpenWriter(path, &capture.Session{}, WriterOptions{})
		if err == nil {
			err = w.Close(0)
		}
		if err != nil {
			checkRefusal(t, err)
			refused++
		}
		if r, err := Open(path); err != nil {
			checkRefusal(t, err)
		} else {
			got, _ := readDamaged(t, r)
			for i := range got {
				want := all[got[i].Position-1]
				if diff := diffFrames([]capture.Frame{want}, got[i:i+1]); diff != "" {
					t.Fatal(diff)
				}
			}
			r.Sessions(t.Context())
			r.Runs(t.Context())
			r.Findings(t.Context(), nil)
			r.Close()
		}
	}
	if refused == 0 || refused == rounds {
		t.Errorf("%d of %d damaged tapes were refused: the damage says nothing", refused, rounds)
	}
}

func checkRefusal(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), "tapedeck repair") {
		t.Errorf("refused by %v", err)
	}
}
