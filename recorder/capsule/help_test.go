package capsule

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
	"tapedeck/protocol/conversation/corpus"
	"tapedeck/recorder"
)

// conversations are those of the corpus, by name.
func conversations(t *testing.T) map[string][]capture.Frame {
	t.Helper()
	read, err := corpus.All("../../protocol/testdata/conversations")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]capture.Frame{}
	for name, c := range read {
		all[name] = c.Frames
	}
	return all
}

// talk is frames written as the corpus writes them.
func talk(t *testing.T, messages string) []capture.Frame {
	t.Helper()
	c, err := corpus.Read([]byte("-- messages --\n" + messages))
	if err != nil {
		t.Fatal(err)
	}
	return c.Frames
}

var began = time.Date(2026, 3, 1, 10, 0, 0, 123456789, time.UTC)

// record puts sessions onto a new tape, judged, with their secrets, and opens it.
func record(t *testing.T, sessions ...[]capture.Frame) *recorder.Reader {
	t.Helper()
	return open(t, recordTo(t, sessions...))
}

func recordTo(t *testing.T, sessions ...[]capture.Frame) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "recorded.tape")
	sink, err := OpenSink(path, SinkOptions{CopierOptions: recorder.CopierOptions{Tool: "v1", KeepSecrets: true}})
	if err != nil {
		t.Fatal(err)
	}
	for _, frames := range sessions {
		s := capture.Session{Started: began, Source: "proxy", Gateway: "https://gateway.example", Listen: "http://127.0.0.1:1", Tool: "v1"}
		if err := sink.Begin(&s); err != nil {
			t.Fatal(err)
		}
		shift := func(p capture.Position) capture.Position {
			if p == 0 {
				return 0
			}
			return p + s.First - 1
		}
		for _, f := range frames {
			f.Position, f.Connection, f.Exchange = shift(f.Position), shift(f.Connection), shift(f.Exchange)
			if err := remapDeed(&f, shift); err != nil {
				t.Fatal(err)
			}
			if err := sink.Frame(&f); err != nil {
				t.Fatal(err)
			}
		}
		s.Ended, s.Clean = began.Add(time.Minute), true
		if err := sink.End(&s); err != nil {
			t.Fatal(err)
		}
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t *testing.T, path string) *recorder.Reader {
	t.Helper()
	r, err := recorder.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func export(t *testing.T, src Source, o Options, runs ...conversation.RunKey) string {
	t.Helper()
	var out bytes.Buffer
	if _, err := Export(context.Background(), src, runs, &out, o); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// importText imports a text onto a tape of its own.
func importText(t *testing.T, text string) (*recorder.Reader, *Report) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "imported.tape")
	sink, err := OpenSink(path, SinkOptions{CopierOptions: recorder.CopierOptions{Tool: "v2", KeepSecrets: true}})
	if err != nil {
		t.Fatal(err)
	}
	report, err := Import(context.Background(), strings.NewReader(text), sink, ImportOptions{Name: "bug.jsonl"})
	if err != nil {
		t.Fatal(err)
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	return open(t, path), report
}

func runsOf(t *testing.T, src Source) []conversation.Run {
	t.Helper()
	runs, err := src.Runs(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return runs
}

func keyOf(r *conversation.Run) conversation.RunKey {
	return conversation.RunKey{Session: r.Session, Run: r.ID}
}

// rulesOf are the findings of a run, without what is numbered anew.
func rulesOf(t *testing.T, r *recorder.Reader, run conversation.RunKey) (told []string) {
	t.Helper()
	found, err := r.Findings(context.Background(), &run)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		told = append(told, tell(f))
	}
	return told
}

var numbers = regexp.MustCompile(`#[0-9.]+`)

func tell(f protocol.Finding) string {
	text := numbers.ReplaceAllString(f.Text, "#")
	return strings.Join([]string{f.Severity.String(), f.Rule, f.Thread, f.Run, f.Pointer, text}, " ")
}

func framesIn(t *testing.T, r *recorder.Reader) []capture.Frame {
	t.Helper()
	frames, err := r.Frames(context.Background(), 1, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return frames
}

func hexOf(s string) string { return hex.EncodeToString([]byte(s)) }

func mustJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares with a file.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}
