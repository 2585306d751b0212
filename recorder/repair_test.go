package recorder

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// repairBytes repairs a file with the given bytes and opens what was made of it.
func repairBytes(t *testing.T, tape []byte) (*Repaired, *Reader, string) {
	t.Helper()
	folder := t.TempDir()
	in, out := filepath.Join(folder, "bad.tape"), filepath.Join(folder, "out", "saved.tape")
	if err := errors.Join(os.WriteFile(in, tape, 0o600), os.Mkdir(filepath.Dir(out), 0o700)); err != nil {
		t.Fatal(err)
	}
	report, err := Repair(t.Context(), in, out)
	if err != nil {
		t.Fatal(err)
	}
	onlyFile(t, out)
	checkBolt(t, out)
	if now, err := os.ReadFile(in); err != nil || !bytes.Equal(now, tape) {
		t.Errorf("the damaged tape was changed (%v)", err)
	}
	return report, open(t, out), out
}

// A whole tape is saved whole, whatever leads to its pages.
func TestRepairSavesAll(t *testing.T) {
	good, all := goodTape(t)
	pageSize := int(native.Uint32(good[pageHeader+8:]))
	for _, c := range []struct {
		name   string
		damage func(tape []byte)
	}{
		{"none", func([]byte) {}},
		{"no metas", func(tape []byte) { clear(tape[:2*pageSize]) }},
		{"no branches", func(tape []byte) {
			for at := 2 * pageSize; at < len(tape); at += pageSize {
				if page := tape[at : at+pageSize]; native.Uint64(page) == uint64(at/pageSize) && native.Uint16(page[8:]) == pageBranch {
					clear(page)
				}
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tape := bytes.Clone(good)
			c.damage(tape)
			report, r, path := repairBytes(t, tape)
			if diff := cmp.Diff(&Repaired{Sessions: 3, Frames: uint64(len(all))}, report); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
			if diff := diffFrames(all, readAll(t, r)); diff != "" {
				t.Error(diff)
			}
			sessions, err := r.Sessions(t.Context())
			if err != nil || len(sessions) != 3 || !sessions[2].Clean || sessions[2].First != 14001 || sessions[2].Last != 21000 {
				t.Errorf("sessions %+v, %v", sessions, err)
			}
			r.Close()
			w, s := newTape(t, path, WriterOptions{}) // it is a tape like any other
			if s.ID != 4 || s.First != 21001 {
				t.Errorf("the next session is %d from %d on", s.ID, s.First)
			}
			closeWriter(t, w, 0)
		})
	}
}

// Of a tape with holes everything is saved that is there, and what is not is told
// and marked.
func TestRepairSavesWhatIsThere(t *testing.T) {
	good, all := goodTape(t)
	rng := rand.New(rand.NewPCG(5, 6))
	for _, c := range []struct {
		name   string
		damage func(tape []byte) []byte
	}{
		{"first half", func(tape []byte) []byte { return tape[:len(tape)/2] }},
		{"zeroed middle", func(tape []byte) []byte { clear(tape[len(tape)/3 : len(tape)/2]); return tape }},
		{"many holes", func(tape []byte) []byte {
			for range 40 {
				tape[rng.IntN(len(tape))] ^= 0x55
			}
			return tape
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			report, r, _ := repairBytes(t, c.damage(bytes.Clone(good)))
			got := readAll(t, r)
			there := map[capture.Position]bool{}
			for i := range got {
				there[got[i].Position] = true
				want := all[got[i].Position-1]
				if got[i].Flags.Has(capture.Cut) {
					want.Flags |= capture.Cut
					want.Data = nil
				}
				if diff := diffFrames([]capture.Frame{want}, got[i:i+1]); diff != "" {
					t.Fatal(diff)
				}
			}
			for _, lost := range report.Lost {
				for p := lost.First; p <= lost.Last; p++ {
					if there[p] {
						t.Fatalf("frame %d is told as lost, and is there", p)
					}
					there[p] = true
				}
			}
			sessions, err := r.Sessions(t.Context())
			if err != nil || len(report.Lost) == 0 || uint64(len(got)) != report.Frames {
				t.Errorf("report %+v with %d frames, %v", report, len(got), err)
			}
			faults := 0
			for _, s := range sessions {
				if !s.Clean && strings.Contains(s.Fault, "are lost") {
					faults++
				}
				for p := s.First; p <= s.Last; p++ {
					if !there[p] {
						t.Fatalf("frame %d of session %d is neither there nor told as lost", p, s.ID)
					}
				}
			}
			if faults == 0 {
				t.Errorf("no session says that frames are lost: %+v", sessions)
			}
		})
	}
}

func TestRepairRefuses(t *testing.T) {
	folder := t.TempDir()
	in, there := filepath.Join(folder, "in"), filepath.Join(folder, "there")
	os.WriteFile(in, bytes.Repeat([]byte("no tape"), 10_000), 0o600)
	os.WriteFile(there, []byte("mine"), 0o600)
	if _, err := Repair(t.Context(), in, there); err == nil || !strings.Contains(err.Error(), "name another") {
		t.Errorf("into a file that is there: %v", err)
	}
	out := filepath.Join(folder, "out")
	if _, err := Repair(t.Context(), in, out); !errors.Is(err, ErrForeign) {
		t.Errorf("of no tape: %v", err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Repair(canceled, in, out); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	if _, err := os.Lstat(out); err == nil {
		t.Error("a file was made")
	}
}

// A file in which every entry claims all of it is given up on, not read for ever.
func TestRepairOfMischief(t *testing.T) {
	const pages, size = 400, 4096
	tape := make([]byte, pages*size)
	for id := range pages {
		page := tape[id*size:]
		native.PutUint64(page, uint64(id))
		native.PutUint16(page[8:], pageLeaf)
		native.PutUint16(page[10:], 1)
		native.PutUint32(page[12:], uint32(pages-1-id))
		e := page[pageHeader:]
		native.PutUint32(e[4:], pageElement)
		native.PutUint32(e[8:], 8)
		native.PutUint32(e[12:], uint32((pages-id)*size-pageHeader-pageElement-8))
	}
	path := filepath.Join(t.TempDir(), "bad.tape")
	os.WriteFile(path, tape, 0o600)
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	found, err := search(t.Context(), file)
	if err != nil || found.room > 0 {
		t.Errorf("%d bytes may still be read, %v", found.room, err)
	}
}

func TestPrune(t *testing.T) {
	path := tapePath(t)
	var all [][]capture.Frame
	for i := range 4 {
		s := &capture.Session{Started: epoch.AddDate(0, 0, i), Tool: "test"}
		w, err := OpenWriter(path, s, WriterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		some := frames(s.First, 7000)
		some[500].Data = bytes.Repeat([]byte{byte(i), 'a', 'b'}, 50_000)
		all = append(all, some)
		write(w, some)
		w.Index(smallIndex(s))
		closeWriter(t, w, time.Second)
	}
	before := fileSize(t, path)
	wanted := func(run *conversation.Run) bool { return run.ID == runKeyOf(2).Run }
	done, err := Prune(t.Context(), path, Policy{Before: epoch.AddDate(0, 0, 3), Last: 1, Keep: wanted})
	if err != nil {
		t.Fatal(err)
	}
	after := fileSize(t, path)
	if len(done.Dropped) != 2 || done.Dropped[0].ID != 1 || done.Dropped[1].ID != 3 || done.Frames != 14_000 ||
		done.Before != before || done.After != after || after > before*6/10 {
		t.Errorf("pruned %+v; the file went from %d to %d bytes", done, before, after)
	}
	checkBolt(t, path)
	onlyFile(t, path)
	r := open(t, path)
	if diff := diffFrames(append(all[1], all[3]...), readAll(t, r)); diff != "" {
		t.Error(diff)
	}
	sessions, err := r.Sessions(t.Context())
	if err != nil || len(sessions) != 2 || sessions[0].ID != 2 || sessions[1].ID != 4 || !sessions[0].Clean || sessions[0].Judged != 14_000 {
		t.Errorf("sessions %+v, %v", sessions, err)
	}
	runs, err := r.Runs(t.Context())
	if err != nil || len(runs) != 2 {
		t.Errorf("runs %+v, %v", runs, err)
	}
	rows, err := r.Rows(t.Context(), runKeyOf(4), 0, 10)
	if want := append(all[3][:1:1], all[3][8], all[3][16]); diffFrames(want, rows) != "" || err != nil {
		t.Errorf("rows: %s, %v", diffFrames(want, rows), err)
	}
	r.Close()

	// What is as small as it gets is left alone; nothing asked drops nothing.
	again, err := Prune(t.Context(), path, Policy{})
	if err != nil || len(again.Dropped) != 0 || again.After > again.Before {
		t.Errorf("pruned again: %+v, %v", again, err)
	}
	w, s := newTape(t, path, WriterOptions{})
	if s.ID != 5 || s.First != 28_001 {
		t.Errorf("the next session is %d from %d on", s.ID, s.First)
	}
	closeWriter(t, w, 0)
}

func TestPruneInterrupted(t *testing.T) {
	good, _ := goodTape(t)
	path := filepath.Join(t.TempDir(), "a.tape")
	os.WriteFile(path, good, 0o600)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Prune(ctx, path, Policy{Last: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, good) {
		t.Errorf("the tape was changed (%v)", err)
	}
	onlyFile(t, path)
}

func fileSize(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
