package scrub

import (
	"bytes"
	"cmp"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"slices"

	"tapedeck/protocol/capture"
	"tapedeck/recorder"
)

// Scrubber takes content out of frames. It belongs to one goroutine, and sees the
// frames of a session in order, once if nothing is taken out by a pattern:
//
//	s, err := New(key, []string{"text", "tool-args"})
//	out := s.Frame(f)
//
// and with patterns a first time with Look:
//
//	for … { s.Look(f) }
//	s.Looked()
//	s.Rewind()
//	for … { out := s.Frame(f) }
type Scrubber struct {
	rules   rules
	masks   *masks
	secrets *recorder.Redactor // credentials go, whatever was asked for
	streams streams
	bodies  httpBodies
	plan    plan

	looking bool
	frame   *capture.Frame
	scanner scanner
	path    []string
	edits   []edit
	out     capture.Frame
}

// edit replaces a stretch of a frame's data.
type edit struct {
	from, to int
	text     []byte
}

// New returns a Scrubber. What replaces a value depends on the key and on the
// value. It returns an error that says what can be asked for if something asked
// for is not known.
func New(key []byte, asked []string) (*Scrubber, error) {
	rules, err := parseRules(asked)
	if err != nil {
		return nil, err
	}
	s := &Scrubber{rules: rules, masks: newMasks(key), secrets: recorder.NewRedactor(key)}
	s.plan = newPlan()
	s.Rewind()
	return s, nil
}

// Look takes note of a frame before any is replaced.
func (s *Scrubber) Look(f *capture.Frame) {
	s.looking = true
	s.pass(f)
	s.looking = false
}

// Rewind makes ready for a session's frames from their beginning.
func (s *Scrubber) Rewind() {
	s.streams = newStreams()
	s.bodies = httpBodies{map[bodyKey]*bodyState{}, map[capture.Position]bool{}}
}

// Looked ends the first time.
func (s *Scrubber) Looked() { s.plan.finish(s) }

// Frame returns f without what is to be taken out: f itself, or a frame that is
// valid until the next call. Its Size stays what passed.
func (s *Scrubber) Frame(f *capture.Frame) *capture.Frame {
	return s.pass(s.secrets.Frame(f))
}

func (s *Scrubber) pass(f *capture.Frame) *capture.Frame {
	if len(f.Data) == 0 {
		return f
	}
	s.frame, s.edits, s.path = f, s.edits[:0], s.path[:0]
	data, flags := f.Data, f.Flags
	switch f.Kind {
	case capture.Text:
		s.scanner = scanner{data}
		s.packet(0, len(data))
	case capture.Polling:
		data, flags = inflated(f)
		s.scanner = scanner{data}
		s.polling(data)
	case capture.Binary:
		s.binary(data)
	case capture.Stream:
		s.opaque(0, len(data), attachments)
	case capture.Body:
		data, flags = s.body(f)
	case capture.Open, capture.End, capture.Request, capture.Response, capture.Done, capture.Gap, capture.Act:
		s.exchange(f)
		s.scanner = scanner{data}
		s.patternsIn(0, len(data))
	}
	if len(s.edits) == 0 || s.looking {
		return f
	}
	s.out = *f
	s.out.Data, s.out.Flags = s.apply(data), flags|capture.Redacted
	return &s.out
}

// apply makes the edits.
func (s *Scrubber) apply(data []byte) []byte {
	slices.SortFunc(s.edits, func(a, b edit) int { return cmp.Compare(a.from, b.from) })
	out := make([]byte, 0, len(data)+64)
	at := 0
	for _, e := range s.edits {
		if e.from < at {
			continue // it lies within the one before
		}
		out = append(append(out, data[at:e.from]...), e.text...)
		at = e.to
	}
	return append(out, data[at:]...)
}

func (s *Scrubber) replace(from, to int, text []byte) {
	if !bytes.Equal(s.scanner.b[from:to], text) {
		s.edits = append(s.edits, edit{from, to, text})
	}
}

// maxInflated bounds what is inflated, in bytes.
const maxInflated = 64 << 20

// inflated returns a polling body as it reads, and its flags then.
func inflated(f *capture.Frame) ([]byte, capture.Flags) {
	const coded = capture.Gzip | capture.Deflate
	if f.Flags&coded == 0 {
		return f.Data, f.Flags
	}
	read := func(r io.Reader, err error) []byte {
		if err != nil {
			return nil
		}
		data, _ := io.ReadAll(io.LimitReader(r, maxInflated)) // what broke off counts, too
		return data
	}
	var data []byte
	if f.Flags.Has(capture.Gzip) {
		data = read(gzip.NewReader(bytes.NewReader(f.Data)))
	} else if data = read(zlib.NewReader(bytes.NewReader(f.Data))); len(data) == 0 {
		data = read(flate.NewReader(bytes.NewReader(f.Data)), nil)
	}
	flags := f.Flags &^ coded
	if len(data) == maxInflated {
		flags |= capture.Cut
	}
	return data, flags
}
