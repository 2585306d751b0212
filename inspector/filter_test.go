package inspector

import (
	"errors"
	"strings"
	"testing"
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// aMoment is a delta in the middle of a run, with a finding.
func aMoment() *Moment {
	return &Moment{
		Frame: &capture.Frame{Position: 1042, At: 3 * time.Second, Connection: 7, Direction: capture.FromGateway, Kind: capture.Text},
		Message: &protocol.Message{
			Address: capture.Address{Position: 1042, Packet: 1}, At: 3 * time.Second, Connection: 7, Namespace: "/chat",
			Direction: capture.FromGateway, Name: protocol.RunEvent,
			Payload: []byte(`{"v":1,"threadId":"thr-12","runId":"7f3a9c","sequence":41,"event":{"type":"TEXT_MESSAGE_CONTENT","delta":"und, caf\u00e9"}}`),
			Envelope: &protocol.Envelope{V: 1, ThreadID: "thr-12", RunID: "7f3a9c", Sequence: 41, Event: protocol.Event{
				Type: protocol.TextMessageContent, MessageID: "m1", Delta: "und, café"}},
		},
		Findings: []protocol.Finding{{Rule: "sequence-gap", Severity: protocol.Warning}},
		Run:      "7f3a9c", Thread: "thr-12", Status: conversation.Running, Gap: 2500 * time.Millisecond, Before: []byte("Your ref"),
	}
}

// aStart is a run:start that asks for an acknowledgement.
func aStart() *Moment {
	return &Moment{Message: &protocol.Message{
		Address: capture.Address{Position: 3}, Direction: capture.FromClient, Name: protocol.RunStart, AckID: "5", Namespace: "/",
		Payload: []byte(`{"threadId":"thr-12","input":"two \"nights\""}`)}, Thread: "thr-12"}
}

func TestFilterMatch(t *testing.T) {
	for _, tt := range []struct {
		filter        string
		delta, starts bool // wants the delta, wants the run:start
	}{
		{"", true, true},
		{"type:TEXT_MESSAGE_CONTENT", true, false},
		{"type:text_*", true, false},
		{"type:*CONTENT", true, false},
		{"type:TEXT_MESSAGE_?ONTENT", true, false},
		{"type:TEXT", false, false},
		{`type:"TEXT_*"`, false, false},
		{"-type:TEXT_MESSAGE_CONTENT", false, true},
		{"NOT type:TEXT_MESSAGE_CONTENT", false, true},
		{"run:7f3", true, false},
		{"run:*9c", true, false},
		{`run:"7f3"`, false, false},
		{"thread:thr-12", true, true},
		{"thread:thr-12 dir:client", false, true},
		{"dir:gateway", true, false},
		{"dir:Client", false, true},
		{"seq:41", true, false},
		{"seq:40..80", true, false},
		{"seq:..41", true, false},
		{"seq:42..", false, false},
		{"seq:<50", true, false},
		{"seq:>=41", true, false},
		{"seq:>41", false, false},
		{"name:run:event", true, false},
		{"name:run:*", true, true},
		{"cmd:run:start", false, true},
		{"cmd:*", false, true},
		{"-cmd:*", true, false},
		{"rule:sequence-*", true, false},
		{"rule:delta-empty", false, false},
		{"sev:warning", true, false},
		{"sev:>=warning", true, false},
		{"sev:error", false, false},
		{"has:finding", true, false},
		{"has:warning", true, false},
		{"has:error", false, false},
		{"has:ack", false, true},
		{"has:delta", true, false},
		{`text:"refund"`, true, false}, // cut by the border of a delta
		{"REFUND", true, false},
		{`text:café`, true, false},      // escaped in the payload
		{`"two \"nights"`, false, true}, // a quote within quotes
		{"text:nowhere", false, false},
		{"size:>100", true, false},
		{"size:<0.1k", false, true},
		{"size:1k..1MiB", false, false},
		{"gap:>2s", true, false},
		{"gap:<2s", false, false},
		{"conn:7", true, false},
		{"ns:/chat", true, false},
		{"ns:/*", true, true},
		{"time:1s..3s", true, false},
		{"time:>3s", false, false},
		{"src:live", true, true},
		{"src:replay", false, false},
		{"status:running", true, false},
		{"seq:99 OR cmd:run:start", false, true},
		{"seq:41 AND dir:gateway", true, false},
		{"seq:99 dir:gateway OR dir:client", false, true},
		{"seq:99 (dir:gateway OR dir:client)", false, false},
		{"-(dir:client OR seq:99)", true, false},
		{"--dir:client", false, true},
		{"type:TEXT_* run:7f3a -dir:client seq:40..80 has:finding text:\"refund\" OR cmd:run:start", true, true},
	} {
		f, err := ParseFilter(tt.filter)
		if err != nil {
			t.Errorf("%s: %v", tt.filter, err)
			continue
		}
		if got := f.Match(aMoment()); got != tt.delta {
			t.Errorf("%s: matches the delta: %v, want %v", tt.filter, got, tt.delta)
		}
		if got := f.Match(aStart()); got != tt.starts {
			t.Errorf("%s: matches the run:start: %v, want %v", tt.filter, got, tt.starts)
		}
	}
}

func TestFilterErrors(t *testing.T) {
	for _, tt := range []struct{ filter, want string }{
		{"dir:client typ:RUN_*", `column 12: no field is called "typ"; did you mean type?`},
		{"http://x", `column 1: no field is called "http"`},
		{"dir:clinet", `column 5: dir: "clinet" is none of client, gateway; did you mean client?`},
		{"has:findings", `did you mean finding?`},
		{"seq:", "column 5: seq: has no value; sequence numbers: seq:41"},
		{"seq:x", `column 5: seq: "x" is no number`},
		{"seq:80..40", "the range 80..40 ends before it begins"},
		{"seq:..", "a range needs a beginning or an end"},
		{"seq:<>4", `"<>" is none of`},
		{"seq:99999999999999999999", "is no number below 2^47"},
		{"size:10q", `"10q" is no size such as 512, 10k or 1.5MB`},
		{"gap:2", `"2" is no time such as 300ms, 2s or 1m30s`},
		{"sev:bad", `severity "bad" is none of`},
		{"status:runing", "did you mean running?"},
		{"(dir:client", `column 1: this "(" is never closed`},
		{"dir:client)", `column 11: this ")" closes nothing`},
		{`text:"abc`, "column 6: this quote is never closed"},
		{`text:""`, "nothing between the quotes"},
		{"dir:client OR", "column 14: the filter ends where a term should stand"},
		{"OR dir:client", "column 1: a term such as"},
		{"-", "column 2: the filter ends"},
		{"()", "column 2: a term such as"},
		{"你好 typ:x", "column 6: no field"}, // two wide letters and a space come before
		{strings.Repeat("(", 200), "nested deeper than 100"},
		{strings.Repeat("-", 200) + "x", "nested deeper than 100"},
		{"text:" + strings.Repeat("x", 300), "longer than 256 bytes"},
	} {
		_, err := ParseFilter(tt.filter)
		var bad *FilterError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got error %v, want %q", tt.filter, err, tt.want)
		}
	}
}

