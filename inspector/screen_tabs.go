package inspector

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"tapedeck/protocol/capture"
)

// Bounds of what a tab lays out. More than this nobody reads in a terminal, and
// laying it out would make a key wait; what is left out is told.
const (
	prettyBytes = 256 << 10 // of JSON that is laid out
	plainBytes  = 32 << 10  // of what is shown as it passed
	blockBytes  = 32 << 10  // of one text in the Rendered tab
	valueLines  = 40        // of one field in the Event tab
)

// readable is how wide text is set at most: longer lines are hard to read.
const readable = 100

// momentLines draw the Event, Raw and Wire tabs.
func (s *Screen) momentLines() []Line {
	d := &s.item
	switch {
	case d.err != nil:
		return wrapped(Bad, Clean(d.err.Error()), 1, s.width)
	case d.moment == nil:
		return []Line{bare(Piece{Dim, " reading" + s.look.ellipsis()})}
	case d.tab == eventTab:
		return s.eventLines(d.moment)
	case d.tab == rawTab:
		return s.rawLines(d.moment)
	}
	return s.wireLines(d.moment)
}

// bodyLook is the look of a tab's body, which is indented by one.
func (s *Screen) bodyLook() *Look {
	look := s.look
	look.Width = s.width - 2
	return &look
}

// eventLines are the fields of a message, read.
func (s *Screen) eventLines(m *Moment) []Line {
	facts := wireFacts(m)
	var lines []Line
	if len(facts) > 0 && m.Message != nil {
		lines = append(lines, wrapped(Dim, facts[0], 1, s.width-1)...)
		lines = append(lines, Line{})
	}
	bodies := packetBodies(m)
	if len(bodies) == 0 {
		return append(lines, bare(Piece{Dim, " It carries no values. Wire shows its bytes."}))
	}
	for i, body := range bodies {
		if i > 0 {
			lines = append(lines, Line{})
		}
		lines = append(lines, s.fieldLines(body, 1)...)
	}
	return lines
}

// jsonField is a member of an object, as it was sent.
type jsonField struct {
	name  string
	value json.RawMessage
}

// jsonFields reads the members of an object in their order.
func jsonFields(raw []byte) (fields []jsonField, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return nil, false
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return fields, false
		}
		f := jsonField{name: name.(string)}
		if dec.Decode(&f.value) != nil {
			return fields, false
		}
		fields = append(fields, f)
	}
	return fields, true
}

func (s *Screen) fieldLines(raw []byte, indent int) []Line {
	fields, ok := jsonFields(raw)
	if !ok {
		return s.prettyLines(raw, indent)
	}
	names := 0
	for _, f := range fields {
		names = max(names, min(Width(Clean(f.name)), 24))
	}
	var lines []Line
	for _, f := range fields {
		name := Piece{Key, strings.Repeat(" ", indent) + pad(s.look.fit(f.name, 24, 0), names) + "  "}
		if f.name == "event" && f.value[0] == '{' {
			lines = append(lines, bare(Piece{Key, strings.Repeat(" ", indent) + "event"}))
			lines = append(lines, s.fieldLines(f.value, indent+2)...)
			continue
		}
		value := s.valueLines(f.value, indent+names+2)
		if len(value) > 0 { // the first stands beside its name
			value[0].Pieces = append([]Piece{name}, value[0].Pieces[1:]...)
		} else {
			value = []Line{bare(name)}
		}
		if len(value) > valueLines {
			hidden := len(value) - valueLines
			value = append(value[:valueLines], bare(Piece{Dim, strings.Repeat(" ", indent+names+2) + s.look.ellipsis() + "+" + FormatCount(hidden, "line") + ": y copies it all"}))
		}
		lines = append(lines, value...)
	}
	return lines
}

// valueLines lay one value out. Each line begins with its indentation.
func (s *Screen) valueLines(raw json.RawMessage, indent int) []Line {
	var text string
	if raw[0] != '"' || json.Unmarshal(raw, &text) != nil {
		return s.prettyLines(raw, indent)
	}
	if text == "" {
		return []Line{bare(Piece{Plain, strings.Repeat(" ", indent)}, Piece{Dim, `""`})}
	}
	return s.textLines(Plain, text, indent)
}

