package inspector

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
	"tapedeck/protocol/wire"
)

// maxAhead is how many frames are read on for the attachments of a packet.
const maxAhead = 256

// showPacket shows one packet, or all that a frame holds if none is named.
func (v *View) showPacket(ctx context.Context, runs []conversation.Run, s Selection) error {
	moments, err := v.momentsAt(ctx, runs, s)
	if err != nil {
		return err
	}
	if v.Format == FormatText || v.Format == "" {
		started := time.Time{}
		if sessions, err := v.Source.Sessions(ctx); err == nil {
			started = sessionStart(sessions, s.At.Position)
		}
		return WritePackets(v.Out, moments, started, &v.Look)
	}
	return writeAll(v.Out, v.Format, moments, func(m *Moment) any { return momentToJSON(m) })
}

// sessionStart is when the session of a position began.
func sessionStart(sessions []capture.Session, at capture.Position) (started time.Time) {
	for _, s := range sessions {
		if s.First <= at {
			started = s.Started
		}
	}
	return started
}

// momentsAt decodes what stands at an address. A frame is not always read by
// itself: it needs the beginning of its connection, what it answers, and the
// frames with its attachments.
func (v *View) momentsAt(ctx context.Context, runs []conversation.Run, s Selection) ([]Moment, error) {
	frames, err := v.Source.Frames(ctx, s.At.Position, maxAhead)
	if err != nil {
		return nil, fmt.Errorf("read frame %s: %w", s.At, err)
	}
	if len(frames) == 0 || frames[0].Position != s.At.Position {
		return nil, v.noFrame(ctx, s.At)
	}
	found, err := v.ruled().Findings(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("read findings: %w", err)
	}
	if found == nil {
		found = []protocol.Finding{} // nil would have the feed judge
	}
	feed := NewFeed(found)
	if err := v.warmUp(ctx, feed, runs, s, &frames[0]); err != nil {
		return nil, err
	}
	var here []Moment
	for i := range frames {
		if i > 0 && frames[i].Connection != frames[0].Connection {
			continue
		}
		for _, m := range feed.Frame(&frames[i]) {
			if at := m.Address(); at.Position == s.At.Position && (s.At.Packet == 0 || s.At.Packet == max(at.Packet, 1)) {
				here = append(here, keep(&m))
			}
		}
		if len(here) > 0 {
			return here, nil
		}
	}
	if s.At.Packet > 1 {
		return nil, nothingf("frame #%d holds no packet %d", s.At.Position, s.At.Packet)
	}
	return []Moment{{Frame: &frames[0]}}, nil
}

// warmUp feeds what came before: the run's frames, or else the beginning of the
// connection.
func (v *View) warmUp(ctx context.Context, feed *Feed, runs []conversation.Run, s Selection, frame *capture.Frame) error {
	if s.Run != nil {
		for f, err := range RunFrames(ctx, v.Source, Chain(runs, s.Run)) {
			if err != nil {
				return err
			}
			if f.Position >= frame.Position {
				return nil
			}
			feed.Frame(f)
		}
		return nil
	}
	if frame.Connection == 0 || frame.Connection == frame.Position {
		return nil
	}
	open, err := v.Source.Frames(ctx, frame.Connection, 1)
	if err != nil {
		return fmt.Errorf("read frame %d: %w", frame.Connection, err)
	}
	if len(open) == 1 {
		feed.Frame(&open[0])
	}
	return nil
}

// keep copies what a moment points to and the feed will write over.
func keep(m *Moment) Moment {
	kept := *m
	if m.Packet != nil {
		packet := *m.Packet
		kept.Packet = &packet
	}
	if m.Message != nil {
		message := *m.Message
		kept.Message = &message
		if m.Message.Envelope != nil {
			envelope := *m.Message.Envelope
			message.Envelope = &envelope
		}
	}
	return kept
}

func (v *View) noFrame(ctx context.Context, at capture.Address) error {
	sessions, err := v.Source.Sessions(ctx)
	if err != nil || len(sessions) == 0 {
		return nothingf("there is no frame #%d", at.Position)
	}
	return nothingf("there is no frame #%d: the tape goes from #%d to #%d", at.Position, sessions[0].First, sessions[len(sessions)-1].Last)
}

// WritePackets writes moments with all that is known of each. Started is when
// their session began, zero if that is not known.
func WritePackets(w io.Writer, moments []Moment, started time.Time, look *Look) error {
	out := bufio.NewWriter(w)
	for i := range moments {
		if i > 0 {
			out.WriteString("\n")
		}
		writePacket(out, &moments[i], started, look)
	}
	return out.Flush()
}

func writePacket(out *bufio.Writer, m *Moment, started time.Time, look *Look) {
	out.WriteString(look.paint(packetTitle(m, started, look)) + "\n")
	for _, line := range wireFacts(m) {
		for i, part := range wrap(line, look.width()-4) {
			out.WriteString(strings.Repeat(" ", 2+2*min(i, 1)) + look.Palette.Paint(Dim, part) + "\n")
		}
	}
	for i := range m.Findings {
		for _, line := range findingLines(look, &m.Findings[i], 2, true) {
			out.WriteString(line + "\n")
		}
		if p := m.Findings[i].Pointer; p != "" {
			out.WriteString("    at " + Clean(p) + "\n")
		}
	}
	for _, body := range packetBodies(m) {
		out.WriteString("\n  " + prettyJSON(look, body, 2) + "\n")
	}
	if m.Packet != nil {
		for i, a := range m.Packet.Attachments {
			fmt.Fprintf(out, "\n  attachment %d, %s\n", i, FormatSize(int64(len(a))))
			writeHex(out, a, look)
		}
	}
	if unreadable := unreadable(m); len(unreadable) > 0 {
		out.WriteString("\n")
		writeHex(out, unreadable, look)
	}
}

