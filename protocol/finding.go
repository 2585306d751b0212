package protocol

import (
	"fmt"

	"tapedeck/protocol/capture"
)

// Severity says how bad a finding is.
type Severity uint8

// The severities, from the least. Off silences a rule.
const (
	Off Severity = iota
	Note
	Warning
	Error
)

var severityNames = [...]string{"off", "note", "warning", "error"}

// String returns "off", "note", "warning" or "error".
func (s Severity) String() string {
	if int(s) < len(severityNames) {
		return severityNames[s]
	}
	return fmt.Sprintf("severity-%d", uint8(s))
}

// MarshalText writes what String does.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what String writes.
func (s *Severity) UnmarshalText(text []byte) (err error) {
	*s, err = ParseSeverity(string(text))
	return err
}

// ParseSeverity reads what String writes.
func ParseSeverity(name string) (Severity, error) {
	for i, n := range severityNames {
		if n == name {
			return Severity(i), nil
		}
	}
	return Off, fmt.Errorf("severity %q is none of error, warning, note and off", name)
}

// Finding is a rule broken at a place.
type Finding struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	// At is the packet that broke the rule, Other the one that it rests on: the
	// START that an END lacks, the envelope that a duplicate repeats.
	At         capture.Address  `json:"at"`
	Other      capture.Address  `json:"other,omitzero"`
	Connection capture.Position `json:"connection,omitempty"`
	Thread     string           `json:"thread,omitempty"`
	Run        string           `json:"run,omitempty"`
	Sequence   int64            `json:"sequence,omitempty"`
	// Pointer is the JSON pointer of the offending value in the payload; "" is
	// the payload itself.
	Pointer string `json:"pointer"`
	// Text says what is wrong and what to do, in one line under 200 characters.
	Text string `json:"text"`
}
