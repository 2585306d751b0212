package capsule

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"tapedeck/protocol/capture"
)

const (
	// maxLine bounds a line: the longest frame that a tape keeps, in base64.
	maxLine = 384 << 20
	// maxSessions bounds what a header may claim.
	maxSessions = 1 << 16
)

var errNoCapsule = errors.New("it is no capsule: no line of it is a frame")

// lines reads a text line by line, however long they are.
type lines struct {
	in     io.Reader
	buf    []byte // what was read and not given yet, from start on
	start  int
	number int // of the latest line, counted from 1
	over   bool
	read   int64
}

// next returns the next line without its end, valid until the next call. One
// that is over maxLine comes as nil and long. io.EOF is the end.
func (l *lines) next() (text []byte, long bool, err error) {
	scanned := 0
	for {
		if i := bytes.IndexByte(l.buf[l.start+scanned:], '\n'); i >= 0 {
			text = l.buf[l.start : l.start+scanned+i]
			l.start += scanned + i + 1
			l.number++
			if long {
				return nil, true, nil
			}
			return bytes.TrimSuffix(text, []byte{'\r'}), false, nil
		}
		scanned = len(l.buf) - l.start
		if scanned > maxLine {
			long = true
			l.start, scanned = len(l.buf), 0
		}
		if l.over {
			text = l.buf[l.start:]
			l.start = len(l.buf)
			if len(text) == 0 && !long {
				return nil, false, io.EOF
			}
			l.number++
			return text, long, nil
		}
		if err := l.fill(); err != nil {
			return nil, false, err
		}
	}
}

// fill reads some more behind what is there.
func (l *lines) fill() error {
	const least = 64 << 10
	if l.start > 0 {
		l.buf = l.buf[:copy(l.buf, l.buf[l.start:])]
		l.start = 0
	}
	if cap(l.buf)-len(l.buf) < least {
		grown := make([]byte, len(l.buf), 2*cap(l.buf)+least)
		l.buf = grown[:copy(grown, l.buf)]
	}
	n, err := l.in.Read(l.buf[len(l.buf):cap(l.buf)])
	l.buf, l.read = l.buf[:len(l.buf)+n], l.read+int64(n)
	if errors.Is(err, io.EOF) {
		l.over, err = true, nil
	}
	return err
}

// jsonlReader imports the JSONL form.
type jsonlReader struct {
	*importer
	lines lines
	head  header
	at    int              // the session in the header that is being read, -1 before the first
	last  capture.Position // the number of the latest frame, as the file counts
	any   bool             // a frame was read
	held  []broken         // lines that could not be read before a session began
}

type broken struct {
	line int
	err  error
}

// readJSONL imports what writeJSONL wrote. A line that cannot be read is named
// and skipped, and a Gap stands for it on the tape.
func (m *importer) readJSONL(ctx context.Context, in io.Reader) error {
	r := &jsonlReader{importer: m, lines: lines{in: in}, at: -1}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		text, long, err := r.lines.next()
		m.progress(r.lines.read)
		switch {
		case errors.Is(err, io.EOF):
			return r.finish()
		case err != nil:
			return err
		case long:
			err = r.skip(fmt.Errorf("it is longer than %d bytes", maxLine))
		case len(bytes.TrimSpace(text)) == 0:
		case r.lines.number == 1 && r.header(text):
		default:
			err = r.frame(text)
		}
		if err != nil {
			return err
		}
	}
}

// header reads the first line, and reports whether it is one.
func (r *jsonlReader) header(text []byte) bool {
	var h header
	if json.Unmarshal(text, &h) != nil || h.Capsule == 0 {
		return false
	}
	if h.Capsule > format {
		r.refused = fmt.Errorf("its format is %d, and this tapedeck knows %d: update it", h.Capsule, format)
	}
	r.head = h
	if len(h.Sessions) > maxSessions {
		r.refused = fmt.Errorf("it claims %d sessions, and %d is the limit", len(h.Sessions), maxSessions)
	}
	r.report.Redacted = h.Redacted
	return true
}

// frame imports a line.
func (r *jsonlReader) frame(text []byte) error {
	if r.refused != nil {
		return r.refused
	}
	f, err := parseLine(text)
	if err == nil && f.Position == 0 {
		f.Position = r.last + 1
	}
	if err == nil && f.Position <= r.last {
		err = fmt.Errorf("its number is %d, and %d came before it", f.Position, r.last)
	}
	if err != nil {
		return r.skip(err)
	}
	if err := r.session(f.Position); err != nil {
		return err
	}
	r.last, r.any = f.Position, true
	return r.add(&f, f.Position)
}

// session begins the session that a frame belongs to, as the header says, and
// those before it that have no frames.
func (r *jsonlReader) session(number capture.Position) error {
	for r.at < 0 || r.at+1 < len(r.head.Sessions) && number >= r.head.Sessions[r.at+1].First {
		r.at++
		var s capture.Session
		if r.at < len(r.head.Sessions) {
			s = r.head.Sessions[r.at]
		} else {
			s = capture.Session{Started: time.Unix(0, 0).UTC(), Fault: "the capsule's first line, which says what it is, could not be read"}
		}
		if err := r.begin(s); err != nil {
			return err
		}
	}
	for _, b := range r.held {
		if err := r.gap(b.line, b.err); err != nil {
			return err
		}
	}
	r.held = nil
	return nil
}

// skip names a line that cannot be read.
func (r *jsonlReader) skip(why error) error {
	r.report.skip(r.lines.number, why)
	if r.at < 0 {
		if len(r.held) < maxSkipped {
			r.held = append(r.held, broken{r.lines.number, why})
		}
		return nil
	}
	r.last++
	return r.gap(r.lines.number, why)
}

func (r *jsonlReader) finish() error {
	if r.refused != nil {
		return r.refused
	}
	if !r.any && r.head.Capsule == 0 {
		return errNoCapsule
	}
	if len(r.head.Sessions) > 0 { // those that have no frames
		if err := r.session(r.head.Sessions[len(r.head.Sessions)-1].First); err != nil {
			return err
		}
	}
	return r.end()
}
