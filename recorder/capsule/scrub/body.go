package scrub

import (
	"bytes"
	"strings"

	"tapedeck/protocol/capture"
)

// bodyState is how far the body of an exchange is replaced, one way.
type bodyState struct {
	begun bool
	json  bool
	lexer lexer
	text  mask
}

// httpBodies are the bodies that are under way.
type httpBodies struct {
	open map[bodyKey]*bodyState
	// open to all are the answers of GET /protocol and GET /health.
	public map[capture.Position]bool
}

const maxBodies = 1 << 12

// exchange takes note of where an exchange begins and ends.
func (s *Scrubber) exchange(f *capture.Frame) {
	switch f.Kind {
	case capture.Request:
		head, err := capture.Detail[capture.RequestHead](f)
		path, _, _ := strings.Cut(head.Target, "?")
		path = strings.TrimSuffix(path, "/")
		if err == nil && head.Method == "GET" && (strings.HasSuffix(path, "/protocol") || strings.HasSuffix(path, "/health")) {
			s.bodies.public[f.Exchange] = true
		}
	case capture.Done:
		delete(s.bodies.public, f.Exchange)
		for _, direction := range []capture.Direction{capture.FromClient, capture.FromGateway} {
			key := bodyKey{f.Exchange, direction}
			delete(s.bodies.open, key)
			s.plan.close(s, streamKey{body: key})
		}
	}
}

// body looks through a piece of a body. Its length in bytes stays.
func (s *Scrubber) body(f *capture.Frame) ([]byte, capture.Flags) {
	s.scanner = scanner{f.Data}
	coded := f.Flags&(capture.Gzip|capture.Deflate) != 0
	whole := s.rules.groups&bodies != 0 && !s.bodies.public[f.Exchange]
	switch {
	case coded && (whole || !s.bodies.public[f.Exchange] && (len(s.rules.fields) > 0 || len(s.rules.patterns) > 0)):
		// A piece of what is compressed cannot be looked through, so it goes.
		s.edits = append(s.edits, edit{0, len(f.Data), nil})
		return f.Data, f.Flags&^(capture.Gzip|capture.Deflate) | capture.Cut
	case coded:
		return f.Data, f.Flags
	}
	list := make([]uint16, len(f.Data))
	for i, b := range f.Data {
		list[i] = uint16(b)
	}
	key := keyOfBody(f)
	piece := pieceKey{streamKey: streamKey{body: key}, at: f.Position}
	if s.looking {
		s.plan.note(s, piece, list)
		return f.Data, f.Flags
	}
	if whole || len(s.rules.fields) > 0 {
		list = s.bodyOf(key, f.Data, whole).units(list)
	}
	list = s.plan.patch(piece, list)
	out := make([]byte, len(list))
	for i, u := range list {
		out[i] = byte(u)
	}
	s.replace(0, len(f.Data), out)
	return f.Data, f.Flags
}

func (s *Scrubber) bodyOf(key bodyKey, data []byte, whole bool) *bodyState {
	b := s.bodies.open[key]
	if b == nil {
		if len(s.bodies.open) >= maxBodies {
			clear(s.bodies.open)
		}
		b = &bodyState{lexer: s.masks.lexer(whole, s.rules.field), text: s.masks.start()}
		s.bodies.open[key] = b
	}
	if start := bytes.TrimLeft(data, " \t\r\n"); !b.begun && len(start) > 0 {
		b.begun, b.json = true, bytes.IndexByte([]byte(`{["`), start[0]) >= 0 || !whole
	}
	return b
}

func (b *bodyState) units(list []uint16) []uint16 {
	if b.json || !b.begun {
		return b.lexer.units(list)
	}
	out := make([]uint16, len(list))
	for i, u := range list {
		out[i] = b.text.unit(u)
	}
	return out
}
