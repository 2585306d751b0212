package inspector

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"io"
	"strings"
	"testing"

	"tapedeck/inspector/junit"
	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

func threadReport(t *testing.T) *Report {
	t.Helper()
	r, err := LoadReport(context.Background(), readTape(t, "thread"), "")
	if err != nil {
		t.Fatal(err)
	}
	r.Tool, r.Tape, r.FailOn = "1.0.0", "bugs/the 100% case.tape", protocol.Warning
	return r
}

func TestJUnit(t *testing.T) {
	var b bytes.Buffer
	if err := threadReport(t).WriteJUnit(&b); err != nil {
		t.Fatal(err)
	}
	golden(t, "report.junit.xml", b.Bytes())
	var got junit.Suites
	if err := xml.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Suites) != 3 {
		t.Fatalf("got %d suites, want one for each of the 3 runs", len(got.Suites))
	}
	for i, want := range []struct{ tests, failures int }{{1, 0}, {1, 0}, {2, 1}} {
		if s := got.Suites[i]; s.Tests != want.tests || s.Failures != want.failures || len(s.Cases) != want.tests {
			t.Errorf("suite %q: got %d tests and %d failures, want %+v", s.Name, s.Tests, s.Failures, want)
		}
	}
}

// TestJUnitHostile: XML has no way to write most control characters, so they
// must not get there.
func TestJUnitHostile(t *testing.T) {
	r := &Report{FailOn: protocol.Error, Findings: []protocol.Finding{
		{Rule: "delta-empty", Severity: protocol.Error, At: capture.Address{Position: 3}, Text: "\x00\x1b[31m]]> <b>&\ufffe\u202e\xff", Pointer: "/\x07"},
	}}
	var b bytes.Buffer
	if err := r.WriteJUnit(&b); err != nil {
		t.Fatal(err)
	}
	decoder := xml.NewDecoder(bytes.NewReader(b.Bytes()))
	for {
		if _, err := decoder.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("the report is no XML: %v\n%s", err, b.Bytes())
		}
	}
	if !strings.Contains(b.String(), `\x1b[31m`) || strings.ContainsAny(b.String(), "\x00\x1b\u202e\ufffd") {
		t.Errorf("the report does not show the control characters escaped: %q", b.String())
	}
}

func TestSARIF(t *testing.T) {
	var b bytes.Buffer
	if err := threadReport(t).WriteSARIF(&b); err != nil {
		t.Fatal(err)
	}
	golden(t, "report.sarif", b.Bytes())
	var log sarifLog
	if err := json.Unmarshal(b.Bytes(), &log); err != nil {
		t.Fatal(err)
	}
	run := log.Runs[0]
	if log.Version != "2.1.0" || len(run.Results) != 4 {
		t.Fatalf("got version %s and %d results, want 2.1.0 and 4", log.Version, len(run.Results))
	}
	for _, r := range run.Results {
		if rule := run.Tool.Driver.Rules[r.RuleIndex]; rule.ID != r.RuleID {
			t.Errorf("result of %s points to the rule %s", r.RuleID, rule.ID)
		}
		if r.Message.Text == "" || len(r.Locations) != 1 || len(r.Fingerprints) == 0 {
			t.Errorf("result %+v lacks a message, a place or a fingerprint", r)
		}
		if uri := r.Locations[0].Physical.Artifact.URI; uri != "bugs/the%20100%25%20case.tape" {
			t.Errorf("the tape's URI is %q", uri)
		}
	}
}

func TestSARIFEmpty(t *testing.T) {
	var b bytes.Buffer
	if err := (&Report{}).WriteSARIF(&b); err != nil {
		t.Fatal(err)
	}
	// The schema wants arrays there, also empty ones: null is refused.
	for _, want := range []string{`"results": []`, `"rules": []`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("an empty report lacks %s:\n%s", want, b.Bytes())
		}
	}
}

func TestSARIFMessage(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "plain", `got {"a":[1]}`: `got {{"a":[1]}}`, "[click](https://evil.example)": `\[click](https://evil.example)`,
	} {
		if got := sarifMessage(in); got != want {
			t.Errorf("sarifMessage(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestArtifactURI(t *testing.T) {
	for in, want := range map[string]string{
		"": "tapedeck.tape", "a/b.tape": "a/b.tape", "/tmp/a b.tape": "file:///tmp/a%20b.tape", "c:d.tape": "./c:d.tape", "ü.tape": "%C3%BC.tape",
	} {
		if got := artifactURI(in); got != want {
			t.Errorf("artifactURI(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestReportFailed(t *testing.T) {
	r := threadReport(t)
	for failOn, want := range map[protocol.Severity]bool{protocol.Error: false, protocol.Warning: true, protocol.Note: true, protocol.Off: false} {
		r.FailOn = failOn
		if got := r.Failed(); got != want {
			t.Errorf("with one warning and --fail-on %s: failed %v, want %v", failOn, got, want)
		}
	}
}

func TestVerdict(t *testing.T) {
	look := &Look{}
	r := threadReport(t)
	if got, want := r.Verdict(look), "⚠ 1 warning  · 3 notes  in 3 runs"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	r.Keep(func(f *protocol.Finding) bool { return f.Severity == protocol.Error })
	if got, want := r.Verdict(look), "✔ no findings in 3 runs"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
