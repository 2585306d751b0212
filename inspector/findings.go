package inspector

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// Report is the findings of a tape, or of some runs of it, to be written in one
// of several forms.
type Report struct {
	Tool     string // tapedeck's version
	Tape     string // the tape's path, as given
	FailOn   protocol.Severity
	Findings []protocol.Finding
	Runs     []conversation.Run
	Sessions []capture.Session
}

// LoadReport reads the findings of a tape, or, if a name is given (see
// [Select]), those of a run with those that it continues.
func LoadReport(ctx context.Context, src Source, name string) (*Report, error) {
	runs, err := LoadRuns(ctx, src)
	if err != nil {
		return nil, err
	}
	report := &Report{FailOn: protocol.Error, Runs: runs}
	if report.Sessions, err = src.Sessions(ctx); err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	if name == "" {
		if report.Findings, err = src.Findings(ctx, nil); err != nil {
			return nil, fmt.Errorf("read findings: %w", err)
		}
		return report, nil
	}
	s, err := Select(runs, name)
	if err != nil {
		return nil, err
	}
	if s.Run == nil {
		return nil, fmt.Errorf("%q names a position; findings are listed for a run or for all", name)
	}
	report.Runs = Chain(runs, s.Run)
	report.Findings, err = RunFindings(ctx, src, report.Runs)
	return report, err
}

// Keep leaves only the findings that are wanted.
func (r *Report) Keep(wanted func(*protocol.Finding) bool) {
	kept := []protocol.Finding{}
	for i := range r.Findings {
		if wanted(&r.Findings[i]) {
			kept = append(kept, r.Findings[i])
		}
	}
	r.Findings = kept
}

// Count returns the number of findings of a severity.
func (r *Report) Count(severity protocol.Severity) int {
	n := 0
	for i := range r.Findings {
		if r.Findings[i].Severity == severity {
			n++
		}
	}
	return n
}

// Failed reports whether a finding is as bad as FailOn. With Off, none is.
func (r *Report) Failed() bool {
	return slices.ContainsFunc(r.Findings, func(f protocol.Finding) bool { return r.fails(&f) })
}

func (r *Report) fails(f *protocol.Finding) bool {
	return r.FailOn != protocol.Off && f.Severity >= r.FailOn
}

// ruleGroup is a rule with its findings.
type ruleGroup struct {
	rule     protocol.Rule
	severity protocol.Severity
	findings []*protocol.Finding
}

// groups returns the findings by rule, the worst first, then in the order in
// which they came.
func (r *Report) groups() []*ruleGroup {
	var groups []*ruleGroup
	byRule := map[string]*ruleGroup{}
	for i := range r.Findings {
		f := &r.Findings[i]
		g := byRule[f.Rule]
		if g == nil {
			rule, known := protocol.RuleByID(f.Rule)
			if !known {
				rule = protocol.Rule{ID: f.Rule, Severity: f.Severity}
			}
			g = &ruleGroup{rule: rule}
			byRule[f.Rule] = g
			groups = append(groups, g)
		}
		g.severity = max(g.severity, f.Severity)
		g.findings = append(g.findings, f)
	}
	slices.SortStableFunc(groups, func(a, b *ruleGroup) int { return cmp.Compare(b.severity, a.severity) })
	return groups
}

// WriteFindings writes findings by rule: what it means once, and each place.
func (r *Report) WriteFindings(w io.Writer, look *Look) error {
	out := bufio.NewWriter(w)
	for i, g := range r.groups() {
		if i > 0 {
			out.WriteString("\n")
		}
		nice, plain := severityGlyph(g.severity)
		head := []Piece{{severityStyle(g.severity), look.glyph(nice, plain) + " " + Clean(g.rule.ID)}}
		if g.rule.Title != "" {
			head = append(head, Piece{Plain, "  " + g.rule.Title})
		}
		if g.rule.Provenance != "" {
			head = append(head, Piece{Dim, fmt.Sprintf("  (%s, %s)", g.rule.Provenance, g.rule.Section)})
		}
		out.WriteString(look.paint(trimPieces(head, look.width(), look)) + "\n")
		for _, line := range wrap(g.rule.Harm, look.width()-2) {
			out.WriteString("  " + look.Palette.Paint(Dim, line) + "\n")
		}
		for _, f := range g.findings {
			writePlace(out, f, g.severity, look)
		}
	}
	return out.Flush()
}

// writePlace writes where a rule was broken, and how.
func writePlace(out *bufio.Writer, f *protocol.Finding, usual protocol.Severity, look *Look) {
	place := []Piece{{Strong, "    #" + f.At.String()}}
	if f.Run != "" {
		place = append(place, Piece{Dim, "  run "}, Piece{Key, shortID(f.Run)})
	}
	if f.Sequence != 0 {
		place = append(place, Piece{Dim, fmt.Sprintf("  seq %d", f.Sequence)})
	}
	if f.Run == "" && f.Thread != "" {
		place = append(place, Piece{Dim, "  thread "}, Piece{Key, shortID(f.Thread)})
	}
	if f.Pointer != "" {
		place = append(place, Piece{Dim, "  at " + look.fit(f.Pointer, 40, 0)})
	}
	if !f.Other.IsZero() && f.Other != f.At {
		place = append(place, Piece{Dim, "  rests on "}, Piece{Strong, "#" + f.Other.String()})
	}
	if f.Severity != usual {
		place = append(place, Piece{severityStyle(f.Severity), "  " + f.Severity.String()})
	}
	out.WriteString(look.paint(trimPieces(place, look.width(), look)) + "\n")
	for _, line := range wrap(Clean(f.Text), look.width()-6) {
		out.WriteString("      " + line + "\n")
	}
}

// Verdict says in one line what a report came to.
func (r *Report) Verdict(look *Look) string {
	of := FormatCount(len(r.Runs), "run")
	if len(r.Findings) == 0 {
		return look.Palette.Paint(Good, look.glyph("✔", "v")+" no findings") + " in " + of
	}
	var pieces []Piece
	for _, severity := range []protocol.Severity{protocol.Error, protocol.Warning, protocol.Note} {
		if n := r.Count(severity); n > 0 {
			nice, plain := severityGlyph(severity)
			pieces = append(pieces, Piece{severityStyle(severity), look.glyph(nice, plain) + " " + FormatCount(n, severity.String())}, Piece{Plain, "  "})
		}
	}
	return look.paint(append(pieces, Piece{Plain, "in " + of}))
}

// Findings lists the findings of the tape, or of the run that a name stands
// for.
func (v *View) Findings(ctx context.Context, name string) error {
	report, err := LoadReport(ctx, v.ruled(), name)
	if err != nil {
		return err
	}
	if v.Format == FormatJSON || v.Format == FormatJSONL {
		return report.WriteJSON(v.Out, v.Format)
	}
	if err := report.WriteFindings(v.Out, &v.Look); err != nil {
		return err
	}
	v.sayIncomplete(report.Sessions)
	if len(report.Runs) == 0 && len(report.Findings) == 0 {
		v.talk("%s", NoRuns(report.Sessions))
		return nil
	}
	v.talk("%s", report.Verdict(&v.Look))
	if len(report.Findings) > 0 {
		v.talk("See one: %s", v.hint("show @"+report.Findings[0].At.String()))
	}
	return nil
}

// WriteJSON writes the findings as an array, or one a line.
func (r *Report) WriteJSON(w io.Writer, f Format) error {
	return writeAll(w, f, r.Findings, func(f *protocol.Finding) any { return f })
}
