package inspector

import (
	"strings"
	"testing"
	"time"
)

func TestFormatDuration(t *testing.T) {
	for in, want := range map[time.Duration]string{
		0: "0ms", -time.Hour: "0ms", time.Nanosecond: "0.1ms", 840 * time.Microsecond: "0.8ms", 960 * time.Microsecond: "1ms",
		310 * time.Millisecond: "310ms", 999 * time.Millisecond: "999ms", 999700 * time.Microsecond: "1.0s", 1840 * time.Millisecond: "1.8s",
		9960 * time.Millisecond: "10s", 42 * time.Second: "42s", 59600 * time.Millisecond: "1m00s", 124 * time.Second: "2m04s",
		62 * time.Minute: "1h02m", 59*time.Minute + 59900*time.Millisecond: "1h00m", 50 * time.Hour: "50h00m",
	} {
		if got := FormatDuration(in); got != want {
			t.Errorf("FormatDuration(%d) = %q, want %q", in, got, want)
		}
	}
}

func TestFormatOffset(t *testing.T) {
	for in, want := range map[time.Duration]string{
		-time.Second: "+0ms", 0: "+0ms", 310 * time.Millisecond: "+310ms", 1840 * time.Millisecond: "+1.840s", 48 * time.Second: "+48.000s", 124 * time.Second: "+2m04s",
	} {
		if got := FormatOffset(in); got != want {
			t.Errorf("FormatOffset(%d) = %q, want %q", in, got, want)
		}
	}
}

func TestFormatSize(t *testing.T) {
	for in, want := range map[int64]string{
		-1: "0 B", 0: "0 B", 412: "412 B", 999: "999 B", 1000: "1.0 kB", 2140: "2.1 kB", 9960: "10 kB", 38_200: "38 kB", 999_600: "1.0 MB", 5_242_880: "5.2 MB", 1 << 62: "4611686 TB",
	} {
		if got := FormatSize(in); got != want {
			t.Errorf("FormatSize(%d) = %q, want %q", in, got, want)
		}
	}
}

func TestFormatCount(t *testing.T) {
	for _, tt := range []struct {
		n    int
		noun string
		want string
	}{{1, "error", "1 error"}, {0, "error", "0 errors"}, {12_000, "delta", "12,000 deltas"}, {2, "reply", "2 replies"}, {2, "match", "2 matches"}, {2, "day", "2 days"}, {-1234567, "x", "-1,234,567 xs"}} {
		if got := FormatCount(tt.n, tt.noun); got != tt.want {
			t.Errorf("FormatCount(%d, %s) = %q, want %q", tt.n, tt.noun, got, tt.want)
		}
	}
}

// TestAxis: the times in which a person was waited for take three cells each,
// however long, and what lasts covers them.
func TestAxis(t *testing.T) {
	a := newAxis(0, 60*time.Second, 23, []Wait{{Start: 10 * time.Second, End: 50 * time.Second}, {Start: 45 * time.Second, End: 50 * time.Second}})
	for at, want := range map[time.Duration]int{0: 0, 5 * time.Second: 5, 10 * time.Second: 10, 50 * time.Second: 13, 55 * time.Second: 18, 60 * time.Second: 22, -time.Second: 0, time.Hour: 22} {
		if got := a.cell(at); got != want {
			t.Errorf("%v is in cell %d, want %d", at, got, want)
		}
	}
	look := &Look{}
	for _, line := range []struct{ got, want string }{
		{a.ruler(look), "0 ────────┈┈┈──── 1m00s"},
		{a.bar(9*time.Second, 51*time.Second, "▓"), "         ▓▓▓▓▓▓"},
		{a.wait(Wait{Start: 10 * time.Second, End: 50 * time.Second}, look), "          ┊40s┊"},
	} {
		if line.got != line.want {
			t.Errorf("got  %q\nwant %q", line.got, line.want)
		}
	}
}

// TestAxisCells: no time falls out of the axis, and none goes back.
func TestAxisCells(t *testing.T) {
	for _, cells := range []int{1, 3, 22, 36} {
		for _, n := range []int{0, 1, 5, 40} {
			var waits []Wait
			for i := range n {
				at := time.Duration(i) * time.Second
				waits = append(waits, Wait{Start: at, End: at + 700*time.Millisecond})
			}
			a, last := newAxis(0, 40*time.Second, cells, waits), 0
			for at := -time.Second; at < 42*time.Second; at += 50 * time.Millisecond {
				cell := a.cell(at)
				if cell < last || cell >= cells {
					t.Fatalf("%d cells, %d waits: %v is in cell %d after %d", cells, n, at, cell, last)
				}
				last = cell
			}
			if w := Width(a.ruler(&Look{})); w != cells {
				t.Errorf("the ruler of %d cells takes %d", cells, w)
			}
		}
	}
}

func TestSparkline(t *testing.T) {
	if got, want := sparkline([]int{0, 1, 4, 8, 0}, &Look{}), "▁▁▄█▁"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := sparkline([]int{-5, 0}, &Look{ASCII: true}), "__"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWrap(t *testing.T) {
	got := strings.Join(wrap("a few words and one-that-is-too-long-for-it 你好你好", 12), "|")
	if want := "a few words|and|one-that-is-|too-long-for|-it 你好你好"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := wrap("你", 1); len(got) != 1 {
		t.Errorf("a letter wider than the line gives %q", got)
	}
}

// TestPalette: colour is the palette's alone. Without one, no escape byte comes
// out (T05), and the words are the same.
func TestPalette(t *testing.T) {
	tp := readTape(t, "thread")
	show := func(p *Palette) string {
		var b strings.Builder
		if err := WriteRuns(&b, tp.runs, nil, &Look{Width: 120, Palette: p}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	plain, coloured := show(nil), show(NewPalette())
	if strings.Contains(plain, "\x1b") {
		t.Errorf("plain text holds an escape: %q", plain)
	}
	if !strings.Contains(coloured, "\x1b[") {
		t.Error("a palette paints nothing")
	}
	for strings.Contains(coloured, "\x1b[") {
		before, rest, _ := strings.Cut(coloured, "\x1b[")
		_, after, _ := strings.Cut(rest, "m")
		coloured = before + after
	}
	if coloured != plain {
		t.Errorf("the words depend on the colour:\n%s\n%s", coloured, plain)
	}
}
