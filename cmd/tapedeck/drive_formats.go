package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"tapedeck/inspector"
	"tapedeck/inspector/junit"
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

// writeJUnit writes a suite for each drive.
func (r *driveReport) writeJUnit(out io.Writer) error {
	var suites []junit.Suite
	for i, d := range r.Drives {
		suite, err := d.toJUnit(inspector.Clean(fmt.Sprintf("%s, drive %d", r.Tape, i+1)), i)
		if err != nil {
			return err
		}
		suites = append(suites, suite)
	}
	return junit.Write(out, suites...)
}

// toJUnit makes a test of the client's way, and one of each recorded run with
// those that go on with it.
func (d *driven) toJUnit(name string, id int) (junit.Suite, error) {
	suite := junit.NewSuite(name, id)
	suite.Out = strings.Join(d.Result.Notes, "\n")
	add := func(name string, failure *junit.Failure) {
		suite.Cases = append(suite.Cases, junit.Case{Name: name, Class: "tapedeck.drive", Time: "0", Failure: failure})
	}
	var way *junit.Failure
	if all := d.Result.Divergences; len(all) > 0 {
		way = &junit.Failure{Message: inspector.Clean(all[0].String()), Type: "divergence"}
		for _, v := range all {
			way.Text += inspector.Clean(v.String()) + "\n"
		}
	}
	add("the client's way", way)
	for i := range d.Chains {
		c := &d.Chains[i]
		if !c.differs() {
			add(c.Diff.A.Label, nil)
			continue
		}
		var text strings.Builder
		if err := c.Diff.Write(&text, &inspector.Look{}); err != nil {
			return suite, err
		}
		add(c.Diff.A.Label, &junit.Failure{Message: c.Diff.First.Text, Type: "difference", Text: text.String()})
	}
	return suite, nil
}
