package inspector

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/conversation"
)

// The elements of a JUnit report. Attributes that no reader needs and the
// schema asks for are there too.
type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name       string      `xml:"name,attr"`
		ID         int         `xml:"id,attr"`
		Package    string      `xml:"package,attr"`
		Hostname   string      `xml:"hostname,attr"`
		Timestamp  string      `xml:"timestamp,attr"`
		Tests      int         `xml:"tests,attr"`
		Failures   int         `xml:"failures,attr"`
		Errors     int         `xml:"errors,attr"`
		Time       string      `xml:"time,attr"`
		Properties struct{}    `xml:"properties"`
		Cases      []junitCase `xml:"testcase"`
		Out        string      `xml:"system-out"`
		Err        string      `xml:"system-err"`
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		Time    string        `xml:"time,attr"`
		Failure *junitFailure `xml:"failure"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
)

// WriteJUnit writes the report as JUnit XML: a suite for each run, and one for
// what belongs to no run. Each rule that was broken is a test, failed if it is
// as bad as FailOn; a run in which none was is one test that passed. Milder
// findings are in system-out.
func (r *Report) WriteJUnit(w io.Writer) error {
	byRun := map[string][]*protocol.Finding{}
	for i := range r.Findings {
		f := &r.Findings[i]
		byRun[f.Run] = append(byRun[f.Run], f)
	}
	suites := junitSuites{}
	for i := range r.Runs {
		run := &r.Runs[i]
		suites.Suites = append(suites.Suites, r.junitSuite(len(suites.Suites), "run "+run.ID, run, byRun[run.ID]))
		delete(byRun, run.ID)
	}
	var loose []*protocol.Finding
	for i := range r.Findings { // in their order, and not in the map's
		if f := &r.Findings[i]; byRun[f.Run] != nil {
			loose = append(loose, f)
		}
	}
	if len(loose) > 0 || len(suites.Suites) == 0 {
		suites.Suites = append(suites.Suites, r.junitSuite(len(suites.Suites), "outside of runs", nil, loose))
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	encoder := xml.NewEncoder(w)
	encoder.Indent("", "  ")
	if err := encoder.Encode(suites); err != nil {
		return fmt.Errorf("write JUnit: %w", err)
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (r *Report) junitSuite(id int, name string, run *conversation.Run, findings []*protocol.Finding) junitSuite {
	suite := junitSuite{Name: Clean(name), ID: id, Package: "tapedeck", Hostname: "localhost", Timestamp: "1970-01-01T00:00:00", Time: "0"}
	if run != nil {
		if s := sessionOf(r.Sessions, run.Session); s != nil && !s.Started.IsZero() {
			suite.Timestamp = s.Started.Add(run.Started).UTC().Format("2006-01-02T15:04:05")
		}
		suite.Time = seconds(run.Ended - run.Started)
	}
	cases := map[string]int{}
	var out strings.Builder
	for _, f := range findings {
		line := findingLine(f)
		if !r.fails(f) {
			fmt.Fprintf(&out, "%s: %s\n", f.Severity, line)
		}
		i, known := cases[f.Rule]
		if !known {
			i = len(suite.Cases)
			cases[f.Rule] = i
			suite.Cases = append(suite.Cases, junitCase{Name: Clean(f.Rule), Class: "tapedeck." + suite.Name, Time: "0"})
		}
		if !r.fails(f) {
			continue
		}
		c := &suite.Cases[i]
		if c.Failure == nil {
			suite.Failures++
			c.Failure = &junitFailure{Message: Clean(f.Text), Type: f.Severity.String()}
		}
		c.Failure.Text += line + "\n"
	}
	if len(suite.Cases) == 0 {
		suite.Cases = []junitCase{{Name: "no findings", Class: "tapedeck." + suite.Name, Time: suite.Time}}
	}
	suite.Tests, suite.Out = len(suite.Cases), out.String()
	return suite
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", max(d, 0).Seconds()) }

// findingLine is a finding in one clean line.
func findingLine(f *protocol.Finding) string {
	line := "#" + f.At.String()
	if f.Sequence != 0 {
		line += fmt.Sprintf(" seq %d", f.Sequence)
	}
	if f.Pointer != "" {
		line += " at " + Clean(f.Pointer)
	}
	line += " " + Clean(f.Rule) + ": " + Clean(f.Text)
	if !f.Other.IsZero() && f.Other != f.At {
		line += " (see #" + f.Other.String() + ")"
	}
	return line
}
