package scrub

import "unicode/utf16"

// lexer replaces the values in a JSON text that comes in pieces, cut anywhere:
// in a string, in an escape, in a number. Each unit becomes one unit, so that
// lengths and borders stay; names, words and punctuation stay, so that it is
// JSON still if it was. What stands where no JSON has anything is replaced, too.
type lexer struct {
	masks *masks
	// all replaces every value; else those of members that named wants.
	all   bool
	named func(name string) bool

	open  []byte // '{' and '[', and lower-case 'm' and 'l' for those that are masked
	state lexing
	value mask   // of the string or number that is being replaced
	on    bool   // it is to be
	name  []rune // of the latest member, as far as it is of use
	high  rune   // a high surrogate of it that waits for the low one
	want  bool   // the member's value is to be replaced
	word  string // what is left of true, false or null
	digit int    // of an escape: how many came
	code  uint16 // of the escape, as far as it came
	power bool   // of a number: behind its e
	first bool   // of a number: no digit came
}

// lexing is where a lexer is.
type lexing uint8

const (
	atValue  lexing = iota // a value is due, or the text has begun
	atName                 // a member's name is due
	afterAny               // a value ended
	inString
	inEscape // behind a backslash in a string
	inHex    // in its four digits
	inKey
	inKeyEscape
	inKeyHex
	inNumber
	inWord
	inJunk
)

const maxName = 256 // units of a member's name that are looked at

func (m *masks) lexer(all bool, named func(string) bool) lexer {
	return lexer{masks: m, all: all, named: named}
}

// clone returns a lexer that goes on by itself.
func (l *lexer) clone() lexer {
	c := *l
	c.open = append([]byte(nil), l.open...)
	c.name = append([]rune(nil), l.name...)
	return c
}

// units replaces a piece.
func (l *lexer) units(piece []uint16) []uint16 {
	out := make([]uint16, len(piece))
	for i, u := range piece {
		out[i] = l.unit(u)
	}
	return out
}

func (l *lexer) unit(u uint16) uint16 {
	switch l.state {
	case inString, inEscape, inHex:
		return l.inside(u)
	case inKey, inKeyEscape, inKeyHex:
		l.key(u)
		return u
	case inNumber:
		if u >= '0' && u <= '9' || u == '.' || u == 'e' || u == 'E' || u == '+' || u == '-' {
			return l.number(u)
		}
		l.state = afterAny
	case inWord:
		if l.word != "" && u == uint16(l.word[0]) {
			l.word = l.word[1:]
			return u
		}
		if letter(u) {
			l.junk()
		} else {
			l.state = afterAny
		}
	}
	return l.outside(u)
}

func letter(u uint16) bool {
	return 'a' <= u && u <= 'z' || 'A' <= u && u <= 'Z' || '0' <= u && u <= '9' || u >= 0x80
}

// junk begins what has no place in JSON.
func (l *lexer) junk() {
	l.state, l.value, l.on = inJunk, l.masks.start(), l.masked()
}

// masked reports whether the value that begins here is to be replaced.
func (l *lexer) masked() bool {
	if l.all || l.want {
		return true
	}
	n := len(l.open)
	return n > 0 && (l.open[n-1] == 'm' || l.open[n-1] == 'l')
}

func (l *lexer) outside(u uint16) uint16 {
	switch {
	case u == '{' || u == '[':
		l.push(u)
	case u == '}' || u == ']':
		if n := len(l.open); n > 0 {
			l.open = l.open[:n-1]
		}
		l.state, l.want = afterAny, false
	case u == ',':
		l.state, l.want = atValue, false
		if n := len(l.open); n > 0 && (l.open[n-1] == '{' || l.open[n-1] == 'm') {
			l.state = atName
		}
	case u == ':':
		l.state = atValue
	case u == '"' && l.state == atName:
		l.state, l.name, l.high = inKey, l.name[:0], 0
	case u == '"':
		l.state, l.value, l.on = inString, l.masks.start(), l.masked()
	case l.state == inJunk && letter(u):
		return l.replace(u)
	case u == '-' || '0' <= u && u <= '9':
		l.state, l.value, l.on, l.power, l.first = inNumber, l.masks.start(), l.masked(), false, true
		return l.number(u)
	case u == 't' || u == 'f' || u == 'n':
		l.state, l.word = inWord, map[uint16]string{'t': "rue", 'f': "alse", 'n': "ull"}[u]
	case letter(u):
		l.junk()
		return l.replace(u)
	}
	return u
}

