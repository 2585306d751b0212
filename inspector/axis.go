package inspector

import (
	"slices"
	"strings"
	"time"
)

// axis maps times to the cells of a bar. The times in which a person was waited
// for take a few cells each, however long they were.
type axis struct {
	start, end time.Duration
	cells      int
	waits      []Wait // merged, in order
	waitCells  int    // of each wait
	scale      float64
}

func newAxis(start, end time.Duration, cells int, waits []Wait) *axis {
	a := &axis{start: start, end: max(end, start+1), cells: cells, waits: mergeWaits(waits), waitCells: 3}
	if len(a.waits)*a.waitCells > cells/2 {
		a.waitCells = 1
	}
	if len(a.waits) > cells/2 {
		a.waits = nil // too many to be set apart
	}
	busy := a.end - a.start
	for _, w := range a.waits {
		busy -= w.End - w.Start
	}
	a.scale = float64(cells-len(a.waits)*a.waitCells) / float64(max(busy, 1))
	return a
}

// mergeWaits joins waits that overlap or touch, and leaves out empty ones.
func mergeWaits(waits []Wait) []Wait {
	sorted := slices.Clone(waits)
	slices.SortFunc(sorted, func(a, b Wait) int { return int(a.Start - b.Start) })
	var merged []Wait
	for _, w := range sorted {
		if n := len(merged); n > 0 && w.Start <= merged[n-1].End {
			merged[n-1].End = max(merged[n-1].End, w.End)
		} else if w.End > w.Start {
			merged = append(merged, w)
		}
	}
	return merged
}

// cell returns the cell that a time falls into.
func (a *axis) cell(at time.Duration) int {
	busy, before := at-a.start, 0
	for _, w := range a.waits {
		if at <= w.Start {
			break
		}
		before += a.waitCells
		if at < w.End { // inside: its first half or its second
			before -= a.waitCells - int(float64(a.waitCells)*float64(at-w.Start)/float64(w.End-w.Start))
		}
		busy -= min(at, w.End) - w.Start
	}
	return min(max(int(float64(busy)*a.scale)+before, 0), a.cells-1)
}

// bar draws what lasted from one time to another.
func (a *axis) bar(from, to time.Duration, mark string) string {
	first, last := a.cell(from), a.cell(to)
	last = max(last, first)
	return strings.Repeat(" ", first) + strings.Repeat(mark, last-first+1)
}

// wait draws one wait with its length in it, if that fits.
func (a *axis) wait(w Wait, look *Look) string {
	first := a.cell(w.Start)
	text := look.glyph("┊", ":") + FormatDuration(w.End-w.Start) + look.glyph("┊", ":")
	if first+Width(text) > a.cells {
		first = max(a.cells-Width(text), 0)
	}
	return cutColumns(strings.Repeat(" ", first)+text, a.cells, "")
}

// ruler draws the axis itself: its beginning, its waits and its end.
func (a *axis) ruler(look *Look) string {
	line := make([]string, a.cells)
	for i := range line {
		line[i] = look.glyph("─", "-")
	}
	for _, w := range a.waits {
		first := a.cell(w.Start + 1)
		for i := first; i < min(first+a.waitCells, a.cells); i++ {
			line[i] = look.glyph("┈", ".")
		}
	}
	end := FormatDuration(a.end - a.start)
	ruler := strings.Join(line, "")
	if room := a.cells - Width(end) - 3; room > 0 {
		ruler = "0 " + strings.Join(line[2:a.cells-Width(end)-1], "") + " " + end
	}
	return ruler
}
