package capsule

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
	"tapedeck/recorder"
)

const oneRun = `
0.000 a connect
0.010 a> run:start {"threadId":"t1","messageId":"u1","input":"hi"}
0.020 a< t1/r1/1 RUN_STARTED
0.025 a<binary 00ff
0.030 a< t1/r1/2 RUN_FINISHED
9.000 a end client 1000
`

// TestJSONL shows what the form looks like.
func TestJSONL(t *testing.T) {
	tape := record(t, talk(t, oneRun))
	o := Options{Format: JSONL, Title: "It stops", Comment: "Seen twice", Marks: []capture.Mark{{At: capture.Address{Position: 7}, Text: "here"}}}
	golden(t, "testdata/one.jsonl", export(t, tape, o))
}

// TestOneLineDoesNotStopTheImport is B11: a line of 12 MB, carriage returns, a
// broken line, and no end to the last one.
func TestOneLineDoesNotStopTheImport(t *testing.T) {
	long := strings.Repeat("x", 12<<20)
	text := strings.Join([]string{
		`{"tapedeckCapsule":1,"redacted":"nothing","sessions":[{"id":1,"started":"2026-03-01T10:00:00Z","first":1,"last":6,"source":"proxy"}]}`,
		`{"n":1,"at":0,"conn":1,"dir":"client","kind":"open","detail":{"transport":"websocket","target":"/"}}`,
		`{"n":2,"at":1,"conn":1,"dir":"client","kind":"text","text":"` + long + `"}`,
		`{"n":3,"at":2,"conn":1,"dir":"client","kind":`,
		`{"n":4,"at":3,"conn":1,"dir":"client","kind":"text","text":"after"}`,
		`{"n":5,"at":4,"conn":1,"dir":"client","kind":"song","text":"x"}`,
		`{"n":6,"at":5,"conn":1,"dir":"client","kind":"text","text":"last"}`,
	}, "\r\n")
	tape, report := importText(t, text)
	var named []string
	for _, s := range report.Skipped {
		named = append(named, s.String())
	}
	if diff := cmp.Diff([]string{
		"line 4: it is no frame: unexpected end of JSON input",
		`line 6: it is no frame: no kind of frame is called "song"`,
	}, named); diff != "" {
		t.Errorf("named (-want +got):\n%s", diff)
	}
	var told []string
	for _, f := range framesIn(t, tape) {
		data := string(f.Data)
		if len(data) > 200 {
			data = fmt.Sprintf("%d bytes", len(data))
		}
		told = append(told, fmt.Sprintf("%d of %d %s %s", f.Position, f.Connection, f.Kind, data))
	}
	if diff := cmp.Diff([]string{
		`1 of 1 open {"transport":"websocket","target":"/"}`,
		"2 of 1 text 12582912 bytes",
		`3 of 0 gap {"frames":1,"bytes":0,"error":"line 4 of \"bug.jsonl\": it is no frame: unexpected end of JSON input"}`,
		"4 of 1 text after",
		`5 of 0 gap {"frames":1,"bytes":0,"error":"line 6 of \"bug.jsonl\": it is no frame: no kind of frame is called \"song\""}`,
		"6 of 1 text last",
	}, told); diff != "" {
		t.Errorf("imported (-want +got):\n%s", diff)
	}
}

// TestLinesOfAHundredMegabytes pass.
func TestLinesOfAHundredMegabytes(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it moves a gigabyte")
	}
	long := strings.Repeat("x", 100<<20)
	sink := &counting{}
	text := `{"tapedeckCapsule":1,"redacted":"nothing","sessions":[]}` + "\n" + `{"n":1,"at":0,"kind":"text","text":"` + long + "\"}\n"
	report, err := Import(context.Background(), strings.NewReader(text), sink, ImportOptions{Name: "long"})
	if err != nil || report.Broken > 0 || sink.bytes != len(long) {
		t.Errorf("%v, skipped %v, %d bytes", err, report.Skipped, sink.bytes)
	}
}

// counting is a sink that counts.
type counting struct{ bytes, frames int }

func (c *counting) Begin(s *capture.Session) error { s.ID, s.First = 1, 1; return nil }
func (c *counting) End(*capture.Session) error     { return nil }
func (c *counting) Frame(f *capture.Frame) error {
	c.bytes, c.frames = c.bytes+len(f.Data), c.frames+1
	return nil
}

