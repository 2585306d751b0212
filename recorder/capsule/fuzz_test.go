package capsule

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation/corpus"
	"tapedeck/recorder/capsule/scrub"
)

// seeds are files of both forms, whole and damaged.
func seeds(f *testing.F) {
	f.Add([]byte(`{"tapedeckCapsule":1,"redacted":"nothing","sessions":[]}` + "\n" + `{"n":1,"at":0,"kind":"text","dir":"client","text":"x"}`))
	f.Add([]byte(`{"log":{"version":"1.2","entries":[]}}`))
	for _, pattern := range []string{"testdata/*.jsonl", "testdata/har/*.har"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			f.Fatalf("no seeds in %s: %v", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
			f.Add(text[:len(text)*2/3])
		}
	}
}

// FuzzForms writes whatever was imported in every form that is text: all is
// written or refused, and what is JSON is that.
func FuzzForms(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		kept := &keeping{}
		if _, err := Import(t.Context(), bytes.NewReader(data), kept, ImportOptions{Name: "fuzz"}); err != nil {
			return
		}
		if archive := export(t, kept, Options{Format: HAR}); !json.Valid([]byte(archive)) {
			t.Errorf("the archive is no JSON:\n%s", archive)
		}
		for line := range strings.Lines(export(t, kept, Options{Format: AGUI})) {
			if !json.Valid([]byte(line)) {
				t.Errorf("an AG-UI event is no JSON: %s", line)
			}
		}
		if _, err := Export(t.Context(), kept, nil, io.Discard, Options{Format: Scenario}); err != nil && !strings.Contains(err.Error(), "no run") {
			t.Errorf("export as a scenario: %v", err)
		}
		export(t, kept, Options{Format: JSONL, Redact: []string{"all"}, Key: make([]byte, 32)})
	})
}

// FuzzRedact takes all out of a conversation: lengths stay, what was JSON is
// JSON, and of the words nothing is left.
func FuzzRedact(f *testing.F) {
	f.Add(`0 a connect
0 a> run:start {"threadId":"t","messageId":"m","input":"needle haystack"}
0 a< t/r/1 RUN_STARTED
0 a< t/r/2 TEXT_MESSAGE_CONTENT {"messageId":"x","delta":"needle"}
0 a< 42["run:event",{"v":1,"x":"needle \ud83d"}]`)
	f.Add("0 a open polling\n0 a< 42[\"e\",\"needle\"]␞42[\"e\",{\"needle\":\"needle\"}]")
	f.Add("0 a connect\n0 a<binary 6e6565646c65\n0 - http GET /protocol 200 {\"a\":\"needle\"}")
	f.Fuzz(func(t *testing.T, messages string) {
		if len(messages) > 1<<14 {
			return
		}
		c, err := corpus.Read([]byte("-- messages --\n" + messages))
		if err != nil || len(c.Frames) > 1000 {
			return
		}
		s, err := scrub.New(make([]byte, 32), []string{"all"})
		if err != nil {
			t.Fatal(err)
		}
		for i := range c.Frames {
			before := c.Frames[i]
			was := bytes.Clone(before.Data)
			after := s.Frame(&c.Frames[i])
			if !bytes.Equal(before.Data, was) {
				t.Fatalf("frame %d was changed in place", before.Position)
			}
			if before.Kind == capture.Text && json.Valid(argument(before.Data)) && !json.Valid(argument(after.Data)) {
				t.Errorf("%s became %s, which is no JSON", before.Data, after.Data)
			}
		}
	})
}

// argument is what stands behind a packet's digits.
func argument(packet []byte) []byte { return bytes.TrimLeft(packet, "0123456789-") }
