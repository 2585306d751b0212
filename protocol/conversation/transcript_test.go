package conversation_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// folded gives the messages of some frames to a fold.
func folded(frames []capture.Frame, folds ...*conversation.Fold) {
	state := conversation.New(conversation.Options{})
	for i := range frames {
		step := state.Observe(&frames[i])
		for j := range step.Messages {
			for _, f := range folds {
				f.Add(&step.Messages[j])
			}
		}
	}
}

// screen writes a transcript as a person would see it, a line a block.
func screen(t *conversation.Transcript) string {
	var b strings.Builder
	for _, k := range t.Blocks {
		fmt.Fprintf(&b, "%s %s", k.Kind, k.ID)
		if k.Open {
			b.WriteString(" …")
		}
		if k.Text != "" {
			fmt.Fprintf(&b, " %q", k.Text)
		}
		if k.Refused != "" {
			fmt.Fprintf(&b, " refused %s", k.Refused)
		}
		if c := k.Tool; c != nil {
			fmt.Fprintf(&b, " %s parsed %t result %s after %v", c.Name, c.Parsed, c.Result, c.Latency)
		}
		if d := k.Decision; d != nil {
			fmt.Fprintf(&b, " %s %s", d.State, d.Payload)
			if d.State == "answered" {
				fmt.Fprintf(&b, " by #%s: %s after %v", d.By, d.Answer, d.Waited)
			}
		}
		if s := k.Subagent; s != nil {
			fmt.Fprintf(&b, " %s %s", s.Name, s.Status)
		}
		b.WriteByte('\n')
	}
	for _, r := range t.Runs {
		b.WriteString("run")
		for _, s := range r.Segments {
			b.WriteString(" " + s.Run)
		}
		fmt.Fprintf(&b, " %s\n", r.Status)
	}
	for _, todo := range t.Todos {
		fmt.Fprintf(&b, "todo %s %s\n", todo.Content, todo.Status)
	}
	return b.String()
}

