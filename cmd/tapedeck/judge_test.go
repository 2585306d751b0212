package main

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
	"tapedeck/recorder"
)

// indexes collects what a judge derives.
type indexes struct {
	judged []capture.Position
	runs   map[string]conversation.Run
}

func (x *indexes) add(i *recorder.Index) {
	x.judged = append(x.judged, i.Judged)
	for _, r := range i.Runs {
		x.runs[r.ID] = *r
	}
}

// envelope returns the n-th frame of a session that streams one run.
func envelope(n int) *capture.Frame {
	f := &capture.Frame{Position: capture.Position(n), Connection: 1, Kind: capture.Text, Direction: capture.FromGateway}
	switch n {
	case 1:
		f.Kind, f.Direction = capture.Open, 0
		f.Data = []byte(`{"transport":"socket.io","eio":"4","target":"/socket.io/?EIO=4&transport=websocket"}`)
	case 2:
		f.Data = []byte(`40{"sid":"s"}`)
	default:
		kind := "TEXT_MESSAGE_CONTENT"
		if n == 3 {
			kind = "RUN_STARTED"
		}
		f.Data = fmt.Appendf(nil, `42["run:event",{"v":1,"threadId":"t","runId":"r","sequence":%d,"event":{"type":%q,"messageId":"m","delta":"x"}}]`, n-2, kind)
	}
	f.Size = int64(len(f.Data))
	return f
}

// TestJudge: every frame is judged once, and each batch has an index that says
// how far it reaches.
func TestJudge(t *testing.T) {
	const last, batch = 20_000, 300
	x := &indexes{runs: map[string]conversation.Run{}}
	j := newJudge(conversation.New(conversation.Options{Session: 1}), x.add, nil)
	var want []capture.Position
	for from := 1; from <= last; from += batch {
		to := min(from+batch-1, last)
		j.observe(envelopes(from, to))
		want = append(want, capture.Position(to))
	}
	j.close()
	if r := x.runs["r"]; r.Envelopes != last-2 || r.Thread != "t" {
		t.Errorf("run %+v, want %d envelopes in thread t", r, last-2)
	}
	if diff := cmp.Diff(append(want, 0), x.judged); diff != "" {
		t.Errorf("judged (-want +got)\n%s", diff)
	}
}

func envelopes(from, to int) (frames []capture.Frame) {
	for n := from; n <= to; n++ {
		frames = append(frames, *envelope(n))
	}
	return frames
}
