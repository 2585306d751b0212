package protocol

import (
	"fmt"
	"strings"
)

// Settings are severities that a user chose for rules, in place of the
// catalogue's. The zero value changes nothing.
type Settings struct {
	severities map[string]Severity
}

// ParseSettings reads settings such as "delta-empty=off", later ones winning.
// It refuses rules that are not in the catalogue.
func ParseSettings(settings []string) (Settings, error) {
	s := Settings{severities: make(map[string]Severity, len(settings))}
	for _, setting := range settings {
		id, name, ok := strings.Cut(setting, "=")
		if !ok {
			return Settings{}, fmt.Errorf("rule setting %q: write it as ID=error, ID=warning, ID=note or ID=off", setting)
		}
		if _, known := RuleByID(id); !known {
			return Settings{}, fmt.Errorf("rule setting %q: no rule is called %q%s", setting, id, didYouMean(id, ruleIDs()))
		}
		severity, err := ParseSeverity(name)
		if err != nil {
			return Settings{}, fmt.Errorf("rule setting %q: %w", setting, err)
		}
		s.severities[id] = severity
	}
	return s, nil
}

// Severity returns the severity that s gives a finding of a rule, of which
// found is the severity that it was found with.
func (s Settings) Severity(rule string, found Severity) Severity {
	if chosen, ok := s.severities[rule]; ok {
		return chosen
	}
	return found
}

// Apply gives findings the severities of s and takes out those that are off. It
// works in place and returns what is left.
func (s Settings) Apply(findings []Finding) []Finding {
	kept := findings[:0]
	for _, f := range findings {
		if f.Severity = s.Severity(f.Rule, f.Severity); f.Severity != Off {
			kept = append(kept, f)
		}
	}
	return kept
}

func ruleIDs() []string {
	var ids []string
	for _, r := range Rules() {
		ids = append(ids, r.ID)
	}
	return ids
}

// didYouMean returns `, did you mean "X"?`, or "" if nothing is near.
func didYouMean(given string, known []string) string {
	if name := Nearest(given, known); name != "" {
		return fmt.Sprintf(", did you mean %q?", name)
	}
	return ""
}
