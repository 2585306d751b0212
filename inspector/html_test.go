package inspector

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"tapedeck/protocol/capture"
)

// TestHTML keeps the page as text that a person can read. Its style and script
// are files of their own.
func TestHTML(t *testing.T) {
	for _, story := range []string{"thread", "hostile", "rejoin"} {
		page := string(report(t, readTape(t, story), HTMLOptions{Tool: "1.0.0", Comment: "Line one\nand two"}))
		if page != string(report(t, readTape(t, story), HTMLOptions{Tool: "1.0.0", Comment: "Line one\nand two"})) {
			t.Errorf("%s: the same runs make other bytes", story)
		}
		for _, part := range []struct{ text, name string }{
			{htmlStyle, "page.css"}, {htmlScript, "page.js"}, {sourceHash(htmlStyle), "hash of page.css"}, {sourceHash(htmlScript), "hash of page.js"},
		} {
			if strings.Count(page, part.text) != 1 {
				t.Errorf("%s: the %s is there %d times, want once", story, part.name, strings.Count(page, part.text))
			}
			page = strings.Replace(page, part.text, "("+part.name+")", 1)
		}
		golden(t, "report."+story+".html", []byte(page))
	}
}

// attack is text that would be obeyed if it were let.
const attack = `</script></title><script>window.owned=1</script><img src=x onerror="window.owned=1">'"` + "`" + `{{.}}<!--${window.owned=1}javascript:window.owned=1`

// hostileTape holds the attack wherever text can stand.
func hostileTape(t testing.TB) *tape {
	t.Helper()
	quoted, err := json.Marshal(attack + "\u202e\x1b[2J\u2028")
	if err != nil {
		t.Fatal(err)
	}
	raw := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&", `\u2028`, "\u2028").Replace(string(quoted))
	event := func(seq int, eventType, body string) string {
		return fmt.Sprintf(`0.%d a< 42["run:event",{"v":1,"threadId":%s,"runId":%s,"sequence":%d,"event":{"type":%s,%s}}]`+"\n", 10+seq, raw, raw, seq, eventType, body)
	}
	messages := "0.0 a connect\n0.1 a> run:start {\"threadId\":" + raw + ",\"messageId\":" + raw + ",\"input\":" + raw + "}\n"
	for i, e := range []struct{ kind, body string }{
		{`"RUN_STARTED"`, `"x":1`}, {`"TEXT_MESSAGE_START"`, `"messageId":` + raw + `,"role":` + raw}, {`"TEXT_MESSAGE_CONTENT"`, `"messageId":` + raw + `,"delta":` + raw},
		{`"TEXT_MESSAGE_END"`, `"messageId":` + raw}, {`"TOOL_CALL_START"`, `"toolCallId":` + raw + `,"toolCallName":` + raw},
		{`"TOOL_CALL_ARGS"`, `"toolCallId":` + raw + `,"delta":` + raw}, {`"TOOL_CALL_END"`, `"toolCallId":` + raw},
		{`"TOOL_CALL_RESULT"`, `"toolCallId":` + raw + `,"content":` + raw}, {`"TODOS_SNAPSHOT"`, `"todos":[{"content":` + raw + `,"status":` + raw + `}]`},
		{`"SUBAGENT_STARTED"`, `"taskId":` + raw + `,"childThreadId":` + raw + `,"name":` + raw}, {raw, `"x":` + raw},
		{`"INTERRUPT"`, `"interruptId":` + raw + `,"payload":{` + raw + `:` + raw + `}`}, {`"RUN_ERROR"`, `"code":` + raw + `,"message":` + raw},
	} {
		messages += event(i+1, e.kind, e.body)
	}
	tp := tapeOf(t, messages)
	if len(tp.runs) != 1 {
		t.Fatalf("the attack made %d runs", len(tp.runs))
	}
	tp.session.Gateway, tp.session.Tool, tp.session.Fault = attack, attack, attack
	return tp
}

