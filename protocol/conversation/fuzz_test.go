package conversation_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
	"tapedeck/protocol/conversation/corpus"
)

// vocabulary is what the fuzzer makes conversations of: every event and message,
// with few ids, so that they meet.
var vocabulary = []string{
	"#a connect", "#b connect", "#a end gateway 1006", "#b end client 1001",
	`>run:start {"threadId":"t","messageId":"u1","input":"x"}`,
	`>run:start+1 {"threadId":"t","messageId":"u2","input":"x","clientTools":[{"name":"pick","kind":"blocking","arguments":{"type":"object"},"result":{"type":"string"}}]}`,
	`>run:resume {"threadId":"t","interruptId":"i1","answer":1}`, `>run:resume+2 {"threadId":"t","interruptId":"i2","answer":"2"}`,
	`>run:cancel {"runId":"r1"}`, `>run:cancel+3 {"runId":"r2"}`, `>run:detach {"runId":"r1"}`, `>thread:messages+4 {"threadId":"t"}`,
	`<ack+1 {"ok":true}`, `<ack+2 {"ok":false,"error":{"code":"UNKNOWN_RUN","message":"x"}}`, `<ack+3 {"ok":true}`,
	`<ack+4 {"ok":true,"messages":[{"id":"m1","role":"assistant","content":"x","createdAt":"x"}],"pendingInterrupt":{"interruptId":"i1"}}`,
	`<ack+4 {"ok":true,"messages":[],"replay":{"truncated":false,"envelopes":[{"v":1,"threadId":"t","runId":"r1","sequence":1,"event":{"type":"RUN_STARTED"}},{"v":1,"threadId":"t","runId":"r1","sequence":2,"event":{"type":"RUN_PAUSED"}}]}}`,
	`<protocol:error {"code":"INVALID_COMMAND","message":"u1"}`, `<protocol:error {"code":"UNKNOWN_RUN","message":"x"}`,
	`<protocol:hello {"protocol":{"major":1,"minor":17},"minClientMajor":1}`, `<task:status {"threadId":"t","task":{"id":"x"}}`,
	`<RUN_STARTED {}`, `<RUN_STARTED {"message":{"id":"u1"}}`, `<RUN_FINISHED {}`, `<RUN_CANCELLED {}`, `<RUN_ERROR {"code":"x","message":"x"}`,
	`<TEXT_MESSAGE_START {"messageId":"m1"}`, `<TEXT_MESSAGE_CONTENT {"messageId":"m1","delta":"x\ud83d"}`,
	`<TEXT_MESSAGE_CONTENT {"messageId":"m1","delta":"\ude00x"}`, `<TEXT_MESSAGE_END {"messageId":"m1"}`,
	`<REASONING_START {"messageId":"m2"}`, `<REASONING_CONTENT {"messageId":"m2","delta":"x"}`, `<REASONING_END {"messageId":"m2"}`,
	`<TOOL_CALL_START {"toolCallId":"k","toolCallName":"pick"}`, `<TOOL_CALL_ARGS {"toolCallId":"k","delta":"{\""}`,
	`<TOOL_CALL_END {"toolCallId":"k"}`, `<TOOL_CALL_RESULT {"toolCallId":"k","content":"1"}`,
	`<INTERRUPT {"interruptId":"i1","payload":{"clientTool":"pick","arguments":{}}}`, `<INTERRUPT {"interruptId":"i2","payload":{}}`, `<RUN_PAUSED {}`,
	`<TODOS_SNAPSHOT {"todos":[]}`, `<SUBAGENT_STARTED {"toolCallId":"k","taskId":"x"}`, `<SUBAGENT_STARTED {}`,
	`<SUBAGENT_FINISHED {"toolCallId":"k","status":"finished","detached":true}`, `<SUBAGENT_FINISHED {"status":"error"}`, `<OTHER {}`,
	"-gap", "-http GET /protocol 200 {\"protocol\":{\"major\":2,\"minor\":0},\"minClientMajor\":2}",
}

