package inspector

import (
	"bufio"
	"context"
	"io"

	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
	"tapedeck/protocol/wire"
)

// showRaw writes the messages of some runs, one a line.
func (v *View) showRaw(ctx context.Context, runs []conversation.Run) error {
	found, err := RunFindings(ctx, v.ruled(), runs)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(v.Out)
	defer out.Flush()
	raw := NewRaw(out, v.Format, &v.Look)
	for m, err := range RunMoments(ctx, v.Source, runs, found) {
		if err != nil {
			return err
		}
		if m.Message == nil || !v.Filter.Match(m) {
			continue
		}
		if err := raw.Add(m); err != nil {
			return err
		}
	}
	if err := raw.Close(); err != nil {
		return err
	}
	if raw.written == 0 && v.Filter != nil {
		return nothingf("no message of the run matches %s", v.Filter)
	}
	return out.Flush()
}

// Raw writes moments as they passed, one a line. Use NewRaw.
type Raw struct {
	w       io.Writer
	format  Format
	look    *Look
	written int
}

// NewRaw returns a Raw. In JSON, its lines are the items of one array.
func NewRaw(w io.Writer, format Format, look *Look) *Raw {
	return &Raw{w: w, format: format, look: look}
}

// Add writes a moment.
func (r *Raw) Add(m *Moment) error {
	r.written++
	if r.format == FormatJSONL {
		return writeJSON(r.w, momentToJSON(m), false)
	}
	if r.format == FormatJSON {
		before := ","
		if r.written == 1 {
			before = "["
		}
		if _, err := io.WriteString(r.w, before); err != nil {
			return err
		}
		return writeJSON(r.w, momentToJSON(m), false)
	}
	pieces := []Piece{{Dim, "#" + m.Address().String() + " "}, {Dim, FormatOffset(m.At()) + " "}, r.arrow(m), {Strong, Clean(m.title())}}
	if m.Message != nil && m.Message.AckID != "" {
		pieces = append(pieces, Piece{Dim, " ack " + Clean(m.Message.AckID)})
	}
	pieces = append(pieces, Piece{Plain, " " + Clean(string(m.Bytes()))})
	for _, f := range m.Findings {
		pieces = append(pieces, Piece{severityStyle(f.Severity), " " + r.look.glyph(severityGlyph(f.Severity)) + " " + Clean(f.Rule)})
	}
	_, err := io.WriteString(r.w, r.look.paint(pieces)+"\n")
	return err
}

// Close ends the array.
func (r *Raw) Close() error {
	if r.format != FormatJSON {
		return nil
	}
	end := "]\n"
	if r.written == 0 {
		end = "[]\n"
	}
	_, err := io.WriteString(r.w, end)
	return err
}

func (r *Raw) arrow(m *Moment) Piece {
	switch m.Direction() {
	case capture.FromClient:
		return Piece{Client, r.look.glyph("› ", "> ")}
	case capture.FromGateway:
		return Piece{Dim, r.look.glyph("‹ ", "< ")}
	}
	return Piece{Dim, "- "}
}

// title names a moment: its message, its packet, or what kind of frame it is.
func (m *Moment) title() string {
	name := m.messageName()
	switch {
	case m.Message != nil && m.Message.Answer:
		return "answer to " + name
	case name != "":
		return name
	case m.Packet != nil && m.Packet.Engine == wire.EngineMessage:
		return socketName(m.Packet.Type)
	case m.Packet != nil:
		return engineName(m.Packet.Engine)
	case m.Frame != nil:
		return m.Frame.Kind.String()
	}
	return ""
}
