package conversation_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
	"tapedeck/protocol/conversation/corpus"
)

var update = flag.Bool("update", false, "write the findings that are raised into the corpus")

const corpusDir = "../testdata/conversations"

// TestCorpus judges the conversations of the corpus. A good one raises nothing;
// a bad one, named RULE.bad.txtar or RULE.bad.VARIANT.txtar, raises its rule and
// no other.
func TestCorpus(t *testing.T) {
	for _, file := range corpusFiles(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			c, err := corpus.Read(data)
			if err != nil {
				t.Fatal(err)
			}
			findings := judge(c.Frames, conversation.Options{}).findings
			rule, verdict := ruleOf(file)
			for _, f := range findings {
				if f.Rule != rule || verdict != "bad" {
					t.Errorf("raises %s at %s: %s", f.Rule, f.At, f.Text)
				}
			}
			if verdict == "bad" && len(findings) == 0 {
				t.Errorf("does not raise %s", rule)
			}
			got := written(findings)
			if *update {
				writeFindings(t, file, data, got)
				return
			}
			if diff := cmp.Diff(c.Findings, got); diff != "" {
				t.Errorf("findings (-file +raised; -update writes them):\n%s", diff)
			}
		})
	}
}

// TestCorpusCoversRules holds the corpus against the catalogue: each rule that
// takes a conversation has a good and a bad one.
func TestCorpusCoversRules(t *testing.T) {
	seen := map[string]bool{}
	for _, file := range corpusFiles(t) {
		rule, verdict := ruleOf(file)
		if _, known := protocol.RuleByID(rule); !known && rule != "legal" {
			t.Errorf("%s: no rule is called %q", filepath.Base(file), rule)
		}
		seen[rule+"."+verdict] = true
	}
	for _, r := range protocol.Rules() {
		if r.Scope != protocol.ScopeConversation && r.Scope != protocol.ScopeProxy {
			continue
		}
		for _, verdict := range []string{"good", "bad"} {
			if !seen[r.ID+"."+verdict] {
				t.Errorf("no conversation is called %s.%s.txtar", r.ID, verdict)
			}
		}
	}
}

func corpusFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(corpusDir, "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus in %s: %v", corpusDir, err)
	}
	return files
}

// ruleOf reads a file's name: RULE.good.txtar, RULE.bad.VARIANT.txtar.
func ruleOf(file string) (rule, verdict string) {
	parts := strings.Split(filepath.Base(file), ".")
	if len(parts) < 3 {
		return parts[0], ""
	}
	return parts[0], parts[1]
}

// told is all that a State says of a session.
type told struct {
	state    *conversation.State
	findings []protocol.Finding
	posts    []conversation.Post
	messages int
	runs     map[string]conversation.Run
	threads  map[string]conversation.Thread
}

func (r *told) take(s *conversation.Step) {
	r.findings = append(r.findings, s.Findings...)
	r.posts = append(r.posts, s.Posts...)
	r.messages += len(s.Messages)
	for _, run := range r.state.Changed() {
		r.runs[run.ID] = *run
	}
	for _, thread := range r.state.ChangedThreads() {
		r.threads[thread.ID] = *thread
	}
}

func judge(frames []capture.Frame, o conversation.Options) *told {
	r := &told{
		state: conversation.New(o),
		runs:  map[string]conversation.Run{}, threads: map[string]conversation.Thread{},
	}
	for i := range frames {
		r.take(r.state.Observe(&frames[i]))
	}
	r.take(r.state.End())
	slices.SortStableFunc(r.findings, func(a, b protocol.Finding) int { return a.At.Compare(b.At) })
	return r
}

// written is how findings stand in the corpus.
func written(findings []protocol.Finding) string {
	var b strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&b, "%s %s at %s", f.Severity, f.Rule, f.At)
		if !f.Other.IsZero() {
			fmt.Fprintf(&b, " other %s", f.Other)
		}
		for _, named := range [...]struct{ name, value string }{
			{"thread", f.Thread}, {"run", f.Run}, {"pointer", f.Pointer},
		} {
			if named.value != "" {
				fmt.Fprintf(&b, " %s %s", named.name, named.value)
			}
		}
		fmt.Fprintf(&b, "\n\t%s\n", f.Text)
	}
	return b.String()
}

func writeFindings(t *testing.T, file string, data []byte, findings string) {
	t.Helper()
	archive := txtar.Parse(data)
	archive.Files = slices.DeleteFunc(archive.Files, func(f txtar.File) bool { return f.Name == "findings" })
	archive.Files = append(archive.Files, txtar.File{Name: "findings", Data: []byte(findings)})
	if out := txtar.Format(archive); !bytes.Equal(out, data) {
		if err := os.WriteFile(file, out, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
