package inspector

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestClean: what comes off the wire is shown and never obeyed.
func TestClean(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"plain", `Book "a" \ flight`, `Book "a" \ flight`},
		{"controls", "a\x00b\x07c\rd\ne\tf\x7f", `a\x00b\x07c\rd\ne\tf\x7f`},
		{"escape sequence", "\x1b[2J\x1b]0;title\a", `\x1b[2J\x1b]0;title\x07`},
		{"C1 control as a rune", "\u009b31m", `\u009b31m`},
		{"C1 control as a byte", "\x9b31m", `\x9b31m`},
		{"broken UTF-8", "caf\xc3 ok", `caf\xc3 ok`},
		{"bidi override", "user\u202egnp.exe", `user\u202egnp.exe`},
		{"bidi isolates", "\u2066a\u2069\u200e\u200f\u061c", `\u2066a\u2069\u200e\u200f\u061c`},
		{"zero width", "pass\u200bword\ufeff\u00ad\u2060", `pass\u200bword\ufeff\u00ad\u2060`},
		{"joiner between Latin letters", "pay\u200dpal", `pay\u200dpal`},
		{"line separators", "a\u2028b\u2029c\u0085", `a\u2028b\u2029c\u0085`},
		{"tags", "x\U000e0041", `x\U000e0041`},
		{"selectors that smuggle", "x\ufe00\U000e0100\ufe0f", `x\ufe00\U000e0100\ufe0f`},
		{"lone combining mark", "\u0301a", `\u0301a`},
		{"combining mark after a space", "a \u0301", `a \u0301`},
		{"combining mark after an escape", "\x1b\u0301", `\x1b\u0301`},
		{"fillers", "a\u3164b\u115f", `a\u3164b\u115f`},
		{"a stack of marks", "e" + strings.Repeat("\u0301", 6), "e\u0301\u0301\u0301\u0301" + `\u0301\u0301`},
		{"lone surrogate as bytes", "\xed\xa0\x80", `\xed\xa0\x80`},
		{"unassigned", "\u0378", `\u0378`},
		{"private use", "\ue0b0", `\ue0b0`},

		{"CJK stays", "你好", "你好"},
		{"Arabic stays", "العربية", "العربية"},
		{"Persian keeps its non-joiner", "می\u200cخواهم", "می\u200cخواهم"},
		{"Devanagari keeps its joiner", "क्\u200dष", "क्\u200dष"},
		{"accent stays", "e\u0301", "e\u0301"},
		{"Vietnamese stays", "e\u0302\u0323", "e\u0302\u0323"},
		{"family stays", "👩\u200d👩\u200d👧", "👩\u200d👩\u200d👧"},
		{"heart stays", "❤\ufe0f", "❤\ufe0f"},
		{"keycap stays", "1\ufe0f\u20e3", "1\ufe0f\u20e3"},
		{"skin tone stays", "👍🏽", "👍🏽"},
		{"rainbow flag stays", "🏳\ufe0f\u200d🌈", "🏳\ufe0f\u200d🌈"},
		{"flag of two letters stays", "🇵🇹", "🇵🇹"},
	} {
		if got := Clean(tt.in); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestQuote(t *testing.T) {
	if got, want := Quote("say \"hi\"\n\\x1b is not \x1b"), `"say \"hi\"\n\\x1b is not \x1b"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// hostile are the texts of report T03, and worse.
var hostile = []string{
	"你好，世界，你好，世界", "👩\u200d👩\u200d👧👩\u200d👩\u200d👧👩\u200d👩\u200d👧", "❤\ufe0f❤\ufe0f❤\ufe0f❤\ufe0f❤\ufe0f❤\ufe0f❤\ufe0f",
	"⚡⚡⚡⚡⚡⚡⚡⚡⚡⚡⚡⚡", "Trade™ mark™ here™ and there™", "e\u0301te\u0301 e\u0301te\u0301 e\u0301te\u0301",
	"العربية لغة جميلة جدا", "tab\tand\ttab\tand\ttab", "\x1b[31mred\x1b[0m\x1b[2J\x1b[H", "\u202ereversed\u202c and more of it",
	strings.Repeat("e\u0301\u0301\u0301", 30), "\u0301\u0301\u0301\u0301\u0301\u0301\u0301", "\xff\xfe\xfd\xfc\xfb",
}

// TestFitT03: the right border stands in one column whatever the text, no
// cluster is cut, and the cut says how much is hidden.
func TestFitT03(t *testing.T) {
	for _, in := range hostile {
		for width := range 40 {
			got := Fit(in, width, 0)
			if w := Width(got); w > width {
				t.Errorf("Fit(%q, %d) = %q takes %d columns", in, width, got, w)
			}
			if line := pad(got, width) + "|"; Width(line) != width+1 {
				t.Errorf("%q in %d columns: the border stands in column %d", in, width, Width(line))
			}
			if got != Clean(in) && width > 3 && !strings.Contains(got, "…") {
				t.Errorf("Fit(%q, %d) = %q hides something and does not say so", in, width, got)
			}
		}
	}
}

func TestFit(t *testing.T) {
	for _, tt := range []struct {
		in    string
		width int
		total int64
		want  string
	}{
		{"short", 10, 0, "short"},
		{"exactly ten", 11, 0, "exactly ten"},
		{"a sentence that is too long for this", 20, 0, "a sentence tha…+22 B"},
		{"a sentence", 6, 0, "a sen…"},
		{"你好世界你好世界", 7, 0, "你好世…"},
		{"👩\u200d👩\u200d👧👩\u200d👩\u200d👧👩\u200d👩\u200d👧", 5, 0, "👩\u200d👩\u200d👧👩\u200d👩\u200d👧…"},
		{"the beginning of a megabyte", 24, 1_000_000, "the beginning of…+1.0 MB"},
		{strings.Repeat("x", 5_000_000), 20, 0, "xxxxxxxxxxxx…+5.0 MB"}, // report T04
		{"a\x1bb", 5, 0, `a…`}, // an escape is shown whole or not at all
		{"abc", 0, 0, ""},
	} {
		if got := Fit(tt.in, tt.width, tt.total); got != tt.want {
			t.Errorf("Fit(%.40q, %d, %d) = %q, want %q", tt.in, tt.width, tt.total, got, tt.want)
		}
	}
}

func TestLastColumns(t *testing.T) {
	if got, want := lastColumns("find me a flight to 里斯本", 10, "…"), "…to 里斯本"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func FuzzFit(f *testing.F) {
	for _, s := range hostile {
		f.Add(s, 10)
	}
	f.Fuzz(func(t *testing.T, s string, width int) {
		width %= 200
		got := Fit(s, width, 0)
		if Width(got) > max(width, 0) {
			t.Errorf("Fit(%q, %d) = %q takes %d columns", s, width, got, Width(got))
		}
		if !utf8.ValidString(got) || Clean(got) != got && !strings.ContainsAny(got, "\u200c\u200d") {
			t.Errorf("Fit(%q, %d) = %q is not clean", s, width, got)
		}
		if quoted := Quote(s); strings.ContainsFunc(quoted, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			t.Errorf("Quote(%q) = %q holds a control character", s, quoted)
		}
	})
}
