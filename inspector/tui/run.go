package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/gdamore/tcell/v2"

	"tapedeck/inspector"
)

// Options configure [Run]. The zero value is ready to use.
type Options struct {
	// Screen configures what is shown.
	Screen inspector.ScreenOptions
	// NoColor shows everything without colour, as NO_COLOR asks.
	NoColor bool
	// Save keeps what the user copied in a file and returns the file's name,
	// since many terminals do not take a copy. With nil, it is kept nowhere.
	Save func(text string) (file string, err error)
}

// ErrNoTerminal is returned when there is no terminal that could show screens.
var ErrNoTerminal = errors.New("no terminal to show screens in")

// Run shows source until the user leaves or ctx ends. It blocks. Signals are
// the caller's: they should end ctx.
func Run(ctx context.Context, source inspector.Source, o Options) error {
	if term := os.Getenv("TERM"); term == "dumb" {
		return fmt.Errorf("%w: TERM is %q", ErrNoTerminal, term)
	}
	terminal, err := tcell.NewScreen()
	if err == nil {
		err = terminal.Init()
	}
	if err != nil {
		return fmt.Errorf("%w: %v", ErrNoTerminal, err)
	}
	return show(ctx, terminal, source, o)
}

// drawEvery is the time between two drawings: what comes faster is drawn at
// once.
const drawEvery = time.Second / 20

// show runs the loop on a terminal that was set up, and restores it, also when
// something panics: the panic goes on after it, so that its text is seen.
func show(ctx context.Context, terminal tcell.Screen, source inspector.Source, o Options) error {
	// The mouse stays the terminal's own, so that text can be selected; without
	// it, the wheel comes as arrow keys.
	terminal.EnablePaste()
	ctx, cancel := context.WithCancel(ctx)
	events := make(chan tcell.Event)
	go terminal.ChannelEvents(events, nil) // until Fini; it closes events
	screen := inspector.NewScreen(ctx, source, o.Screen)
	defer func() {
		fault := recover()
		cancel()
		terminal.Fini()
		for range events {
		}
		screen.Close()
		if fault != nil {
			panic(fault)
		}
	}()
	l := &loop{terminal: terminal, screen: screen, palette: newPalette(terminal.Colors(), o.NoColor), save: o.Save}
	l.resize()
	return l.run(ctx, events)
}

// loop is what the goroutine of Run holds.
type loop struct {
	terminal tcell.Screen
	screen   *inspector.Screen
	palette  *palette
	save     func(string) (string, error)
	pasting  bool
	dirty    bool
}

// run waits for whatever comes first, and draws at most every drawEvery. When
// nothing changes, nothing wakes it.
func (l *loop) run(ctx context.Context, events <-chan tcell.Event) error {
	ready := make(chan struct{})
	close(ready)
	l.draw()
	for drawn := time.Now(); !l.screen.Done(); {
		var step <-chan struct{} // work of the screen's own, when nothing else is to do
		if !l.screen.Idle() {
			step = ready
		}
		var draw <-chan time.Time
		if l.dirty {
			draw = time.After(drawEvery - time.Since(drawn))
		} else if l.screen.Clock() {
			draw = time.After(time.Second)
		}
		select {
		case <-ctx.Done():
			return nil
		case e, ok := <-events:
			if !ok {
				return fmt.Errorf("%w: it was closed", ErrNoTerminal)
			}
			l.event(e)
		case n := <-l.screen.News():
			l.screen.Take(n)
			l.dirty = true
		case <-step:
			l.screen.Step()
			l.dirty = true
		case <-draw:
			l.draw()
			drawn = time.Now()
		}
	}
	return nil
}

// event gives the screen what the terminal says.
func (l *loop) event(e tcell.Event) {
	switch e := e.(type) {
	case *tcell.EventResize:
		l.terminal.Sync()
		l.resize()
	case *tcell.EventPaste:
		l.pasting = e.Start()
	case *tcell.EventKey:
		if k := stroke(e); !l.pasting || e.Key() == tcell.KeyRune {
			l.key(k)
		}
	default:
		return
	}
	l.dirty = true
}

func (l *loop) key(k inspector.Stroke) {
	l.screen.Key(k)
	if text, ok := l.screen.Copied(); ok {
		l.copy(text)
	}
}

// maxClipboard is what terminals take at most in one escape sequence.
const maxClipboard = 74_994

// copy gives a text to the terminal's clipboard, and to a file: no terminal
// says whether it took it.
func (l *loop) copy(text string) {
	said := "copied " + inspector.FormatSize(int64(len(text)))
	if len(text)*4/3 > maxClipboard {
		said = "too long for the clipboard of a terminal: " + inspector.FormatSize(int64(len(text)))
	} else {
		l.terminal.SetClipboard([]byte(text))
	}
	if l.save != nil {
		if file, err := l.save(text); err != nil {
			said += "; no file: " + err.Error()
		} else {
			said += ", and wrote it to " + file
		}
	}
	l.screen.Say(said)
}

func (l *loop) resize() { l.screen.Resize(l.terminal.Size()) }
