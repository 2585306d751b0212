package inspector

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// Clean returns s with everything escaped that a terminal would obey, hide or
// let run into its neighbours: control characters, escape sequences, marks of
// direction, invisible characters, line separators, combining marks without a
// base, and bytes that are no UTF-8. Letters of all scripts and emoji stay as
// they are. Every string from the wire passes through here before it is shown.
//
// A backslash stays a backslash; where it must be told from an escape, use
// [Quote].
func Clean(s string) string { return clean(s, false) }

// Quote returns Clean of s between double quotes, with the quotes and
// backslashes in it escaped.
func Quote(s string) string { return `"` + clean(s, true) + `"` }

// maxMarks is how many combining marks one base may carry. Vietnamese and
// Hebrew need three or four; a stack of fifty covers the lines above.
const maxMarks = 4

func clean(s string, quoted bool) string {
	i := 0
	for i < len(s) && ' ' <= s[i] && s[i] < 0x7f && (!quoted || s[i] != '"' && s[i] != '\\') {
		i++
	}
	if i == len(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + len(s)/8)
	b.WriteString(s[:i])
	before, marks := rune(0), 0 // the rune before, 0 after an escape, and the marks on it
	if i > 0 {
		before = rune(s[i-1])
	}
	for i < len(s) {
		r, size := utf8.DecodeRuneInString(s[i:])
		next, _ := utf8.DecodeRuneInString(s[i+size:])
		isMark := unicode.Is(unicode.M, r)
		if isMark {
			marks++
		} else {
			marks = 0
		}
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
			before = 0
		case quoted && (r == '"' || r == '\\'):
			b.WriteByte('\\')
			b.WriteRune(r)
			before = r
		case shows(before, r, next) && (!isMark || marks <= maxMarks):
			b.WriteRune(r)
			before = r
		default:
			writeEscape(&b, r)
			before = 0
		}
		i += size
	}
	return b.String()
}

func writeEscape(b *strings.Builder, r rune) {
	switch {
	case r == '\n':
		b.WriteString(`\n`)
	case r == '\r':
		b.WriteString(`\r`)
	case r == '\t':
		b.WriteString(`\t`)
	case r < 0x80:
		fmt.Fprintf(b, `\x%02x`, r)
	case r < 0x10000:
		fmt.Fprintf(b, `\u%04x`, r)
	default:
		fmt.Fprintf(b, `\U%08x`, r)
	}
}

// shows reports whether r can be seen where it stands, between two others. Zero
// stands for an edge.
func shows(before, r, next rune) bool {
	switch {
	case ' ' <= r && r < 0x7f:
		return true
	case r == '\u200d':
		// A joiner makes one emoji of two, and shapes Arabic and Indic letters;
		// elsewhere it only hides.
		return isPictograph(before) && isPictograph(next) || isShaped(before) && isShaped(next)
	case r == '\u200c':
		return isShaped(before) && isShaped(next)
	case r == '\ufe0e' || r == '\ufe0f':
		return isPictograph(before) && before != r || isKeycap(before)
	case unicode.Is(unicode.M, r):
		return before != 0 && before != ' ' && !isHidden(r)
	}
	return unicode.IsGraphic(r) && !isHidden(r)
}

// isHidden tells the letters and marks that have no shape: fillers, the
// grapheme joiner and the selectors that can smuggle text.
func isHidden(r rune) bool {
	switch r {
	case '\u034f', '\u115f', '\u1160', '\u17b4', '\u17b5', '\u180b', '\u180c', '\u180d', '\u180f', '\u2800', '\u3164', '\uffa0':
		return true
	}
	return 0xfe00 <= r && r <= 0xfe0d || 0xe0100 <= r && r <= 0xe01ef
}

func isShaped(r rune) bool { return r >= 0x600 && unicode.In(r, unicode.L, unicode.M) }

func isKeycap(r rune) bool { return '0' <= r && r <= '9' || r == '#' || r == '*' }

// isPictograph is wide on purpose: a symbol, a skin tone, or the selector
// after one.
func isPictograph(r rune) bool {
	return unicode.In(r, unicode.So, unicode.Sk, unicode.Sm) || r == '\ufe0f' || r == '\u203c' || r == '\u2049' || r == '\u3030'
}

// Width returns the number of columns that a clean string takes.
func Width(s string) int {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return uniseg.StringWidth(s)
		}
	}
	return len(s)
}

// Fit returns the clean form of s in at most width columns. What does not fit
// is cut between grapheme clusters, and "…+1.2 kB" says how much is hidden of
// the total bytes that s is the beginning of; a total of 0 means len(s).
func Fit(s string, width int, total int64) string { return fit(s, width, total, "…") }

func fit(s string, width int, total int64, ellipsis string) string {
	total = max(total, int64(len(s)))
	if width <= 0 {
		return ""
	}
	head := cutBytes(s, width*maxClusterBytes)
	if shown := Clean(head); total == int64(len(head)) && Width(shown) <= width {
		return shown
	}
	hidden := ellipsis + "+" + FormatSize(total)
	if Width(hidden) > width/3 && (total < 1000 || Width(hidden) > width/2) {
		hidden = ellipsis
	}
	room := width - Width(hidden)
	if room < 0 {
		return strings.Repeat(".", min(width, 3))
	}
	shown, used := firstColumns(head, room)
	if hidden != ellipsis {
		hidden = ellipsis + "+" + FormatSize(total-int64(used))
		// A smaller number may take a column less, never more.
	}
	return shown + hidden
}

// maxClusterBytes bounds the bytes looked at for each column: the longest
// emoji in use has 35.
const maxClusterBytes = 40

// cutBytes returns at most n bytes of s, and no half of a rune.
func cutBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// firstColumns returns the clean form of as many clusters of s as fit in room,
// and how many bytes of s they are.
func firstColumns(s string, room int) (shown string, used int) {
	var b strings.Builder
	rest, state, width := s, -1, 0
	for rest != "" {
		var cluster string
		cluster, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		piece := Clean(cluster)
		width += Width(piece)
		if width > room {
			break
		}
		used += len(cluster)
		b.WriteString(piece)
	}
	return b.String(), used
}

// pad returns s with spaces after it up to width columns.
func pad(s string, width int) string {
	if n := width - Width(s); n > 0 {
		return s + strings.Repeat(" ", n)
	}
	return s
}

// padLeft returns s with spaces before it up to width columns.
func padLeft(s string, width int) string {
	if n := width - Width(s); n > 0 {
		return strings.Repeat(" ", n) + s
	}
	return s
}

// lastColumns returns the clean form of the end of s in at most width columns,
// behind an ellipsis if it is cut.
func lastColumns(s string, width int, ellipsis string) string {
	tail := s
	if n := len(s) - width*maxClusterBytes; n > 0 {
		for n < len(s) && !utf8.RuneStart(s[n]) {
			n++
		}
		tail = s[n:]
	}
	shown := Clean(tail)
	if len(tail) == len(s) && Width(shown) <= width {
		return shown
	}
	rest, state := shown, -1
	for rest != "" && Width(rest) > width-Width(ellipsis) {
		_, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
	}
	return ellipsis + rest
}
