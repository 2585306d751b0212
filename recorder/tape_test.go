package recorder

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(crashTape); path != "" {
		recordUntilKilled(path)
	}
	goleak.VerifyTestMain(m)
}

// epoch is when the sessions of these tests begin.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func tapePath(t testing.TB) string { return filepath.Join(t.TempDir(), "a.tape") }

// newTape opens a writer at path, which is closed with the test.
func newTape(t testing.TB, path string, opts WriterOptions) (*Writer, *capture.Session) {
	t.Helper()
	s := &capture.Session{Started: epoch, Source: "proxy", Gateway: "http://gateway", Tool: "test"}
	w, err := OpenWriter(path, s, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close(0) })
	return w, s
}

func closeWriter(t testing.TB, w *Writer, at time.Duration) {
	t.Helper()
	if err := w.Close(at); err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, path string) *Reader {
	t.Helper()
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// envelope is a run:event of 180 to 220 bytes, as a gateway sends them.
func envelope(rng *rand.Rand, run string, sequence int) []byte {
	const words = "the agent looked at your order and found that it had been sent twice so a refund is on its way to you now "
	from := rng.IntN(len(words) / 2)
	return fmt.Appendf(nil, `42["run:event",{"v":1,"threadId":"thread-4f2a","runId":%q,"sequence":%d,"event":{"type":"TEXT_MESSAGE_CONTENT","messageId":"message-81c2","delta":%q}}]`,
		run, sequence, words[from:from+10+rng.IntN(30)])
}

// frames makes n frames of eight connections from a position on. The first of a
// session open the connections.
func frames(first capture.Position, n int) []capture.Frame {
	rng := rand.New(rand.NewPCG(1, uint64(first)))
	made := make([]capture.Frame, 0, n)
	at := time.Duration(0)
	for i := range n {
		at += time.Duration(rng.Int64N(int64(time.Millisecond)))
		f := capture.Frame{Position: first + capture.Position(i), At: at}
		if i < 8 {
			f.Kind, f.Connection = capture.Open, f.Position
			f.Data = fmt.Appendf(nil, `{"transport":"socket.io","target":"/socket.io/?EIO=4&n=%d","remote":"127.0.0.1:%d"}`, i, 5000+i)
		} else {
			f.Kind, f.Connection, f.Direction = capture.Text, first+capture.Position(i%8), capture.FromGateway
			f.Data = envelope(rng, fmt.Sprintf("run-%d", i%8), i/8)
		}
		f.Size = int64(len(f.Data))
		made = append(made, f)
	}
	return made
}

func write(w *Writer, frames []capture.Frame) {
	for i := range frames {
		w.Frame(&frames[i])
	}
}

// diffFrames shows the first frame that differs.
func diffFrames(want, got []capture.Frame) string {
	for i := range min(len(want), len(got)) {
		w, g := &want[i], &got[i]
		if !bytes.Equal(w.Data, g.Data) || !cmp.Equal(*w, *g, cmpopts.IgnoreFields(capture.Frame{}, "Data")) {
			return fmt.Sprintf("the %d. of %d:\n%s", i, len(want), cmp.Diff(*w, *g))
		}
	}
	if len(want) != len(got) {
		return fmt.Sprintf("%d frames, want %d", len(got), len(want))
	}
	return ""
}

// readAll pages through a tape.
func readAll(t testing.TB, r *Reader) []capture.Frame {
	t.Helper()
	var all []capture.Frame
	for from := capture.Position(1); ; {
		page, err := r.Frames(t.Context(), from, 777)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			return all
		}
		all = append(all, page...)
		from = page[len(page)-1].Position + 1
	}
}

