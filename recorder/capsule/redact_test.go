package capsule

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
	"tapedeck/protocol/wire"
	"tapedeck/recorder/capsule/scrub"
)

const secret = "S3CR3T-é"

// planted is a conversation with the secret in every place where one can be.
func planted(t *testing.T) []capture.Frame {
	t.Helper()
	half := base64.StdEncoding.EncodeToString([]byte("x" + secret + "yz"))
	frames := talk(t, `
0.000 a connect {"token":"S3CR3T-é"}
0.000 b connect
0.005 a> thread:messages+1 {"threadId":"t1"}
0.005 b> thread:messages+1 {"threadId":"t1"}
0.006 a< ack+1 {"ok":true,"messages":[{"id":"m0","role":"assistant","content":"it is S3CR3T-é","toolCalls":[{"id":"c0","name":"pay","arguments":"{\"key\":\"S3CR3T-\\u00e9\"}","result":"S3CR3T-é"}],"reasoning":"S3CR3T-é?"}]}
0.006 b< ack+1 {"ok":true,"messages":[{"id":"m0","role":"assistant","content":"it is S3CR3T-é","toolCalls":[{"id":"c0","name":"pay","arguments":"{\"key\":\"S3CR3T-\\u00e9\"}","result":"S3CR3T-é"}],"reasoning":"S3CR3T-é?"}]}
0.010 a> run:start {"threadId":"t1","messageId":"u1","input":"my key is S3CR3T-é","attachments":[{"mediaType":"image/png","size":10,"data":"data:image/png;base64,`+half+`"}]}
0.020 a< t1/r1/1 RUN_STARTED {"message":{"id":"u1","role":"user","content":"my key is S3CR3T-é"}}
0.020 b< t1/r1/1 RUN_STARTED {"message":{"id":"u1","role":"user","content":"my key is S3CR3T-é"}}
0.030 a< t1/r1/2 TEXT_MESSAGE_START {"messageId":"m1"}
0.030 b< t1/r1/2 TEXT_MESSAGE_START {"messageId":"m1"}
0.040 a< t1/r1/3 TEXT_MESSAGE_CONTENT {"messageId":"m1","delta":"it is S3C"}
0.040 b< t1/r1/3 TEXT_MESSAGE_CONTENT {"messageId":"m1","delta":"it is S3C"}
0.050 a< t1/r1/4 TEXT_MESSAGE_CONTENT {"messageId":"m1","delta":"R3T-é"}
0.050 b< t1/r1/4 TEXT_MESSAGE_CONTENT {"messageId":"m1","delta":"R3T-é"}
0.060 a< t1/r1/5 TEXT_MESSAGE_END {"messageId":"m1"}
0.060 b< t1/r1/5 TEXT_MESSAGE_END {"messageId":"m1"}
0.070 a< t1/r1/6 TOOL_CALL_START {"toolCallId":"c1","toolCallName":"pay"}
0.070 b< t1/r1/6 TOOL_CALL_START {"toolCallId":"c1","toolCallName":"pay"}
0.080 a< t1/r1/7 TOOL_CALL_ARGS {"toolCallId":"c1","delta":"{\"key\":\"S3CR3T-\\u0"}
0.080 b< t1/r1/7 TOOL_CALL_ARGS {"toolCallId":"c1","delta":"{\"key\":\"S3CR3T-\\u0"}
0.090 a< t1/r1/8 TOOL_CALL_ARGS {"toolCallId":"c1","delta":"0e9\",\"cents\":4711}"}
0.090 b< t1/r1/8 TOOL_CALL_ARGS {"toolCallId":"c1","delta":"0e9\",\"cents\":4711}"}
0.100 a< t1/r1/9 TOOL_CALL_END {"toolCallId":"c1"}
0.100 b< t1/r1/9 TOOL_CALL_END {"toolCallId":"c1"}
0.110 a< t1/r1/10 TOOL_CALL_RESULT {"toolCallId":"c1","messageId":"m2","content":"S3CR3T-é"}
0.110 b< t1/r1/10 TOOL_CALL_RESULT {"toolCallId":"c1","messageId":"m2","content":"S3CR3T-é"}
0.120 a< t1/r1/11 TODOS_SNAPSHOT {"todos":[{"content":"use S3CR3T-é","status":"pending"}]}
0.120 b< t1/r1/11 TODOS_SNAPSHOT {"todos":[{"content":"use S3CR3T-é","status":"pending"}]}
0.125 a< t1/r1/12 SOMETHING_NEW {"who":"S3CR3T-é"}
0.125 b< t1/r1/12 SOMETHING_NEW {"who":"S3CR3T-é"}
0.126 a< 451-["blob",{"_placeholder":true,"num":0}]
0.127 a<binary 00`+hexOf(secret)+`ff
0.130 a< t1/r1/13 RUN_FINISHED
0.130 b< t1/r1/13 RUN_FINISHED
0.200 a end client 1000
0.200 b end client 1000
`)
	return append(frames, http1(capture.Position(len(frames)))...)
}

