package conversation_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
	"tapedeck/protocol/conversation/corpus"
)

// goodConversations returns those of the corpus that raise nothing.
func goodConversations(t testing.TB) map[string][]capture.Frame {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(corpusDir, "*.good*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no good conversations in %s: %v", corpusDir, err)
	}
	good := make(map[string][]capture.Frame)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c, err := corpus.Read(data)
		if err != nil {
			t.Fatal(err)
		}
		good[strings.TrimSuffix(filepath.Base(file), ".txtar")] = c.Frames
	}
	return good
}

// TestNoFalseAlarmWhenJoined begins the recording of each good conversation at
// each of its frames. What was not seen may not be held against anyone.
func TestNoFalseAlarmWhenJoined(t *testing.T) {
	for name, frames := range goodConversations(t) {
		for from := range min(len(frames), 60) {
			for _, f := range judge(frames[from:], conversation.Options{}).findings {
				if f.Severity > protocol.Note {
					t.Errorf("%s, joined at frame %d: %s %s at %s: %s", name, from+1, f.Severity, f.Rule, f.At, f.Text)
				}
			}
		}
	}
}

// TestNoFalseAlarmWhenStopped stops the recording of each good conversation
// after each of its frames.
func TestNoFalseAlarmWhenStopped(t *testing.T) {
	for name, frames := range goodConversations(t) {
		for to := range min(len(frames), 60) {
			for _, f := range judge(frames[:to], conversation.Options{}).findings {
				// That the gateway's side broke off is an error until a later
				// connection shows that the run went on.
				if f.Severity > protocol.Note && f.Rule != "run-unfinished" {
					t.Errorf("%s, stopped after frame %d: %s %s at %s: %s", name, to, f.Severity, f.Rule, f.At, f.Text)
				}
			}
		}
	}
}

// TestSameFramesSameResults judges each conversation twice.
func TestSameFramesSameResults(t *testing.T) {
	for name, frames := range goodConversations(t) {
		one, other := judge(frames, conversation.Options{}), judge(frames, conversation.Options{})
		if diff := cmp.Diff(one.posts, other.posts); diff != "" {
			t.Errorf("%s: posts differ:\n%s", name, diff)
		}
		if diff := cmp.Diff(one.state.Skipped(), other.state.Skipped()); diff != "" {
			t.Errorf("%s: skipped rules differ:\n%s", name, diff)
		}
		if diff := cmp.Diff(one.runs, other.runs); diff != "" {
			t.Errorf("%s: runs differ:\n%s", name, diff)
		}
	}
}

// TestNoFalseAlarmAfterGap loses one frame of each good conversation, and the
// tape says so.
func TestNoFalseAlarmAfterGap(t *testing.T) {
	for name, frames := range goodConversations(t) {
		for lost := range min(len(frames), 60) {
			if k := frames[lost].Kind; k == capture.Open || k == capture.End {
				continue
			}
			cut := append([]capture.Frame(nil), frames...)
			cut[lost] = capture.Frame{Position: frames[lost].Position, At: frames[lost].At, Kind: capture.Gap, Data: []byte(`{"frames":1}`)}
			for _, f := range judge(cut, conversation.Options{}).findings {
				if f.Severity > protocol.Note {
					t.Errorf("%s, frame %d lost: %s %s at %s: %s", name, lost+1, f.Severity, f.Rule, f.At, f.Text)
				}
			}
		}
	}
}
