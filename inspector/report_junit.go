package inspector

import (
	"fmt"
	"io"
	"strings"
	"time"

	"tapedeck/inspector/junit"
	"tapedeck/protocol"
	"tapedeck/protocol/conversation"
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
	var suites []junit.Suite
	for i := range r.Runs {
		run := &r.Runs[i]
		suites = append(suites, r.junitSuite(len(suites), "run "+run.ID, run, byRun[run.ID]))
		delete(byRun, run.ID)
	}
	var loose []*protocol.Finding
	for i := range r.Findings { // in their order, and not in the map's
		if f := &r.Findings[i]; byRun[f.Run] != nil {
			loose = append(loose, f)
		}
	}
	if len(loose) > 0 || len(suites) == 0 {
		suites = append(suites, r.junitSuite(len(suites), "outside of runs", nil, loose))
	}
	return junit.Write(w, suites...)
}

func (r *Report) junitSuite(id int, name string, run *conversation.Run, findings []*protocol.Finding) junit.Suite {
	suite := junit.NewSuite(Clean(name), id)
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
			suite.Cases = append(suite.Cases, junit.Case{Name: Clean(f.Rule), Class: "tapedeck." + suite.Name, Time: "0"})
		}
		if !r.fails(f) {
			continue
		}
		c := &suite.Cases[i]
		if c.Failure == nil {
			c.Failure = &junit.Failure{Message: Clean(f.Text), Type: f.Severity.String()}
		}
		c.Failure.Text += line + "\n"
	}
	if len(suite.Cases) == 0 {
		suite.Cases = []junit.Case{{Name: "no findings", Class: "tapedeck." + suite.Name, Time: suite.Time}}
	}
	suite.Out = out.String()
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
