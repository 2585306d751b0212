package inspector

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

func statsOf(t *testing.T, story string) *Stats {
	t.Helper()
	tp := readTape(t, story)
	s, err := LoadStats(context.Background(), tp, tp.runs)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStatsViews(t *testing.T) {
	s := statsOf(t, "thread")
	for _, tt := range []struct {
		golden string
		look   Look
	}{{"stats.120.txt", Look{Width: 120}}, {"stats.80.txt", Look{Width: 80}}, {"stats.80.ascii.txt", Look{Width: 80, ASCII: true}}} {
		var out bytes.Buffer
		if err := s.Write(&out, &tt.look); err != nil {
			t.Fatal(err)
		}
		checkLines(t, out.String(), tt.look.Width, tt.look.ASCII, false)
		golden(t, tt.golden, out.Bytes())
	}
	var out bytes.Buffer
	if err := s.WriteJSON(&out, FormatJSON); err != nil {
		t.Fatal(err)
	}
	golden(t, "stats.json", out.Bytes())
	out.Reset()
	if err := s.WriteJSON(&out, FormatJSONL); err != nil {
		t.Fatal(err)
	}
	if lines := bytes.Count(out.Bytes(), []byte("\n")); lines != len(s.Runs) || !json.Valid(bytes.SplitN(out.Bytes(), []byte("\n"), 2)[0]) {
		t.Errorf("got %d lines for %d runs", lines, len(s.Runs))
	}
	out.Reset()
	if err := s.WriteCSV(&out); err != nil {
		t.Fatal(err)
	}
	golden(t, "stats.csv", out.Bytes())
	records, err := csv.NewReader(&out).ReadAll()
	if err != nil || len(records) != 1+len(s.Runs) {
		t.Errorf("got %d records and error %v", len(records), err)
	}
}

// TestStatsFigures measures by hand: a pause in the middle of a call is the
// human's, a second window and a repeat count in nothing.
func TestStatsFigures(t *testing.T) {
	c := `0.0 a connect
0.0 b connect
0.0 b> thread:messages+0 {"threadId":"t"}
0.1 a> run:start {"threadId":"t","messageId":"u","input":"Hi"}
0.2 a< t/r1/1 RUN_STARTED {}
0.2 b< t/r1/1 RUN_STARTED {}
0.3 a< t/r1/2 TEXT_MESSAGE_START {"messageId":"m"}
0.4 a< t/r1/3 TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"a"}
0.5 a< t/r1/4 TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"b"}
0.6 a< t/r1/5 TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"c"}
0.65 b< t/r1/5 TEXT_MESSAGE_CONTENT {"messageId":"m","delta":"c"}
3.6 a< t/r1/6 TEXT_MESSAGE_END {"messageId":"m"}
3.7 a< t/r1/7 TOOL_CALL_START {"toolCallId":"k","toolCallName":"pay"}
3.8 a< t/r1/8 TOOL_CALL_ARGS {"toolCallId":"k","delta":"{}"}
3.9 a< t/r1/9 TOOL_CALL_END {"toolCallId":"k"}
4.0 a< t/r1/10 INTERRUPT {"interruptId":"i","payload":{}}
4.0 a< t/r1/11 RUN_PAUSED {}
4.0 a< t/r1/12 RUN_FINISHED {}
64.0 a> run:resume {"threadId":"t","interruptId":"i","answer":1}
64.1 a< t/r2/1 RUN_STARTED {}
64.4 a< t/r2/2 TOOL_CALL_RESULT {"toolCallId":"k","content":"ok"}
64.5 a< t/r2/3 RUN_FINISHED {}`
	tp := tapeOf(t, c)
	s, err := LoadStats(context.Background(), tp, tp.runs)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Runs) != 2 || s.Runs[0].ID != "r1" {
		t.Fatalf("got %d runs, want r1 and r2", len(s.Runs))
	}
	r := &s.Runs[0]
	for _, tt := range []struct {
		what      string
		got, want any
	}{
		{"gaps", r.Gaps.Count, 10}, {"the median gap", r.Gaps.P50, 100 * time.Millisecond}, {"the greatest gap", r.Gaps.Max, 3 * time.Second},
		{"stalls", r.Stalls, 1}, {"tokens", r.Tokens, 3}, {"tokens a second", r.Rate, 10.0}, {"calls", len(r.Calls), 1},
		{"the call", r.Tools.Max, 500 * time.Millisecond}, {"all gaps", s.All.Gaps.Count, 12}, {"all stalls", s.All.Stalls, 1},
		{"human", s.All.Human, r.Run.Human + s.Runs[1].Run.Human}, {"tools", s.All.ByTool[0].Tool, "pay"}, {"first tokens", s.All.FirstToken.Count, 1},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.what, tt.got, tt.want)
		}
	}
}

func TestSample(t *testing.T) {
	var all, part Spread
	const n = 3 * sampleLimit
	for i := range n {
		part.add(time.Duration(i) * time.Millisecond)
		if i%1000 == 999 || i == n-1 {
			all.merge(&part)
			part = Spread{}
		}
	}
	all.close()
	if all.Count != n || all.Max != (n-1)*time.Millisecond || len(all.sample.kept) > sampleLimit {
		t.Errorf("got %d values up to %v in %d, want %d in at most %d", all.Count, all.Max, len(all.sample.kept), n, sampleLimit)
	}
	for _, tt := range []struct {
		got     time.Duration
		percent int
	}{{all.P50, 50}, {all.P95, 95}} {
		want := time.Duration(n*tt.percent/100) * time.Millisecond
		if off := (tt.got - want).Abs(); off > want/20 {
			t.Errorf("the %d%% of %d values is %v, want about %v", tt.percent, n, tt.got, want)
		}
	}
	var none Spread
	none.close()
	if fmt.Sprint(none.Count, none.P50, none.Shape) != "0 0s []" {
		t.Errorf("a spread of nothing is %+v", none)
	}
}

func TestTextCell(t *testing.T) {
	for in, want := range map[string]string{"r1": "r1", "=1+1": "'=1+1", "@x": "'@x", "\x1b[0m": `\x1b[0m`, "": ""} {
		if got := textCell(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}
