package inspector

import (
	"fmt"
	"io"
	"strings"

	"tapedeck/inspector/junit"
	"tapedeck/protocol/capture"
)

// pairJSON is a pair of constructs in JSON. Names are stable: fields may be
// added.
type pairJSON struct {
	Kind    string           `json:"kind"`
	Name    string           `json:"name,omitempty"`
	A       *capture.Address `json:"a,omitempty"` // absent where a side has none
	B       *capture.Address `json:"b,omitempty"`
	In      string           `json:"in"` // "both", "a" or "b"
	Moved   bool             `json:"moved,omitempty"`
	Changes []changeJSON     `json:"changes,omitempty"`
	TookMS  *[2]float64      `json:"tookMs,omitempty"`
}

type changeJSON struct {
	Field string  `json:"field"`
	A     *string `json:"a"` // canonical JSON, so that numbers keep their digits; null where it is absent
	B     *string `json:"b"`
}

// WriteJSON writes what differs as one document.
func (d *Diff) WriteJSON(w io.Writer) error {
	same, changed, moved, onlyA, onlyB := d.Counts()
	pairs := []pairJSON{}
	for i := range d.Pairs {
		if p := &d.Pairs[i]; p.Differs() || d.options.Timing {
			pairs = append(pairs, d.pairToJSON(p))
		}
	}
	var first any
	if d.First != nil {
		first = object{"a": addressOrNil(d.First.A), "b": addressOrNil(d.First.B), "text": d.First.Text}
	}
	return writeJSON(w, object{
		"equal": d.Equal(), "a": d.A.Label, "b": d.B.Label, "first": first, "unused": append([]string{}, d.Unused...), "constructs": pairs,
		"counts": object{"same": same, "changed": changed, "moved": moved, "onlyA": onlyA, "onlyB": onlyB},
	}, true)
}

func addressOrNil(a capture.Address) *capture.Address {
	if a.IsZero() {
		return nil
	}
	return &a
}

func (d *Diff) pairToJSON(p *Pair) pairJSON {
	out := pairJSON{In: "both", Moved: p.Moved}
	c := p.A
	if p.A != nil {
		out.A = addressOrNil(p.A.At)
	} else {
		c, out.In = p.B, "b"
	}
	if p.B != nil {
		out.B = addressOrNil(p.B.At)
	} else {
		out.In = "a"
	}
	out.Kind, out.Name = c.kind(), c.Name
	for i := range p.Changes {
		change := &p.Changes[i]
		out.Changes = append(out.Changes, changeJSON{change.Field, textOrNil(change.A), textOrNil(change.B)})
	}
	if d.options.Timing && p.A != nil && p.B != nil {
		out.TookMS = &[2]float64{ms(p.A.Took), ms(p.B.Took)}
	}
	return out
}

func textOrNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// WriteJUnit writes the comparison as JUnit XML: a suite for it, a test for each
// construct, failed if it differs.
func (d *Diff) WriteJUnit(w io.Writer) error {
	suite := junit.NewSuite(Clean(d.A.Label+" | "+d.B.Label), 0)
	for i := range d.Pairs {
		p := &d.Pairs[i]
		c := p.A
		if c == nil {
			c = p.B
		}
		test := junit.Case{Name: fmt.Sprintf("%d %s", i+1, c.title()), Class: "tapedeck.diff", Time: "0"}
		if p.Differs() {
			test.Failure = &junit.Failure{Message: p.say(), Type: "difference", Text: p.report()}
		}
		suite.Cases = append(suite.Cases, test)
	}
	for _, name := range d.Unused {
		suite.Out += "nothing is called " + Quote(name) + ", which was to be ignored\n"
	}
	return junit.Write(w, suite)
}

// report tells all that differs in a pair, a line each.
func (p *Pair) report() string {
	var b strings.Builder
	if p.A != nil && p.B != nil && !(p.A.At.IsZero() && p.B.At.IsZero()) {
		fmt.Fprintf(&b, "#%s | #%s\n", p.A.At, p.B.At)
	}
	for i := range p.Changes {
		c := &p.Changes[i]
		fmt.Fprintf(&b, "%s\n  A %s\n  B %s\n", Clean(c.Field), orNothing(Clean(c.A)), orNothing(Clean(c.B)))
	}
	return b.String()
}
