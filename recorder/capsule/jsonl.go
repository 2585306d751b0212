package capsule

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"tapedeck/protocol/capture"
)

// format is the version of the JSONL form.
const format = 1

// longest bounds times, so that sums of them stay numbers.
const longest = 1 << 60 * time.Nanosecond

// header is the first line of the JSONL form, and what the others say of
// themselves.
type header struct {
	Capsule  int               `json:"tapedeckCapsule"`
	Redacted string            `json:"redacted"` // in words: what was taken out, or that nothing was
	Sessions []capture.Session `json:"sessions"`
}

// unredacted is what a capsule says that holds everything.
const unredacted = "nothing: this file holds all that was said"

func (p *plan) header() header {
	h := header{Capsule: format, Redacted: unredacted, Sessions: []capture.Session{}}
	for i := range p.parts {
		h.Sessions = append(h.Sessions, p.parts[i].session)
		if redacted := p.parts[i].session.Notes.Redacted; len(redacted) > 0 {
			h.Redacted = strings.Join(redacted, ", ")
		}
	}
	return h
}

// writeJSONL writes the header, and then a frame a line.
func (p *plan) writeJSONL(ctx context.Context, w io.Writer) error {
	out := bufio.NewWriterSize(w, 64<<10)
	first, err := encodeLine(p.header())
	if err != nil {
		return err
	}
	if _, err := out.Write(first); err != nil {
		return err
	}
	var line []byte
	for i := range p.parts {
		for f, err := range p.frames(ctx, &p.parts[i]) {
			if err != nil {
				return err
			}
			if line = appendLine(line[:0], f); cap(line) > 4<<20 {
				_, err = out.Write(line)
				line = nil
			} else {
				_, err = out.Write(line)
			}
			if err != nil {
				return err
			}
		}
	}
	return out.Flush()
}

// encodeLine writes a value as a line of JSON in which nothing hides.
func encodeLine(v any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	var line []byte
	for _, r := range text.String() { // what hides can stand in a string only
		if r != '\n' && hides(r) {
			line = fmt.Appendf(line, "\\u%04x", r)
		} else {
			line = utf8.AppendRune(line, r)
		}
	}
	return line, nil
}

// appendLine writes a frame as a line of JSON. Its bytes are "text" if they are
// UTF-8, "base64" if they are not, and "detail" if they are the JSON of a mark.
func appendLine(dst []byte, f *capture.Frame) []byte {
	dst = append(dst, `{"n":`...)
	dst = strconv.AppendUint(dst, uint64(f.Position), 10)
	dst = append(dst, `,"at":`...)
	dst = strconv.AppendInt(dst, int64(f.At), 10)
	if f.Connection != 0 {
		dst = append(dst, `,"conn":`...)
		dst = strconv.AppendUint(dst, uint64(f.Connection), 10)
	}
	if f.Exchange != 0 {
		dst = append(dst, `,"exch":`...)
		dst = strconv.AppendUint(dst, uint64(f.Exchange), 10)
	}
	if f.Direction != 0 {
		dst = append(append(append(dst, `,"dir":"`...), f.Direction.String()...), '"')
	}
	dst = append(append(append(dst, `,"kind":"`...), f.Kind.String()...), '"')
	if names := f.Flags.Names(); names != nil {
		dst = append(append(append(dst, `,"flags":"`...), strings.Join(names, " ")...), '"')
	}
	if f.Size != int64(len(f.Data)) {
		dst = append(dst, `,"size":`...)
		dst = strconv.AppendInt(dst, f.Size, 10)
	}
	switch {
	case len(f.Data) == 0:
	case isDetail(f):
		dst = append(append(dst, `,"detail":`...), f.Data...)
	case utf8.Valid(f.Data):
		dst = appendText(append(dst, `,"text":`...), f.Data)
	default:
		dst = base64.StdEncoding.AppendEncode(append(dst, `,"base64":"`...), f.Data)
		dst = append(dst, '"')
	}
	return append(dst, "}\n"...)
}