// textLines wrap a text from the wire, and keep its line breaks. Of a long text
// the end is shown.
func (s *Screen) textLines(style Style, text string, indent int) []Line {
	var lines []Line
	if over := len(text) - blockBytes; over > 0 {
		for over < len(text) && text[over]&0xc0 == 0x80 {
			over++
		}
		lines = append(lines, bare(Piece{Plain, strings.Repeat(" ", indent)}, Piece{Dim, s.look.ellipsis() + "+" + FormatSize(int64(over)) + " before this"}))
		text = text[over:]
	}
	for _, part := range strings.Split(text, "\n") {
		part = strings.TrimSuffix(part, "\r")
		if part == "" {
			lines = append(lines, Line{Pieces: []Piece{{Plain, strings.Repeat(" ", indent)}}})
			continue
		}
		lines = append(lines, wrapped(style, Clean(strings.ReplaceAll(part, "\t", "    ")), indent, min(s.width-1, readable+indent))...)
	}
	return lines
}

// prettyLines lay JSON out. What is too long for that is shown as it passed.
func (s *Screen) prettyLines(raw []byte, indent int) []Line {
	if len(raw) > prettyBytes {
		return s.plainLines(raw, indent)
	}
	var lines []Line
	for i, line := range strings.Split(prettyJSON(s.bodyLook(), raw, indent), "\n") {
		if i == 0 {
			line = strings.Repeat(" ", indent) + line
		}
		depth := len(line) - len(strings.TrimLeft(line, " "))
		for j, part := range wrap(line[depth:], max(s.width-depth-1, 8)) {
			if j == 0 {
				pieces := jsonLine(strings.Repeat(" ", depth) + part)
				lines = append(lines, bare(pieces...))
				continue
			}
			lines = append(lines, bare(Piece{Plain, strings.Repeat(" ", min(depth+2, s.width/2))}, Piece{Plain, part}))
		}
	}
	return lines
}

// plainLines show bytes as they passed.
func (s *Screen) plainLines(raw []byte, indent int) []Line {
	shown := cutBytes(string(raw[:min(len(raw), plainBytes)]), plainBytes)
	lines := wrapped(Plain, Clean(shown), indent, s.width-1)
	if hidden := len(raw) - len(shown); hidden > 0 {
		lines = append(lines, bare(Piece{Dim, strings.Repeat(" ", indent) + s.look.ellipsis() + "+" + FormatSize(int64(hidden)) + ": y copies it all"}))
	}
	return lines
}

// rawLines are the payload, laid out.
func (s *Screen) rawLines(m *Moment) []Line {
	var lines []Line
	for i, body := range packetBodies(m) {
		if i > 0 {
			lines = append(lines, Line{})
		}
		lines = append(lines, s.prettyLines(body, 1)...)
	}
	if len(lines) == 0 {
		return s.wireLines(m)
	}
	return lines
}

// wireLines are how it passed: where, in what, and its bytes.
func (s *Screen) wireLines(m *Moment) []Line {
	title := packetTitle(m, s.startOf(m.Address()), &s.look)
	lines := []Line{bare(append([]Piece{{Plain, " "}}, title...)...)}
	for _, fact := range wireFacts(m) {
		lines = append(lines, wrapped(Dim, fact, 1, s.width-1)...)
	}
	lines = append(lines, Line{})
	if m.Packet != nil {
		lines = append(lines, s.plainLines(m.Packet.Raw, 1)...)
		for i, a := range m.Packet.Attachments {
			lines = append(lines, Line{}, bare(Piece{Dim, fmt.Sprintf(" attachment %d, %s", i, FormatSize(int64(len(a))))}))
			lines = append(lines, s.hexLines(a)...)
		}
		return lines
	}
	return append(lines, s.hexLines(m.Frame.Data)...)
}

func (s *Screen) hexLines(data []byte) []Line {
	var b bytes.Buffer
	out := bufio.NewWriter(&b)
	writeHex(out, data, s.bodyLook())
	out.Flush()
	var lines []Line
	for line := range strings.Lines(b.String()) {
		lines = append(lines, bare(Piece{Plain, Clean(strings.TrimRight(line, "\n"))}))
	}
	return lines
}

func (s *Screen) startOf(a capture.Address) time.Time {
	return sessionStart(s.runs.sessions, a.Position)
}
