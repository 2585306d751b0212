package inspector

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

// Live prints a session as it passes: a line for each construct when it ends.
// One that streams gets a line when it has gone on for two seconds, or before
// anything else of its run is printed, so that lines stand in the order in
// which things began, and another when it ends. Use NewLive.
type Live struct {
	w       *bufio.Writer
	format  Format
	look    *Look
	started time.Time
	t       *Timeline
	filter  *Filter
	open    []*Row // begun and not ended, in order
	printed map[*Row]bool
	moments int
}

// LiveOptions configure a Live.
type LiveOptions struct {
	TimelineOptions
	Format  Format    // JSON comes as JSONL
	Started time.Time // when the session began, for wall times; zero for offsets
}

// beginAfter is how long a construct streams before a line says that it began.
const beginAfter = 2 * time.Second

// trimEvery and keepRows bound what a long session holds in memory.
const (
	trimEvery = 4096
	keepRows  = 2048
)

// NewLive returns a Live that writes to w.
func NewLive(w io.Writer, look *Look, o LiveOptions) *Live {
	return &Live{
		w: bufio.NewWriter(w), format: o.Format, look: look, started: o.Started, filter: o.Filter,
		t: NewTimeline(o.TimelineOptions), printed: map[*Row]bool{},
	}
}

// Skip folds a moment in and prints nothing: what passed before one looked on
// is needed to understand what comes.
func (l *Live) Skip(m *Moment) {
	for _, r := range l.t.Add(m) {
		if r.State == Open && r.Streams() {
			l.begin(r)
		}
	}
	l.open = l.stillOpen()
}

// Add folds a moment in and prints what can be said now.
func (l *Live) Add(m *Moment) error {
	touched := l.t.Add(m)
	for _, r := range touched { // what an end cuts off comes before the end
		if r.State == Cut {
			l.changed(r, m)
		}
	}
	for _, r := range touched {
		if r.State != Cut {
			l.changed(r, m)
		}
	}
	for _, r := range l.open {
		if !l.printed[r] && m.At()-r.Start >= beginAfter {
			l.print(r, false)
		}
	}
	if l.moments++; l.moments%trimEvery == 0 {
		l.t.Trim(keepRows)
	}
	return l.w.Flush()
}

// Find prints a finding that is about something that passed before.
func (l *Live) Find(f protocol.Finding) error {
	r := l.t.AddFinding(f)
	if r == nil || l.printed[r] || r.State != Open {
		l.finding(&f, true)
	}
	return l.w.Flush()
}

// Finish prints what is still open.
func (l *Live) Finish() error {
	l.t.Finish()
	for _, r := range l.open {
		l.print(r, true)
	}
	l.open = nil
	return l.w.Flush()
}

func (l *Live) begin(r *Row) {
	for _, known := range l.open {
		if known == r {
			return
		}
	}
	l.open = append(l.open, r)
}

func (l *Live) stillOpen() []*Row {
	kept := l.open[:0]
	for _, r := range l.open {
		if r.State == Open {
			kept = append(kept, r)
		} else {
			delete(l.printed, r)
		}
	}
	clear(l.open[len(kept):])
	return kept
}

// changed prints what the change of a row has to say.
func (l *Live) changed(r *Row, m *Moment) {
	first := r.First == m.Address() // it began with this moment
	switch {
	case r.Streams() || r.Kind == KindSubagent || r.Kind == KindExchange:
		l.begin(r)
		if r.State != Open || l.isWaiting(r) {
			l.before(r)
			l.print(r, r.State != Open)
		}
	case first:
		l.before(r)
		l.print(r, true)
	case r.Kind == KindCommand && m.Message != nil && m.Message.Envelope == nil && l.answeredBy(r) == m.Address():
		l.answer(r)
	case r == l.t.touched[0]: // the findings are about it
		for i := range m.Findings {
			l.finding(&m.Findings[i], true)
		}
	}
	l.open = l.stillOpen()
}

// isWaiting reports whether a tool call has said all and waits for its result.
func (l *Live) isWaiting(r *Row) bool {
	call, ok := r.Detail.(*Call)
	return ok && call.Complete && call.Result == nil && !l.printed[r]
}

func (l *Live) answeredBy(r *Row) capture.Address {
	if talk, ok := r.Detail.(*Talk); ok && talk.Reply != nil {
		return talk.Reply.At
	}
	return capture.Address{}
}