func TestWriteAndReadBack(t *testing.T) {
	path := tapePath(t)
	w, s := newTape(t, path, WriterOptions{})
	want := frames(1, 5000)
	want[100] = capture.Frame{Position: 101, At: want[100].At, Kind: capture.Binary, Direction: capture.FromClient,
		Connection: 3, Flags: capture.Fragmented | capture.Imported, Size: 1 << 20, Data: []byte(strings.Repeat("a long one ", 1<<20/11))}
	want[101] = capture.Frame{Position: 102, Kind: capture.Ping, At: -time.Hour} // an imported clock may run backwards
	want[200].Data, want[201].Data = want[100].Data, want[100].Data
	write(w, want)
	closeWriter(t, w, 5*time.Second)

	r := open(t, path)
	if diff := diffFrames(want, readAll(t, r)); diff != "" {
		t.Errorf("frames (-written +read):\n%s", diff)
	}
	sessions, err := r.Sessions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.Last, s.Ended, s.Clean = 5000, epoch.Add(5*time.Second), true
	if diff := cmp.Diff([]capture.Session{*s}, sessions); diff != "" {
		t.Errorf("sessions (-want +got):\n%s", diff)
	}
	part, err := r.Frames(t.Context(), 4000, 3)
	if diff := diffFrames(want[3999:4002], part); diff != "" || err != nil {
		t.Errorf("frames from 4000 (-want +got):\n%s%v", diff, err)
	}
	if none, err := r.Frames(t.Context(), 5001, 3); len(none) != 0 || err != nil {
		t.Errorf("behind the end: %v, %v", none, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600 (B07)", info.Mode(), err)
	}
}

// More sessions than a digit has, so that an order by text would show (B04).
func TestSessionsContinueTheNumbers(t *testing.T) {
	path := tapePath(t)
	var want []capture.Frame
	for i := range 101 {
		w, s := newTape(t, path, WriterOptions{})
		if s.ID != capture.SessionID(i+1) || s.First != capture.Position(len(want)+1) {
			t.Fatalf("session %d begins at %d, want %d at %d", s.ID, s.First, i+1, len(want)+1)
		}
		some := frames(s.First, 12)
		write(w, some)
		want = append(want, some...)
		closeWriter(t, w, time.Second)
	}
	r := open(t, path)
	if diff := diffFrames(want, readAll(t, r)); diff != "" {
		t.Errorf("frames (-written +read):\n%s", diff)
	}
	sessions, err := r.Sessions(t.Context())
	if err != nil || len(sessions) != 101 {
		t.Fatalf("%d sessions, %v", len(sessions), err)
	}
	for i, s := range sessions {
		if first := capture.Position(i*12 + 1); s.First != first || s.Last != first+11 || !s.Clean {
			t.Errorf("session %d is %+v", i+1, s)
		}
	}
}

func TestRowsAndSummaries(t *testing.T) { synctest.Test(t, testRowsAndSummaries) }

func testRowsAndSummaries(t *testing.T) {
	path := tapePath(t)
	w, s := newTape(t, path, WriterOptions{})
	all := frames(1, 9000)
	write(w, all)
	index := &Index{Judged: 9000}
	run := func(n int) *conversation.Run {
		return &conversation.Run{Session: s.ID, ID: fmt.Sprintf("run-%d", n), Thread: "t\xff", Status: conversation.Finished,
			First: capture.Position(n + 1), Last: 9000, FirstToken: -1, Pulse: []int{1, 2}}
	}
	for n := 7; n >= 0; n-- {
		index.Runs = append(index.Runs, run(n))
	}
	var want []capture.Frame
	for i := 8; i < len(all); i++ {
		index.Posts = append(index.Posts, conversation.Post{
			Run: conversation.RunKey{Session: s.ID, Run: fmt.Sprintf("run-%d", i%8)}, Position: all[i].Position,
		})
		if i%8 == 5 {
			want = append(want, all[i])
		}
		if i%1000 == 0 { // in several commits, with a list left open
			w.Index(index)
			index = &Index{Judged: 9000}
			time.Sleep(2 * indexDelay)
		}
	}
	index.Threads = []*conversation.Thread{{ID: "b", First: 7, Last: 8, Runs: 1, Errors: 1}, {ID: "a", First: 3, Last: 8, Runs: 2}}
	index.Findings = []protocol.Finding{
		{Rule: "second", At: capture.Address{Position: 10, Packet: 2}, Run: "run-1", Severity: protocol.Error},
		{Rule: "first", At: capture.Address{Position: 9, Packet: 1}, Run: "run-0", Severity: protocol.Warning},
		{Rule: "third", At: capture.Address{Position: 10, Packet: 2}, Run: "run-1", Severity: protocol.Note},
	}
	w.Index(index)
	closeWriter(t, w, time.Second)

	r, ctx := open(t, path), t.Context()
	runs, err := r.Runs(ctx)
	if err != nil || len(runs) != 8 {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	wantRun := *run(5)
	wantRun.Thread = "t\ufffd" // as JSON keeps it
	if diff := cmp.Diff(wantRun, runs[5]); diff != "" {
		t.Errorf("run (-want +got):\n%s", diff)
	}
	key := conversation.RunKey{Session: s.ID, Run: "run-5"}
	for _, page := range []struct{ from, n int }{{0, 10}, {0, 2000}, {500, 30}, {511, 2}, {512, 1}, {1100, 100}, {5000, 10}, {0, 0}, {-1, 3}} {
		got, err := r.Rows(ctx, key, page.from, page.n)
		if err != nil {
			t.Fatal(err)
		}
		var rows []capture.Frame
		if page.from >= 0 && page.from < len(want) && page.n > 0 {
			rows = append(rows, all[5]) // the Open frame of the connection
			rows = append(rows, want[page.from:min(len(want), page.from+page.n)]...)
		}
		if diff := diffFrames(rows, got); diff != "" {
			t.Errorf("rows %d, %d (-want +got):\n%s", page.from, page.n, diff)
		}
	}
	threads, err := r.Threads(ctx)
	if err != nil || len(threads) != 2 || threads[0].ID != "a" || threads[1].ID != "b" {
		t.Errorf("threads %+v, %v", threads, err)
	}
	found, err := r.Findings(ctx, nil)
	if err != nil || len(found) != 3 || found[0].Rule != "first" || found[1].Rule != "second" || found[2].Rule != "third" {
		t.Errorf("findings %+v, %v", found, err)
	}
	found, err = r.Findings(ctx, &conversation.RunKey{Session: s.ID, Run: "run-1"})
	if err != nil || len(found) != 2 || found[0].Rule != "second" {
		t.Errorf("findings of run-1 %+v, %v", found, err)
	}
	left, err := r.Unjudged(ctx)
	if err != nil || len(left) != 0 {
		t.Errorf("unjudged %+v, %v", left, err)
	}
}

func TestFollow(t *testing.T) {
	path := tapePath(t)
	w, _ := newTape(t, path, WriterOptions{})
	all := frames(1, 3000)
	r := w.Reader()
	got := make(chan []capture.Frame)
	for _, from := range []capture.Position{1, 1500} {
		go func() {
			var seen []capture.Frame
			for f, err := range r.Follow(context.Background(), from) {
				if err != nil {
					t.Error(err)
				}
				seen = append(seen, f)
			}
			got <- seen
		}()
	}
	write(w, all[:1000])
	for f := range r.Follow(t.Context(), 1) { // wait until some are committed
		if f.Position == 1000 {
			break
		}
	}
	write(w, all[1000:])
	closeWriter(t, w, time.Second)
	for range 2 {
		seen := <-got
		if diff := diffFrames(all[3000-len(seen):], seen); diff != "" || len(seen) != 3000 && len(seen) != 1501 {
			t.Errorf("%d frames followed (-want +got):\n%s", len(seen), diff)
		}
	}
	if _, err := r.Sessions(t.Context()); err == nil {
		t.Error("a Writer's Reader still reads after Close")
	}
	n := 0
	for _, err := range open(t, path).Follow(t.Context(), 2990) {
		if n++; err != nil {
			t.Error(err)
		}
	}
	if n != 11 {
		t.Errorf("followed %d frames of a closed tape, want 11", n)
	}
}