// TestLinesTakenOutByHand leaves the rest with its connections.
func TestLinesTakenOutByHand(t *testing.T) {
	lines := strings.SplitAfter(export(t, record(t, talk(t, oneRun)), Options{Format: JSONL}), "\n")
	text := strings.Join(append(append([]string{}, lines[:3]...), lines[4:]...), "")
	tape, report := importText(t, text)
	if report.Broken > 0 {
		t.Fatalf("skipped %v", report.Skipped)
	}
	for i, f := range framesIn(t, tape) {
		if f.Position != capture.Position(i+1) || f.Connection != 1 {
			t.Errorf("frame %d is of connection %d", f.Position, f.Connection)
		}
	}
}

func TestNoCapsules(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "it is empty"},
		{"a text", "hello\nworld\n", "no line of it is a frame"},
		{"another object", `{"a":1}`, "no line of it is a frame"},
		{"a newer one", `{"tapedeckCapsule":99,"sessions":[]}`, "update it"},
		{"no archive", `{"log":{"entries":{}}}`, "no HTTP Archive"},
		{"an empty archive", `{"log":{"entries":[]}}`, "no entries"},
		{"half an archive", `{"log":{"version":"1.2","ent`, "EOF"},
	} {
		_, err := Import(context.Background(), strings.NewReader(c.text), &counting{}, ImportOptions{Name: "x"})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), `import "x"`) {
			t.Errorf("%s: %v, want %q in it", c.name, err, c.want)
		}
	}
}

// TestNotesTravel exports with notes, and imports and exports in other forms.
func TestNotesTravel(t *testing.T) {
	tape := record(t, talk(t, oneRun), talk(t, oneRun))
	run := conversation.RunKey{Session: 2, Run: "r1"}
	frames := framesIn(t, tape)
	at := frames[len(frames)-2].Position // RUN_FINISHED of the second session
	o := Options{Format: JSONL, Title: "It stops", Comment: "Seen twice", Marks: []capture.Mark{{At: capture.Address{Position: at, Packet: 1}, Text: "here"}}}
	first := export(t, tape, o, run)
	imported, _ := importText(t, first)
	archive, _ := importText(t, export(t, imported, Options{Format: HAR}))
	path := filepath.Join(t.TempDir(), "bug.tape")
	if _, err := ExportFile(context.Background(), archive, nil, path, Options{}); err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]*recorder.Reader{"imported": imported, "archive": archive, "tape": open(t, path)} {
		sessions, err := r.Sessions(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		n := sessions[0].Notes
		if n == nil || n.Title != "It stops" || n.Comment != "Seen twice" || n.Catalogue == 0 || len(n.Marks) != 1 || sessions[0].Tool != "v1" {
			t.Errorf("%s: the notes are %+v", name, n)
			continue
		}
		for _, f := range framesIn(t, r) {
			if f.Position == n.Marks[0].At.Position && !strings.Contains(string(f.Data), "RUN_FINISHED") {
				t.Errorf("%s: the mark is at %s", name, f.Data)
			}
		}
	}
}

// TestTapesImportTapes adds a tape's sessions to another.
func TestTapesImportTapes(t *testing.T) {
	from := record(t, talk(t, oneRun), planted(t))
	path := recordTo(t, talk(t, oneRun))
	sink, err := OpenSink(path, SinkOptions{})
	if err != nil {
		t.Fatal(err)
	}
	report, err := ImportTape(context.Background(), from, sink, ImportOptions{Name: "other.tape"})
	if err != nil {
		t.Fatal(err)
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	tape := open(t, path)
	if len(report.Sessions) != 2 || report.Sessions[1].ID != 3 || len(runsOf(t, tape)) != 3 {
		t.Errorf("imported %+v", report.Sessions)
	}
	for _, f := range framesIn(t, tape) {
		if strings.Contains(string(f.Data), "Bearer "+secret) {
			t.Error("a credential came along, though nobody asked to keep secrets")
		}
	}
}

// TestACutExportLeavesNothing is cut short by its context, in each form.
func TestACutExportLeavesNothing(t *testing.T) {
	tape := record(t, planted(t))
	for _, f := range Formats() {
		dir := t.TempDir()
		path := filepath.Join(dir, "bug")
		if err := os.WriteFile(path, []byte("before"), 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		_, err := ExportFile(ctx, tape, nil, path, Options{Format: f, Progress: func(done, total int64) {
			if done == total {
				cancel()
			}
			if done > total {
				t.Errorf("%s: %d of %d steps", f, done, total)
			}
		}})
		cancel()
		names, _ := os.ReadDir(dir)
		text, _ := os.ReadFile(path)
		if err == nil { // it was cut behind its last frame
			continue
		}
		if !errors.Is(err, context.Canceled) || len(names) != 1 || string(text) != "before" {
			t.Errorf("%s: %v, the folder has %v, the file %q", f, err, names, text)
		}
	}
	dead, cancel := context.WithCancel(context.Background())
	cancel()
	path := filepath.Join(t.TempDir(), "bug.tape")
	if _, err := ExportFile(dead, tape, nil, path, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("with a dead context: %v", err)
	}
	if names, _ := os.ReadDir(filepath.Dir(path)); len(names) > 0 {
		t.Errorf("it left %v", names)
	}
}

// TestFilesAreTheUsers has nobody else read them.
func TestFilesAreTheUsers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no such modes there")
	}
	tape := record(t, talk(t, oneRun))
	for _, f := range Formats() {
		path := filepath.Join(t.TempDir(), "bug")
		done, err := ExportFile(context.Background(), tape, nil, path, Options{Format: f})
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode() != 0o600 || info.Size() != done.Bytes {
			t.Errorf("%s: %v, %v", f, info, err)
		}
	}
}