func TestTranscript(t *testing.T) {
	tests := []struct{ name, script, want string }{
		{"every construct, over a pause", `
0.0 a connect
0.1 a> run:start {"threadId":"t","messageId":"u1","input":"Refund it"}
0.2 a< t/r1/1 RUN_STARTED {"message":{"id":"u1"}}
0.3 a< t/r1/2 REASONING_START {"messageId":"m0"}
0.3 a< t/r1/3 REASONING_CONTENT {"messageId":"m0","delta":"Hm."}
0.3 a< t/r1/4 REASONING_END {"messageId":"m0"}
0.4 a< t/r1/5 TEXT_MESSAGE_START {"messageId":"m1"}
0.5 a< t/r1/6 TEXT_MESSAGE_CONTENT {"messageId":"m1","delta":"Let me "}
0.6 a< t/r1/7 TOOL_CALL_START {"toolCallId":"k","toolCallName":"find"}
0.6 a< t/r1/8 TOOL_CALL_ARGS {"toolCallId":"k","delta":"{\"q\":"}
0.6 a< t/r1/9 TOOL_CALL_ARGS {"toolCallId":"k","delta":"1}"}
0.6 a< t/r1/10 TOOL_CALL_END {"toolCallId":"k"}
0.7 a< t/r1/11 TEXT_MESSAGE_CONTENT {"messageId":"m1","delta":"see."}
0.8 a< t/r1/12 TEXT_MESSAGE_END {"messageId":"m1"}
0.9 a< t/r1/13 TOOL_CALL_RESULT {"toolCallId":"k","content":"4711"}
1.0 a< t/r1/14 TODOS_SNAPSHOT {"todos":["look",{"content":"pay","status":"pending"}]}
1.1 a< t/r1/15 INTERRUPT {"interruptId":"i1","payload":{"ask":1}}
1.1 a< t/r1/16 RUN_PAUSED {}
1.1 a< t/r1/17 RUN_FINISHED {}
4.1 a> run:resume {"threadId":"t","interruptId":"i1","answer":"yes"}
4.2 a< t/r2/1 RUN_STARTED {}
4.3 a< t/r2/2 SUBAGENT_STARTED {"toolCallId":"k2","name":"payer"}
4.4 a< t/r2/3 SUBAGENT_FINISHED {"toolCallId":"k2","status":"finished"}
4.5 a< t/r2/4 RUN_FINISHED {}
`, `user u1 "Refund it"
reasoning m0 "Hm."
text m1 "Let me see."
tool k "{\"q\":1}" find parsed true result "4711" after 300ms
decision i1 answered {"ask":1} by #24: "yes" after 3s
subagent k2 payer finished
run r1 r2 finished
todo look 
todo pay pending
`},
		{"a history that tells of what was said before", `
0.0 a connect
0.1 a> run:start {"threadId":"t","messageId":"u2","input":"And now?"}
0.2 a< t/r1/1 RUN_STARTED {}
0.3 a< t/r1/2 TEXT_MESSAGE_START {"messageId":"m2"}
0.4 a< t/r1/3 TEXT_MESSAGE_CONTENT {"messageId":"m2","delta":"Now this."}
0.5 a< t/r1/4 TEXT_MESSAGE_END {"messageId":"m2"}
0.6 a< t/r1/5 RUN_FINISHED {}
1.0 b connect
1.1 b> thread:messages+1 {"threadId":"t"}
1.2 b< ack+1 {"ok":true,"messages":[{"id":"u0","role":"user","content":"Hi"},{"id":"m0","role":"assistant","content":"Hello."},{"id":"u2","role":"user","content":"And now?"},{"id":"m1","role":"assistant","content":"Between."},{"id":"m2","role":"assistant","content":"Now this."},{"id":"m3","role":"assistant","content":"And more."}]}
`, `user u0 "Hi"
text m0 "Hello."
user u2 "And now?"
text m1 "Between."
text m2 "Now this."
text m3 "And more."
run r1 finished
`},
		{"a failed run, what was open, and a refused start", `
0.0 a connect
0.1 a> run:start {"threadId":"t","messageId":"u1","input":"Hi"}
0.2 a< t/r1/1 RUN_STARTED {}
0.3 a< t/r1/2 TEXT_MESSAGE_START {"messageId":"m1"}
0.4 a< t/r1/3 TEXT_MESSAGE_CONTENT {"messageId":"m1","delta":"I am"}
0.5 a> run:start {"threadId":"t","messageId":"u2","input":"Quick!"}
0.6 a< protocol:error {"code":"INVALID_COMMAND","message":"busy"}
0.7 a< t/r1/4 RUN_ERROR {"code":"MODEL","message":"overloaded"}
`, `user u1 "Hi"
text m1 "I am"
user u2 "Quick!" refused INVALID_COMMAND
error MODEL "overloaded"
run r1 error
`},
		{"characters cut between deltas, and one that never completes", `
0.0 a connect
0.1 a> run:start {"threadId":"t","messageId":"u1","input":"Hi"}
0.2 a< t/r1/1 RUN_STARTED {}
0.3 a< t/r1/2 TEXT_MESSAGE_START {"messageId":"m1"}
0.4 a< t/r1/3 TEXT_MESSAGE_CONTENT {"messageId":"m1","delta":"a\ud83d"}
0.5 a< t/r1/4 TEXT_MESSAGE_CONTENT {"messageId":"m1","delta":"\ude00b\ud83d"}
0.6 a< t/r1/5 TEXT_MESSAGE_CONTENT {"messageId":"m1","delta":"c\ud83d"}
0.7 a< t/r1/6 TEXT_MESSAGE_END {"messageId":"m1"}
0.8 a< t/r1/7 RUN_FINISHED {}
`, "user u1 \"Hi\"\ntext m1 \"a😀b\uFFFDc\uFFFD\"\nrun r1 finished\n"},
		{"a window that joins in the middle", `
0.0 b connect
0.1 b> thread:messages+0 {"threadId":"t"}
0.2 b< ack+0 {"ok":true,"messages":[{"id":"u0","role":"user","content":"Before","createdAt":"x"},{"id":"m0","role":"assistant","content":"Yes.","createdAt":"x"}],"todos":["x"],"replay":{"truncated":false,"envelopes":[{"v":1,"threadId":"t","runId":"r1","sequence":1,"event":{"type":"RUN_STARTED","message":{"id":"u1","content":"Now"}}},{"v":1,"threadId":"t","runId":"r1","sequence":2,"event":{"type":"TEXT_MESSAGE_START","messageId":"m1"}},{"v":1,"threadId":"t","runId":"r1","sequence":3,"event":{"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":"Now "}}]}}
0.3 b< t/r1/4 TEXT_MESSAGE_CONTENT {"messageId":"m1","delta":"what?"}
`, `user u0 "Before"
text m0 "Yes."
user u1 "Now"
text m1 … "Now what?"
run r1 running
todo x 
`},
		{"two windows, and a reconnect that finds the run over", `
0.0 a connect
0.0 b connect
0.1 a> run:start {"threadId":"t","messageId":"u1","input":"Hi"}
0.2 a< t/r1/1 RUN_STARTED {}
0.2 b< t/r1/1 RUN_STARTED {}
0.3 a< t/r1/2 TEXT_MESSAGE_START {"messageId":"m1"}
0.3 b< t/r1/2 TEXT_MESSAGE_START {"messageId":"m1"}
0.4 a< t/r1/3 TEXT_MESSAGE_CONTENT {"messageId":"m1","delta":"So"}
0.4 b< t/r1/3 TEXT_MESSAGE_CONTENT {"messageId":"m1","delta":"So"}
0.5 a end gateway 1006
0.5 b end gateway 1006
1.0 c connect
1.1 c> thread:messages+0 {"threadId":"t"}
1.2 c< ack+0 {"ok":true,"messages":[{"id":"u1","role":"user","content":"Hi","createdAt":"x"},{"id":"m1","role":"assistant","content":"So it is.","createdAt":"x"}]}
`, `user u1 "Hi"
text m1 "So it is."
run r1 truncated
`},
		{"a fork replaces what came after", `
0.0 a connect
0.1 a> run:start {"threadId":"t","messageId":"u1","input":"Hi"}
0.2 a< t/r1/1 RUN_STARTED {}
0.3 a< t/r1/2 RUN_FINISHED {}
0.4 a> run:start {"threadId":"t","messageId":"u2","input":"Ho"}
0.5 a< t/r2/1 RUN_STARTED {}
0.6 a< t/r2/2 RUN_FINISHED {}
0.7 a> run:start {"threadId":"t","messageId":"u3","input":"Hey","forkFromMessageId":"u2"}
0.8 a< t/r3/1 RUN_STARTED {}
0.9 a< t/r3/2 RUN_CANCELLED {}
`, `user u1 "Hi"
user u3 "Hey"
run r1 finished
run r2 finished
run r3 cancelled
`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := conversation.NewFold("t", 0)
			folded(script(t, tt.script), f)
			if diff := cmp.Diff(tt.want, screen(f.Transcript())); diff != "" {
				t.Errorf("screen (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFigures(t *testing.T) {
	f := conversation.NewFold("t", time.Second)
	folded(script(t, `
0.0 a connect
1.0 a> run:start {"threadId":"t","messageId":"u1","input":"Hi"}
1.5 a< t/r1/1 RUN_STARTED {}
1.6 a< t/r1/2 TEXT_MESSAGE_START {"messageId":"m1"}
1.7 a< t/r1/3 TEXT_MESSAGE_CONTENT {"messageId":"m1","delta":"x"}
3.7 a< t/r1/4 TEXT_MESSAGE_END {"messageId":"m1"}
3.8 b connect
3.8 b> thread:messages+0 {"threadId":"t"}
3.8 b< ack+0 {"ok":true,"messages":[],"replay":{"truncated":true,"envelopes":[{"v":1,"threadId":"t","runId":"r1","sequence":4,"event":{"type":"TEXT_MESSAGE_END","messageId":"m1"}}]}}
3.9 a< t/r1/5 INTERRUPT {"interruptId":"i1","payload":{}}
3.9 b< t/r1/5 INTERRUPT {"interruptId":"i1","payload":{}}
4.0 a< t/r1/6 RUN_PAUSED {}
4.0 a< t/r1/7 RUN_FINISHED {}
13.9 a> run:resume {"threadId":"t","interruptId":"i1","answer":1}
14.0 a< t/r2/1 RUN_STARTED {}
14.4 a< t/r2/2 RUN_FINISHED {}
`), f)
	runs := f.Transcript().Runs
	if len(runs) != 1 || len(runs[0].Segments) != 2 {
		t.Fatalf("runs are %+v, want one of two segments", runs)
	}
	got := runs[0].Figures
	want := conversation.Figures{
		Events: 9, Bytes: got.Bytes,
		Wall: 13400 * time.Millisecond, Human: 10 * time.Second, Model: 3400 * time.Millisecond,
		FirstToken: 700 * time.Millisecond,
		GapMedian:  200 * time.Millisecond, Gap95: 2 * time.Second, GapMax: 2 * time.Second, Stalls: 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}
}

// TestScrub clones a fold at each message. The clones and the first one must
// come to the same end, and no transcript may change once it was taken.
func TestScrub(t *testing.T) {
	for name, frames := range goodConversations(t) {
		whole := conversation.NewFold("t1", 0)
		folded(frames, whole)
		want := whole.Transcript()
		state := conversation.New(conversation.Options{})
		f := conversation.NewFold("t1", 0)
		for i := range min(len(frames), 40) {
			step := state.Observe(&frames[i])
			for j := range step.Messages {
				before := f.Transcript()
				shown := screen(before)
				clone := f.Clone()
				f.Add(&step.Messages[j])
				if got := screen(clone.Transcript()); got != shown {
					t.Fatalf("%s: a clone at frame %d shows\n%s\nwhen the fold went on from\n%s", name, i+1, got, shown)
				}
				clone.Add(&step.Messages[j])
				if got := screen(before); got != shown {
					t.Fatalf("%s: a transcript of frame %d has changed to\n%s\nfrom\n%s", name, i+1, got, shown)
				}
				if j%2 == 1 {
					f = clone
				}
			}
		}
		for i := min(len(frames), 40); i < len(frames); i++ {
			step := state.Observe(&frames[i])
			for j := range step.Messages {
				f.Add(&step.Messages[j])
			}
		}
		if diff := cmp.Diff(want, f.Transcript()); diff != "" {
			t.Errorf("%s: a fold that was cloned on its way differs (-whole +cloned):\n%s", name, diff)
		}
	}
}
