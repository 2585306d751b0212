package recorder

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// oldSession, oldFrames and oldIndex are what testdata/format1.golden and those
// after it hold. Each was written when its format was new, and every later
// tapedeck reads it.
func oldSession() *capture.Session {
	return &capture.Session{Started: epoch, Source: "proxy", Gateway: "https://gateway.example", Listen: "127.0.0.1:4100", Tool: "v0.1.0"}
}

func oldFrames() []capture.Frame {
	made := []capture.Frame{
		{At: time.Millisecond, Kind: capture.Open, Data: []byte(`{"transport":"socket.io","eio":"4","sid":"lv_VI97HAXpY6yYWAAAC","target":"/socket.io/?EIO=4&transport=websocket","remote":"127.0.0.1:51000"}`)},
		{At: 2 * time.Millisecond, Kind: capture.Text, Direction: capture.FromGateway, Data: []byte(`0{"sid":"lv_VI97HAXpY6yYWAAAC","upgrades":[],"pingInterval":25000,"pingTimeout":20000,"maxPayload":1000000}`)},
		{At: 3 * time.Millisecond, Kind: capture.Text, Direction: capture.FromClient, Data: []byte(`42["run:start",{"threadId":"t1","input":"where is my parcel?"}]`)},
		{At: 9 * time.Millisecond, Kind: capture.Binary, Direction: capture.FromGateway, Flags: capture.Fragmented, Exchange: 2, Data: []byte(strings.Repeat("a long answer, ", 10_000))},
		{At: 4 * time.Millisecond, Kind: capture.End, Data: []byte(`{"by":"client","code":1001}`)},
	}
	for i := range made {
		made[i].Position, made[i].Connection, made[i].Size = capture.Position(i+1), 1, int64(len(made[i].Data))
	}
	return made
}

func oldIndex() *Index {
	key := conversation.RunKey{Session: 1, Run: "r1"}
	return &Index{
		Judged:   5,
		Posts:    []conversation.Post{{Run: key, Position: 3}, {Run: key, Position: 4}},
		Runs:     []*conversation.Run{{Session: 1, ID: "r1", Thread: "t1", Status: conversation.Truncated, First: 3, Last: 4, FirstToken: -1}},
		Threads:  []*conversation.Thread{{ID: "t1", Runs: 1, First: 3, Last: 4, Status: conversation.Truncated}},
		Findings: []protocol.Finding{{Rule: "example", Severity: protocol.Error, At: capture.Address{Position: 4, Packet: 1}, Run: "r1", Text: "it broke off"}},
	}
}

func TestFormats(t *testing.T) {
	for _, c := range []struct {
		name  string
		rules int // the version of the catalogue, which the first tapes did not say
	}{
		{"format1.golden", 0},
		{"format2.golden", 1},
	} {
		t.Run(c.name, func(t *testing.T) { testFormat(t, c.name, c.rules) })
	}
}

func testFormat(t *testing.T, name string, rules int) {
	old, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "old.tape")
	if err := os.WriteFile(path, old, 0o600); err != nil {
		t.Fatal(err)
	}
	check := func(sessions int) {
		t.Helper()
		r, ctx := open(t, path), t.Context()
		defer r.Close()
		all, err := r.Sessions(ctx)
		if err != nil || len(all) != sessions {
			t.Fatalf("%d sessions, %v", len(all), err)
		}
		want := *oldSession()
		want.ID, want.First, want.Last, want.Judged, want.Clean, want.Ended = 1, 1, 5, 5, true, epoch.Add(time.Second)
		want.Rules = rules
		if diff := cmp.Diff(want, all[0]); diff != "" {
			t.Errorf("session (-want +got):\n%s", diff)
		}
		x, made := oldIndex(), oldFrames()
		frames, err := r.Frames(ctx, 1, 5)
		if diff := diffFrames(made, frames); diff != "" || err != nil {
			t.Errorf("frames: %s%v", diff, err)
		}
		runs, err := r.Runs(ctx)
		if diff := cmp.Diff([]conversation.Run{*x.Runs[0]}, runs); diff != "" || err != nil {
			t.Errorf("runs (-want +got):\n%s%v", diff, err)
		}
		threads, err := r.Threads(ctx)
		if diff := cmp.Diff([]conversation.Thread{*x.Threads[0]}, threads); diff != "" || err != nil {
			t.Errorf("threads (-want +got):\n%s%v", diff, err)
		}
		findings, err := r.Findings(ctx, nil)
		if diff := cmp.Diff(x.Findings, findings); diff != "" || err != nil {
			t.Errorf("findings (-want +got):\n%s%v", diff, err)
		}
		rows, err := r.Rows(ctx, x.Posts[0].Run, 0, 9)
		if diff := diffFrames([]capture.Frame{made[0], made[2], made[3]}, rows); diff != "" || err != nil {
			t.Errorf("rows: %s%v", diff, err)
		}
	}
	check(1)
	w, s := newTape(t, path, WriterOptions{})
	if s.ID != 2 || s.First != 6 {
		t.Errorf("the next session is %d from %d on", s.ID, s.First)
	}
	more := oldFrames()
	for i := range more {
		more[i].Position += 5
		more[i].Connection += 5
	}
	write(w, more)
	closeWriter(t, w, 0)
	check(2)
	r := open(t, path)
	if frames, err := r.Frames(t.Context(), 6, 9); err != nil || diffFrames(more, frames) != "" {
		t.Errorf("frames of the next session: %s%v", diffFrames(more, frames), err)
	}
	err = r.view(t.Context(), func(tx *bolt.Tx) error {
		text, err := getMeta(tx, "format")
		if string(text) != strconv.Itoa(format) {
			t.Errorf("the tape says that its format is %q, want %d", text, format)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
