package scenario

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestChunks cuts texts into deltas, as they stand in JSON.
func TestChunks(t *testing.T) {
	tests := []struct {
		chunk, text string
		want        []string
	}{
		{"whole", "one two", []string{`"one two"`}},
		{"word", "one two  three\nfour", []string{`"one "`, `"two  "`, `"three\n"`, `"four"`}},
		{"word", "", []string{}},
		{"word", " lead", []string{`" "`, `"lead"`}},
		{"char", "a😀é", []string{`"a"`, `"😀"`, `"é"`}},
		{"2", "abcde", []string{`"ab"`, `"cd"`, `"e"`}},
		{"grapheme", "👩‍👩‍👧e\u0301x", []string{`"👩‍👩‍👧"`, "\"e\u0301\"", `"x"`}},
		{"mid-surrogate", "a😀b", []string{`"a\ud83d"`, `"\ude00b"`}},
		{"mid-surrogate", "😀😀", []string{`"\ud83d"`, `"\ude00\ud83d"`, `"\ude00"`}},
		{"char", "\"\\\u0001", []string{`"\""`, `"\\"`, `"\u0001"`}},
	}
	for _, test := range tests {
		cut, err := chunkerNamed(test.chunk)
		if err != nil {
			t.Fatal(err)
		}
		got := []string{}
		for _, delta := range cut(test.text) {
			got = append(got, string(delta))
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s of %q (-want +got):\n%s", test.chunk, test.text, diff)
		}
	}
}

// FuzzChunks joins deltas again: they are the text.
func FuzzChunks(f *testing.F) {
	f.Add("Hello 😀 👩‍👩‍👧 \u2028 \x00 العربية")
	f.Fuzz(func(t *testing.T, text string) {
		var whole string
		if err := json.Unmarshal(appendString(nil, text), &whole); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"whole", "word", "char", "3", "grapheme", "mid-surrogate"} {
			cut, err := chunkerNamed(name)
			if err != nil {
				t.Fatal(err)
			}
			joined := []byte{'"'}
			for _, delta := range cut(text) {
				if !json.Valid(delta) || bytes.Equal(delta, []byte(`""`)) {
					t.Fatalf("%s: delta %s", name, delta)
				}
				joined = append(joined, delta[1:len(delta)-1]...)
			}
			var got string
			if err := json.Unmarshal(append(joined, '"'), &got); err != nil || got != whole {
				t.Errorf("%s: got %q, %v, want %q", name, got, err, whole)
			}
		}
	})
}
