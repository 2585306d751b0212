package scrub

import (
	"regexp"
	"unicode/utf16"
	"unicode/utf8"
)

// plan is what of the texts that come in pieces fits a pattern. It is made before
// the first frame is replaced.
type plan struct {
	open    map[streamKey]*joined
	seen    recent[pieceKey, struct{}]
	patches map[pieceKey][]patch
	// told, if it is not nil, is told each piece once, in place of planning.
	told func(key pieceKey, piece []uint16)
}

// joined is a text as far as it came.
type joined struct {
	units  []uint16
	pieces []piece
}

type piece struct {
	key  pieceKey
	from int
}

// patch is what comes in the place of part of a piece.
type patch struct {
	at    int
	units []uint16
}

func newPlan() plan {
	return plan{
		open: map[streamKey]*joined{}, seen: newRecent[pieceKey, struct{}](maxPieces), patches: map[pieceKey][]patch{},
	}
}

// note adds a piece to its text, once.
func (p *plan) note(s *Scrubber, key pieceKey, list []uint16) {
	if _, is := p.seen.get(key); is {
		return
	}
	p.seen.put(key, struct{}{})
	if p.told != nil {
		p.told(key, list)
		return
	}
	if len(s.rules.patterns) == 0 {
		return
	}
	j := p.open[key.streamKey]
	if j == nil {
		j = &joined{}
		p.open[key.streamKey] = j
	}
	j.pieces = append(j.pieces, piece{key, len(j.units)})
	j.units = append(j.units, list...)
}

// close looks for the patterns in a text that has come to its end.
func (p *plan) close(s *Scrubber, key streamKey) {
	j := p.open[key]
	if j == nil || !s.looking {
		return
	}
	delete(p.open, key)
	p.search(s, j, key.body.exchange != 0)
}

// finish does the same for those that never did.
func (p *plan) finish(s *Scrubber) {
	for key, j := range p.open {
		p.search(s, j, key.body.exchange != 0)
	}
	p.open, p.seen = map[streamKey]*joined{}, newRecent[pieceKey, struct{}](maxPieces)
}

// search cuts what is found along the borders of the pieces. Of a body the units
// are bytes.
func (p *plan) search(s *Scrubber, j *joined, bytes bool) {
	for _, found := range find(s.rules.patterns, j.units, bytes) {
		out := s.masked(j.units, found, len(j.pieces) > 0 && j.pieces[0].key.group == toolArgs)
		for i, pc := range j.pieces {
			end := len(j.units)
			if i+1 < len(j.pieces) {
				end = j.pieces[i+1].from
			}
			from, to := max(found[0], pc.from), min(found[1], end)
			if from < to {
				p.patches[pc.key] = append(p.patches[pc.key], patch{from - pc.from, out[from-found[0] : to-found[0]]})
			}
		}
	}
}

// patch puts what was found into a piece, which is changed.
func (p *plan) patch(key pieceKey, list []uint16) []uint16 {
	patches := p.patches[key]
	if patches == nil {
		return list
	}
	out := append([]uint16(nil), list...)
	for _, one := range patches {
		if one.at < len(out) {
			copy(out[one.at:], one.units)
		}
	}
	return out
}

// find returns where the patterns fit a text, in units.
func find(patterns []*regexp.Regexp, list []uint16, bytes bool) (found [][2]int) {
	if len(patterns) == 0 || len(list) == 0 {
		return nil
	}
	text, places := string(utf16.Decode(list)), []int(nil)
	if bytes {
		raw := make([]byte, len(list))
		for i, u := range list {
			raw[i] = byte(u)
		}
		text = string(raw)
	}
	for _, pattern := range patterns {
		for _, at := range pattern.FindAllStringIndex(text, -1) {
			if places == nil {
				places = placesOf(text, bytes)
			}
			found = append(found, [2]int{places[at[0]], places[at[1]]})
		}
	}
	return found
}

// placesOf returns which unit each byte of a text begins or lies in.
func placesOf(text string, bytes bool) []int {
	places := make([]int, len(text)+1)
	unit := 0
	for i, r := range text {
		n := utf8.RuneLen(r)
		if r == utf8.RuneError && (i+n > len(text) || text[i:i+n] != "\uFFFD") {
			n = 1
		}
		for k := range n {
			if places[i+k] = unit; bytes {
				places[i+k] += k
			}
		}
		switch {
		case bytes:
			unit += n
		case r >= 0x10000:
			unit += 2
		default:
			unit++
		}
	}
	places[len(text)] = unit
	return places
}

// masked returns what comes in the place of what was found. In a text that is
// JSON escapes stay, so that it stays JSON.
func (s *Scrubber) masked(list []uint16, found [2]int, json bool) []uint16 {
	one := s.masks.start()
	out := make([]uint16, 0, found[1]-found[0])
	escape := 0 // units of an escape that are still to come
	for i, u := range list[:found[1]] {
		inside := i >= found[0]
		switch {
		case escape > 0:
			if escape--; u == 'u' && list[i-1] == '\\' {
				escape = 4
			}
			if inside {
				out = append(out, u)
			}
			continue
		case json && u == '\\':
			escape = 1
		}
		if inside {
			out = append(out, one.unit(u))
		}
	}
	return out
}

// patterns replaces what fits a pattern in a text that is there as a whole.
func (s *Scrubber) patterns(list []uint16) []uint16 {
	out := list
	for _, found := range find(s.rules.patterns, list, false) {
		if &out[0] == &list[0] {
			out = append([]uint16(nil), list...)
		}
		copy(out[found[0]:], s.masked(list, found, isJSON(list)))
	}
	return out
}

// patternBytes does the same in binary data.
func (s *Scrubber) patternBytes(data []byte) []byte {
	out := data
	for _, pattern := range s.rules.patterns {
		for _, at := range pattern.FindAllIndex(data, -1) {
			if &out[0] == &data[0] {
				out = append([]byte(nil), data...)
			}
			copy(out[at[0]:], s.masks.bytes(data[at[0]:at[1]]))
		}
	}
	return out
}

// patternsIn does the same in text that nobody can read, or in the JSON of a
// mark.
func (s *Scrubber) patternsIn(from, to int) {
	if len(s.rules.patterns) == 0 {
		return
	}
	b := s.scanner.b
	if end, ok := (scanner{b[:to]}).value(from, 0); ok && end == to && b[from] == '{' {
		s.value(from, to, context{place: inPayload}, kept)
		return
	}
	s.replace(from, to, s.patternBytes(b[from:to]))
}