// isDetail reports whether a frame's data is the JSON of a mark, in one line and
// safe to stand in the file as it is.
func isDetail(f *capture.Frame) bool {
	switch f.Kind {
	case capture.Open, capture.End, capture.Request, capture.Response, capture.Done, capture.Gap, capture.Act:
	default:
		return false
	}
	if f.Data[0] != '{' || f.Data[len(f.Data)-1] != '}' || !utf8.Valid(f.Data) || !json.Valid(f.Data) {
		return false
	}
	for _, r := range string(f.Data) {
		if hides(r) {
			return false
		}
	}
	return true
}

// hides reports whether a character does something to a terminal or an editor
// other than stand there.
func hides(r rune) bool {
	return r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0x61c || r >= 0x200b && r <= 0x200f || r >= 0x2028 && r <= 0x202e ||
		r >= 0x2066 && r <= 0x2069 || r == 0xfeff
}

// appendText writes a JSON string that reads back as the same bytes.
func appendText(dst, text []byte) []byte {
	const digits = "0123456789abcdef"
	dst = append(dst, '"')
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, `\n`...)
		case r == '\t':
			dst = append(dst, `\t`...)
		case hides(r):
			dst = append(dst, '\\', 'u', digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15])
		default:
			dst = append(dst, text[:n]...)
		}
		text = text[n:]
	}
	return append(dst, '"')
}

// line is a line of the JSONL form, as it is read.
type line struct {
	N      capture.Position  `json:"n"`
	At     int64             `json:"at"`
	Conn   capture.Position  `json:"conn"`
	Exch   capture.Position  `json:"exch"`
	Dir    capture.Direction `json:"dir"`
	Kind   capture.Kind      `json:"kind"`
	Flags  string            `json:"flags"`
	Size   *int64            `json:"size"`
	Text   *string           `json:"text"`
	Base64 *[]byte           `json:"base64"`
	Detail json.RawMessage   `json:"detail"`
}

// parseLine reads what appendLine wrote.
func parseLine(text []byte) (f capture.Frame, err error) {
	var l line
	if !utf8.Valid(text) {
		return f, errors.New("it is no UTF-8")
	}
	if err := json.Unmarshal(text, &l); err != nil {
		return f, fmt.Errorf("it is no frame: %w", err)
	}
	if l.Kind == 0 {
		return f, errors.New(`it is no frame: it has no "kind"`)
	}
	f = capture.Frame{Position: l.N, Connection: l.Conn, Exchange: l.Exch, Direction: l.Dir, Kind: l.Kind}
	if f.At = time.Duration(l.At); f.At > longest || f.At < -longest {
		return f, fmt.Errorf("its time is %d ns since the session began, and %d is the limit", l.At, longest)
	}
	if f.Flags, err = parseFlags(l.Flags); err != nil {
		return f, err
	}
	given := 0
	if l.Text != nil {
		f.Data, given = []byte(*l.Text), given+1
	}
	if l.Base64 != nil {
		f.Data, given = *l.Base64, given+1
	}
	if l.Detail != nil {
		f.Data, given = l.Detail, given+1
	}
	if given > 1 {
		return f, errors.New(`of "text", "base64" and "detail" there may be one`)
	}
	if f.Size = int64(len(f.Data)); l.Size != nil {
		f.Size = *l.Size
	}
	if f.Size < 0 {
		return f, fmt.Errorf("its size is %d", f.Size)
	}
	return f, nil
}

func parseFlags(names string) (flags capture.Flags, err error) {
	for name := range strings.FieldsSeq(names) {
		found := false
		for bit := capture.Flags(1); bit != 0; bit <<= 1 {
			if known := bit.Names(); known != nil && known[0] == name {
				flags, found = flags|bit, true
			}
		}
		if !found {
			return 0, fmt.Errorf("no flag is called %q", name)
		}
	}
	return flags, nil
}
