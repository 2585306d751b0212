package inspector

import (
	"context"
	"fmt"

	"tapedeck/protocol/capture"
)

// loadMarks returns the marks of all sessions, in order.
func loadMarks(ctx context.Context, src Source) (marks []capture.Mark, err error) {
	sessions, err := src.Sessions(ctx)
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	for i := range sessions {
		marks = append(marks, marksOf(&sessions[i])...)
	}
	return marks, nil
}

func marksOf(s *capture.Session) []capture.Mark {
	if s == nil || s.Notes == nil {
		return nil
	}
	return s.Notes.Marks
}

// Mark puts marks at the rows that they are in. Those that are in none stand
// nowhere.
func (t *Timeline) Mark(marks []capture.Mark) {
	for _, m := range marks {
		if r := t.RowAt(m.At); r != nil {
			r.Marks = append(r.Marks, m)
		}
	}
}

// markText is a mark under a row: with its place, unless that is the row's own.
func markText(look *Look, m capture.Mark, first capture.Address) string {
	text := look.glyph("◈ ", "@ ")
	if !samePlace(m.At, first) {
		text += "#" + m.At.String() + " "
	}
	return text + Clean(m.Text)
}
