package tui

import (
	"strings"

	"github.com/gdamore/tcell/v2"

	"tapedeck/inspector"
)

// stroke is what a screen calls a key.
func stroke(e *tcell.EventKey) inspector.Stroke {
	switch e.Key() {
	case tcell.KeyRune:
		if e.Modifiers()&tcell.ModAlt != 0 {
			return inspector.Stroke("Alt+" + string(e.Rune()))
		}
		return inspector.Stroke(string(e.Rune()))
	case tcell.KeyEnter:
		return "Enter"
	case tcell.KeyEscape:
		return "Esc"
	case tcell.KeyTab:
		return "Tab"
	case tcell.KeyBacktab:
		return "Shift+Tab"
	case tcell.KeyBackspace, tcell.KeyBackspace2:
		return "Backspace"
	case tcell.KeyDelete:
		return "Delete"
	case tcell.KeyPgUp:
		return "PgUp"
	case tcell.KeyPgDn:
		return "PgDn"
	case tcell.KeyHome:
		return "Home"
	case tcell.KeyEnd:
		return "End"
	}
	name := map[tcell.Key]string{tcell.KeyUp: "Up", tcell.KeyDown: "Down", tcell.KeyLeft: "Left", tcell.KeyRight: "Right"}[e.Key()]
	if name == "" {
		// "Ctrl-D" or, as some terminals have it, "Ctrl+Ctrl-D".
		if _, letter, is := strings.Cut(tcell.KeyNames[e.Key()], "Ctrl-"); is {
			return inspector.Stroke("Ctrl+" + letter)
		}
		return inspector.Stroke(e.Name())
	}
	if e.Modifiers()&tcell.ModShift != 0 {
		name = "Shift+" + name
	}
	return inspector.Stroke(name)
}
