package scrub

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"tapedeck/protocol/capture"
)

// Secret is something that must not be found, and the line that it stands on in
// the user's file.
type Secret struct {
	Line int
	Text string
}

const (
	minSecret  = 4 // bytes: less is found by chance
	maxSecret  = 64 << 10
	maxSecrets = 1000
)

// ReadSecrets reads secrets, one a line. Empty lines are left out.
func ReadSecrets(r io.Reader) ([]Secret, error) {
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxSecret+2)
	var secrets []Secret
	for n := 1; in.Scan(); n++ {
		text := strings.TrimSuffix(in.Text(), "\r")
		switch {
		case text == "":
			continue
		case len(text) < minSecret:
			return nil, fmt.Errorf("read secrets: line %d has %d bytes, which are found by chance; %d are the least", n, len(text), minSecret)
		case len(secrets) == maxSecrets:
			return nil, fmt.Errorf("read secrets: there are more than %d", maxSecrets)
		}
		secrets = append(secrets, Secret{n, text})
	}
	if err := in.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			return nil, fmt.Errorf("read secrets: a line is longer than %d bytes", maxSecret)
		}
		return nil, fmt.Errorf("read secrets: %w", err)
	}
	return secrets, nil
}

// SurvivedError says that a secret was found.
type SurvivedError struct {
	Line  int    // of the secret
	Form  string // plain, base64, …
	Where string
}

// Error names the secret by its line, and says what to do.
func (e *SurvivedError) Error() string {
	return fmt.Sprintf("the secret on line %d survives (%s) in %s; redact more, such as --redact all, or a pattern", e.Line, e.Form, e.Where)
}

// Verifier looks for secrets, in what frames carry and in what is written of
// them. It belongs to one goroutine.
type Verifier struct {
	forms   []form
	longest int
	walker  *Scrubber
	tails   map[streamKey][]uint16 // the ends of texts that come in pieces
	err     error
	frame   capture.Position
}

// form is a way in which a secret may be written.
type form struct {
	line int
	name string
	text []byte
}

// NewVerifier returns a Verifier that looks for the secrets.
func NewVerifier(secrets []Secret) *Verifier {
	v := &Verifier{tails: map[streamKey][]uint16{}}
	for _, s := range secrets {
		v.forms = append(v.forms, formsOf(s)...)
	}
	for _, f := range v.forms {
		v.longest = max(v.longest, len(f.text))
	}
	walker, err := New(make([]byte, 32), nil)
	if err != nil {
		panic("scrub: " + err.Error()) // nothing is asked for
	}
	walker.looking = true
	walker.plan.told = v.piece
	v.walker = walker
	return v
}

func formsOf(s Secret) []form {
	add := func(forms []form, name, text string) []form { return append(forms, form{s.Line, name, []byte(text)}) }
	forms := add(nil, "plain", s.Text)
	if quoted := string(appendUnits(nil, ofText(s.Text))); quoted != s.Text {
		forms = add(forms, "escaped", quoted)
	}
	for _, escaped := range []string{url.QueryEscape(s.Text), url.PathEscape(s.Text)} {
		if escaped != s.Text {
			forms = add(forms, "URL-encoded", escaped)
			forms = add(forms, "URL-encoded", lowerHex(escaped))
		}
	}
	forms = add(forms, "hexadecimal", hex.EncodeToString([]byte(s.Text)))
	forms = add(forms, "hexadecimal", strings.ToUpper(hex.EncodeToString([]byte(s.Text))))
	for shift := range 3 {
		// What stands before it decides how it is cut into sextets; those that it
		// shares with its neighbours are left out.
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			text := encoding.EncodeToString(append(make([]byte, shift), s.Text...))
			from, to := (shift*8+5)/6, (shift+len(s.Text))*8/6
			forms = add(forms, "base64", text[from:to])
		}
	}
	return forms
}

// lowerHex writes %C3%A9 as %c3%a9.
func lowerHex(escaped string) string {
	out := []byte(escaped)
	for i := 0; i+2 < len(out); i++ {
		if out[i] == '%' {
			copy(out[i+1:i+3], bytes.ToLower(out[i+1:i+3]))
		}
	}
	return string(out)
}

// Frame looks through a frame as it is to be written.
func (v *Verifier) Frame(f *capture.Frame) error {
	v.frame = f.Position
	where := fmt.Sprintf("frame %d", f.Position)
	data := f.Data
	if f.Flags&(capture.Gzip|capture.Deflate) != 0 {
		data, _ = inflated(f)
	}
	v.look(data, where)
	v.walker.pass(f)
	return v.err
}

// Bytes looks through something else that is to be written.
func (v *Verifier) Bytes(data []byte, where string) error {
	v.look(data, where)
	return v.err
}

func (v *Verifier) look(data []byte, where string) {
	v.find(data, "", where)
	v.deeper(data, where)
}

