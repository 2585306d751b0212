package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"tapedeck/inspector"
	"tapedeck/protocol/capture"
)

// driveReport is what drives came to.
type driveReport struct {
	Tape    string
	Session capture.SessionID
	Gateway string
	Driven  string // the tape with the drives
	Drives  []*driven
}

// same returns how many drives went the way of the recording.
func (r *driveReport) same() (n int) {
	for _, d := range r.Drives {
		if d.same() {
			n++
		}
	}
	return n
}

// driveWriter returns what writes a report in a format.
func driveWriter(format string, look inspector.Look) (func(*driveReport, io.Writer) error, error) {
	switch format {
	case "text":
		return func(r *driveReport, out io.Writer) error {
			if len(r.Drives) > 1 {
				return r.writeTable(out)
			}
			return r.Drives[0].write(out, &look)
		}, nil
	case "json":
		return (*driveReport).writeJSON, nil
	case "junit":
		return (*driveReport).writeJUnit, nil
	}
	return nil, usageError("drive: --format is text, json or junit, not %q", format)
}

// write writes one drive for a person: what became of the client, the
// comparisons that show a difference, and a verdict for each run.
func (d *driven) write(out io.Writer, look *inspector.Look) error {
	good, bad := look.Palette.Paint(inspector.Good, mark(look, "✔", "v")), look.Palette.Paint(inspector.Bad, mark(look, "✖", "x"))
	var b strings.Builder
	for i := range d.Chains {
		if c := &d.Chains[i]; !c.Diff.Equal() {
			if err := c.Diff.Write(&b, look); err != nil {
				return err
			}
			b.WriteString("\n")
		}
	}
	said := map[capture.Address]bool{}
	for i := range d.Result.Divergences {
		v := &d.Result.Divergences[i]
		said[v.At] = true
		fmt.Fprintf(&b, "%s %s\n", bad, inspector.Clean(v.String()))
	}
	for i := range d.Result.Steps {
		if s := &d.Result.Steps[i]; !s.Done && !said[s.At] {
			fmt.Fprintf(&b, "  left out #%s %s: %s\n", s.At, inspector.Clean(s.Name), inspector.Clean(s.Why))
		}
	}
	for _, note := range d.Result.Notes {
		fmt.Fprintf(&b, "  note: %s\n", inspector.Clean(note))
	}
	for i := range d.Chains {
		c := &d.Chains[i]
		verdict := good
		if c.differs() {
			verdict = bad
		}
		fmt.Fprintf(&b, "%s %s, %s: %s\n", verdict, c.Diff.A.Label, c.Diff.B.Label, c.verdict())
	}
	verdict, way := good, "the same way"
	if !d.same() {
		verdict, way = bad, "another way"
	}
	sent, left := d.Result.Sent()
	fmt.Fprintf(&b, "%s it went %s, with %d of %s sent\n", verdict, way, sent, inspector.FormatCount(sent+left, "message"))
	_, err := io.WriteString(out, b.String())
	return err
}

func mark(look *inspector.Look, nice, plain string) string {
	if look.ASCII {
		return plain
	}
	return nice
}

// verdict says in a line what a comparison came to.
func (c *drivenChain) verdict() string {
	same, _, _, _, _ := c.Diff.Counts()
	switch {
	case c.Diff.Equal():
		return "the same, " + inspector.FormatCount(same, "construct")
	case c.Cut:
		return "the same as far as both came: they were cut off at different places"
	}
	return c.Diff.First.Text
}

// difference is something that went another way: what it is, what it was this
// time, and how it parted.
type difference struct{ what, live, how string }

// differences are all that went another way in a drive.
func (d *driven) differences() (all []difference) {
	for i := range d.Result.Divergences {
		v := &d.Result.Divergences[i]
		what := "the drive"
		if !v.At.IsZero() {
			what = fmt.Sprintf("#%s %s", v.At, inspector.Clean(v.Name))
		}
		all = append(all, difference{what, v.Waited, inspector.Clean(v.String())})
	}
	for i := range d.Chains {
		c := &d.Chains[i]
		if !c.differs() {
			continue
		}
		whose := c.Diff.A.Label
		if whose == noRun {
			whose = "a further run"
		}
		for j := range c.Diff.Pairs {
			p := &c.Diff.Pairs[j]
			if !p.Differs() {
				continue
			}
			x := difference{what: whose + ": " + partOf(p), how: whose + ": " + c.Diff.First.Text}
			for k := range p.Changes {
				x.live += p.Changes[k].B + "\n"
			}
			all = append(all, x)
		}
	}
	return all
}

// partOf names what differs in a pair of constructs, without the values.
func partOf(p *inspector.Pair) string {
	c := cmp.Or(p.A, p.B)
	what := cmp.Or(c.Kind.String(), "run")
	if c.Name != "" && c.Name != what {
		what += " " + inspector.Clean(c.Name)
	}
	switch {
	case p.B == nil:
		return what + " is only on the tape"
	case p.A == nil:
		return what + " is only live"
	case len(p.Changes) == 0:
		return what + " comes elsewhere"
	}
	return what + ": " + inspector.Clean(p.Changes[0].Field) + " differs"
}

// writeTable writes several drives for a person: a row for each, and what
// differed how often.
func (r *driveReport) writeTable(out io.Writer) error {
	var b strings.Builder
	if err := r.rows(&b); err != nil {
		return err
	}
	fmt.Fprintf(&b, "\n%d of %d went the same way as the recording\n", r.same(), len(r.Drives))
	r.tally(&b)
	_, err := io.WriteString(out, b.String())
	return err
}

// rows writes a row for each drive. Those that went the same other way have the
// same number.
func (r *driveReport) rows(b *strings.Builder) error {
	var rows strings.Builder
	table := tabwriter.NewWriter(&rows, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "drive\tsession\tsent\twent\t")
	if r.same() < len(r.Drives) {
		fmt.Fprint(table, "parted first")
	}
	fmt.Fprintln(table)
	ways := map[string]int{}
	for i, d := range r.Drives {
		sent, left := d.Result.Sent()
		went, parted, way := "the same way", "", ""
		for _, x := range d.differences() {
			parted = cmp.Or(parted, x.how)
			way += x.what + "\n" + x.live
		}
		if way != "" {
			if ways[way] == 0 {
				ways[way] = len(ways) + 1
			}
			went = fmt.Sprintf("another way (%d)", ways[way])
		}
		fmt.Fprintf(table, "%d\t%d\t%d/%d\t%s\t%s\n", i+1, d.Session, sent, sent+left, went, parted)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(rows.String()) {
		fmt.Fprintln(b, strings.TrimRight(line, " \n"))
	}
	return nil
}

// tally writes in how many of the drives each thing differed, the most frequent
// first.
func (r *driveReport) tally(b *strings.Builder) {
	const most = 20
	times := map[string]int{}
	var order []string
	for _, d := range r.Drives {
		seen := map[string]bool{}
		for _, x := range d.differences() {
			if seen[x.what] {
				continue
			}
			seen[x.what] = true
			if times[x.what]++; times[x.what] == 1 {
				order = append(order, x.what)
			}
		}
	}
	slices.SortStableFunc(order, func(a, b string) int { return times[b] - times[a] })
	for i, what := range order {
		if i == most {
			fmt.Fprintf(b, "and %s more\n", inspector.FormatCount(len(order)-i, "difference"))
			break
		}
		fmt.Fprintf(b, "%d of %d  %s\n", times[what], len(r.Drives), what)
	}
}
