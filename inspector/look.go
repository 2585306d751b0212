package inspector

import (
	"time"

	"github.com/fatih/color"
)

// Look says how text comes out. The zero value is plain, 80 columns wide, with
// times in UTC.
type Look struct {
	Palette *Palette       // nil is plain
	Width   int            // columns, 80 if 0
	ASCII   bool           // no glyphs beyond ASCII of our own
	Zone    *time.Location // of wall times, UTC if nil
	Full    bool           // long values are not cut
}

func (l *Look) width() int {
	if l.Width <= 0 {
		return 80
	}
	return max(l.Width, 40)
}

// wall writes a wall time.
func (l *Look) wall(at time.Time) string { return at.In(l.zone()).Format("15:04:05") }

func (l *Look) zone() *time.Location {
	if l.Zone == nil {
		return time.UTC
	}
	return l.Zone
}

func (l *Look) ellipsis() string { return l.glyph("…", "...") }

func (l *Look) glyph(nice, plain string) string {
	if l.ASCII {
		return plain
	}
	return nice
}

// fit is Fit with the ellipsis of the look.
func (l *Look) fit(s string, width int, total int64) string {
	return fit(s, width, total, l.ellipsis())
}

// quote is Quote in at most width columns.
func (l *Look) quote(s string, width int, total int64) string {
	if width < 3 {
		return ""
	}
	total = max(total, int64(len(s)))
	if q := Quote(cutBytes(s, width*maxClusterBytes)); total <= int64(width*maxClusterBytes) && Width(q) <= width {
		return q
	}
	return `"` + l.fit(s, width-2, total) + `"`
}

// Style says what a piece of text means. A terminal shows it by colour; the
// text itself says the same without.
type Style uint8

// The styles.
const (
	Plain Style = iota
	Dim
	Strong
	Key     // names: of tools, runs, fields
	Client  // what the client sent
	Good    // ended in order
	Bad     // errors
	Warn    // warnings
	Notice  // notes
	Human   // a person decides
	Thought // reasoning
	Said    // text of messages
	Worked  // tools
	styleCount
)

// Piece is a part of a line. Text is clean.
type Piece struct {
	Style Style
	Text  string
}

// Palette paints pieces for one writer. A nil Palette paints nothing.
type Palette struct {
	colors [styleCount]*color.Color
}

// NewPalette returns the palette for a writer that shows colour.
func NewPalette() *Palette {
	p := &Palette{}
	for style, attributes := range map[Style][]color.Attribute{
		Dim: {color.Faint}, Strong: {color.Bold}, Key: {color.FgCyan}, Client: {color.FgBlue, color.Bold}, Good: {color.FgGreen},
		Bad: {color.FgRed, color.Bold}, Warn: {color.FgYellow}, Notice: {color.FgBlue}, Human: {color.FgMagenta, color.Bold},
		Thought: {color.Faint}, Worked: {color.FgCyan}, // what is said stays as the terminal writes: black or white
	} {
		p.colors[style] = color.New(attributes...)
		p.colors[style].EnableColor()
	}
	return p
}

// Paint returns text in a style.
func (p *Palette) Paint(style Style, text string) string {
	if p == nil || text == "" || int(style) >= len(p.colors) || p.colors[style] == nil {
		return text
	}
	return p.colors[style].Sprint(text)
}

// paint joins pieces to a line.
func (l *Look) paint(pieces []Piece) string {
	line := ""
	for _, p := range pieces {
		line += l.Palette.Paint(p.Style, p.Text)
	}
	return line
}

// columns is the width of pieces.
func columns(pieces []Piece) int {
	n := 0
	for _, p := range pieces {
		n += Width(p.Text)
	}
	return n
}
