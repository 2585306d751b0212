package conversation_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// joinedRoom is what comes before a run in most reports.
const joinedRoom = `
0.00 a connect
0.01 a> thread:messages+0 {"threadId":"t"}
0.02 a< ack+0 {"ok":true,"messages":[]}
0.03 a> run:start {"threadId":"t","messageId":"u1","input":"Hi"}
0.04 a< t/r1/1 RUN_STARTED {"message":{"id":"u1"}}
`

// TestReports has what went wrong for others: which rules are raised, where, and
// how the run stands. Reports that have a conversation in the corpus of their
// own name it there.
func TestReports(t *testing.T) {
	tests := []struct {
		name, script string
		want         []string
		status       conversation.Status
	}{
		{"S01 two ends", joinedRoom + `
0.10 a< t/r1/2 TEXT_MESSAGE_START {"messageId":"m"}
0.20 a< t/r1/3 TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"x"}
0.30 a< t/r1/4 RUN_ERROR {"code":"X","message":"x"}
0.40 a< t/r1/5 RUN_FINISHED {}
`, []string{"note run-open-items 12 10", "error run-end-twice 13 12"}, conversation.Failed},
		{"S02 no end, the gateway cut", joinedRoom + `
0.10 a< t/r1/2 TODOS_SNAPSHOT {"todos":[]}
0.20 a end gateway 1006
`, []string{"error run-unfinished 10 11"}, conversation.Truncated},
		{"S02 no end, the client left", joinedRoom + `
0.10 a< t/r1/2 TODOS_SNAPSHOT {"todos":[]}
0.20 a end client 1001
`, []string{"note run-unfinished 10 11"}, conversation.Truncated},
		{"S03 started twice", joinedRoom + `
0.10 a< t/r1/2 RUN_STARTED {}
0.20 a< t/r1/3 TODOS_SNAPSHOT {"todos":[]}
0.30 a< t/r1/4 RUN_FINISHED {}
`, []string{"error run-start-not-first 10 9"}, conversation.Finished},
		{"S04 the end names another run", joinedRoom + `
0.10 a< t/r1/2 RUN_FINISHED {"runId":"r2"}
`, []string{"error ids-disagree 10 0"}, conversation.Finished},
		{"S06 text after the cancel", joinedRoom + `
0.10 a> run:cancel+1 {"runId":"r1"}
0.11 a< ack+1 {"ok":true}
0.20 a< t/r1/2 RUN_CANCELLED {}
2.20 a< t/r1/3 TEXT_MESSAGE_START {"messageId":"m"}
`, []string{"error event-after-end 13 12"}, conversation.Cancelled},
		{"S07 the cancel loses the race", joinedRoom + `
0.10 a> run:cancel+1 {"runId":"r1"}
0.11 a< ack+1 {"ok":true}
0.20 a< t/r1/2 RUN_FINISHED {}
`, []string{"warning run-cancel-ignored 12 10"}, conversation.Finished},
		{"S08 wrong and double answers", joinedRoom + `
0.10 a< t/r1/2 INTERRUPT {"interruptId":"i1","payload":{}}
0.11 a< t/r1/3 INTERRUPT {"interruptId":"i2","payload":{}}
0.12 a< t/r1/4 RUN_PAUSED {}
0.13 a< t/r1/5 RUN_FINISHED {}
1.00 a> run:resume {"threadId":"t","interruptId":"i1","answer":1}
1.10 a> run:resume {"threadId":"t","interruptId":"i1","answer":1}
1.20 a> run:resume {"threadId":"t","interruptId":"i9","answer":1}
9.00 a< 2
`, []string{"note interrupt-unanswered 11 0", "error resume-twice 15 14", "error resume-unknown 16 0"}, conversation.Paused},
		{"S09 a gap, said once", joinedRoom + `
0.10 a< t/r1/2 TODOS_SNAPSHOT {"todos":[]}
0.20 a< t/r1/4 TODOS_SNAPSHOT {"todos":[]}
0.30 a< t/r1/5 RUN_FINISHED {}
`, []string{"warning sequence-gap 11 10"}, conversation.Finished},
		{"S09 back to 2 with other bytes", joinedRoom + `
0.10 a< t/r1/2 TODOS_SNAPSHOT {"todos":[]}
0.20 a< t/r1/3 TODOS_SNAPSHOT {"todos":[]}
0.30 a< t/r1/2 TODOS_SNAPSHOT {"todos":["x"]}
0.40 a< t/r1/4 RUN_FINISHED {}
`, []string{"error sequence-not-increasing 12 11"}, conversation.Finished},
		{"E04 over the limit of the handshake", `
0.00 a connect
0.01 a> run:start {"threadId":"t","messageId":"u1","input":"Hi","attachments":[{"mediaType":"image/png","data":"{x*1000010}"}]}
0.02 a end gateway 1009
`, []string{"error packet-over-limit 6 0"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := judge(script(t, tt.script), conversation.Options{})
			var got []string
			for _, f := range r.findings {
				got = append(got, f.Severity.String()+" "+f.Rule+" "+f.At.String()+" "+f.Other.String())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
			if got := r.runs["r1"].Status; got != tt.status {
				t.Errorf("the run is %q, want %q", got, tt.status)
			}
			if len(r.runs) > 1 {
				t.Errorf("%d runs, want one", len(r.runs))
			}
		})
	}
}

// TestFailureHidesNothing (S05): each run of a thread is listed, and what is
// wrong with one is counted there.
func TestFailureHidesNothing(t *testing.T) {
	r := judge(script(t, joinedRoom+`
0.10 a< t/r1/2 RUN_FINISHED {}
1.00 a> run:start {"threadId":"t","messageId":"u2","input":"Hi"}
1.10 a< t/r2/1 RUN_STARTED {}
1.20 a< t/r2/2 TEXT_MESSAGE_START {"messageId":"m"}
1.30 a< t/r2/3 RUN_ERROR {"code":"X","message":"x"}
1.40 a< t/r2/4 RUN_FINISHED {}
2.00 a> run:start {"threadId":"t","messageId":"u3","input":"Hi"}
2.10 a< t/r3/1 RUN_STARTED {}
2.20 a< t/r3/2 RUN_FINISHED {}
`), conversation.Options{})
	counts := map[string][3]int{}
	for id, run := range r.runs {
		counts[id] = [3]int{run.Errors, run.Warnings, run.Notes}
	}
	if diff := cmp.Diff(map[string][3]int{"r1": {}, "r2": {1, 0, 1}, "r3": {}}, counts); diff != "" {
		t.Errorf("errors, warnings and notes (-want +got):\n%s", diff)
	}
	if got := r.threads["t"]; got.Runs != 3 || got.Errors != 1 || got.Status != conversation.Finished {
		t.Errorf("the thread is %+v, want 3 runs, 1 error, finished", got)
	}
}

// TestUpgrade (E02): what passes by polling and then by WebSocket is one
// connection, and its probes are no messages.
func TestUpgrade(t *testing.T) {
	frames := script(t, `
0.00 a open polling
0.01 a< 0{"sid":"e","upgrades":["websocket"],"pingInterval":25000,"pingTimeout":20000,"maxPayload":1000000}
0.02 a> 40
0.03 a< 40{"sid":"s"}␞42["protocol:hello",{"protocol":{"major":1,"minor":17},"minClientMajor":1}]
0.04 a> 420["thread:messages",{"threadId":"t"}]
0.05 a> 2probe
0.06 a< 3probe
0.07 a< 430[{"ok":true,"messages":[]}]␞6
0.08 a> 5
0.09 a< t/r1/1 RUN_STARTED {}
0.10 a< t/r1/2 RUN_FINISHED {}
`)
	for i := range frames {
		if p := frames[i].Position; frames[i].Kind == capture.Polling && (p == 6 || p == 7 || p >= 9) {
			frames[i].Kind = capture.Text
		}
	}
	r := judge(frames, conversation.Options{})
	for _, f := range r.findings {
		t.Errorf("raises %s at %s: %s", f.Rule, f.At, f.Text)
	}
	if r.messages != 5 || len(r.runs) != 1 {
		t.Errorf("%d messages and %d runs, want 5 and 1", r.messages, len(r.runs))
	}
}

// TestTrailingNull (E07): a trailing undefined arrives as a null argument. The
// payload is judged all the same.
func TestTrailingNull(t *testing.T) {
	r := judge(script(t, `
0.00 a connect
0.01 a> 42["run:start",{"threadId":"t","messageId":"u1","input":""},null]
`), conversation.Options{})
	var got []string
	for _, f := range r.findings {
		got = append(got, f.Rule)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"argument-unexpected", "input-empty"}, got); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}