// http1 is an exchange with the secret in its heads and cut over its bodies.
func http1(last capture.Position) []capture.Frame {
	x := last + 1
	head := capture.RequestHead{
		Method: "POST", Target: "/conversations?token=S3CR3T-%C3%A9", Proto: "HTTP/1.1",
		Header: http.Header{"Authorization": {"Bearer " + secret}, "Cookie": {"sid=" + secret}, "Sec-Websocket-Protocol": {"bearer, " + secret}},
	}
	list := []capture.Frame{
		{Kind: capture.Request, Direction: capture.FromClient, Data: mustJSON(head)},
		{Kind: capture.Body, Direction: capture.FromClient, Data: []byte(`{"a":"S3CR3`)},
		{Kind: capture.Body, Direction: capture.FromClient, Data: []byte(`T-é"}`)},
		{Kind: capture.Response, Direction: capture.FromGateway, Data: mustJSON(capture.ResponseHead{Status: 200, Header: http.Header{"Set-Cookie": {"sid=" + secret}}})},
		{Kind: capture.Body, Direction: capture.FromGateway, Data: []byte("S3CR3T-\xc3")},
		{Kind: capture.Body, Direction: capture.FromGateway, Data: []byte("\xa9 it is")},
		{Kind: capture.Done, Direction: capture.FromGateway, Data: mustJSON(capture.Outcome{Expected: -1})},
	}
	for i := range list {
		list[i].Position, list[i].Exchange, list[i].Size = x+capture.Position(i), x, int64(len(list[i].Data))
	}
	return list
}

var secrets = []scrub.Secret{{Line: 1, Text: secret}}

// TestNoSecretSurvives is B12.
func TestNoSecretSurvives(t *testing.T) {
	tape := record(t, planted(t))
	for _, asked := range [][]string{{"all"}, {"pattern:S3CR3T-(é|\\\\u00e9)", "attachments"}} {
		path := filepath.Join(t.TempDir(), "bug.jsonl")
		done, err := ExportFile(context.Background(), tape, nil, path, Options{Redact: asked, Secrets: secrets})
		if err != nil {
			t.Errorf("%s: %v", asked, err)
			continue
		}
		if done.Redacted != strings.Join(scrub.Names(asked), ", ") {
			t.Errorf("it says that it redacted %q", done.Redacted)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "S3CR3T") {
			t.Errorf("%s: the secret is in it:\n%s", asked, text)
		}
	}
}

// TestASurvivingSecretIsRefused leaves out one group after the other.
func TestASurvivingSecretIsRefused(t *testing.T) {
	tape := record(t, planted(t))
	groups := scrub.Groups()
	groups = groups[:len(groups)-1]
	for i, left := range groups {
		switch left {
		case "decisions", "errors":
			continue // it was not planted there
		}
		asked := append(append([]string{}, groups[:i]...), groups[i+1:]...)
		path := filepath.Join(t.TempDir(), "bug.tape")
		_, err := ExportFile(context.Background(), tape, nil, path, Options{Redact: asked, Secrets: secrets})
		var survived *scrub.SurvivedError
		if !errors.As(err, &survived) || survived.Line != 1 {
			t.Errorf("without %s: %v", left, err)
		}
		if names, _ := os.ReadDir(filepath.Dir(path)); len(names) > 0 {
			t.Errorf("without %s a file was left: %v", left, names)
		}
	}
}

