package tui

import (
	"github.com/gdamore/tcell/v2"

	"tapedeck/inspector"
)

// draw puts the screen's lines on the terminal. tcell sends what changed.
func (l *loop) draw() {
	l.dirty = false
	width, height := l.terminal.Size()
	l.terminal.Clear()
	for y, line := range l.screen.Lines() {
		if y >= height {
			break
		}
		ground := l.palette.ground(line.Ground)
		x := 0
		for _, p := range line.Pieces {
			x = put(l.terminal, x, y, width, p.Text, l.palette.style(p.Style, line.Ground))
		}
		for ; line.Ground != inspector.Bare && x < width; x++ {
			l.terminal.Put(x, y, " ", ground)
		}
	}
	if x, y, ok := l.screen.Cursor(); ok {
		l.terminal.ShowCursor(x, y)
	} else {
		l.terminal.HideCursor()
	}
	l.terminal.Show()
}

// put writes a text cluster by cluster, and returns the column behind it. What
// does not fit is left out whole.
func put(terminal tcell.Screen, x, y, width int, text string, style tcell.Style) int {
	for text != "" {
		if text[0] >= ' ' && text[0] < 0x7f && (len(text) == 1 || text[1] < 0x80) { // the most, and cheap
			if x >= width {
				return x
			}
			terminal.Put(x, y, text[:1], style)
			text = text[1:]
			x++
			continue
		}
		rest, columns := terminal.Put(x, y, text, style)
		if columns == 0 || x+columns > width {
			return x
		}
		text = rest
		x += columns
	}
	return x
}

// palette has the styles for what a terminal can show.
type palette struct {
	styles  [16]tcell.Style
	bar     tcell.Style
	chosen  tcell.Style
	colours bool
	rich    bool // 256 colours or more: grounds have colours of their own
}

// newPalette returns the palette for a number of colours. Without colours,
// attributes say what they can; the text says everything.
func newPalette(colours int, none bool) *palette {
	p := &palette{colours: colours >= 8 && !none, rich: colours >= 256 && !none}
	for i := range p.styles {
		p.styles[i] = p.make(inspector.Style(i))
	}
	p.bar, p.chosen = tcell.StyleDefault, tcell.StyleDefault.Reverse(true)
	if p.rich {
		p.bar = p.bar.Background(tcell.PaletteColor(236))
		p.chosen = tcell.StyleDefault.Background(tcell.PaletteColor(238)).Bold(true)
	}
	return p
}

func (p *palette) make(style inspector.Style) tcell.Style {
	plain := tcell.StyleDefault
	colour := func(c tcell.Color) tcell.Style {
		if !p.colours {
			return plain
		}
		return plain.Foreground(c)
	}
	switch style {
	case inspector.Dim:
		if p.rich {
			return plain.Foreground(tcell.PaletteColor(244))
		}
		return plain.Dim(true)
	case inspector.Strong:
		return plain.Bold(true)
	case inspector.Key:
		return colour(tcell.ColorTeal)
	case inspector.Client:
		if p.rich {
			return colour(tcell.PaletteColor(75))
		}
		return colour(tcell.ColorBlue)
	case inspector.Good:
		return colour(tcell.ColorGreen)
	case inspector.Bad:
		return colour(tcell.ColorRed).Bold(true)
	case inspector.Warn:
		return colour(tcell.ColorOlive)
	case inspector.Notice:
		if p.rich {
			return colour(tcell.PaletteColor(110))
		}
		return colour(tcell.ColorBlue)
	case inspector.Human:
		return colour(tcell.ColorPurple).Bold(true)
	case inspector.Thought:
		if p.rich {
			return plain.Foreground(tcell.PaletteColor(246)).Italic(true)
		}
		return plain.Dim(true)
	case inspector.Worked:
		return colour(tcell.ColorAqua)
	}
	return plain
}

// style is a style on a ground.
func (p *palette) style(style inspector.Style, ground inspector.Ground) tcell.Style {
	s := tcell.StyleDefault
	if int(style) < len(p.styles) {
		s = p.styles[style]
	}
	switch {
	case ground == inspector.Bare:
		return s
	case !p.rich && ground == inspector.Chosen:
		return p.chosen // reversed colours would not be readable
	case ground == inspector.Chosen:
		return s.Background(tcell.PaletteColor(238)).Bold(true)
	case p.rich:
		return s.Background(tcell.PaletteColor(236))
	}
	return s
}

func (p *palette) ground(ground inspector.Ground) tcell.Style {
	switch ground {
	case inspector.Chosen:
		return p.chosen
	case inspector.Bar:
		return p.bar
	}
	return tcell.StyleDefault
}