func packetTitle(m *Moment, started time.Time, look *Look) []Piece {
	who := Piece{Dim, "nobody's"}
	switch m.Direction() {
	case capture.FromClient:
		who = Piece{Client, look.glyph("client → gateway", "client -> gateway")}
	case capture.FromGateway:
		who = Piece{Key, look.glyph("gateway → client", "gateway -> client")}
	}
	pieces := []Piece{{Strong, "#" + m.Address().String()}, {Plain, "  "}, who, {Plain, "  "}}
	pieces = append(pieces, Piece{Strong, Clean(m.title())})
	if e := m.event(); e != nil {
		pieces = append(pieces, Piece{Plain, "  "}, Piece{Key, Clean(string(e.Type))})
	}
	pieces = append(pieces, Piece{Dim, "  " + FormatOffset(m.At())})
	if !started.IsZero() {
		at := started.Add(m.At())
		pieces = append(pieces, Piece{Dim, "  " + look.wall(at) + at.Format(".000")})
	}
	return pieces
}

// wireFacts are the facts about how a moment passed, a few on each line.
func wireFacts(m *Moment) []string {
	var where, how []string
	add := func(to *[]string, format string, args ...any) { *to = append(*to, fmt.Sprintf(format, args...)) }
	if m.Run != "" {
		add(&where, "run %s", Clean(m.Run))
	}
	if seq := m.sequence(); seq != 0 {
		add(&where, "seq %d", seq)
	}
	if m.Thread != "" {
		add(&where, "thread %s", Clean(m.Thread))
	}
	if c := m.Connection(); c != 0 {
		add(&how, "connection #%d", c)
	}
	if ns := m.namespace(); ns != "" {
		add(&how, "namespace %s", Clean(ns))
	}
	if msg := m.Message; msg != nil {
		if msg.AckID != "" {
			add(&how, "ack id %s", Clean(msg.AckID))
		}
		if !msg.Answers.IsZero() {
			add(&how, "answers #%s", msg.Answers)
		}
		if msg.Last != msg.Address.Position {
			add(&how, "complete at #%d", msg.Last)
		}
		if msg.Offset != "" {
			add(&how, "offset %s", Clean(msg.Offset))
		}
	}
	if p := m.Packet; p != nil {
		add(&how, "%s of %s", packetKind(p), FormatSize(int64(len(p.Raw))))
		if p.Reason != "" {
			add(&how, "%s", Clean(p.Reason))
		}
	}
	if f := m.Frame; f != nil {
		if m.Packet == nil || f.Size != int64(len(m.Packet.Raw)) {
			add(&how, "%s frame of %s", f.Kind, FormatSize(f.Size))
		} else {
			add(&how, "%s frame", f.Kind)
		}
		how = append(how, f.Flags.Names()...)
	}
	var lines []string
	for _, facts := range [][]string{where, how} {
		if len(facts) > 0 {
			lines = append(lines, strings.Join(facts, "   "))
		}
	}
	return lines
}

func packetKind(p *wire.Packet) string {
	switch p.Engine {
	case wire.PlainJSON:
		return "plain JSON"
	case wire.EngineMessage:
		return "Socket.IO " + socketName(p.Type)
	}
	return "Engine.IO " + engineName(p.Engine)
}

// packetBodies are the JSON values of a moment.
func packetBodies(m *Moment) [][]byte {
	switch {
	case m.Message != nil:
		if m.Message.Payload == nil {
			return nil
		}
		return append([][]byte{m.Message.Payload}, m.Message.Extra...)
	case m.Packet != nil:
		return m.Packet.Args
	case m.Frame != nil && len(m.Frame.Data) > 0 && m.Frame.Data[0] == '{':
		return [][]byte{m.Frame.Data}
	}
	return nil
}

// unreadable are the bytes of a moment that holds no values.
func unreadable(m *Moment) []byte {
	switch {
	case len(packetBodies(m)) > 0 || m.Message != nil:
		return nil
	case m.Packet != nil:
		return m.Packet.Raw
	case m.Frame != nil:
		return m.Frame.Data
	}
	return nil
}

// hexBytes is how much of a binary is shown without Full.
const hexBytes = 1024

func writeHex(out *bufio.Writer, data []byte, look *Look) {
	shown := data
	if !look.Full && len(shown) > hexBytes {
		shown = shown[:hexBytes]
	}
	for line := range strings.Lines(hex.Dump(shown)) {
		out.WriteString("  " + line)
	}
	if n := len(data) - len(shown); n > 0 {
		fmt.Fprintf(out, "  %s+%s\n", look.ellipsis(), FormatSize(int64(n)))
	}
}