// find looks for the forms in data.
func (v *Verifier) find(data []byte, within, where string) {
	for _, f := range v.forms {
		if v.err == nil && bytes.Contains(data, f.text) {
			v.err = &SurvivedError{f.line, strings.TrimPrefix(within+", "+f.name, ", "), where}
		}
	}
}

// deeper looks at what data says once its encodings are undone: escapes within
// escapes, percent-encoding, and base64 of something longer.
func (v *Verifier) deeper(data []byte, where string) {
	text := data
	for range 4 {
		plain := unescape(text)
		if len(plain) == len(text) {
			break
		}
		v.find(plain, "escaped", where)
		text = plain
	}
	if plain := unpercent(text); len(plain) != len(text) {
		v.find(plain, "URL-encoded", where)
	}
	const least = 16
	for len(data) > 0 {
		n := 0
		for n < len(data) && sextet(data[n]) {
			n++
		}
		if n >= least {
			v.inBase64(data[:n], where)
		}
		data = data[min(n+1, len(data)):]
	}
}

func sextet(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '+' || c == '/' || c == '-' || c == '_'
}

func (v *Verifier) inBase64(run []byte, where string) {
	standard := bytes.Clone(run)
	for i, c := range standard {
		switch c {
		case '-':
			standard[i] = '+'
		case '_':
			standard[i] = '/'
		}
	}
	for shift := range 4 {
		part := standard[min(shift, len(standard)):]
		part = part[:len(part)/4*4]
		plain := make([]byte, base64.StdEncoding.DecodedLen(len(part)))
		n, _ := base64.StdEncoding.Decode(plain, part)
		v.find(plain[:n], "base64", where)
		if text := unescape(plain[:n]); len(text) != n {
			v.find(text, "base64, escaped", where)
		}
	}
}

// piece takes the next piece of a text, and looks at the border, too.
func (v *Verifier) piece(key pieceKey, list []uint16) {
	if len(v.tails) > maxStreams {
		clear(v.tails)
	}
	joined := append(v.tails[key.streamKey], list...)
	var text []byte
	if key.body.exchange != 0 {
		for _, u := range joined {
			text = append(text, byte(u))
		}
	} else {
		text = []byte(string(utf16.Decode(joined)))
	}
	v.look(text, fmt.Sprintf("the text that frame %d is a piece of", v.frame))
	// An escaped form is at most six times as long.
	keep := min(len(joined), 6*v.longest)
	v.tails[key.streamKey] = append([]uint16(nil), joined[len(joined)-keep:]...)
}

// Writer returns a writer that looks at what is written to w, and fails if a
// secret is in it.
func (v *Verifier) Writer(w io.Writer, where string) io.Writer {
	return &verifying{v: v, w: w, where: where}
}

type verifying struct {
	v     *Verifier
	w     io.Writer
	where string
	tail  []byte
}

// Write looks before it writes.
func (w *verifying) Write(p []byte) (int, error) {
	joined := append(w.tail, p...)
	w.v.look(joined, w.where)
	if w.v.err != nil {
		return 0, w.v.err
	}
	keep := min(len(joined), 6*w.v.longest)
	w.tail = append(w.tail[:0:0], joined[len(joined)-keep:]...)
	return w.w.Write(p)
}

// unescape undoes JSON's escapes wherever they stand.
func unescape(data []byte) []byte {
	if bytes.IndexByte(data, '\\') < 0 {
		return data
	}
	out := make([]byte, 0, len(data))
	for i := 0; i < len(data); {
		if data[i] != '\\' || i+1 == len(data) {
			out = append(out, data[i])
			i++
			continue
		}
		if code, ok := hex4(data[i:]); ok {
			n := 6
			r := rune(code)
			if low, ok := hex4(data[i+6:]); ok && utf16.IsSurrogate(r) {
				if pair := utf16.DecodeRune(r, rune(low)); pair != utf8.RuneError {
					r, n = pair, 12
				}
			}
			out = utf8.AppendRune(out, r)
			i += n
			continue
		}
		out = utf8.AppendRune(out, rune(escaped(uint16(data[i+1]))))
		i += 2
	}
	return out
}

func hex4(b []byte) (code uint16, ok bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	for _, d := range b[2:6] {
		v, is := hexValue(uint16(d))
		if !is {
			return 0, false
		}
		code = code<<4 | v
	}
	return code, true
}

// unpercent undoes percent-encoding wherever it stands.
func unpercent(data []byte) []byte {
	if bytes.IndexByte(data, '%') < 0 {
		return data
	}
	out := make([]byte, 0, len(data))
	for i := 0; i < len(data); i++ {
		if data[i] == '%' && i+2 < len(data) {
			high, ok1 := hexValue(uint16(data[i+1]))
			low, ok2 := hexValue(uint16(data[i+2]))
			if ok1 && ok2 {
				out = append(out, byte(high<<4|low))
				i += 2
				continue
			}
		}
		out = append(out, data[i])
	}
	return out
}