// TestTheBeginningSaysWhetherItIsRedacted looks at what a reader sees first.
func TestTheBeginningSaysWhetherItIsRedacted(t *testing.T) {
	tape := record(t, talk(t, oneRun))
	for _, f := range Formats()[1:] {
		for _, c := range []struct {
			redact []string
			want   string
		}{{nil, unredacted}, {[]string{"text", "todos"}, "text, todos"}} {
			line, _, _ := strings.Cut(export(t, tape, Options{Format: f, Redact: c.redact}), "\n")
			if !strings.Contains(line, c.want) {
				t.Errorf("%s: the first line is %s, want %q in it", f, line, c.want)
			}
		}
	}
}

// FuzzImport feeds both importers: nothing panics, what is imported can be
// exported, and that comes back the same.
func FuzzImport(f *testing.F) {
	for _, file := range []string{"testdata/one.jsonl", "testdata/har/chrome.har", "testdata/har/firefox.har", "testdata/har/playwright.har"} {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"tapedeckCapsule":1,"sessions":[{"first":3},{"first":2}]}` + "\n" + `{"kind":"act","detail":{"did":"x","of":9,"sent":1}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		kept := &keeping{}
		if _, err := Import(context.Background(), strings.NewReader(string(text)), kept, ImportOptions{Name: "x"}); err != nil {
			return
		}
		first := export(t, kept, Options{Format: JSONL})
		again := &keeping{}
		report, err := Import(context.Background(), strings.NewReader(first), again, ImportOptions{Name: "x"})
		if err != nil || report.Broken > 0 {
			t.Fatalf("what was exported is not imported: %v, %v\n%s", err, report.Skipped, first)
		}
		if diff := cmp.Diff(first, export(t, again, Options{Format: JSONL})); diff != "" {
			t.Errorf("the second export differs:\n%s", diff)
		}
		for _, format := range []Format{HAR, AGUI} {
			export(t, kept, Options{Format: format, Redact: []string{"all"}})
		}
	})
}

// keeping is a sink and a source: a tape in memory.
type keeping struct {
	sessions []capture.Session
	frames   []capture.Frame
}

func (k *keeping) Begin(s *capture.Session) error {
	s.ID, s.First = capture.SessionID(len(k.sessions)+1), capture.Position(len(k.frames)+1)
	k.sessions = append(k.sessions, *s)
	return nil
}

func (k *keeping) Frame(f *capture.Frame) error {
	k.frames = append(k.frames, *f)
	return nil
}

func (k *keeping) End(s *capture.Session) error {
	s.Last = capture.Position(len(k.frames))
	k.sessions[len(k.sessions)-1] = *s
	return nil
}

func (k *keeping) Sessions(context.Context) ([]capture.Session, error) { return k.sessions, nil }
func (k *keeping) Runs(context.Context) ([]conversation.Run, error)    { return nil, nil }
func (k *keeping) Frames(_ context.Context, from capture.Position, n int) ([]capture.Frame, error) {
	if int(from) > len(k.frames) {
		return nil, nil
	}
	list := k.frames[from-1:]
	return append([]capture.Frame{}, list[:min(n, len(list))]...), nil
}
