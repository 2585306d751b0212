package conversation

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

// joiner puts the deltas of one text together. A gateway in JavaScript may cut
// a character between the halves of its surrogate pair; JSON spells each half as
// an escape of its own, and both together are the character.
type joiner struct {
	high rune            // the first half of a character, 0 if none waits
	at   capture.Address // the delta that it ended
}

const replacement = string(utf8.RuneError)

// join returns the text that an event's delta adds. If the half that was waiting
// or the one that begins the delta stays alone, U+FFFD stands in its place and
// lone is the delta that brought it.
func (j *joiner) join(e *protocol.Event, at capture.Address) (text string, lone capture.Address) {
	text = e.Delta
	if j.high == 0 && !strings.HasPrefix(text, replacement) && !strings.HasSuffix(text, replacement) {
		return text, lone
	}
	low, high := halves(e)
	if low != 0 {
		text = text[len(replacement):]
	}
	waiting, since := j.high, j.at
	j.high, j.at = 0, capture.Address{}
	switch {
	case e.Delta == "":
		j.high, j.at = waiting, since
	case waiting != 0 && low != 0:
		text = string(utf16.DecodeRune(waiting, low)) + text
	case waiting != 0:
		text, lone = replacement+text, since
	case low != 0:
		text, lone = replacement+text, at
	}
	if high != 0 {
		text = strings.TrimSuffix(text, replacement)
		j.high, j.at = high, at
	}
	return text, lone
}

// end returns what is left when no delta will come any more.
func (j *joiner) end() (text string, lone capture.Address) {
	if j.high == 0 {
		return "", lone
	}
	lone = j.at
	*j = joiner{}
	return replacement, lone
}

// halves returns the second half of a surrogate pair that an event's delta
// begins with and the first half that it ends with, 0 for none.
func halves(e *protocol.Event) (low, high rune) {
	if !strings.HasPrefix(e.Delta, replacement) && !strings.HasSuffix(e.Delta, replacement) {
		return 0, 0
	}
	raw := bytes.Trim(member(e.Raw, "delta"), `"`)
	if u := unit(raw); len(raw) >= 6 && 0xDC00 <= u && u < 0xE000 {
		low = u
	}
	if len(raw) >= 6 && !escaped(raw, len(raw)-6) {
		if u := unit(raw[len(raw)-6:]); 0xD800 <= u && u < 0xDC00 {
			high = u
		}
	}
	return low, high
}

// unit reads the escape of a UTF-16 code unit, 0 if raw begins with none.
func unit(raw []byte) rune {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return 0
	}
	u, err := strconv.ParseUint(string(raw[2:6]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(u)
}

// escaped reports whether the byte at i is part of an escape that began before.
func escaped(raw []byte, i int) bool {
	n := 0
	for i--; i >= 0 && raw[i] == '\\'; i-- {
		n++
	}
	return n%2 == 1
}

// member returns the JSON of an object's member, the last of that name, nil if
// there is none.
func member(object []byte, name string) (value []byte) {
	d := jsontext.NewDecoder(bytes.NewReader(object), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return nil
	}
	for {
		t, err := d.ReadToken()
		if err != nil || t.Kind() != '"' {
			return value
		}
		found := t.String() == name
		v, err := d.ReadValue()
		if err != nil {
			return value
		}
		if found {
			value = bytes.Clone(v)
		}
	}
}

// forgive takes back what the validator said about halves of characters at the
// borders of a delta: the other half may be in the next one, and whether it is
// shows when the deltas are joined.
func forgive(findings []protocol.Finding, e *protocol.Envelope) []protocol.Finding {
	if e == nil || e.Event.Delta == "" {
		return findings
	}
	low, high := halves(&e.Event)
	if low == 0 && high == 0 {
		return findings
	}
	kept := findings[:0]
	for _, f := range findings {
		if f.Rule != "json-lone-surrogate" || f.Pointer != "/event/delta" {
			kept = append(kept, f)
		}
	}
	return kept
}

// digest is a hash of a text that comes in pieces, the space around the whole
// left out: a gateway may trim what it stores.
type digest struct {
	hash  uint64
	space []byte // not counted yet: it stands around the text or within it
	lost  bool   // so much space that the digest gave up
}

const maxSpace = 1 << 10

// mayTrim reports whether a gateway may trim c.
func mayTrim(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

func (d *digest) add(text string) {
	for d.hash == 0 && text != "" && mayTrim(text[0]) {
		text = text[1:]
	}
	kept := len(text)
	for kept > 0 && mayTrim(text[kept-1]) {
		kept--
	}
	if kept > 0 {
		d.hash = hashOn(hashOn(max(d.hash, 1), d.space), text[:kept])
		d.space = d.space[:0]
		text = text[kept:]
	}
	if len(d.space)+len(text) > maxSpace {
		d.lost = true
		return
	}
	d.space = append(d.space, text...)
}

// The powers of an odd number without a pattern.
const (
	p1 = 0x9E3779B97F4A7C15
	p2 = p1 * p1 & math.MaxUint64
	p3 = p2 * p1 & math.MaxUint64
	p4 = p3 * p1 & math.MaxUint64
)

// hashOn goes on with a hash over text: its polynomial in p1, which comes out the
// same however the text is cut, and whose terms need not wait for each other.
func hashOn[T string | []byte](hash uint64, text T) uint64 {
	i := 0
	for ; i+4 <= len(text); i += 4 {
		hash = hash*p4 + uint64(text[i])*p3 + uint64(text[i+1])*p2 + uint64(text[i+2])*p1 + uint64(text[i+3])
	}
	for ; i < len(text); i++ {
		hash = hash*p1 + uint64(text[i])
	}
	return hash
}
