package protocol

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRulesPage holds RULES.md equal to the catalogue.
func TestRulesPage(t *testing.T) {
	const path = "RULES.md"
	if *update {
		if err := os.WriteFile(path, RulesPage(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(page), string(RulesPage())); diff != "" {
		t.Errorf("%s is out of date: run go test ./protocol -update (-page +catalogue):\n%s", path, diff)
	}
}

// TestRules checks what is true of every rule.
func TestRules(t *testing.T) {
	sections := []string{
		"Transport", "Socket messages", "Commands", "Client tools", "Events", "Envelopes",
		"Thread history and replay", "Errors", "HTTP surface", "Versioning", "Pace",
	}
	seen := map[string]bool{}
	for _, r := range Rules() {
		if seen[r.ID] {
			t.Errorf("%s stands twice", r.ID)
		}
		seen[r.ID] = true
		if r.Severity == Off || r.Scope == "" || !slices.Contains(sections, r.Section) {
			t.Errorf("%s has severity %v, scope %q and section %q", r.ID, r.Severity, r.Scope, r.Section)
		}
		if r.Provenance == Inferred && r.Severity == Error {
			t.Errorf("%s is inferred and an error: what the page leaves open is a warning at most", r.ID)
		}
		if (r.Provenance == Derived) != (r.Follows != "") {
			t.Errorf("%s is %s and follows from %q", r.ID, r.Provenance, r.Follows)
		}
		for _, sentence := range []string{r.Harm, r.Fix} {
			if !strings.HasSuffix(sentence, ".") || strings.ContainsAny(sentence, "\n\t") {
				t.Errorf("%s: %q is no whole sentence", r.ID, sentence)
			}
		}
		if r.Title == "" || strings.HasSuffix(r.Title, ".") || strings.HasSuffix(r.Unless, ".") {
			t.Errorf("%s: title %q, unless %q", r.ID, r.Title, r.Unless)
		}
		if got, ok := RuleByID(r.ID); !ok || got != r {
			t.Errorf("RuleByID(%q) = %v, %v", r.ID, got, ok)
		}
	}
	if r, ok := RuleByID("no-such-rule"); ok {
		t.Errorf("RuleByID found %v", r)
	}
}

func TestSettings(t *testing.T) {
	for _, c := range []struct {
		settings []string
		want     string // findings left, or
		err      string // part of the error
	}{
		{nil, "error a, warning delta-empty", ""},
		{[]string{"delta-empty=off"}, "error a", ""},
		{[]string{"delta-empty=off", "delta-empty=error"}, "error a, error delta-empty", ""},
		{[]string{"stall=note"}, "error a, warning delta-empty", ""},
		{[]string{"delta-emtpy=off"}, "", `no rule is called "delta-emtpy", did you mean "delta-empty"?`},
		{[]string{"nonsense=off"}, "", `no rule is called "nonsense"`},
		{[]string{"delta-empty"}, "", "write it as ID=error"},
		{[]string{"delta-empty=fatal"}, "", `severity "fatal" is none of`},
	} {
		s, err := ParseSettings(c.settings)
		if err != nil || c.err != "" {
			if err == nil || c.err == "" || !strings.Contains(err.Error(), c.err) {
				t.Errorf("ParseSettings(%q): %v, want %q", c.settings, err, c.err)
			}
			continue
		}
		var left []string
		for _, f := range s.Apply([]Finding{{Rule: "a", Severity: Error}, {Rule: "delta-empty", Severity: Warning}}) {
			left = append(left, f.Severity.String()+" "+f.Rule)
		}
		if got := strings.Join(left, ", "); got != c.want {
			t.Errorf("%q leave %q, want %q", c.settings, got, c.want)
		}
	}
	if got := (Settings{}).Severity("stall", Note); got != Note {
		t.Errorf("the zero value makes a note %v", got)
	}
}