// TestHTMLInert looks at the bytes: nothing of the attack can end the element
// that it stands in.
func TestHTMLInert(t *testing.T) {
	page := string(report(t, hostileTape(t), HTMLOptions{Title: attack, Comment: attack, Tool: attack}))
	for what, want := range map[string]int{"<script": 2, "</script": 2, "<style": 1, "</style": 1, "</title": strings.Count(page, "<title"), "<img": 0, "<!--": 0} {
		ours := strings.ReplaceAll(strings.ReplaceAll(page, htmlScript, ""), htmlStyle, "")
		if got := strings.Count(ours, what); got != want {
			t.Errorf("%s is there %d times, want %d", what, got, want)
		}
	}
	for _, r := range []string{"\u202e", "\x1b", "\u2028"} {
		if strings.Contains(page, r) {
			t.Errorf("%q stands in the page as it came", r)
		}
	}
	for _, e := range dataOf(t, page) {
		if !json.Valid([]byte(e.Payload)) {
			t.Errorf("the payload of #%s is no JSON any more: %s", e.At, e.Payload)
		}
	}
}

// dataOf reads the block of data of a page.
func dataOf(t testing.TB, page string) (all []htmlEnvelope) {
	t.Helper()
	_, data, _ := strings.Cut(page, `<script type="application/json" id="data">`)
	data, _, _ = strings.Cut(data, "</script>")
	if err := json.Unmarshal([]byte(data), &all); err != nil {
		t.Fatalf("read the block of data: %v", err)
	}
	return all
}

// longTape is a run of n envelopes: a hundred constructs of many deltas.
func longTape(t testing.TB, n int) *tape {
	t.Helper()
	var b strings.Builder
	b.WriteString("0.0 a connect\n0.1 a> run:start {\"threadId\":\"t\",\"messageId\":\"u\",\"input\":\"Tell me all\"}\n0.2 a< t/r/1 RUN_STARTED {}\n")
	seq, at := 2, 0.3
	for i := range 100 {
		fmt.Fprintf(&b, "%.3f a< t/r/%d TEXT_MESSAGE_START {\"messageId\":\"m%d\",\"role\":\"assistant\"}\n", at, seq, i)
		fmt.Fprintf(&b, "%.3f+0.001*%d a< t/r/{%d} TEXT_MESSAGE_CONTENT {\"messageId\":\"m%d\",\"delta\":\"another word or two, \"}\n", at+0.001, n/100+1, seq+1, i)
		seq += n/100 + 2
		at += 0.001 * float64(n/100+3)
		fmt.Fprintf(&b, "%.3f a< t/r/%d TEXT_MESSAGE_END {\"messageId\":\"m%d\"}\n", at, seq, i)
		seq++
	}
	fmt.Fprintf(&b, "%.3f a< t/r/%d RUN_FINISHED {}\n", at+0.1, seq)
	return tapeOf(t, b.String())
}

func TestHTMLPayloads(t *testing.T) {
	big := strings.Repeat("long ", 40_000)
	tp := tapeOf(t, one("TOOL_CALL_RESULT", `{"toolCallId":"k","content":{"id":9007199254740993,"big":"`+big+`"}}`))
	page := string(report(t, tp, HTMLOptions{MaxPayload: 1000}))
	if len(page) > 100_000 {
		t.Errorf("the page has %d bytes though payloads are cut at 1000", len(page))
	}
	all := dataOf(t, page)
	var found bool
	for _, e := range all {
		if e.Type == "TOOL_CALL_RESULT" {
			found = true
			if !strings.Contains(e.Payload, "9007199254740993") || len(e.Payload) > 1000 || e.Size < 200_000 {
				t.Errorf("got %d of %d bytes: %s", len(e.Payload), e.Size, e.Payload)
			}
		}
	}
	if !found {
		t.Errorf("no result among %d envelopes", len(all))
	}
}

