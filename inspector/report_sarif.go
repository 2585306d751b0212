package inspector

import (
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

// The objects of SARIF 2.1.0, as far as they are written.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool       sarifTool     `json:"tool"`
		ColumnKind string        `json:"columnKind"`
		Results    []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version,omitempty"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID         string             `json:"id"`
		Short      *sarifText         `json:"shortDescription,omitempty"`
		Full       *sarifText         `json:"fullDescription,omitempty"`
		Help       *sarifText         `json:"help,omitempty"`
		Default    sarifConfiguration `json:"defaultConfiguration"`
		Properties map[string]string  `json:"properties,omitempty"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifConfiguration struct {
		Level string `json:"level"`
	}
	sarifResult struct {
		RuleID       string            `json:"ruleId"`
		RuleIndex    int               `json:"ruleIndex"`
		Level        string            `json:"level"`
		Message      sarifText         `json:"message"`
		Locations    []sarifLocation   `json:"locations"`
		Related      []sarifLocation   `json:"relatedLocations,omitempty"`
		Fingerprints map[string]string `json:"partialFingerprints"`
		Properties   map[string]any    `json:"properties,omitempty"`
	}
	sarifLocation struct {
		ID       int            `json:"id,omitempty"`
		Physical sarifPhysical  `json:"physicalLocation"`
		Logical  []sarifLogical `json:"logicalLocations"`
		Message  *sarifText     `json:"message,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifLogical struct {
		Name string `json:"name"`
		Full string `json:"fullyQualifiedName"`
		Kind string `json:"kind"`
	}
)

// sarifSchema names the schema that the document keeps to.
const sarifSchema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

// WriteSARIF writes the report as SARIF 2.1.0. The tape is the artifact; places
// in it are logical locations, since a tape has no lines.
func (r *Report) WriteSARIF(w io.Writer) error {
	driver := sarifDriver{Name: "tapedeck", Version: r.Tool, Rules: []sarifRule{}}
	index := map[string]int{}
	results := []sarifResult{}
	for i := range r.Findings {
		f := &r.Findings[i]
		n, known := index[f.Rule]
		if !known {
			n = len(driver.Rules)
			index[f.Rule] = n
			driver.Rules = append(driver.Rules, sarifRuleOf(f))
		}
		results = append(results, r.sarifResult(f, n))
	}
	log := sarifLog{Schema: sarifSchema, Version: "2.1.0", Runs: []sarifRun{{
		Tool: sarifTool{Driver: driver}, ColumnKind: "unicodeCodePoints", Results: results,
	}}}
	return writeJSON(w, log, true)
}

func sarifRuleOf(f *protocol.Finding) sarifRule {
	rule, known := protocol.RuleByID(f.Rule)
	if !known {
		return sarifRule{ID: f.Rule, Default: sarifConfiguration{sarifLevel(f.Severity)}}
	}
	return sarifRule{
		ID: rule.ID, Short: &sarifText{rule.Title}, Full: &sarifText{rule.Harm}, Help: &sarifText{rule.Fix},
		Default:    sarifConfiguration{sarifLevel(rule.Severity)},
		Properties: map[string]string{"provenance": string(rule.Provenance), "section": rule.Section},
	}
}

func (r *Report) sarifResult(f *protocol.Finding, rule int) sarifResult {
	result := sarifResult{
		RuleID: f.Rule, RuleIndex: rule, Level: sarifLevel(f.Severity), Message: sarifText{sarifMessage(f.Text)},
		Locations: []sarifLocation{r.sarifPlace(f, f.At)},
		// A tape recorded again has other positions: what stays is the rule, the
		// thing in the payload, and where in its run it was.
		Fingerprints: map[string]string{"ruleSequencePointer/v1": fmt.Sprintf("%s:%d:%s", f.Rule, f.Sequence, f.Pointer)},
	}
	if !f.Other.IsZero() && f.Other != f.At {
		other := r.sarifPlace(f, f.Other)
		other.ID, other.Message = 1, &sarifText{"what it rests on"}
		result.Related = []sarifLocation{other}
	}
	properties := map[string]any{}
	for name, value := range map[string]string{"run": f.Run, "thread": f.Thread, "pointer": f.Pointer} {
		if value != "" {
			properties[name] = value
		}
	}
	if f.Sequence != 0 {
		properties["sequence"] = f.Sequence
	}
	if len(properties) > 0 {
		result.Properties = properties
	}
	return result
}

// sarifMessage escapes what a reader of SARIF would take for a placeholder or
// for a link: the text may quote what came off the wire.
func sarifMessage(text string) string {
	text = strings.NewReplacer("{", "{{", "}", "}}").Replace(text)
	if strings.Contains(text, "](") {
		text = strings.ReplaceAll(text, "[", `\[`)
	}
	return text
}

func (r *Report) sarifPlace(f *protocol.Finding, at capture.Address) sarifLocation {
	full := at.String()
	if f.Run != "" {
		full = f.Run + "@" + full
	}
	return sarifLocation{
		Physical: sarifPhysical{Artifact: sarifArtifact{URI: artifactURI(r.Tape)}},
		Logical:  []sarifLogical{{Name: "#" + at.String(), Full: full, Kind: "message"}},
	}
}

// artifactURI is a path as a URI reference.
func artifactURI(path string) string {
	if path == "" {
		path = "tapedeck.tape"
	}
	parts := strings.Split(filepath.ToSlash(path), "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	uri := strings.Join(parts, "/")
	switch {
	case strings.HasPrefix(uri, "/"):
		return "file://" + uri
	case strings.Contains(parts[0], ":"): // which would be read as a scheme
		return "./" + uri
	}
	return uri
}

func sarifLevel(s protocol.Severity) string {
	switch s {
	case protocol.Error:
		return "error"
	case protocol.Warning:
		return "warning"
	case protocol.Note:
		return "note"
	}
	return "none"
}