// TestPostsAttachments: the frames of an envelope's attachments belong to its
// run.
func TestPostsAttachments(t *testing.T) {
	r := judge(script(t, joinedRoom+`
0.10 a< 452-["run:event",{"v":1,"threadId":"t","runId":"r1","sequence":2,"event":{"type":"TOOL_CALL_RESULT","toolCallId":"k","content":[{"_placeholder":true,"num":0},{"_placeholder":true,"num":1}]}}]
0.11 a<binary 01
0.12 a<binary 02
0.20 a< t/r1/3 RUN_FINISHED {}
`), conversation.Options{})
	if diff := cmp.Diff([]capture.Position{1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13}, posted(t, r, "r1")); diff != "" {
		t.Errorf("posts (-want +got):\n%s", diff)
	}
}

// TestSkipped: what could not be judged is said, and why.
func TestSkipped(t *testing.T) {
	r := judge(script(t, `
0.00 a open joined
0.10 a< t/r1/7 TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"x"}
0.20 a< t/r1/8 TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"x"}
0.30 a< t/r1/9 RUN_FINISHED {}
`), conversation.Options{})
	if len(r.findings) > 0 {
		t.Errorf("raises %v", r.findings)
	}
	want := []conversation.Skipped{
		{Skip: conversation.Skip{Rule: "room-not-joined", Reason: "the beginning of the connection was not seen"}, Count: 1, First: capture.Address{Position: 2, Packet: 1}, Run: "r1"},
		{Skip: conversation.Skip{Rule: "run-not-started", Reason: "the beginning of the connection was not seen"}, Count: 1, First: capture.Address{Position: 2, Packet: 1}, Run: "r1"},
		{Skip: conversation.Skip{Rule: "text-pair", Reason: "a part of the run was not seen"}, Count: 2, First: capture.Address{Position: 2, Packet: 1}, Run: "r1"},
	}
	if diff := cmp.Diff(want, r.state.Skipped()); diff != "" {
		t.Errorf("skipped (-want +got):\n%s", diff)
	}
}
