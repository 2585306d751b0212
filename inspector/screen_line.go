package inspector

import "strings"

// Line is a line of a [Screen]: clean pieces, together no wider than it.
type Line struct {
	Pieces []Piece
	Ground Ground
}

// Ground is what a line stands on. A terminal shows it by its background; the
// text says the same without.
type Ground uint8

// The grounds.
const (
	Bare   Ground = iota
	Bar           // the title and the footer
	Chosen        // where the cursor is
)

// String returns the line's text, without spaces at its end.
func (l Line) String() string {
	var b strings.Builder
	for _, p := range l.Pieces {
		b.WriteString(p.Text)
	}
	return strings.TrimRight(b.String(), " ")
}

// bare is a line of pieces.
func bare(pieces ...Piece) Line { return Line{Pieces: pieces} }

// clip cuts pieces at a width. Unlike trimPieces it keeps spaces, which carry a
// ground.
func clip(pieces []Piece, width int, ellipsis string) []Piece {
	used := 0
	for i := range pieces {
		w := Width(pieces[i].Text)
		if used+w > width {
			cut := append([]Piece(nil), pieces[:i+1]...)
			cut[i].Text = cutColumns(pieces[i].Text, width-used, ellipsis)
			return cut
		}
		used += w
	}
	return pieces
}

// spread puts pieces at both ends of a line. What stands at the right goes
// first if there is no room.
func spread(left, right []Piece, width int, ellipsis string) []Piece {
	room := width - columns(right) - 2
	if len(right) == 0 || columns(left) > room {
		if room >= 24 { // the right still has something to say
			left = clip(left, room, ellipsis)
		} else {
			return clip(left, width, ellipsis)
		}
	}
	out := append([]Piece(nil), left...)
	out = append(out, Piece{Plain, strings.Repeat(" ", max(width-columns(left)-columns(right), 0))})
	return append(out, right...)
}

// wrapped are the lines of a text that is clean already, in one style.
func wrapped(style Style, text string, indent, width int) []Line {
	var lines []Line
	for _, part := range wrap(text, max(width-indent, 8)) {
		lines = append(lines, bare(Piece{Plain, strings.Repeat(" ", indent)}, Piece{style, part}))
	}
	return lines
}

// jsonLine gives a line of laid-out JSON its styles: names of fields, and
// numbers.
func jsonLine(line string) []Piece {
	body := strings.TrimLeft(line, " ")
	pieces := []Piece{{Plain, line[:len(line)-len(body)]}}
	if strings.HasPrefix(body, `"`) {
		if end := stringEnd([]byte(body), 0); strings.HasPrefix(body[end:], ": ") {
			pieces = append(pieces, Piece{Key, body[:end]}, Piece{Plain, ": "})
			body = body[end+2:]
		}
	}
	style := Plain
	if body != "" && (body[0] == '-' || '0' <= body[0] && body[0] <= '9') {
		style = Worked
	}
	return append(pieces, Piece{style, body})
}
