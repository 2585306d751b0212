package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"tapedeck/inspector"
	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

// The report in JSON. Names are stable: fields may be added.
type (
	driveReportJSON struct {
		Tape    string            `json:"tape"`
		Session capture.SessionID `json:"session"`
		Gateway string            `json:"gateway"`
		Driven  string            `json:"driven"`
		Same    int               `json:"same"`
		Drives  []driveJSON       `json:"drives"`
	}
	driveJSON struct {
		Session     capture.SessionID `json:"session"`
		Same        bool              `json:"same"`
		Sent        int               `json:"sent"`
		LeftOut     []leftOutJSON     `json:"leftOut"`
		Divergences []divergenceJSON  `json:"divergences"`
		Notes       []string          `json:"notes"`
		Runs        []driveRunsJSON   `json:"runs"`
	}
	leftOutJSON struct {
		At   capture.Address `json:"at"`
		Name string          `json:"name"`
		Why  string          `json:"why"`
	}
	divergenceJSON struct {
		At     *capture.Address `json:"at,omitempty"`
		Name   string           `json:"name,omitempty"`
		Thread string           `json:"thread,omitempty"`
		Waited string           `json:"waited,omitempty"`
		Cause  *capture.Address `json:"cause,omitempty"`
		Got    string           `json:"got"`
	}
	// driveRunsJSON is a recorded run with those that go on with it, beside the
	// live ones.
	driveRunsJSON struct {
		Same       bool            `json:"same"`
		Cut        bool            `json:"cut,omitempty"` // the same as far as both came
		Runs       []driveRunJSON  `json:"runs"`
		Comparison json.RawMessage `json:"comparison"` // as tapedeck diff writes it
	}
	driveRunJSON struct {
		Thread     string             `json:"thread"`
		LiveThread string             `json:"liveThread,omitempty"`
		ID         string             `json:"id,omitempty"`
		LiveID     string             `json:"liveId,omitempty"`
		End        protocol.EventType `json:"end,omitempty"`
		LiveEnd    protocol.EventType `json:"liveEnd,omitempty"`
	}
)

func (r *driveReport) writeJSON(out io.Writer) error {
	doc := driveReportJSON{Tape: r.Tape, Session: r.Session, Gateway: r.Gateway, Driven: r.Driven, Same: r.same(), Drives: []driveJSON{}}
	for _, d := range r.Drives {
		one, err := d.toJSON()
		if err != nil {
			return err
		}
		doc.Drives = append(doc.Drives, one)
	}
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(doc)
}

func (d *driven) toJSON() (driveJSON, error) {
	out := driveJSON{
		Session: d.Session, Same: d.same(), LeftOut: []leftOutJSON{}, Divergences: []divergenceJSON{},
		Notes: append([]string{}, d.Result.Notes...), Runs: []driveRunsJSON{},
	}
	out.Sent, _ = d.Result.Sent()
	for _, s := range d.Result.Steps {
		if !s.Done {
			out.LeftOut = append(out.LeftOut, leftOutJSON{s.At, s.Name, s.Why})
		}
	}
	for _, v := range d.Result.Divergences {
		out.Divergences = append(out.Divergences, divergenceJSON{orNoAddress(v.At), v.Name, v.Thread, v.Waited, orNoAddress(v.Cause), v.Got})
	}
	for i := range d.Chains {
		c := &d.Chains[i]
		var comparison bytes.Buffer
		if err := c.Diff.WriteJSON(&comparison); err != nil {
			return out, err
		}
		runs := driveRunsJSON{Same: !c.differs(), Cut: c.Cut, Comparison: comparison.Bytes()}
		for _, r := range c.Runs {
			runs.Runs = append(runs.Runs, driveRunJSON(r))
		}
		out.Runs = append(out.Runs, runs)
	}
	return out, nil
}

func orNoAddress(a capture.Address) *capture.Address {
	if a.IsZero() {
		return nil
	}
	return &a
}

// The elements of a JUnit report.
type (
	driveSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []driveSuite `xml:"testsuite"`
	}
	driveSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Time     string      `xml:"time,attr"`
		Cases    []driveCase `xml:"testcase"`
	}
	driveCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		Time    string        `xml:"time,attr"`
		Failure *driveFailure `xml:"failure"`
	}
	driveFailure struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
)

// writeJUnit writes a suite for each drive: a test for the client's way, and one
// for each recorded run with those that go on with it.
func (r *driveReport) writeJUnit(out io.Writer) error {
	doc := driveSuites{}
	for i, d := range r.Drives {
		suite := driveSuite{Name: inspector.Clean(fmt.Sprintf("%s, drive %d", r.Tape, i+1)), Time: "0"}
		client := driveCase{Name: "the client's way", Class: "tapedeck.drive", Time: "0"}
		if all := d.Result.Divergences; len(all) > 0 {
			var lines []string
			for _, v := range all {
				lines = append(lines, inspector.Clean(v.String()))
			}
			client.Failure = &driveFailure{Message: lines[0], Type: "divergence", Text: strings.Join(lines, "\n")}
		}
		suite.Cases = append(suite.Cases, client)
		for j := range d.Chains {
			c := &d.Chains[j]
			test := driveCase{Name: c.Diff.A.Label, Class: "tapedeck.drive", Time: "0"}
			if c.differs() {
				var text strings.Builder
				if err := c.Diff.Write(&text, &inspector.Look{}); err != nil {
					return err
				}
				test.Failure = &driveFailure{Message: c.Diff.First.Text, Type: "difference", Text: text.String()}
			}
			suite.Cases = append(suite.Cases, test)
		}
		suite.Tests = len(suite.Cases)
		for _, test := range suite.Cases {
			if test.Failure != nil {
				suite.Failures++
			}
		}
		doc.Suites = append(doc.Suites, suite)
	}
	if _, err := io.WriteString(out, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(out)
	e.Indent("", "  ")
	if err := e.Encode(doc); err != nil {
		return fmt.Errorf("write JUnit: %w", err)
	}
	_, err := io.WriteString(out, "\n")
	return err
}
