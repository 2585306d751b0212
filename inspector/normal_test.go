package inspector

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tapedeck/protocol/conversation/corpus"
)

// tapeOf is a tape of messages in the form of package corpus.
func tapeOf(t testing.TB, messages string) *tape {
	t.Helper()
	c, err := corpus.Read([]byte("-- messages --\n" + messages + "\n-- findings --\n"))
	if err != nil {
		t.Fatal(err)
	}
	return newTape(c.Frames)
}

// normalFrom is the normal form of all runs of some messages.
func normalFrom(t testing.TB, messages string) *Normal {
	t.Helper()
	return normalOf(t, tapeOf(t, messages), "messages")
}

func normalOf(t testing.TB, tp *tape, label string) *Normal {
	t.Helper()
	n, err := LoadNormal(context.Background(), tp, tp.runs)
	if err != nil {
		t.Fatal(err)
	}
	n.Label = label
	return n
}

func written(t testing.TB, n *Normal, strict bool) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := n.Write(&b, strict); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestNormal(t *testing.T) {
	for _, story := range []string{"thread", "hostile", "rejoin"} {
		n := normalOf(t, readTape(t, story), story)
		for _, strict := range []bool{false, true} {
			text := written(t, n, strict)
			if !strict {
				golden(t, "normal."+story+".txt", text)
			}
			for line := range strings.Lines(string(text)) {
				if line = strings.TrimSuffix(line, "\n"); strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r == 0x7f || 0x80 <= r && r < 0xa0 || r == '\u202e' }) {
					t.Errorf("a line is not clean: %q", line)
				}
			}
			d, err := CompareNormal(text, n, DiffOptions{Strict: strict})
			if err != nil {
				t.Fatal(err)
			}
			if !d.Equal() {
				t.Errorf("%s, strict %t: read back it differs: %+v", story, strict, d.First)
			}
			back, err := ReadNormal(text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(text), string(written(t, back, strict))); diff != "" {
				t.Errorf("%s, strict %t: read and written again (-first +second):\n%s", story, strict, diff)
			}
		}
	}
}

func TestReadNormalErrors(t *testing.T) {
	for _, tt := range []struct{ name, kept, want string }{
		{"nothing", "", "the baseline is empty"},
		{"white space", " \n\n", "the baseline is empty"},
		{"a head alone", normalHead + "\n" + normalNote + "\n", "the baseline is empty"},
		{"something else", "{\"a\":1}\n", "this is no kept normal form"},
		{"a later version", "tapedeck normal form 2\nrun\n", "of another version"},
		{"an unknown kind", normalHead + "\nrun ‹run-1›\nsong x\n", `line 3: "song" is no kind of construct`},
		{"a field without a construct", normalHead + "\n  text \"x\"\n", "line 2: a field stands before the first construct"},
		{"a field that is no JSON", normalHead + "\ntext\n  text {\"a\":\n", `line 3: field "text"`},
		{"two values", normalHead + "\ntext\n  text 1 2\n", "more than one value"},
		{"an open quote", normalHead + "\n\"text\n", "begins with a quote"},
	} {
		_, err := ReadNormal([]byte(tt.kept))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got error %v, want one that says %q", tt.name, err, tt.want)
		}
		if strings.Contains(tt.want, "empty") && !errors.Is(err, ErrEmptyBaseline) {
			t.Errorf("%s: got error %v, want ErrEmptyBaseline", tt.name, err)
		}
	}
	n := normalFrom(t, answer("t", "r", "m", "Hi"))
	if _, err := CompareNormal(written(t, n, false), n, DiffOptions{Strict: true}); err == nil || !strings.Contains(err.Error(), "keep it anew with --strict") {
		t.Errorf("a strict comparison with a baseline that is not: got error %v", err)
	}
}

// answer is a run with one text, cut into the given deltas.
func answer(thread, run, message string, deltas ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "0.0 a connect\n0.1 a> run:start {\"threadId\":%q,\"messageId\":\"ask-%s\",\"input\":\"Hi\"}\n", thread, message)
	fmt.Fprintf(&b, "0.2 a< %s/%s/1 RUN_STARTED {\"timestamp\":\"%s\"}\n0.3 a< %[1]s/%[2]s/2 TEXT_MESSAGE_START {\"messageId\":%[4]q}\n", thread, run, run, message)
	for i, delta := range deltas {
		fmt.Fprintf(&b, "0.%d a< %s/%s/%d TEXT_MESSAGE_CONTENT {\"messageId\":%q,\"delta\":%q}\n", 4+i, thread, run, 3+i, message, delta)
	}
	fmt.Fprintf(&b, "2.0 a< %s/%s/%d TEXT_MESSAGE_END {\"messageId\":%q}\n", thread, run, 3+len(deltas), message)
	fmt.Fprintf(&b, "2.1 a< %s/%s/%d RUN_FINISHED {}\n", thread, run, 4+len(deltas))
	return b.String()
}

func FuzzReadNormal(f *testing.F) {
	f.Add(written(f, normalOf(f, readTape(f, "thread"), "thread"), true))
	f.Add([]byte(normalHead + "\ntext \"a b\" ‹message-1›\n  \"x y\" \"1\\n\"\n    \"2\"\n  z {\n      \"a\": 1\n    }\n"))
	f.Add([]byte(normalHead + "\nrun\n  a"))
	f.Fuzz(func(t *testing.T, data []byte) {
		n, err := ReadNormal(data)
		if err != nil {
			return
		}
		text := written(t, n, true)
		again, err := ReadNormal(text)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, text)
		}
		if second := written(t, again, true); !bytes.Equal(text, second) {
			t.Errorf("written twice it differs:\n%s\n---\n%s", text, second)
		}
	})
}