func (l *lexer) push(u uint16) {
	masked := l.masked()
	l.want = false
	switch {
	case u == '{' && masked:
		l.open = append(l.open, 'm')
	case masked:
		l.open = append(l.open, 'l')
	default:
		l.open = append(l.open, byte(u))
	}
	l.state = atValue
	if u == '{' {
		l.state = atName
	}
}

func (l *lexer) replace(u uint16) uint16 {
	if !l.on {
		return u
	}
	return l.value.unit(u)
}

// number replaces the digits of a number that make its value, but a zero at its
// front, which must be all there is before the point.
func (l *lexer) number(u uint16) uint16 {
	if u == 'e' || u == 'E' {
		l.power = true
	}
	if !l.on || l.power || u < '0' || u > '9' {
		return u
	}
	if !l.first {
		return l.value.unit(u)
	}
	l.first = false
	k := l.value.key()
	l.value.pass(u)
	if u == '0' {
		return u
	}
	return '1' + (u-'1'+1+k%8)%9
}

// inside takes a unit of a string. An escape keeps its length; what it stands for
// is replaced.
func (l *lexer) inside(u uint16) uint16 {
	switch {
	case l.state == inString && u == '"':
		l.state = afterAny
	case l.state == inString && u == '\\':
		l.state = inEscape
	case l.state == inString:
		return l.replace(u)
	case l.state == inEscape && u == 'u':
		l.state, l.digit, l.code = inHex, 0, 0
	case l.state == inEscape:
		l.state = inString
		l.value.pass(escaped(u))
	default:
		return l.hex(u)
	}
	return u
}

// escaped is what a short escape stands for.
func escaped(u uint16) uint16 {
	switch u {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return u
}

// hex takes a digit of an escape and gives one of what comes in its place. The
// first digits may have gone out before the last has come, so that is a letter
// whatever stood there, save that control characters and surrogates stay what
// they are.
func (l *lexer) hex(u uint16) uint16 {
	v, ok := hexValue(u)
	if !ok {
		l.state = inString
		return l.inside(u)
	}
	was := l.code
	l.code = l.code<<4 | v
	l.digit++
	if l.digit == 4 {
		l.state = inString
	}
	if !l.on {
		if l.digit == 4 {
			l.value.pass(l.code)
		}
		return u
	}
	return l.hexDigit(u, v, was)
}

func (l *lexer) hexDigit(u, v, was uint16) uint16 {
	const digits = "0123456789abcdef"
	surrogate := func(head uint16) bool { return head>>4 == 0xd && head&0xf >= 8 }
	k := l.value.key()
	if l.digit == 4 {
		l.value.pass(l.code)
	}
	switch {
	case l.digit == 1 && v == 0xd:
		return u
	case l.digit == 1:
		return '0'
	case l.digit == 2 && was == 0xd && v >= 0xc:
		return 'e' // of \ude00
	case l.digit == 2 && was == 0xd && v >= 8:
		return '8' // of \ud83d
	case l.digit == 2:
		return '0'
	case l.digit == 3 && surrogate(was):
		return uint16("30"[was>>2&1])
	case l.digit == 4 && surrogate(was>>4):
		return uint16("d0"[was>>6&1])
	case l.digit == 3 && was == 0 && v < 2: // a control character
		return u
	case l.digit == 3:
		return '6'
	case was < 2:
		return u
	}
	return uint16(digits[1+k%15])
}

func hexValue(u uint16) (uint16, bool) {
	switch {
	case '0' <= u && u <= '9':
		return u - '0', true
	case 'a' <= u && u <= 'f':
		return u - 'a' + 10, true
	case 'A' <= u && u <= 'F':
		return u - 'A' + 10, true
	}
	return 0, false
}

// key takes a unit of a member's name.
func (l *lexer) key(u uint16) {
	switch {
	case l.state == inKey && u == '"':
		l.state = afterAny
		l.want = l.named != nil && l.named(string(l.name))
	case l.state == inKey && u == '\\':
		l.state = inKeyEscape
	case l.state == inKey:
		l.spell(rune(u))
	case l.state == inKeyEscape && u == 'u':
		l.state, l.digit, l.code = inKeyHex, 0, 0
	case l.state == inKeyEscape:
		l.state = inKey
		l.spell(rune(escaped(u)))
	default:
		v, _ := hexValue(u)
		l.code = l.code<<4 | v
		if l.digit++; l.digit == 4 {
			l.state = inKey
			l.spell(rune(l.code))
		}
	}
}

func (l *lexer) spell(u rune) {
	if utf16.IsSurrogate(u) {
		if pair := utf16.DecodeRune(l.high, u); pair != 0xfffd {
			l.high, u = 0, pair
		} else {
			l.high = u
			return
		}
	}
	if len(l.name) < maxName {
		l.name = append(l.name, u)
	}
}
