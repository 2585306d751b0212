package conversation_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
	"tapedeck/protocol/conversation/corpus"
)

// script reads lines of the corpus's form.
func script(t *testing.T, lines string) []capture.Frame {
	t.Helper()
	c, err := corpus.Read([]byte("-- messages --\n" + lines))
	if err != nil {
		t.Fatal(err)
	}
	return c.Frames
}

// posted returns the positions posted to a run, sorted, and fails on one that
// was posted twice.
func posted(t *testing.T, r *told, run string) []capture.Position {
	t.Helper()
	var at []capture.Position
	for _, p := range r.posts {
		if p.Run.Run != run {
			continue
		}
		if slices.Contains(at, p.Position) {
			t.Errorf("position %d is posted twice to %s", p.Position, run)
		}
		at = append(at, p.Position)
	}
	slices.Sort(at)
	return at
}

func TestSummary(t *testing.T) {
	r := judge(script(t, `
0.000 a connect
0.100 a> run:start {"threadId":"t","messageId":"u1","input":"Refund order 4711\nplease"}
0.300 a< t/r/1 RUN_STARTED {}
0.600 a< t/r/2 TEXT_MESSAGE_START {"messageId":"m"}
0.700 a< t/r/3 TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"Sure?"}
0.800 a< t/r/4 TEXT_MESSAGE_END {"messageId":"m"}
1.000 a< t/r/5 INTERRUPT {"interruptId":"i1","payload":{}}
1.000 a< t/r/6 INTERRUPT {"interruptId":"i2","payload":{}}
1.000 a< t/r/7 RUN_PAUSED {}
1.000 a< t/r/8 RUN_FINISHED {}
4.000 a> run:resume {"threadId":"t","interruptId":"i2","answer":null}
`), conversation.Options{Session: 7})
	got := r.runs["r"]
	want := conversation.Run{
		Session: 7, ID: "r", Thread: "t", Status: conversation.Paused, Input: "Refund order 4711",
		First: 1, Last: 15, Started: 300 * time.Millisecond, Ended: time.Second,
		FirstToken: 600 * time.Millisecond, Human: 3 * time.Second, Envelopes: 8, Waiting: "i1", Notes: 1,
		Bytes: got.Bytes, Pulse: got.Pulse,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("run (-want +got):\n%s", diff)
	}
	if n := sum(got.Pulse); n != 8 || len(got.Pulse) != 10 {
		t.Errorf("pulse %v counts %d envelopes in %d parts, want 8 in 10", got.Pulse, n, len(got.Pulse))
	}
	thread := r.threads["t"]
	if thread.Runs != 1 || thread.Status != conversation.Paused || thread.First != 6 || thread.Last != 15 {
		t.Errorf("thread is %+v", thread)
	}
}

func sum(parts []int) (n int) {
	for _, p := range parts {
		n += p
	}
	return n
}

// TestPosts has two windows and two threads at once: each run gets what belongs
// to it, once.
func TestPosts(t *testing.T) {
	r := judge(script(t, `
0.00 a connect
0.10 b connect
0.20 a> thread:messages+0 {"threadId":"t"}
0.21 a< ack+0 {"ok":true,"messages":[]}
0.30 a> run:start+1 {"threadId":"t","messageId":"u1","input":"one"}
0.31 a> run:start {"threadId":"t2","messageId":"u2","input":"two"}
0.32 b> run:start {"threadId":"t","messageId":"u3","input":"three"}
0.33 a< ack+1 {"ok":true}
0.40 a< t2/r2/1 RUN_STARTED {"message":{"id":"u2"}}
0.41 a< t/r1/1 RUN_STARTED {"message":{"id":"u1"}}
0.42 b< protocol:error {"code":"INVALID_COMMAND","message":"busy"}
0.50 b> thread:messages+0 {"threadId":"t"}
0.51 b< ack+0 {"ok":true,"messages":[],"replay":{"truncated":false,"envelopes":[{"v":1,"threadId":"t","runId":"r1","sequence":1,"event":{"type":"RUN_STARTED","message":{"id":"u1"}}}]}}
0.60 a< t/r1/2 TODOS_SNAPSHOT {"todos":[]}
0.61 b< t/r1/2 TODOS_SNAPSHOT {"todos":[]}
0.70 b> run:cancel {"runId":"r1"}
0.80 a< t/r1/3 RUN_CANCELLED {}
0.81 b< t/r1/3 RUN_CANCELLED {}
0.90 a< t2/r2/2 RUN_FINISHED {}
`), conversation.Options{})
	for _, f := range r.findings {
		t.Errorf("raises %s at %s: %s", f.Rule, f.At, f.Text)
	}
	preamble := func(first capture.Position) []capture.Position {
		return []capture.Position{first, first + 1, first + 2, first + 3, first + 4}
	}
	want := slices.Concat(preamble(1), preamble(6), []capture.Position{13, 16, 18, 20, 21, 22, 23, 24, 25, 26})
	if diff := cmp.Diff(want, posted(t, r, "r1")); diff != "" {
		t.Errorf("posts of r1 (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(slices.Concat(preamble(1), []capture.Position{14, 17, 27}), posted(t, r, "r2")); diff != "" {
		t.Errorf("posts of r2 (-want +got):\n%s", diff)
	}
	if got := r.runs["r1"]; got.Envelopes != 3 || got.Status != conversation.Cancelled || got.Input != "one" {
		t.Errorf("r1 is %+v, want 3 envelopes, cancelled, input one", got)
	}
	if got := r.runs["r2"]; got.Envelopes != 2 || got.Status != conversation.Finished || got.Input != "two" {
		t.Errorf("r2 is %+v, want 2 envelopes, finished, input two", got)
	}
}

// TestThreadSpan: a thread reaches from the first to the last frame that names
// it, deltas included.
func TestThreadSpan(t *testing.T) {
	r := judge(script(t, `
0.0 a connect
0.1 a> run:start {"threadId":"t","messageId":"u1","input":"x"}
0.2 a< t/r/1 RUN_STARTED {}
0.3+0.1*5 a< t/r/{2} TODOS_SNAPSHOT {"todos":[]}
`), conversation.Options{})
	if got := r.threads["t"]; got.First != 6 || got.Last != 12 {
		t.Errorf("the thread reaches from %d to %d, want 6 to 12", got.First, got.Last)
	}
}
