package protocol

import (
	"bytes"
	"fmt"
)

// RulesPage returns the catalogue as a page of Markdown, a paragraph a rule.
func RulesPage() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `# The rules

What tapedeck checks, version %d of the catalogue, against version %d.%d of the
protocol. The page is written from the catalogue in package protocol by its test
(`+"`go test ./protocol -update`"+`).

In brackets stand the severity, what the rule rests on, the section of the
protocol page that it belongs to, and how much must be seen to judge by it: a
packet, a message, or the conversation. **Stated** is what the page says,
**derived** what follows from a sentence of it, **inferred** what the page leaves
open and such protocols do; what is inferred is never an error. A severity is
changed by `+"`--rule ID=error|warning|note|off`"+`.
`, CatalogueVersion, Major, Minor)
	for _, c := range chapters {
		fmt.Fprintf(&b, "\n## %s\n", c.title)
		for i := range c.rules {
			b.WriteString("\n" + c.rules[i].paragraph() + "\n")
		}
	}
	return b.Bytes()
}

// paragraph is what the page says of a rule.
func (r *Rule) paragraph() string {
	text := fmt.Sprintf("**`%s`** (%s, %s, %s, %s): %s. %s %s",
		r.ID, r.Severity, r.Provenance, r.Section, r.Scope, r.Title, r.Harm, r.Fix)
	if r.Unless != "" {
		text += fmt.Sprintf(" Exception: %s.", r.Unless)
	}
	if r.Follows != "" {
		text += fmt.Sprintf(" Follows from: %s.", r.Follows)
	}
	return text
}
