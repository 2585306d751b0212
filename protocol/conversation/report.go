package conversation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

// longestFinding is how long a finding's text may be, in bytes.
const longestFinding = 199

// report says that the message of this turn breaks a rule that takes more than
// one message to see. The first rule that speaks silences those that come after
// it: they are asked from the most specific to the most general.
func (s *State) report(rule string, severity protocol.Severity, other capture.Address, format string, args ...any) {
	s.reportAt(rule, severity, "", other, format, args...)
}

// reportAt is report for a value inside the payload.
func (s *State) reportAt(rule string, severity protocol.Severity, pointer string, other capture.Address, format string, args ...any) {
	t := &s.turn
	if t.told || t.m == nil || t.flags.Has(capture.Injected) {
		return // what the proxy made is no peer's doing
	}
	t.told = true
	f := protocol.Finding{
		Rule: rule, Severity: severity,
		At: t.m.Address, Other: other, Connection: t.m.Connection,
		Thread: t.thread, Sequence: t.seq,
		Pointer: pointer, Text: line(format, args...),
	}
	if t.run != nil {
		f.Run = t.run.ID
	}
	s.add(f)
}

// blame says that a rule was broken at another place than this turn's.
func (s *State) blame(f protocol.Finding, format string, args ...any) {
	f.Text = line(format, args...)
	s.add(f)
}

// add puts a finding into the step and counts it.
func (s *State) add(f protocol.Finding) {
	s.count(&f)
	s.step.Findings = append(s.step.Findings, f)
}

// count counts a finding for its run and its thread.
func (s *State) count(f *protocol.Finding) {
	if r := s.runs[f.Run]; r != nil {
		switch f.Severity {
		case protocol.Error:
			r.Errors++
		case protocol.Warning:
			r.Warnings++
		case protocol.Note:
			r.Notes++
		}
		s.touch(r)
		f.Thread = r.Thread
	}
	if t := s.threads[f.Thread]; t != nil {
		switch f.Severity {
		case protocol.Error:
			t.Errors++
		case protocol.Warning:
			t.Warnings++
		}
		s.touchThread(t)
	}
}

// line formats one line for a finding: no control characters, under 200 bytes.
func line(format string, args ...any) string {
	text := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, fmt.Sprintf(format, args...))
	if len(text) <= longestFinding {
		return text
	}
	cut := longestFinding - len("…")
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

// short cuts an id from outside for a finding's text.
func short(id string) string {
	const most = 40
	if len(id) <= most {
		return id
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(id[cut]) {
		cut--
	}
	return id[:cut] + "…"
}

// Skip is a rule that could not be applied, and why.
type Skip struct {
	Rule   string `json:"rule"`
	Reason string `json:"reason"`
}

// Skipped says how often a rule was skipped for one reason, and where first.
type Skipped struct {
	Skip
	Count int             `json:"count"`
	First capture.Address `json:"first"`
	Run   string          `json:"run,omitempty"` // of the first time
}

// skip takes note that a rule was not applied for want of evidence. Reasons are
// fixed sentences, so that they can be counted.
func (s *State) skip(rule, reason string) {
	key := Skip{rule, reason}
	k := s.skipped[key]
	if k == nil {
		k = &Skipped{Skip: key, First: capture.Address{Position: s.last}}
		if s.turn.m != nil {
			k.First = s.turn.m.Address
		}
		if s.turn.run != nil {
			k.Run = s.turn.run.ID
		}
		s.skipped[key] = k
	}
	k.Count++
}

// Skipped returns the rules that were skipped so far, by rule and reason.
func (s *State) Skipped() []Skipped {
	all := make([]Skipped, 0, len(s.skipped))
	for _, k := range s.skipped {
		all = append(all, *k)
	}
	slices.SortFunc(all, func(a, b Skipped) int {
		return cmp.Or(strings.Compare(a.Rule, b.Rule), strings.Compare(a.Reason, b.Reason))
	})
	return all
}
