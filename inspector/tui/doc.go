// Package tui shows an inspector.Screen in a terminal. It is thin on purpose:
// keys go in, lines come out, and what there is to see is the screen's
// business. tcell is known here and nowhere else.
//
// One goroutine owns the screen and the terminal: the one that calls Run. The
// terminal is as it was when Run returns, however it ends: the user leaves, the
// context ends, or something panics.
package tui
