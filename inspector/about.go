package inspector

import (
	"bufio"
	"context"
	"fmt"
	"strconv"
	"strings"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

// About tells what a tape or a capsule says of itself: for each session its
// title, comment and marks, where it comes from, what was taken out; then the
// runs and the findings.
func (v *View) About(ctx context.Context) error {
	sessions, err := v.Source.Sessions(ctx)
	if err != nil {
		return fmt.Errorf("list sessions: %w", err)
	}
	report, err := LoadReport(ctx, v.ruled(), "")
	if err != nil {
		return err
	}
	out := bufio.NewWriter(v.Out)
	for i := range sessions {
		writeAbout(out, &sessions[i], &v.Look)
	}
	if len(report.Runs) > 0 {
		if err := WriteRuns(out, report.Runs, sessions, &v.Look); err != nil {
			return err
		}
	}
	if len(report.Findings) > 0 {
		out.WriteString("\n")
		if err := report.WriteFindings(out, &v.Look); err != nil {
			return err
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	v.sayIncomplete(sessions)
	if len(report.Runs) == 0 {
		v.talk("%s", NoRuns(sessions))
	}
	return nil
}

// writeAbout writes what there is to say of one session.
func writeAbout(out *bufio.Writer, s *capture.Session, look *Look) {
	line := func(pieces ...Piece) { out.WriteString(look.paint(trimPieces(pieces, look.width(), look)) + "\n") }
	var notes capture.Notes
	if s.Notes != nil {
		notes = *s.Notes
	}
	if notes.Title != "" {
		line(Piece{Strong, Clean(notes.Title)})
	}
	for paragraph := range strings.SplitSeq(notes.Comment, "\n") {
		for _, words := range wrap(Clean(paragraph), look.width()-2) {
			line(Piece{Plain, "  " + words})
		}
	}
	for _, m := range notes.Marks {
		line(Piece{Notice, look.glyph("⚑ ", "* ")}, Piece{Key, "#" + m.At.String()}, Piece{Plain, "  " + Clean(m.Text)})
	}
	line(Piece{Dim, "  " + origin(s, look)})
	line(Piece{Dim, "  " + heldBack(s, notes.Redacted)})
	out.WriteString("\n")
}

// origin says where a session comes from.
func origin(s *capture.Session, look *Look) string {
	parts := []string{"session " + strconv.Itoa(int(s.ID))}
	if !s.Started.IsZero() {
		parts = append(parts, "recorded "+s.Started.In(look.zone()).Format("2006-01-02 15:04:05"))
	}
	if s.Gateway != "" {
		parts = append(parts, "of "+Clean(s.Gateway))
	}
	if s.Played != "" {
		parts = append(parts, "which played "+Clean(s.Played))
	}
	if s.Tool != "" {
		parts = append(parts, "by tapedeck "+Clean(s.Tool))
	}
	version := s.Rules
	if s.Notes != nil && s.Notes.Catalogue != 0 {
		version = s.Notes.Catalogue
	}
	switch {
	case version == 0 || version == protocol.CatalogueVersion:
		parts = append(parts, fmt.Sprintf("rules %d", protocol.CatalogueVersion))
	default:
		parts = append(parts, fmt.Sprintf("judged by rules %d then, %d now", version, protocol.CatalogueVersion))
	}
	return strings.Join(parts, ", ")
}

// heldBack says what a session does not hold.
func heldBack(s *capture.Session, redacted []string) string {
	switch {
	case len(redacted) > 0:
		return "redacted: " + Clean(strings.Join(redacted, ", "))
	case s.Secrets:
		return "unredacted: all that was said, credentials too if there were any"
	}
	return "unredacted: all that was said, without credentials"
}
