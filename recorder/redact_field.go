package recorder

import "bytes"

// fields hides the members that the user named, wherever their name stands in
// data, which may be a piece of a JSON text or hold several; also one level deep
// in a string that is itself JSON, as a tool call's arguments are.
func (r *redactor) fields(data []byte) {
	for _, name := range r.names {
		for at := 0; ; {
			i := bytes.Index(data[at:], []byte(name))
			if i < 0 {
				break
			}
			from := at + i
			at = from + len(name)
			quote, before := `"`, data[:from]
			if bytes.HasSuffix(before, []byte(`\"`)) {
				quote = `\"`
			}
			if bytes.HasSuffix(before, []byte(quote)) && bytes.HasPrefix(data[at:], []byte(quote)) {
				r.member(data, at+len(quote), quote)
			}
		}
	}
}

// member hides the value of the member whose name ends at at.
func (r *redactor) member(data []byte, at int, quote string) {
	colon := skipBlank(data, at)
	if colon == len(data) || data[colon] != ':' {
		return
	}
	from := skipBlank(data, colon+1)
	rest := data[from:]
	switch {
	case len(rest) == 0:
	case bytes.HasPrefix(rest, []byte(quote)):
		from += len(quote)
		to := textEnd(data, from, quote != `"`)
		// Without its quotes, since a piece may lack the closing one.
		text, _ := unquote(append(append([]byte{'"'}, data[from:to]...), '"'))
		if quote != `"` {
			text, _ = unquote(append(append([]byte{'"'}, text...), '"'))
		}
		r.replace(from, to, text)
	case rest[0] == '-' || '0' <= rest[0] && rest[0] <= '9':
		to := from + 1
		for to < len(data) && bytes.IndexByte([]byte("0123456789.eE+-"), data[to]) >= 0 {
			to++
		}
		if text := r.token(data[from:to]); text != "" {
			r.edits = append(r.edits, edit{from, to, quote + text + quote})
		}
	case (rest[0] == '{' || rest[0] == '[') && quote == `"`:
		read, ok := r.leaves(rest, from, func(_ []string, l leaf) { r.leaf(l) })
		if !ok { // a piece
			r.rest(rest, from, read)
		}
	}
}

// textEnd returns where a string ends that goes on at from, or the end of the
// data. A string inside a string ends before its escaped quote, unless the outer
// one ends first.
func textEnd(data []byte, from int, inner bool) int {
	slashes := 0
	for i := from; i < len(data); i++ {
		switch c := data[i]; {
		case c == '\\':
			slashes++
			continue
		case c == '"' && slashes%2 == 0:
			return i
		case c == '"' && inner && slashes%4 == 1:
			return i - 1
		}
		slashes = 0
	}
	return len(data)
}

func skipBlank(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}
