package scrub

import (
	"encoding/json"
	"testing"
	"unicode/utf16"
)

// feed replaces a text in pieces of n units, with a lexer.
func feed(l lexer, text string, n int) string {
	var out []uint16
	for list := ofText(text); len(list) > 0; {
		k := min(n, len(list))
		out = append(out, l.units(list[:k])...)
		list = list[k:]
	}
	return string(utf16.Decode(out))
}

func TestLexerKeepsTheShapeHoweverItIsCut(t *testing.T) {
	m := newMasks([]byte("key"))
	for _, text := range []string{
		`{"card":"4111 1111","n":49.90,"deep":{"a":[true,false,null,"x\n\"y\""]},"e":1e9}`,
		`{"é":"caf\u00e9 é 😀 \ud83d\ude00","zero":0,"neg":-0.5}`,
		`"just a string"`, `[]`, `{}`, `12345`, `true`,
	} {
		whole := feed(m.lexer(true, nil), text, 1<<20)
		if !json.Valid([]byte(whole)) {
			t.Errorf("%s became %s, which is no JSON", text, whole)
		}
		for n := 1; n < 9; n++ {
			if got := feed(m.lexer(true, nil), text, n); got != whole {
				t.Errorf("%s in pieces of %d became\n%s, in one piece\n%s", text, n, got, whole)
			}
		}
		if a, b := len(ofText(text)), len(ofText(whole)); a != b {
			t.Errorf("%s has %d units, and became %d", text, a, b)
		}
	}
}