func TestHTMLSaysWhatIsMissing(t *testing.T) {
	tp := tapeOf(t, one("TODOS_SNAPSHOT", `{"todos":[]}`))
	tp.session.Clean, tp.session.Secrets = false, true
	tp.runs[0].Status = "running"
	page := string(report(t, tp, HTMLOptions{}))
	for _, want := range []string{"Session 1 was cut off: its last moments may be missing.", "its end is not in it", "credentials may be in it"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if bytes.Contains([]byte(page), []byte("cut off</span>")) {
		t.Error("what goes on is called cut off")
	}
}

// TestHTMLManyFindings: a rule broken everywhere is told in some places, and
// counted in all.
func TestHTMLManyFindings(t *testing.T) {
	var b strings.Builder
	b.WriteString("0.0 a connect\n0.1 a> run:start {\"threadId\":\"t\",\"messageId\":\"u\",\"input\":\"Hi\"}\n0.2 a< t/r/1 RUN_STARTED {}\n")
	b.WriteString("0.3+0.01*300 a< t/r/{2} MOOD {\"mood\":\"x\"}\n5.0 a< t/r/302 RUN_FINISHED {}")
	page := string(report(t, tapeOf(t, b.String()), HTMLOptions{}))
	if got := strings.Count(page, "<li><a class=\"at\""); got > maxPlaces {
		t.Errorf("%d places are listed, want at most %d", got, maxPlaces)
	}
	for _, want := range []string{"100 places more are among the envelopes", "300 notes"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// TestHTMLManyConstructs: a transcript is as long as can be read, and says what
// it leaves out. Links lead to what is there.
func TestHTMLManyConstructs(t *testing.T) {
	const n = 6000
	var b strings.Builder
	b.WriteString("0.0 a connect\n0.1 a> run:start {\"threadId\":\"t\",\"messageId\":\"u\",\"input\":\"Hi\"}\n0.2 a< t/r/1 RUN_STARTED {}\n")
	fmt.Fprintf(&b, "0.3+0.01*%d a< t/r/{2} TODOS_SNAPSHOT {\"todos\":[\"{1}\",1]}\n99.0 a< t/r/%d RUN_FINISHED {}", n, n+2)
	page := string(report(t, tapeOf(t, b.String()), HTMLOptions{}))
	if got := strings.Count(page, "<article class=\"i i-todos\""); got > maxItems || got < maxItems-10 {
		t.Errorf("%d constructs are written out, want about %d", got, maxItems)
	}
	if want := "2,003 constructs are not written out here"; !strings.Contains(page, want) {
		t.Errorf("the page does not say %q", want)
	}
	if got := len(dataOf(t, page)); got != n+3 {
		t.Errorf("the page has %d envelopes, want all %d", got, n+3)
	}
	for _, link := range regexp.MustCompile(`href="#(c[^"]+)"`).FindAllStringSubmatch(page, -1) {
		if link[1] != "chat" && !strings.Contains(page, `id="`+link[1]+`"`) {
			t.Errorf("a link leads to #%s, which is not there", link[1])
		}
	}
}

func TestHTMLErrors(t *testing.T) {
	ctx, tp := context.Background(), readTape(t, "thread")
	if err := WriteHTML(ctx, io.Discard, tp, nil, HTMLOptions{}); !errors.Is(err, ErrNothing) {
		t.Errorf("no runs: got error %v, want ErrNothing", err)
	}
	other := append(tp.runs[:1:1], tp.runs[1])
	other[1].Session = capture.SessionID(2)
	if err := WriteHTML(ctx, io.Discard, tp, other, HTMLOptions{}); err == nil || !strings.Contains(err.Error(), "a report is of one session") {
		t.Errorf("two sessions: got error %v", err)
	}
	full := errors.New("disk full")
	if err := WriteHTML(ctx, fullDisk{full}, tp, tp.runs, HTMLOptions{}); !errors.Is(err, full) {
		t.Errorf("a writer that fails: got error %v", err)
	}
}

// fullDisk is a writer that fails.
type fullDisk struct{ err error }

func (f fullDisk) Write([]byte) (int, error) { return 0, f.err }