// answer prints the answer to a command, which had its line when it passed.
func (l *Live) answer(r *Row) {
	switch {
	case l.filter != nil && !r.Matched:
	case l.format == FormatJSON || l.format == FormatJSONL:
		l.print(r, true)
	default:
		talk := r.Detail.(*Talk)
		pieces := l.columns(r.Start+talk.Reply.After, talk.Reply.At, r.Run)
		word := trimPieces([]Piece{{Client, l.look.glyph("‹ ", "< ") + r.Name}}, labelColumn, l.look)
		pieces = append(append(pieces, word...), Piece{Plain, strings.Repeat(" ", max(labelColumn-columns(word), 0))})
		reply := talk.replyPieces(r, l.look, l.look.width()-columns(pieces))[1:]
		pieces = append(pieces, Piece{Plain, "  "})
		l.w.WriteString(l.look.paint(trimPieces(append(pieces, reply...), l.look.width(), l.look)) + "\n")
		for i := range r.Findings {
			if r.Findings[i].At == talk.Reply.At {
				l.finding(&r.Findings[i], false)
			}
		}
	}
}

// columns are those before a row's label.
func (l *Live) columns(at time.Duration, address capture.Address, run string) []Piece {
	return []Piece{{Dim, l.clock(at)}, {Dim, padLeft("#"+address.String(), 7) + "  "}, {Key, pad(l.look.fit(shortID(run), runColumn, 0), runColumn) + "  "}}
}

// before prints the beginnings of what is open in the same run and began
// earlier.
func (l *Live) before(r *Row) {
	for _, o := range l.open {
		if o != r && o.Run == r.Run && o.Index < r.Index && !l.printed[o] {
			l.print(o, false)
		}
	}
}

// print writes a row's line, and its findings once it is over.
func (l *Live) print(r *Row, over bool) {
	l.printed[r] = true
	if l.filter != nil && !r.Matched {
		return
	}
	if l.format == FormatJSON || l.format == FormatJSONL {
		if over {
			writeJSON(l.w, rowToJSON(r), false) // an error stays in w until Flush
		}
		return
	}
	l.w.WriteString(l.line(r) + "\n")
	if over {
		for i := range r.Findings {
			l.finding(&r.Findings[i], false)
		}
	}
}

// runColumn and labelColumn are widths of columns that must be chosen before
// the rows are known.
const (
	runColumn   = 8
	labelColumn = 22
)

func (l *Live) line(r *Row) string {
	look := l.look
	at := r.Start
	if r.State != Open && !r.instant() {
		at = r.End
	}
	pieces := l.columns(at, r.First, r.Run)
	if r.Lane > 0 {
		pieces = append(pieces, Piece{Dim, strings.Repeat(look.glyph("│ ", "| "), min(r.Lane, 4))})
	}
	label := r.label(look, labelColumn)
	pieces = append(append(pieces, label...), Piece{Plain, strings.Repeat(" ", max(labelColumn-columns(label), 0)+2)})
	if r.State == Open && r.Streams() {
		pieces = append(pieces, Piece{Dim, look.glyph("… ", "... ")})
	}
	room := max(look.width()-columns(pieces), 10)
	summary := r.Summary(look, room)
	if talk, ok := r.Detail.(*Talk); ok && talk.Reply == nil { // its answer has a line of its own
		summary = summary[:len(summary)-1]
	}
	if took := r.Took(); took > 0 && r.State != Open && r.Kind != KindTool && r.Streams() {
		text := "  " + FormatDuration(took)
		summary = append(r.Summary(look, room-Width(text)), Piece{Dim, text})
	}
	return strings.TrimRight(look.paint(append(pieces, summary...)), " ")
}

func (l *Live) clock(at time.Duration) string {
	if l.started.IsZero() {
		return padLeft(FormatOffset(at), 9)
	}
	wall := l.started.Add(max(at, 0))
	return l.look.wall(wall) + wall.Format(".000")
}

func (l *Live) finding(f *protocol.Finding, apart bool) {
	if l.format == FormatJSON || l.format == FormatJSONL {
		if apart {
			writeJSON(l.w, object{"kind": "finding", "finding": f}, false)
		}
		return
	}
	indent := Width(l.clock(0)) + 7 + 2 + runColumn + 2
	text := *f
	if apart {
		text.Text = fmt.Sprintf("#%s: %s", f.At, f.Text)
	}
	for _, line := range findingLines(l.look, &text, indent, true) {
		l.w.WriteString(line + "\n")
	}
}
