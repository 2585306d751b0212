package main

import (
	"fmt"
	"sync"
	"testing"

	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
	"tapedeck/recorder"
)

// indexes collects what a judge derives.
type indexes struct {
	mu     sync.Mutex
	judged []capture.Position
	runs   map[string]conversation.Run
	block  chan struct{} // if not nil, the first call waits for it
}

func (x *indexes) add(i *recorder.Index) {
	if x.block != nil {
		<-x.block
	}
	x.mu.Lock()
	defer x.mu.Unlock()
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

// TestJudge: every frame is judged once, in order, and the last index is there
// when close returns.
func TestJudge(t *testing.T) {
	const last = 20_000
	x := &indexes{runs: map[string]conversation.Run{}}
	j := newJudge(conversation.New(conversation.Options{Session: 1}), x.add, nil)
	for n := 1; n <= last; n++ {
		j.Frame(envelope(n))
	}
	j.close()
	if r := x.runs["r"]; r.Envelopes != last-2 || r.Thread != "t" {
		t.Errorf("run %+v, want %d envelopes in thread t", r, last-2)
	}
	highest := capture.Position(0)
	for _, p := range x.judged {
		highest = max(highest, p)
	}
	if highest != last {
		t.Errorf("judged up to %d, want %d", highest, last)
	}
}

// TestJudgeHoldsTrafficAtTheLimit: a judge that cannot follow makes the traffic
// wait, and never drops.
func TestJudgeHoldsTrafficAtTheLimit(t *testing.T) {
	x := &indexes{runs: map[string]conversation.Run{}, block: make(chan struct{})}
	j := newJudge(conversation.New(conversation.Options{Session: 1}), x.add, nil)
	const last = 3 * judgeLimit / 100 // bytes a frame, at least
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for n := 1; n <= last; n++ {
			j.Frame(envelope(n))
		}
	}()
	for waited := false; !waited; {
		j.mu.Lock()
		waited = j.waited > 0
		j.mu.Unlock()
	}
	select {
	case <-sent:
		t.Fatal("all frames were taken, though nothing was judged")
	default:
	}
	close(x.block)
	<-sent
	j.close()
	if r := x.runs["r"]; r.Envelopes != last-2 {
		t.Errorf("%d envelopes were judged, want %d", r.Envelopes, last-2)
	}
}

func BenchmarkJudge(b *testing.B) {
	j := newJudge(conversation.New(conversation.Options{Session: 1}), func(*recorder.Index) {}, nil)
	j.Frame(envelope(1))
	j.Frame(envelope(2))
	b.ReportAllocs()
	b.SetBytes(envelope(9).Size)
	for n := 3; b.Loop(); n++ {
		f := envelope(n)
		j.Frame(f)
	}
	j.close()
}