// TestRedactionKeepsWhatValidatesAndPlays compares a redacted capsule with the
// tape: findings, lengths in UTF-16 units, borders, JSON, equality.
func TestRedactionKeepsWhatValidatesAndPlays(t *testing.T) {
	tape := record(t, planted(t))
	run := conversation.RunKey{Session: 1, Run: "r1"}
	want := rulesOf(t, tape, run)
	redacted, report := importText(t, export(t, tape, Options{Format: JSONL, Redact: []string{"all"}}))
	if report.Redacted != "all" {
		t.Errorf("the report says that %q was redacted", report.Redacted)
	}
	if diff := cmp.Diff(want, rulesOf(t, redacted, run)); diff != "" {
		t.Errorf("findings (-tape +redacted):\n%s", diff)
	}
	before, after := eventsOf(t, framesIn(t, tape)), eventsOf(t, framesIn(t, redacted))
	if len(before) != len(after) {
		t.Fatalf("%d events became %d", len(before), len(after))
	}
	texts := map[string]string{}
	for i, b := range before {
		a := after[i]
		if b.Type != a.Type || b.MessageID != a.MessageID || b.ToolCallID != a.ToolCallID || b.ToolCallName != a.ToolCallName {
			t.Errorf("event %d was %+v and is %+v", i, b, a)
		}
		if x, y := len(utf16.Encode([]rune(b.Delta))), len(utf16.Encode([]rune(a.Delta))); x != y {
			t.Errorf("event %d: a delta of %d units has %d", i, x, y)
		}
		if was, ok := texts[string(b.Raw)]; ok && was != string(a.Raw) {
			t.Errorf("the same event became\n%s\nand\n%s", was, a.Raw)
		}
		texts[string(b.Raw)] = string(a.Raw)
	}
}

func eventsOf(t *testing.T, frames []capture.Frame) (events []protocol.Event) {
	t.Helper()
	var decoder wire.Decoder
	validator := protocol.NewValidator(protocol.Options{})
	for i := range frames {
		for _, p := range decoder.Decode(&frames[i]) {
			m := protocol.Message{Name: protocol.Name(p.Name), Direction: p.Direction}
			if p.Type != wire.Event || m.Name != protocol.RunEvent {
				continue
			}
			m.Payload = p.Args[0]
			validator.Validate(&m, nil)
			e := m.Envelope.Event
			e.Raw = append([]byte(nil), e.Raw...)
			events = append(events, e)
		}
	}
	return events
}

func TestRedactionIsTheSameEachTime(t *testing.T) {
	path := recordTo(t, planted(t))
	key, err := Key(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	tape, o := open(t, path), Options{Format: JSONL, Redact: []string{"all"}, Key: key}
	if diff := cmp.Diff(export(t, tape, o), export(t, tape, o)); diff != "" {
		t.Errorf("the second export differs:\n%s", diff)
	}
}

func TestUnknownGroupsAreRefused(t *testing.T) {
	for _, c := range []struct{ rule, want string }{
		{"reasonning", `did you mean "reasoning"`},
		{"password", "field:NAME"},
		{"pattern:(", "missing closing"},
		{"pattern:x*", "fits the empty text"},
		{"/a/~2", "~ is written ~0"},
	} {
		_, err := Export(context.Background(), record(t, nil), nil, &strings.Builder{}, Options{Format: JSONL, Redact: []string{c.rule}})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q in it", c.rule, err, c.want)
		}
	}
}

// TestFieldsAndPointers takes out single values and leaves the rest.
func TestFieldsAndPointers(t *testing.T) {
	tape := record(t, talk(t, `
0.000 a connect
0.010 a> run:start {"threadId":"t1","messageId":"u1","input":"hallo","extra":{"password":"open sesame","n":[1,2]}}
0.020 a< t1/r1/1 RUN_STARTED {}
0.030 a< t1/r1/2 TOOL_CALL_START {"toolCallId":"c1","toolCallName":"pay"}
0.040 a< t1/r1/3 TOOL_CALL_ARGS {"toolCallId":"c1","delta":"{\"who\":\"me\",\"pass"}
0.050 a< t1/r1/4 TOOL_CALL_ARGS {"toolCallId":"c1","delta":"word\":{\"a\":\"open\",\"b\":12},\"z\":1}"}
0.060 a< t1/r1/5 TOOL_CALL_END {"toolCallId":"c1"}
`))
	text := export(t, tape, Options{Format: JSONL, Key: []byte("0123456789abcdef"), Redact: []string{"field:password", "/input"}})
	for _, gone := range []string{"hallo", "sesame", `\"open\"`, "12}"} {
		if strings.Contains(text, gone) {
			t.Errorf("%q is there still:\n%s", gone, text)
		}
	}
	for _, there := range []string{`\"n\":[1,2]`, `\\\"who\\\":\\\"me\\\"`, `\\\"z\\\":1}`} {
		if !strings.Contains(text, there) {
			t.Errorf("%q is gone:\n%s", there, text)
		}
	}
}
