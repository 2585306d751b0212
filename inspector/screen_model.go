package inspector

import (
	"context"
	"fmt"
	"strings"
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// ScreenOptions configure a [Screen]. The zero value is ready to use.
type ScreenOptions struct {
	// Look says how text comes out. Its palette and width are not used.
	Look Look
	// Tape is the tape's name, for the title. Flags are what a command must be
	// given to find it again, such as "-r bug.tape".
	Tape, Flags string
	// Run is the name of a run to open at once, as Select reads it; "" shows
	// the list of runs.
	Run string
	// Filter is the filter that runs are opened with, nil for none.
	Filter *Filter
	// Rules are the severities that the user chose.
	Rules protocol.Settings
	// Now is the clock that says how long a command has been waiting in a live
	// session; nil says nothing.
	Now func() time.Time
	// Export writes a run with those that it continues to a file, in the form that
	// its name's ending says, and returns the name; "" is a new tape. With nil,
	// there is no export.
	Export func(ctx context.Context, chain []conversation.Run, file string) (string, error)
	// Serve stands in as the gateway with what a run recorded, until ctx ends.
	// It says in a line or two where. With nil, the command is only shown.
	Serve func(ctx context.Context, run conversation.Run, say func(string)) error
	// SetMark keeps a mark in place of the one at its address; an empty text takes
	// it away. With nil, nothing can be marked.
	SetMark func(ctx context.Context, m capture.Mark) error
}

// Screen is the terminal UI without a terminal: it is given keys, and what was
// loaded, and says what to show. Use NewScreen. One goroutine owns a Screen: it
// calls Key with what is typed and Take with what comes from News, paints Lines
// after either, and calls Close in the end.
type Screen struct {
	o             ScreenOptions
	look          Look
	width, height int
	source        Source
	loader        *loader
	poke          chan struct{} // has the runs read again
	bindings      []binding

	views []view
	runs  runsView
	line  timelineView
	item  detailView
	panel findingsView
	help  helpView
	sides compareView

	prompt *prompt
	say    string // what the footer says until the next key
	bad    bool   // it is bad news
	search *search
	words  string // that were looked for last
	copied *string
	marks  map[capture.Address]string
	serves string // the run that is served as a mock
	done   bool
}

// view is a layer of the screen.
type view uint8

const (
	inRuns view = 1 << iota
	inTimeline
	inDetail
	inFindings
	inHelp
	inCompare
	everywhere = inRuns | inTimeline | inDetail | inFindings | inHelp | inCompare
)

// NewScreen returns a screen that shows a source, and begins to load it. It
// has no size until Resize is called.
func NewScreen(ctx context.Context, source Source, o ScreenOptions) *Screen {
	s := &Screen{o: o, look: o.Look, source: ruled{source, o.Rules}, views: []view{inRuns}, poke: make(chan struct{}, 1)}
	s.look.Palette, s.look.Full = nil, false
	s.bindings = keyTable()
	s.loader = newLoader(ctx, s.source)
	s.line.filter = o.Filter
	s.runs.loading = true
	s.loader.start(watchJob, func(ctx context.Context, tell teller) { s.loader.watch(ctx, tell, s.poke) })
	s.loadMarks()
	return s
}

// Close ends what the screen does in the background, and waits for it.
func (s *Screen) Close() { s.loader.close() }

// News is where what was loaded comes from.
func (s *Screen) News() <-chan News { return s.loader.news }

// Take takes one of the News in.
func (s *Screen) Take(n News) {
	if s.loader.jobs[n.job].turn == n.turn {
		n.take(s)
	}
}

// Busy reports whether news are coming by themselves: false means that what is
// shown is all there is, until a key is typed or a live session goes on.
func (s *Screen) Busy() bool {
	for kind := range jobKinds {
		if kind != serveJob && s.loader.busy(kind) {
			return true
		}
	}
	return false
}

// Idle reports whether there is nothing for Step to do.
func (s *Screen) Idle() bool { return s.search == nil }

// Step does a small part of a long search. A caller who has nothing else to do
// calls it until Idle.
func (s *Screen) Step() {
	if s.search != nil {
		s.searchOn()
	}
}

// Clock reports whether Lines change by themselves as time passes.
func (s *Screen) Clock() bool { return s.live() && s.o.Now != nil && s.top() == inTimeline }

// Done reports whether the user asked to leave.
func (s *Screen) Done() bool { return s.done }

// Copied returns what the user copied since the last call.
func (s *Screen) Copied() (text string, ok bool) {
	if s.copied == nil {
		return "", false
	}
	text, s.copied = *s.copied, nil
	return text, true
}

// Say shows a line in the footer until the next key.
func (s *Screen) Say(text string) { s.say, s.bad = Clean(text), false }

func (s *Screen) complain(err error) { s.say, s.bad = Clean(err.Error()), true }

// Resize gives the screen a size.
func (s *Screen) Resize(width, height int) {
	s.width, s.height = max(width, 0), max(height, 0)
	s.look.Width = s.width
}

func (s *Screen) top() view { return s.views[len(s.views)-1] }

// open puts a view on top; if it is open already, it comes back to it.
func (s *Screen) open(v view) {
	for i, below := range s.views {
		if below == v {
			s.views = s.views[:i+1]
			return
		}
	}
	s.views = append(s.views, v)
}

func (s *Screen) isOpen(v view) bool {
	for _, below := range s.views {
		if below == v {
			return true
		}
	}
	return false
}

// back leaves the view on top. The first one stays.
func (s *Screen) back() {
	if s.search != nil {
		s.search = nil
		s.Say("search stopped")
		return
	}
	if s.top() == inTimeline && s.loader.busy(filmJob) && !s.line.whole {
		s.loader.stop(filmJob)
		s.line.stopped = true
		s.Say("loading stopped: what follows is not shown; :reload reads it all")
		return
	}
	if len(s.views) == 1 {
		return
	}
	left := s.top()
	s.views = s.views[:len(s.views)-1]
	switch left {
	case inDetail:
		s.leaveDetail()
	case inTimeline:
		s.closeFilm()
	}
}

// leave goes back, and ends if there is nowhere to go back to.
func (s *Screen) leave() {
	if len(s.views) == 1 {
		s.done = true
		return
	}
	s.back()
}

func (s *Screen) quit() { s.done = true }

// The least size that can show anything.
const (
	minWidth  = 40
	minHeight = 8
)

// Lines returns what to show: as many lines as the screen is high.
func (s *Screen) Lines() []Line {
	if s.width == 0 || s.height == 0 {
		return nil
	}
	if s.width < minWidth || s.height < minHeight {
		notice := fmt.Sprintf("tapedeck needs %d×%d", minWidth, minHeight)
		lines := make([]Line, s.height)
		lines[s.height/2] = bare(Piece{Plain, cutColumns(notice, s.width, "")})
		return lines
	}
	lines := append(make([]Line, 0, s.height), s.title())
	body := s.body(s.height - 2)
	lines = append(lines, body[:min(len(body), s.height-2)]...)
	for len(lines) < s.height-1 {
		lines = append(lines, Line{})
	}
	lines = append(lines, s.footer())
	for i := range lines {
		lines[i].Pieces = clip(lines[i].Pieces, s.width, s.look.ellipsis())
	}
	return lines
}

func (s *Screen) body(height int) []Line {
	switch s.top() {
	case inTimeline:
		return s.timelineBody(height)
	case inDetail:
		return s.detailBody(height)
	case inFindings:
		return s.findingsBody(height)
	case inHelp:
		return s.helpBody(height)
	case inCompare:
		return s.compareBody(height)
	}
	return s.runsBody(height)
}

// Cursor returns where the terminal's cursor belongs while something is being
// typed.
func (s *Screen) Cursor() (x, y int, ok bool) {
	if s.prompt == nil || s.height < minHeight || s.width < minWidth {
		return 0, 0, false
	}
	return min(s.prompt.column(), s.width-1), s.height - 1, true
}

// title is the first line: the tape, and what of it is shown.
func (s *Screen) title() Line {
	left := []Piece{{Strong, " tapedeck "}, {Dim, " " + Clean(s.o.Tape)}}
	crumb := func(text string) {
		left = append(left, Piece{Dim, s.look.glyph(" › ", " > ")}, Piece{Plain, text})
	}
	if s.isOpen(inTimeline) && s.line.film != nil {
		crumb("run " + shortID(s.line.film.chain[0].ID))
	}
	switch s.top() {
	case inDetail:
		if a, ok := s.item.address(); ok {
			crumb("#" + a.String())
		}
	case inFindings:
		crumb("findings")
	case inHelp:
		crumb("help")
	case inCompare:
		crumb("comparison")
	}
	return Line{spread(left, s.status(), s.width, s.look.ellipsis()), Bar}
}

// status says at the right of the title whether more is coming.
func (s *Screen) status() []Piece {
	n := len(s.runs.sessions)
	if n == 0 {
		return nil
	}
	last := &s.runs.sessions[n-1]
	var pieces []Piece
	if s.serves != "" {
		pieces = append(pieces, Piece{Worked, "serving " + shortID(s.serves) + "  "})
	}
	if a := s.sides.first; a != nil {
		pieces = append(pieces, Piece{Notice, "A is " + shortID(a[0].ID) + "  "})
	}
	switch {
	case s.runs.err != nil:
		pieces = append(pieces, Piece{Bad, s.look.glyph("✖", "x") + " not to be read any more "})
	case s.line.frozen && s.isOpen(inTimeline):
		pieces = append(pieces, Piece{Warn, s.look.glyph("‖", "=") + " frozen "})
	case last.Fault != "":
		pieces = append(pieces, Piece{Bad, s.look.glyph("✖", "x") + " incomplete "})
	case s.live():
		pieces = append(pieces, Piece{Good, s.look.glyph("●", "*") + " live"}, Piece{Dim, fmt.Sprintf("  #%d ", last.Last)})
	case Incomplete(last) != "":
		pieces = append(pieces, Piece{Warn, s.look.glyph("↯", "!") + " cut off "})
	default:
		pieces = append(pieces, Piece{Dim, s.look.glyph("■", "#") + " recorded "})
	}
	return pieces
}

// live reports whether the last session goes on.
func (s *Screen) live() bool { return isLive(s.runs.sessions) }

// footer is the last line: what is being typed, what there is to say, or where
// one is and what to press.
func (s *Screen) footer() Line {
	if s.prompt != nil {
		return Line{s.prompt.line(s), Bar}
	}
	where := s.where()
	if s.say != "" {
		style := Plain
		if s.bad {
			style = Bad
		}
		where = []Piece{{style, " " + s.say}}
	}
	return Line{spread(where, s.hints(), s.width, s.look.ellipsis()), Bar}
}

// where says where in the list the cursor is, and what is still coming.
func (s *Screen) where() []Piece {
	switch s.top() {
	case inTimeline:
		return s.timelineWhere()
	case inDetail:
		return s.detailWhere()
	case inFindings:
		return []Piece{{Plain, " " + position(s.panel.list.cursor, len(s.findings()), "finding")}}
	case inHelp:
		return []Piece{{Plain, " keys"}}
	case inCompare:
		return s.compareWhere()
	}
	return s.runsWhere()
}

func position(i, n int, noun string) string {
	if n == 0 {
		return "no " + plural(noun)
	}
	return fmt.Sprintf("%s of %s", groupDigits(i+1), FormatCount(n, noun))
}

// hints are the keys that matter most here.
func (s *Screen) hints() []Piece {
	var parts []string
	for _, b := range s.bindings {
		if b.hint != "" && b.in&s.top() != 0 {
			parts = append(parts, b.keys[0].show(&s.look)+" "+b.hint)
		}
	}
	if s.width < 100 && len(parts) > 4 {
		parts = append(parts[:3:3], parts[len(parts)-1])
	}
	return []Piece{{Dim, strings.Join(parts, "   ") + " "}}
}