// conversationOf turns bytes into lines of the corpus: three of them choose what
// passes, on which connection and under which run and sequence.
func conversationOf(data []byte) string {
	lines := "-- messages --\n0 a connect\n0 b connect\n"
	next := [2]int{1, 1}
	at := 0.0
	for ; len(data) >= 3; data = data[3:] {
		word, who, place := vocabulary[int(data[0])%len(vocabulary)], data[1]%2, data[2]
		at += float64(data[1]>>1) / 50
		run := int(place & 1)
		stamp := time.Duration(at * float64(time.Second)).Seconds()
		name := string('a' + rune(who))
		switch word[0] {
		case '#':
			lines += format(stamp) + " " + word[1:] + "\n"
		case '-':
			lines += format(stamp) + " - " + word[1:] + "\n"
		case '>':
			lines += format(stamp) + " " + name + "> " + word[1:] + "\n"
		default:
			text := word[1:]
			if text[0] >= 'A' && text[0] <= 'Z' {
				switch place >> 1 & 7 {
				case 0: // the same number again
				case 1:
					next[run] += 2
				default:
					next[run]++
				}
				text = "t/r" + string('1'+rune(run)) + "/" + number(next[run]-1) + " " + text
			}
			lines += format(stamp) + " " + name + "< " + text + "\n"
		}
	}
	return lines
}

func FuzzState(f *testing.F) {
	for i := range vocabulary {
		f.Add([]byte{4, 0, 4, 21, 0, 4, byte(i), 0, 4, byte(i), 1, 4, 23, 0, 4, 9, 200, 0})
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 3000 {
			return
		}
		c, err := corpus.Read([]byte(conversationOf(data)))
		if err != nil {
			t.Fatal(err)
		}
		sound(t, judge(c.Frames, conversation.Options{}))
		f := conversation.NewFold("t", 0)
		folded(c.Frames, f)
		f.Transcript()
	})
}

// FuzzFrames feeds frames of any bytes behind the corpus's conversations.
func FuzzFrames(f *testing.F) {
	files, err := filepath.Glob(filepath.Join(corpusDir, "*.bad*.txtar"))
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		c, err := corpus.Read(data)
		if err != nil {
			f.Fatal(err)
		}
		for _, frame := range c.Frames {
			if len(frame.Data) < 1000 {
				f.Add(byte(frame.Kind), byte(frame.Direction), frame.Data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, kind, from byte, data []byte) {
		state := conversation.New(conversation.Options{})
		s := newStream(t)
		for i := range s.frames {
			state.Observe(&s.frames[i])
		}
		for n := range 3 {
			frame := s.delta(n)
			state.Observe(&frame)
			frame = capture.Frame{Connection: 1, Kind: capture.Kind(kind), Direction: capture.Direction(from), Data: data, Size: int64(len(data))}
			frame.Position = capture.Position(1000 + n)
			state.Observe(&frame)
		}
		state.End()
	})
}

// sound holds what is told of any conversation against what is promised.
func sound(t *testing.T, r *told) {
	t.Helper()
	for run := range r.runs {
		posted(t, r, run)
	}
	for _, f := range r.findings {
		if _, known := protocol.RuleByID(f.Rule); !known {
			t.Errorf("no rule is called %q", f.Rule)
		}
		if f.Text == "" || len(f.Text) >= 200 || f.At.IsZero() || f.Severity == protocol.Off {
			t.Errorf("finding %+v lacks a text under 200 bytes, a place or a severity", f)
		}
	}
	for id, run := range r.runs {
		if sum(run.Pulse) != run.Envelopes || run.First > run.Last || run.Human < 0 || run.FirstToken < -1 {
			t.Errorf("run %s does not add up: %+v", id, run)
		}
	}
}

func format(seconds float64) string { return strconv.FormatFloat(seconds, 'f', 3, 64) }

func number(n int) string { return strconv.Itoa(n) }
