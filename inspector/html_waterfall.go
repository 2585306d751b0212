package inspector

import (
	"fmt"
	"strconv"
	"time"
)

// htmlWaterfall is a drawing of when each construct was. Places are hundredths
// of a percent of its width, so that it fits any screen.
type htmlWaterfall struct {
	Height int
	Rows   []htmlBar
	Ticks  []htmlTick
	Waits  []htmlSpan
	More   string // how many rows are not drawn
}

type htmlBar struct {
	Y                   int
	Row, Lane           int
	At, Glyph, Label    string
	Class, Title, Found string
	Point               string // the place of what took no time
	Spans               []htmlSpan
}

// htmlSpan is a part of a bar, from X on, W wide, both in percent.
type htmlSpan struct{ X, W, Class, Text string }

type htmlTick struct{ X, Text string }

const (
	barHeight    = 22  // of a row, in pixels
	headHeight   = 26  // of the axis
	maxBars      = 500 // beyond, a drawing says less, and costs more
	waterfallDot = 10_000
)

func (r *htmlReport) waterfall() htmlWaterfall {
	w := htmlWaterfall{}
	var rows []*Row
	end := r.start
	for _, row := range r.timeline.Rows {
		switch row.Kind {
		case KindHello, KindPacket, KindFrame, KindExchange, KindConnection, KindMark:
			continue
		}
		rows = append(rows, row)
		end = max(end, row.End, row.Start)
	}
	if extra := len(rows) - maxBars; extra > 0 {
		w.More = FormatCount(extra, "construct")
		rows = rows[:maxBars]
	}
	a := wideAxis(r.start, end, r.timeline.Waits)
	for i, row := range rows {
		w.Rows = append(w.Rows, r.bar(a, row, headHeight+i*barHeight))
	}
	w.Height = headHeight + len(rows)*barHeight
	for _, wait := range a.waits {
		w.Waits = append(w.Waits, span(a, wait.Start, wait.End, "wait", FormatDuration(wait.End-wait.Start)))
	}
	w.Ticks = ticks(a)
	return w
}

// wideAxis is an axis in which a wait takes six percent.
func wideAxis(start, end time.Duration, waits []Wait) *axis {
	a := &axis{start: start, end: max(end, start+1), cells: waterfallDot, waits: mergeWaits(waits), waitCells: 600}
	if n := len(a.waits); n*a.waitCells > a.cells*2/5 {
		a.waitCells = a.cells * 2 / 5 / n
	}
	busy := a.end - a.start
	for _, w := range a.waits {
		busy -= w.End - w.Start
	}
	a.scale = float64(a.cells-len(a.waits)*a.waitCells) / float64(max(busy, 1))
	return a
}

// percent writes a place as the value of an attribute, a little inside of the
// drawing, so that its marks are whole.
func percent(cells int) string { return share(100 + cells*98/100) }

// share writes cells as a part of the whole.
func share(cells int) string {
	return strconv.FormatFloat(float64(cells)*100/waterfallDot, 'f', -1, 64) + "%"
}

func span(a *axis, from, to time.Duration, class, text string) htmlSpan {
	x, end := a.cell(from), a.cell(to)
	return htmlSpan{X: percent(x), W: share(max(end-x, 12) * 98 / 100), Class: class, Text: text}
}

func (r *htmlReport) bar(a *axis, row *Row, y int) htmlBar {
	b := htmlBar{
		Y: y, Row: row.Index, Lane: min(row.Lane, 6), At: row.First.String(), Glyph: row.Glyph(&r.look), Label: Clean(row.word()), Class: row.Kind.String(),
	}
	if worst := row.Worst(); worst > 0 {
		b.Found = worst.String()
	}
	b.Title = fmt.Sprintf("%s %s", Clean(row.word()), FormatOffset(row.Start-r.start))
	if row.Took() > 0 && !row.instant() {
		b.Title += ", took " + FormatDuration(row.Took())
	}
	switch row.State {
	case Cut:
		b.Class, b.Title = b.Class+" cut", b.Title+", cut off"
	case Failed:
		b.Class += " failed"
	}
	if d, is := row.Detail.(*Decision); is && d.Reply != nil && d.Reply.After > 0 {
		b.Title += ", answered after " + FormatDuration(d.Reply.After)
		b.Spans = []htmlSpan{span(a, row.Start, row.Start+d.Reply.After, "whole", "")}
		return b
	}
	if row.instant() || row.Took() == 0 {
		b.Point = percent(a.cell(row.Start))
		return b
	}
	if call, is := row.Detail.(*Call); is && call.Complete && call.Result != nil {
		b.Spans = []htmlSpan{span(a, row.Start, call.Ended, "args", ""), span(a, call.Ended, row.End, "work", "")}
		return b
	}
	b.Spans = []htmlSpan{span(a, row.Start, row.End, "whole", "")}
	return b
}

// ticks are round times on an axis, some five, none in a wait.
func ticks(a *axis) []htmlTick {
	busy := time.Duration(float64(a.cells-len(a.waits)*a.waitCells) / a.scale)
	step := roundStep(busy / 5)
	var all []htmlTick
	before := time.Duration(0) // the waits that are over
	waits := a.waits
	for at := time.Duration(0); at <= busy && len(all) < 12; at += step {
		for len(waits) > 0 && a.start+at+before >= waits[0].Start {
			before += waits[0].End - waits[0].Start
			waits = waits[1:]
		}
		x := a.cell(a.start + at + before)
		if x > a.cells*94/100 {
			break
		}
		all = append(all, htmlTick{X: percent(x), Text: tickText(at + before)})
	}
	return all
}

func tickText(at time.Duration) string {
	if at <= 0 {
		return "0"
	}
	return FormatDuration(at)
}

// roundStep is the least of 1, 2 and 5 times a power of ten that is no less
// than d.
func roundStep(d time.Duration) time.Duration {
	for step := time.Millisecond; ; step *= 10 {
		for _, n := range []time.Duration{1, 2, 5} {
			if n*step >= d || step > 1<<50 {
				return n * step
			}
		}
	}
}
