package inspector

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files of testdata anew")

// golden compares text with a file of testdata that a person can read.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got; -update writes it anew):\n%s", path, diff)
	}
}

// TestViews shows the stories of testdata in all views, as a user would see
// them: what goes to the terminal besides data stands behind a line of its own.
func TestViews(t *testing.T) {
	ctx := context.Background()
	for _, tt := range []struct {
		golden, story string
		width         int
		ascii         bool
		format        Format
		filter        string
		show          func(*View) error
	}{
		{"runs.120.txt", "thread", 120, false, "", "", func(v *View) error { return v.Runs(ctx) }},
		{"runs.160.txt", "thread", 160, false, "", "", func(v *View) error { return v.Runs(ctx) }},
		{"runs.80.ascii.txt", "thread", 80, true, "", "", func(v *View) error { return v.Runs(ctx) }},
		{"runs.json", "thread", 80, false, FormatJSON, "", func(v *View) error { return v.Runs(ctx) }},
		{"threads.txt", "thread", 80, false, "", "", func(v *View) error { return v.Threads(ctx) }},
		{"show.80.txt", "thread", 80, false, "", "", func(v *View) error { return v.Show(ctx, "7f3a", false) }},
		{"show.120.txt", "thread", 120, false, "", "", func(v *View) error { return v.Show(ctx, "7f3a", false) }},
		{"show.160.txt", "thread", 160, false, "", "", func(v *View) error { return v.Show(ctx, "7f3a", false) }},
		{"show.120.ascii.txt", "thread", 120, true, "", "", func(v *View) error { return v.Show(ctx, "b81c", false) }},
		{"show.error.txt", "thread", 120, false, "", "", func(v *View) error { return v.Show(ctx, "last", false) }},
		{"show.filter.txt", "thread", 120, false, "", `type:TOOL_CALL_* OR text:"two that"`, func(v *View) error { return v.Show(ctx, "7f3a", false) }},
		{"show.json", "thread", 120, false, FormatJSON, "", func(v *View) error { return v.Show(ctx, "last", false) }},
		{"show.jsonl", "thread", 120, false, FormatJSONL, "", func(v *View) error { return v.Show(ctx, "last", false) }},
		{"show.raw.txt", "thread", 120, false, "", "-type:*_CONTENT", func(v *View) error { return v.Show(ctx, "last", true) }},
		{"show.raw.jsonl", "thread", 120, false, FormatJSONL, "type:RUN_*", func(v *View) error { return v.Show(ctx, "last", true) }},
		{"packet.txt", "thread", 100, false, "", "", func(v *View) error { return v.Show(ctx, "b81c@55", false) }},
		{"packet.answer.txt", "rejoin", 100, false, "", "", func(v *View) error { return v.Show(ctx, "last@18", false) }},
		{"packet.binary.txt", "wire", 80, false, "", "", func(v *View) error { return v.Show(ctx, "@17", false) }},
		{"packet.json", "thread", 100, false, FormatJSON, "", func(v *View) error { return v.Show(ctx, "@55", false) }},
		{"tail.txt", "thread", 140, false, "", "", func(v *View) error { return v.Tail(ctx, TailOptions{}) }},
		{"tail.wire.txt", "wire", 120, false, "", "", func(v *View) error { return v.Tail(ctx, TailOptions{Housekeeping: true}) }},
		{"tail.raw.txt", "wire", 120, false, "", "", func(v *View) error { return v.Tail(ctx, TailOptions{Raw: true}) }},
		{"findings.txt", "thread", 100, false, "", "", func(v *View) error { return v.Findings(ctx, "") }},
		{"findings.json", "thread", 100, false, FormatJSON, "", func(v *View) error { return v.Findings(ctx, "last") }},
		{"hostile.80.txt", "hostile", 80, false, "", "", func(v *View) error { return v.Show(ctx, "last", false) }},
		{"hostile.120.txt", "hostile", 120, false, "", "", func(v *View) error { return v.Show(ctx, "last", false) }},
		{"hostile.json", "hostile", 120, false, FormatJSONL, "", func(v *View) error { return v.Show(ctx, "last", false) }},
		{"rejoin.txt", "rejoin", 120, false, "", "", func(v *View) error { return v.Show(ctx, "last", false) }},
	} {
		t.Run(tt.golden, func(t *testing.T) {
			filter, err := ParseFilter(tt.filter)
			if err != nil {
				t.Fatal(err)
			}
			var out, talk bytes.Buffer
			v := &View{Source: readTape(t, tt.story), Out: &out, Talk: &talk, Format: tt.format, Look: Look{Width: tt.width, ASCII: tt.ascii}, Filter: filter}
			if err := tt.show(v); err != nil {
				t.Fatal(err)
			}
			if tt.format == "" {
				checkLines(t, out.String(), tt.width, tt.ascii, strings.Contains(tt.golden, "raw"))
			}
			if talk.Len() > 0 {
				out.WriteString("--- to the terminal ---\n" + talk.String())
			}
			golden(t, tt.golden, out.Bytes())
		})
	}
}

// checkLines holds text to what a terminal can show: no line is too wide, no
// character is obeyed (T03).
func checkLines(t *testing.T, text string, width int, ascii, raw bool) {
	t.Helper()
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if w := Width(line); w > width && !raw {
			t.Errorf("a line takes %d columns of %d: %q", w, width, line)
		}
		if line != strings.TrimRight(line, " ") {
			t.Errorf("a line ends in spaces: %q", line)
		}
		if !raw && Clean(line) != line && !strings.ContainsAny(line, "\u200d") {
			t.Errorf("a line is not clean: %q", line)
		}
		if ascii && strings.ContainsFunc(line, func(r rune) bool { return r > 0x7e && r != '€' }) {
			t.Errorf("a line is not ASCII: %q", line)
		}
	}
}
