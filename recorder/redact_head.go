package recorder

import (
	"net/url"
	"strings"

	"tapedeck/protocol/capture"
)

// secret is a stretch of a text that is to be hidden, and what it says.
type secret struct {
	from, to int
	value    string
}

// head looks through the JSON that a mark carries: targets, header fields, and
// the texts of errors, which may quote an address.
func (r *redactor) head(kind capture.Kind, data []byte) {
	r.leaves(data, 0, func(path []string, l leaf) {
		if !l.text || len(path) == 0 {
			return
		}
		switch name := path[0]; {
		case name == "target" || name == "error" || name == "reason" || name == "text":
			r.inText(l, r.address)
		case name == "protocol" && kind == capture.Open:
			r.inText(l, subprotocols)
		case (name == "header" || name == "adapted" || name == "trailer" || name == "requestTrailer") && len(path) > 1:
			r.inText(l, func(value string) []secret { return r.header(strings.ToLower(path[1]), value) })
		}
	})
}

// header finds the secrets in the value of a header field, its name in lower
// case.
func (r *redactor) header(name, value string) []secret {
	switch {
	case r.named(name):
		return []secret{{0, len(value), value}}
	case name == "authorization" || name == "proxy-authorization":
		at := strings.IndexByte(value, ' ') + 1 // after the scheme, such as Bearer
		for at < len(value) && value[at] == ' ' {
			at++
		}
		return []secret{{at, len(value), value[at:]}}
	case name == "cookie":
		return cookies(value)
	case name == "set-cookie":
		pair, _, _ := strings.Cut(value, ";")
		return cookies(pair)
	case name == "sec-websocket-protocol":
		return subprotocols(value)
	case secretHeader(name):
		return []secret{{0, len(value), value}}
	}
	return r.address(value) // a Referer, a Location, a Link
}

// secretHeader reports whether a header field of this name carries a key or a
// token.
func secretHeader(name string) bool {
	switch name {
	case "sec-websocket-key", "idempotency-key", "access-control-allow-credentials":
		return false
	case "auth", "x-auth":
		return true
	}
	for _, part := range []string{"token", "secret", "password", "api-key", "apikey", "authorization", "credential", "signature"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return strings.HasSuffix(name, "-key")
}

// cookies finds the values of cookies; their names stay.
func cookies(value string) (found []secret) {
	for at := 0; at < len(value); {
		end := len(value)
		if i := strings.IndexByte(value[at:], ';'); i >= 0 {
			end = at + i
		}
		from := at
		if i := strings.IndexByte(value[at:end], '='); i >= 0 {
			from = at + i + 1
		}
		for from < end && value[from] == ' ' {
			from++
		}
		found = append(found, secret{from, end, value[from:end]})
		at = end + 1
	}
	return found
}

// subprotocols finds those of Sec-WebSocket-Protocol that carry more than a name,
// as browsers cannot send a token otherwise.
func subprotocols(value string) (found []secret) {
	marked := false // the one before says that this one is a token
	at := 0
	for part := range strings.SplitSeq(value, ",") {
		name := strings.TrimSpace(part)
		from := at + strings.Index(part, name)
		if marked || !plainName(name) {
			found = append(found, secret{from, from + len(name), name})
		}
		switch strings.ToLower(name) {
		case "bearer", "token", "auth", "access_token", "authorization", "jwt":
			marked = true
		default:
			marked = false
		}
		at += len(part) + 1
	}
	return found
}

// plainName reports whether a subprotocol looks like a name that somebody
// registered, such as v12.stomp or graphql-transport-ws: short words, hardly
// mixed from letters of both cases and digits.
func plainName(name string) bool {
	for word := range strings.FieldsFuncSeq(name, func(c rune) bool { return strings.ContainsRune(".-_+/:", c) }) {
		digits, capitals, changes, last := 0, 0, 0, byte(0)
		for _, c := range []byte(word) {
			class := byte('a')
			switch {
			case 'a' <= c && c <= 'z':
			case 'A' <= c && c <= 'Z':
				capitals++
			case '0' <= c && c <= '9':
				digits++
				class = '0'
			default:
				return false
			}
			if last != 0 && class != last {
				changes++
			}
			last = class
		}
		mixed := capitals > 3 && capitals < len(word)-digits
		if len(word) > 20 || digits > 3 || changes > 2 || mixed {
			return false
		}
	}
	return len(name) <= 64
}

// address finds the secrets in an address, or in a text that quotes one: what
// token-like parameters say, in its query or its fragment, and a password before
// its host.
func (r *redactor) address(text string) (found []secret) {
	if at := strings.Index(text, "://"); at >= 0 {
		at += 3
		host := text[at:]
		if end := strings.IndexAny(host, "/?# \""); end >= 0 {
			host = host[:end]
		}
		if end := strings.LastIndexByte(host, '@'); end >= 0 {
			found = append(found, secret{at, at + end, host[:end]})
		}
	}
	for at := 0; at < len(text); {
		i := strings.IndexAny(text[at:], "?&#;")
		if i < 0 {
			break
		}
		at += i + 1
		equals := strings.IndexAny(text[at:], "=?&#; ")
		if equals < 0 || text[at+equals] != '=' {
			continue
		}
		name, from := text[at:at+equals], at+equals+1
		if name = unescaped(name); !r.named(name) && !tokenLike(name) {
			continue
		}
		end := len(text)
		if i := strings.IndexAny(text[from:], "&#\"<>"); i >= 0 {
			end = from + i
		}
		found = append(found, secret{from, end, unescaped(text[from:end])})
		at = end
	}
	return found
}

// unescaped undoes percent-encoding, as far as it is that.
func unescaped(text string) string {
	if plain, err := url.PathUnescape(text); err == nil {
		return plain
	}
	return text
}

// tokenLike reports whether a parameter or a member of this name is likely to be
// a secret.
func tokenLike(name string) bool {
	name = strings.NewReplacer("-", "", "_", "", ".", "").Replace(strings.ToLower(name))
	switch name {
	case "auth", "authorization", "bearer", "jwt", "key", "sig", "pass", "pwd", "pw", "pin", "otp", "ticket", "session", "sessionid",
		"authkey", "accesskey", "privatekey", "subscriptionkey", "tokenid":
		return true
	}
	for _, page := range []string{"pagetoken", "synctoken", "continuationtoken"} {
		if strings.HasSuffix(name, page) {
			return false
		}
	}
	for _, part := range []string{"secret", "password", "passwd", "passphrase", "apikey", "credential", "signature"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return strings.HasSuffix(name, "token")
}
