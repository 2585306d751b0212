// Package junit writes JUnit XML, as CI systems read it. Attributes that no reader
// needs and the schema asks for are there too.
package junit

import (
	"encoding/xml"
	"fmt"
	"io"
)

// Suites is a whole report.
type Suites struct {
	XMLName xml.Name `xml:"testsuites"`
	Suites  []Suite  `xml:"testsuite"`
}

// Suite is a list of tests. NewSuite fills in what the schema asks for.
type Suite struct {
	Name       string   `xml:"name,attr"`
	ID         int      `xml:"id,attr"`
	Package    string   `xml:"package,attr"`
	Hostname   string   `xml:"hostname,attr"`
	Timestamp  string   `xml:"timestamp,attr"`
	Tests      int      `xml:"tests,attr"`
	Failures   int      `xml:"failures,attr"`
	Errors     int      `xml:"errors,attr"`
	Time       string   `xml:"time,attr"`
	Properties struct{} `xml:"properties"`
	Cases      []Case   `xml:"testcase"`
	Out        string   `xml:"system-out"`
	Err        string   `xml:"system-err"`
}

// Case is a test, which passed unless it has a Failure.
type Case struct {
	Name    string   `xml:"name,attr"`
	Class   string   `xml:"classname,attr"`
	Time    string   `xml:"time,attr"`
	Failure *Failure `xml:"failure"`
}

// Failure says why a test failed.
type Failure struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

// NewSuite returns a suite without tests.
func NewSuite(name string, id int) Suite {
	return Suite{Name: name, ID: id, Package: "tapedeck", Hostname: "localhost", Timestamp: "1970-01-01T00:00:00", Time: "0"}
}

// Write writes a report, each suite with its tests counted.
func Write(w io.Writer, suites ...Suite) error {
	for i := range suites {
		s := &suites[i]
		s.Tests, s.Failures = len(s.Cases), 0
		for _, c := range s.Cases {
			if c.Failure != nil {
				s.Failures++
			}
		}
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return fmt.Errorf("write JUnit report: %w", err)
	}
	encoder := xml.NewEncoder(w)
	encoder.Indent("", "  ")
	if err := encoder.Encode(Suites{Suites: suites}); err != nil {
		return fmt.Errorf("write JUnit report: %w", err)
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return fmt.Errorf("write JUnit report: %w", err)
	}
	return nil
}
