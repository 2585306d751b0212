package recorder

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// Memory does not follow what passes: a million small frames take no more of it
// than fifty thousand (B05).
func TestMemoryStaysBounded(t *testing.T) {
	total := 1_000_000
	if raceEnabled {
		total /= 10 // it is the same under the race detector, and takes ten times as long
	}
	const (
		step = 50_000
		room = 48 << 20 // over what the first frames took; waiting frames may take 8 MiB twice
	)
	path := tapePath(t)
	w, _ := newTape(t, path, WriterOptions{})
	w.tape.db.NoSync = true // only the memory is looked at
	debug.FreeOSMemory()    // what other tests left is no measure
	var most, begun uint64
	f := capture.Frame{Connection: 1, Kind: capture.Text, Direction: capture.FromGateway}
	index := &Index{}
	run := conversation.RunKey{Session: 1, Run: "r"}
	for p := 1; p <= total; p++ {
		f.Position, f.At = capture.Position(p), time.Duration(p)*time.Microsecond
		f.Data = fmt.Appendf(f.Data[:0], `42["tick",{"n":%d}]`, p)
		f.Size = int64(len(f.Data))
		w.Frame(&f)
		index.Posts = append(index.Posts, conversation.Post{Run: run, Position: f.Position})
		if p%1000 == 0 {
			index.Judged = f.Position
			w.Index(index)
			index.Posts = index.Posts[:0]
		}
		if p%step == 0 {
			used := memory()
			if begun == 0 {
				begun = used
			}
			most = max(most, used)
		}
	}
	t.Logf("%d MiB after %d frames, %d at most", begun>>20, step, most>>20)
	if most > begun+room {
		t.Errorf("%d MiB of memory after %d frames and %d after up to %d, want at most %d more", begun>>20, step, most>>20, total, room>>20)
	}
	closeWriter(t, w, time.Minute)
	sessions, err := open(t, path).Sessions(t.Context())
	if err != nil || sessions[0].Last != capture.Position(total) || sessions[0].Judged != sessions[0].Last {
		t.Errorf("sessions %+v, %v", sessions, err)
	}
}

// memory returns how much of the system's memory is in use, but for mapped files.
func memory() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Sys - m.HeapReleased
}
