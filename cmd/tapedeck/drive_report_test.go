package main

import (
	"encoding/json"
	"encoding/xml"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tapedeck/inspector"
	"tapedeck/inspector/junit"
	"tapedeck/player/driver"
	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

// fourDrives are a drive that went the same way, two that went another one, and
// one that went a third one and left something out.
func fourDrives() *driveReport {
	at := func(p capture.Position) capture.Address { return capture.Address{Position: p} }
	text := &inspector.Construct{Kind: inspector.KindText, At: at(41)}
	tool := &inspector.Construct{Kind: inspector.KindTool, Name: "search", At: at(36)}
	chain := func(pairs ...inspector.Pair) drivenChain {
		diff := &inspector.Diff{A: &inspector.Normal{Label: "run r1"}, B: &inspector.Normal{Label: "live run l1"}, Pairs: pairs}
		for i := range pairs {
			if pairs[i].Differs() && diff.First == nil {
				diff.First = &inspector.Divergence{A: at(41), B: at(52), Text: "text: /text is \"129\" in A and \"131\" in B"}
			}
		}
		return drivenChain{Runs: []driver.Run{{Thread: "t", LiveThread: "t-x", ID: "r1", LiveID: "l1", End: protocol.RunFinished, LiveEnd: protocol.RunFinished}}, Diff: diff}
	}
	sent := driver.Step{At: at(20), Name: "run:start", Message: true, Done: true}
	another := chain(inspector.Pair{A: text, B: text, Changes: []inspector.Change{{Field: "/text", A: `"129"`, B: `"131"`}}}, inspector.Pair{A: tool, B: tool})
	return &driveReport{Tape: "bug.tape", Session: 1, Gateway: "http://localhost:3000", Driven: "driven.tape", Drives: []*driven{
		{Session: 2, Result: &driver.Result{Steps: []driver.Step{sent}}, Chains: []drivenChain{chain(inspector.Pair{A: text, B: text})}},
		{Session: 3, Result: &driver.Result{Steps: []driver.Step{sent}}, Chains: []drivenChain{another}},
		{Session: 4, Result: &driver.Result{Steps: []driver.Step{sent}}, Chains: []drivenChain{another}},
		{Session: 5, Result: &driver.Result{
			Steps:       []driver.Step{sent, {At: at(56), Name: "run:resume", Message: true, Why: "the 1st run ended"}, {At: at(65), Name: "run:start", Message: true, Why: "the thread had diverged"}},
			Divergences: []driver.Divergence{{Thread: "t", At: at(56), Name: "run:resume", Waited: "the 1st decision of the 1st run", Cause: at(50), Got: "the 1st run ended"}},
			Notes:       []string{"the gateway announces protocol 1.16, the recorded one 1.17"},
		}, Chains: []drivenChain{chain(inspector.Pair{A: text, B: text}, inspector.Pair{A: tool}, inspector.Pair{B: tool})}},
	}}
}

func written(t *testing.T, format string, r *driveReport) string {
	t.Helper()
	write, err := driveWriter(format, inspector.Look{})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := write(r, &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestDriveTable(t *testing.T) {
	want := `drive  session  sent  went             parted first
1      2        1/1   the same way
2      3        1/1   another way (1)  run r1: text: /text is "129" in A and "131" in B
3      4        1/1   another way (1)  run r1: text: /text is "129" in A and "131" in B
4      5        1/3   another way (2)  #56 run:resume: waited for the 1st decision of the 1st run (#50): the 1st run ended

1 of 4 went the same way as the recording
2 of 4  run r1: text: /text differs
1 of 4  #56 run:resume
1 of 4  run r1: tool search is only on the tape
1 of 4  run r1: tool search is only live
`
	if diff := cmp.Diff(want, written(t, "text", fourDrives())); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestDriveText(t *testing.T) {
	r := fourDrives()
	r.Drives = r.Drives[3:]
	want := `✖ #56 run:resume: waited for the 1st decision of the 1st run (#50): the 1st run ended
  left out #65 run:start: the thread had diverged
  note: the gateway announces protocol 1.16, the recorded one 1.17
✖ run r1, live run l1: text: /text is "129" in A and "131" in B
✖ it went another way, with 1 of 3 messages sent
`
	if _, got, _ := strings.Cut(written(t, "text", r), "\n\n✖ #"); "✖ #"+got != want {
		t.Errorf("got:\n%s", got)
	}
}

func TestDriveFormats(t *testing.T) {
	var doc driveReportJSON
	if err := json.Unmarshal([]byte(written(t, "json", fourDrives())), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Same != 1 || len(doc.Drives) != 4 || !doc.Drives[0].Same || doc.Drives[3].Same || doc.Drives[3].LeftOut[1].Name != "run:start" {
		t.Errorf("%+v", doc)
	}
	var suites junit.Suites
	if err := xml.Unmarshal([]byte(written(t, "junit", fourDrives())), &suites); err != nil {
		t.Fatal(err)
	}
	failures := []int{}
	for _, s := range suites.Suites {
		failures = append(failures, s.Failures)
	}
	if diff := cmp.Diff([]int{0, 1, 1, 2}, failures); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
}