func TestFilterErrorPointed(t *testing.T) {
	_, err := ParseFilter("run:7f3a typ:RUN_*")
	var bad *FilterError
	if !errors.As(err, &bad) {
		t.Fatalf("got %v, want a FilterError", err)
	}
	if got, want := bad.Pointed(), "run:7f3a typ:RUN_*\n         ^"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestFilterHelp holds help and language together: each field has a line.
func TestFilterHelp(t *testing.T) {
	help := FilterHelp()
	for _, name := range strings.Fields("type run thread seq dir name cmd tool sub rule sev has text size gap conn ns time src status") {
		if !strings.Contains(help, "  "+name+" ") {
			t.Errorf("the help does not name the field %s", name)
		}
	}
}

func FuzzParseFilter(f *testing.F) {
	for _, seed := range []string{
		"", "type:TOOL_CALL_* run:7f3a dir:client -type:TEXT_MESSAGE_CONTENT seq:40..80 size:>10k has:finding text:\"refund\" OR cmd:run:start",
		"(a OR b) -c", `text:"a\"b\\c"`, "NOT (x AND y)", "sev:>=warning", "time:..3s", "\xff\x00", "((((", "你好:x",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		filter, err := ParseFilter(in)
		if err != nil {
			var bad *FilterError
			if !errors.As(err, &bad) || bad.Offset < 0 || bad.Offset > len(in) {
				t.Fatalf("error %v of %T, offset outside the filter", err, err)
			}
			bad.Pointed()
			return
		}
		again, err := ParseFilter(filter.String())
		if err != nil {
			t.Fatalf("%q is written as %q, which is no filter: %v", in, filter, err)
		}
		if again.String() != filter.String() {
			t.Fatalf("%q is written as %q, and then as %q", in, filter, again)
		}
		for _, m := range []*Moment{aMoment(), aStart(), {}} {
			if filter.Match(m) != again.Match(m) {
				t.Fatalf("%q and %q do not match the same", in, filter)
			}
		}
	})
}
