package protocol

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"tapedeck/protocol/wire"
)

// maxDepth is how deep JSON may go and still be judged.
const maxDepth = 10_000

// reading says how far a payload can be read.
type reading uint8

const (
	readable reading = iota
	notJSON          // nothing in it can be relied on
	tooDeep          // it may be JSON, and is not judged
)

// syntax reports what is to be said about payload as JSON, whatever it means.
func (j *judge) syntax(payload []byte) reading {
	if i := invalidUTF8(payload); i >= 0 {
		j.report("frame-encoding", "", "no UTF-8 at byte %d of the payload (0x%02x): cut text between characters only", i, payload[i])
		return notJSON
	}
	w := walker{d: jsontext.NewDecoder(bytes.NewBuffer(payload),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))}
	for {
		err := w.step(j)
		switch {
		case err == nil:
		case errors.Is(err, errTooDeep):
			j.report("json-too-deep", "", "deeper than %d levels, not checked: look for a structure that holds itself", maxDepth)
			return tooDeep
		case err == io.EOF && w.ended:
			return readable
		default:
			j.report("frame-encoding", "", "%s", explain(err, payload))
			return notJSON
		}
	}
}

// walker goes through JSON token by token.
type walker struct {
	d     *jsontext.Decoder
	ended bool // the one value is over
	// seen are the names of the objects that are open, by depth, and how often
	// each was seen.
	seen []map[string]int
}

var errTooDeep = errors.New("too deep")

// step reads one token.
func (w *walker) step(j *judge) error {
	depth := w.d.StackDepth()
	if w.ended {
		if w.d.PeekKind() == jsontext.KindInvalid {
			return w.fail()
		}
		return errors.New("a second value follows the first; send one")
	}
	switch next := w.d.PeekKind(); next {
	case jsontext.KindBeginObject, jsontext.KindBeginArray:
		if depth == maxDepth {
			return errTooDeep
		}
		if _, err := w.d.ReadToken(); err != nil {
			return err
		}
		w.begin(depth)
	case jsontext.KindEndObject, jsontext.KindEndArray:
		if _, err := w.d.ReadToken(); err != nil {
			return err
		}
	case jsontext.KindInvalid:
		return w.fail()
	default:
		parent, n := w.d.StackIndex(depth)
		value, err := w.d.ReadValue()
		if err != nil {
			return err
		}
		w.scalar(j, next, value, parent == jsontext.KindBeginObject && n%2 == 0, depth)
	}
	w.ended = w.d.StackDepth() == 0
	return nil
}

// fail returns the error that a peek has met.
func (w *walker) fail() error {
	_, err := w.d.ReadToken()
	if err == nil {
		return errors.New("unreadable")
	}
	return err
}

// begin forgets the names of the object that stood at this depth before.
func (w *walker) begin(depth int) {
	if depth < len(w.seen) {
		clear(w.seen[depth])
		return
	}
	w.seen = append(w.seen, nil)
}

// scalar looks at a name, a string, a number or a literal.
func (w *walker) scalar(j *judge, k jsontext.Kind, value []byte, isName bool, depth int) {
	switch k {
	case jsontext.KindString:
		if unit, lone := loneSurrogate(value); lone {
			j.report("json-lone-surrogate", w.pointer(j),
				`half of a surrogate pair (\u%04x): cut text between characters, and keep the rest for the next delta`, unit)
		}
		if isName {
			w.name(j, textOf(value), depth-1)
		}
	case jsontext.KindNumber:
		if as, rounded := roundedTo(string(value)); rounded {
			j.report("json-number-rounded", w.pointer(j),
				"a JavaScript client will round %s to %s: send it as a string", brief(value), as)
		}
	}
}

// name counts a member's name.
func (w *walker) name(j *judge, name string, depth int) {
	if w.seen[depth] == nil {
		w.seen[depth] = make(map[string]int)
	}
	w.seen[depth][name]++
	if w.seen[depth][name] == 2 {
		j.report("json-duplicate-key", w.pointer(j),
			"duplicate key %s: a browser reads the last one, others may read the first; write it once", quote(name))
	}
}

// pointer returns the place of what was read last, "" when it would not be used.
func (w *walker) pointer(j *judge) string {
	if j.full() {
		return ""
	}
	return string(w.d.StackPointer())
}

// invalidUTF8 returns the index of the first byte that is no UTF-8, -1 if all is.
func invalidUTF8(b []byte) int {
	if utf8.Valid(b) {
		return -1
	}
	for i := 0; ; {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n <= 1 {
			return i
		}
		i += n
	}
}

// loneSurrogate finds an escaped half of a surrogate pair in a string's JSON.
func loneSurrogate(value []byte) (unit uint16, lone bool) {
	end, _, ok := wire.SkipString(value, 0)
	if ok || end+6 > len(value) || value[end] != '\\' {
		return 0, false
	}
	code, err := strconv.ParseUint(string(value[end+2:end+6]), 16, 16)
	return uint16(code), err == nil
}

// roundedTo returns what JavaScript makes of a number that it cannot keep: an
// integer beyond 2^53, or anything beyond its range.
func roundedTo(number string) (as string, rounded bool) {
	f, err := strconv.ParseFloat(number, 64)
	switch {
	case err != nil && f < 0:
		return "-Infinity", true
	case err != nil:
		return "Infinity", true
	}
	if strings.ContainsAny(number, ".eE") {
		return "", false
	}
	exact, ok := new(big.Int).SetString(number, 10)
	if !ok {
		return "", false
	}
	kept, _ := big.NewFloat(f).Int(nil)
	if kept.Cmp(exact) == 0 {
		return "", false
	}
	if math.Abs(f) < 1e21 { // from there on JavaScript writes an exponent too
		return strconv.FormatFloat(f, 'f', -1, 64), true
	}
	return strconv.FormatFloat(f, 'g', -1, 64), true
}

// explain says why payload is no JSON, in the words of who has to mend it.
func explain(err error, payload []byte) string {
	var at *jsontext.SyntacticError
	if !errors.As(err, &at) || int(at.ByteOffset) >= len(payload) {
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || at != nil {
			return fmt.Sprintf("not JSON: it ends too early, at byte %d of the payload; look for what cut it", len(payload))
		}
		return fmt.Sprintf("not JSON: %v", err)
	}
	i := int(at.ByteOffset)
	if i > 0 && payload[i-1] == '-' {
		i--
	}
	rest := payload[i:]
	for _, word := range []string{"NaN", "Infinity", "-Infinity", "undefined"} {
		if bytes.HasPrefix(rest, []byte(word)) {
			return fmt.Sprintf("not JSON at byte %d of the payload: JSON has no %s; send null, or a string", i, word)
		}
	}
	return fmt.Sprintf("not JSON at byte %d of the payload, where it reads %s: write it with a JSON encoder", i, quote(rest[:min(len(rest), longestQuote)]))
}

// brief quotes the beginning of JSON.
func brief(value []byte) string {
	if len(value) > longestQuote {
		return string(value[:longestQuote]) + "…"
	}
	return string(value)
}
