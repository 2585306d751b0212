package inspector

import (
	"bufio"
	"io"
	"strings"
)

// table is rows of cells under each other, each column as wide as it must be.
type table struct {
	heads []string
	right []bool // aligned to the right
	rows  [][]Piece
}

// add adds a row; a cell is one piece, so that its width is its text's.
func (t *table) add(cells ...Piece) { t.rows = append(t.rows, cells) }

// write draws the table, and cuts the last column at the look's width. Columns
// in which nothing stands are left out.
func (t *table) write(w io.Writer, look *Look) error {
	widths := make([]int, len(t.heads))
	for i := range t.heads {
		for _, row := range t.rows {
			widths[i] = max(widths[i], Width(row[i].Text))
		}
		if widths[i] > 0 {
			widths[i] = max(widths[i], Width(t.heads[i]))
		}
	}
	last := len(widths) - 1
	for last > 0 && widths[last] == 0 {
		last--
	}
	out := bufio.NewWriter(w)
	heads := make([]Piece, len(t.heads))
	for i, h := range t.heads {
		heads[i] = Piece{Dim, h}
	}
	for _, row := range append([][]Piece{heads}, t.rows...) {
		var line []Piece
		for i, cell := range row[:last+1] {
			if widths[i] == 0 {
				continue
			}
			gap := strings.Repeat(" ", widths[i]-Width(cell.Text))
			switch {
			case t.right[i]:
				line = append(line, Piece{Plain, gap}, cell)
			case i < last:
				line = append(line, cell, Piece{Plain, gap})
			default:
				line = append(line, cell)
			}
			if i < last {
				line = append(line, Piece{Plain, "  "})
			}
		}
		out.WriteString(look.paint(trimPieces(line, look.width(), look)) + "\n")
	}
	return out.Flush()
}
