package inspector

import (
	"errors"
	"strings"

	"github.com/rivo/uniseg"
)

// prompt is a line being typed.
type prompt struct {
	kind  rune // ':' a command, '/' a filter, 's' a search, 'm' a mark
	text  string
	after string // what stands behind the cursor
}

// label is what stands before the text.
func (p *prompt) label() string {
	switch p.kind {
	case 's':
		return " search: "
	case 'm':
		return " mark: "
	}
	return " " + string(p.kind)
}

// column is where the cursor stands.
func (p *prompt) column() int { return Width(p.label()) + Width(Clean(p.text)) }

// ask begins a prompt with what it held before, if that is worth changing.
func (s *Screen) ask(kind rune) {
	if kind == 'm' {
		if s.o.SetMark == nil {
			s.refuse("this tape keeps no marks")
			return
		}
		if _, ok := s.address(); !ok {
			s.refuse("there is nothing to mark")
			return
		}
	}
	s.prompt = &prompt{kind: kind}
	switch kind {
	case '/':
		s.prompt.text = s.line.filter.String()
	case 'm':
		if a, ok := s.address(); ok {
			s.prompt.text = s.marks[atPacket(a)]
		}
	}
}

func (p *prompt) key(s *Screen, k Stroke) {
	switch k {
	case "Esc", "Ctrl+G":
		s.prompt = nil
	case "Enter":
		p.enter(s)
	case "Backspace":
		if p.text == "" && p.after == "" {
			s.prompt = nil
			return
		}
		p.text = p.text[:lastCluster(p.text)]
	case "Delete":
		_, p.after = firstCluster(p.after)
	case "Left":
		i := lastCluster(p.text)
		p.text, p.after = p.text[:i], p.text[i:]+p.after
	case "Right":
		first, rest := firstCluster(p.after)
		p.text, p.after = p.text+first, rest
	case "Home", "Ctrl+A":
		p.text, p.after = "", p.text+p.after
	case "End", "Ctrl+E":
		p.text, p.after = p.text+p.after, ""
	case "Ctrl+U":
		p.text = ""
	case "Ctrl+W":
		trimmed := strings.TrimRight(p.text, " ")
		p.text = trimmed[:strings.LastIndexByte(trimmed, ' ')+1]
	case "Tab":
		p.complete(s)
	default:
		if isTyped(k) && len(p.text)+len(p.after) < 1000 {
			p.text += string(k)
		}
	}
}

// isTyped tells characters from names of keys. Nothing that a terminal obeys
// is a character.
func isTyped(k Stroke) bool {
	if k == "" || k[0] < ' ' || k[0] == 0x7f {
		return false
	}
	first, rest := firstCluster(string(k))
	return rest == "" && first != ""
}

func firstCluster(text string) (first, rest string) {
	first, rest, _, _ = uniseg.FirstGraphemeClusterInString(text, -1)
	return first, rest
}

func lastCluster(text string) int {
	at := 0
	for rest, state := text, -1; rest != ""; {
		at = len(text) - len(rest)
		_, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
	}
	return at
}

// complete ends the name of a command where only one fits.
func (p *prompt) complete(s *Screen) {
	if p.kind != ':' || strings.Contains(p.text, " ") {
		return
	}
	if b := s.named(p.text); b != nil && p.text != "" {
		p.text = b.name
		if b.takes != "" {
			p.text += " "
		}
	}
}

func (p *prompt) enter(s *Screen) {
	text := p.text + p.after
	s.prompt = nil
	switch p.kind {
	case ':':
		s.command(text)
	case '/':
		s.setFilter(text)
		if s.bad { // let it be mended
			s.prompt = &prompt{kind: '/', text: text}
		}
	case 's':
		s.find(text)
	case 'm':
		s.setMark(text)
	}
}

// line draws the prompt. A filter is checked as it is typed.
func (p *prompt) line(s *Screen) []Piece {
	left := []Piece{{Strong, p.label()}, {Plain, Clean(p.text) + Clean(p.after)}}
	var right []Piece
	switch p.kind {
	case '/':
		_, err := ParseFilter(p.text + p.after)
		if bad, ok := errors.AsType[*FilterError](err); ok {
			right = []Piece{{Warn, bad.Text + " "}}
		} else if p.text+p.after == "" {
			right = []Piece{{Dim, "such as type:TOOL_CALL_* has:finding tool:search -text:\"ok\" "}}
		}
	case ':':
		if b := s.named(p.text); b != nil && p.text != "" {
			right = []Piece{{Dim, b.help + " "}}
		}
	case 's':
		right = []Piece{{Dim, "] next, [ previous "}}
	case 'm':
		right = []Piece{{Dim, "an empty comment takes the mark away "}}
	}
	if columns(left)+columns(right)+2 > s.width {
		right = trimPieces(right, max(s.width-columns(left)-2, 0), &s.look)
	}
	return spread(left, right, s.width, "")
}
