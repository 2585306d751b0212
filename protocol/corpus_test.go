package protocol

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"tapedeck/protocol/capture"
)

var update = flag.Bool("update", false, "write what the tests expect anew")

// specimen is a file of testdata/messages: prose, then a message, then what it
// breaks. Its name is RULE.good or RULE.bad, and a word if there are several.
type specimen struct {
	path, rule string
	good       bool
	archive    *txtar.Archive
	message    Message
}

func corpus(tb testing.TB) []specimen {
	tb.Helper()
	paths, err := filepath.Glob("testdata/messages/*.txtar")
	if err != nil || len(paths) == 0 {
		tb.Fatalf("testdata/messages: %d files, %v", len(paths), err)
	}
	var all []specimen
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			tb.Fatal(err)
		}
		name := strings.Split(strings.TrimSuffix(filepath.Base(path), ".txtar"), ".")
		if len(name) < 2 || name[1] != "good" && name[1] != "bad" {
			tb.Fatalf("%s: call it RULE.good.txtar or RULE.bad.txtar", path)
		}
		all = append(all, specimen{path, name[0], name[1] == "good", archive, readMessage(tb, path, archive)})
	}
	return all
}

func readMessage(tb testing.TB, path string, archive *txtar.Archive) Message {
	tb.Helper()
	m := Message{Address: capture.Address{Position: 7}, Connection: 1}
	for line := range strings.Lines(section(archive, "message")) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		var err error
		switch key {
		case "from":
			err = m.Direction.UnmarshalText([]byte(value))
		case "name":
			m.Name = Name(value)
		case "answer":
			m.Answer = true
		case "minor":
			m.GatewayMinor, err = strconv.Atoi(value)
		default:
			err = fmt.Errorf("no such line: %q", line)
		}
		if err != nil {
			tb.Fatalf("%s: %v", path, err)
		}
	}
	m.Payload = []byte(expand(section(archive, "payload")))
	if extra := section(archive, "extra"); extra != "" {
		m.Extra = [][]byte{[]byte(extra)}
	}
	return m
}

func section(archive *txtar.Archive, name string) string {
	for _, f := range archive.Files {
		if f.Name == name {
			return strings.TrimSuffix(string(f.Data), "\n")
		}
	}
	return ""
}

var repetition = regexp.MustCompile(`<<(\d+)\*(.+?)>>`)

// expand writes <<3*ab>> out as ababab, so that a long payload can be read.
func expand(payload string) string {
	return repetition.ReplaceAllStringFunc(payload, func(s string) string {
		match := repetition.FindStringSubmatch(s)
		n, err := strconv.Atoi(match[1])
		if err != nil {
			panic(err)
		}
		return strings.Repeat(match[2], n)
	})
}

// listing writes findings one a line.
func listing(findings []Finding) string {
	var b strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&b, "%s %s %s\n\t%s\n", f.Severity, f.Rule, cmpOr(f.Pointer, "(the payload)"), f.Text)
	}
	return b.String()
}

func cmpOr(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// TestCorpus judges every specimen: a good one breaks nothing, and a bad one its
// rule and no other.
func TestCorpus(t *testing.T) {
	v := NewValidator(Options{})
	for _, s := range corpus(t) {
		t.Run(strings.TrimSuffix(filepath.Base(s.path), ".txtar"), func(t *testing.T) {
			m := s.message
			findings := v.Validate(&m, nil)
			got := listing(findings)
			if *update {
				writeFindings(t, s, got)
			} else if diff := cmp.Diff(section(s.archive, "findings"), strings.TrimSuffix(got, "\n")); diff != "" {
				t.Errorf("findings differ from %s (-want +got):\n%s", s.path, diff)
			}
			if s.good && len(findings) > 0 || !s.good && len(findings) == 0 {
				t.Errorf("a good message breaks nothing and a bad one its rule; got\n%s", got)
			}
			for _, f := range findings {
				checkFinding(t, &f)
				if f.Rule != s.rule {
					t.Errorf("%s breaks %s too: %s", s.path, f.Rule, f.Text)
				}
			}
		})
	}
}

// checkFinding checks what is true of every finding.
func checkFinding(tb testing.TB, f *Finding) {
	tb.Helper()
	rule, ok := RuleByID(f.Rule)
	switch {
	case !ok:
		tb.Errorf("finding of %q, which is not in the catalogue", f.Rule)
	case rule.Scope != ScopeMessage:
		tb.Errorf("%s is judged by %s and was found in a message", f.Rule, rule.Scope)
	case f.Severity != rule.Severity && rule.Unless == "":
		tb.Errorf("%s found as %v: the catalogue knows only %v", f.Rule, f.Severity, rule.Severity)
	case f.Severity == Off:
		tb.Errorf("%s found as off", f.Rule)
	}
	if len(f.Text) >= 200 || strings.ContainsAny(f.Text, "\n\r\x1b") || f.Text == "" {
		tb.Errorf("%s: text %q is not one line under 200 bytes", f.Rule, f.Text)
	}
	if f.Pointer != "" && f.Pointer[0] != '/' {
		tb.Errorf("%s: %q is no JSON pointer", f.Rule, f.Pointer)
	}
}

func writeFindings(t *testing.T, s specimen, findings string) {
	t.Helper()
	for i := range s.archive.Files {
		if s.archive.Files[i].Name == "findings" {
			s.archive.Files[i].Data = []byte(findings)
		}
	}
	if err := os.WriteFile(s.path, txtar.Format(s.archive), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestCorpusIsWhole asks for a good and a bad specimen of each rule that one
// message can break.
func TestCorpusIsWhole(t *testing.T) {
	has := map[string]bool{}
	for _, s := range corpus(t) {
		has[fmt.Sprint(s.rule, s.good)] = true
		if r, ok := RuleByID(s.rule); !ok || r.Scope != ScopeMessage {
			t.Errorf("%s is named after no rule that a message can break", s.path)
		}
	}
	for _, r := range Rules() {
		if r.Scope == ScopeMessage && !(has[r.ID+"true"] && has[r.ID+"false"]) {
			t.Errorf("testdata/messages lacks %s.good or %s.bad", r.ID, r.ID)
		}
	}
}
