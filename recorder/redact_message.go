package recorder

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"slices"

	"tapedeck/protocol/capture"
)

// separator stands between the packets of a polling body.
const separator = 0x1e

// maxInflated bounds what is inflated to be looked through.
const maxInflated = 64 << 20

// polling looks through the packets of a polling body. It returns the data that
// the edits are about, and its flags: a compressed body that holds a secret is
// written as what it inflates to.
func (r *redactor) polling(f *capture.Frame) ([]byte, capture.Flags) {
	data, flags := f.Data, f.Flags
	if flags&(capture.Gzip|capture.Deflate) != 0 {
		if f.Direction != capture.FromClient && len(r.names) == 0 && len(r.paths) == 0 {
			return data, flags
		}
		data = inflated(f)
		flags &^= capture.Gzip | capture.Deflate
		if len(data) == maxInflated {
			flags |= capture.Cut
		}
	}
	if f.Direction == capture.FromClient || len(r.paths) > 0 {
		for at := 0; at <= len(data); {
			end := len(data)
			if i := bytes.IndexByte(data[at:], separator); i >= 0 {
				end = at + i
			}
			r.packet(data[at:end], at, f.Direction)
			at = end + 1
		}
	}
	r.fields(data)
	return data, flags
}

// inflated returns what a body inflates to, as far as it does.
func inflated(f *capture.Frame) []byte {
	read := func(r io.Reader, err error) []byte {
		if err != nil {
			return nil
		}
		data, _ := io.ReadAll(io.LimitReader(r, maxInflated)) // a body that broke off counts, too
		return data
	}
	if f.Flags.Has(capture.Gzip) {
		return read(gzip.NewReader(bytes.NewReader(f.Data)))
	}
	if data := read(zlib.NewReader(bytes.NewReader(f.Data))); len(data) > 0 {
		return data
	}
	return read(flate.NewReader(bytes.NewReader(f.Data)), nil)
}

// packet looks through one Engine.IO packet, or one plain message, which begins
// at base.
func (r *redactor) packet(b []byte, base int, from capture.Direction) {
	client := from == capture.FromClient
	if len(b) < 2 || !client && len(r.paths) == 0 {
		return
	}
	switch {
	case b[0] == '{':
		r.plain(b, base, client)
	case b[0] == 'b' && client:
		r.msgpackText(b[1:], base+1)
	case b[0] == '4':
		switch typ, at := payload(b); {
		case typ == '0' && client:
			r.namespace(b[:at], base)
			r.connect(b[at:], base+at)
		case typ == '2' || typ == '5':
			r.message(b[at:], base+at, "1", client)
		case typ == '3' || typ == '6':
			r.message(b[at:], base+at, "0", false)
		}
	}
}

// payload returns a Socket.IO packet's type and where its payload begins.
func payload(b []byte) (typ byte, at int) {
	digits := func() {
		for at < len(b) && '0' <= b[at] && b[at] <= '9' {
			at++
		}
	}
	typ, at = b[1], 2
	if typ == '5' || typ == '6' {
		if digits(); at < len(b) && b[at] == '-' {
			at++
		}
	}
	if at < len(b) && b[at] == '/' {
		if i := bytes.IndexByte(b[at:], ','); i >= 0 {
			at += i + 1
		} else {
			at = len(b)
		}
	}
	digits()
	return typ, at
}

// namespace looks through a CONNECT's namespace, which has a query in older
// clients.
func (r *redactor) namespace(b []byte, base int) {
	if bytes.IndexByte(b, '?') < 0 {
		return
	}
	for _, s := range r.address(string(bytes.TrimSuffix(b, []byte(",")))) {
		r.replace(base+s.from, base+s.to, []byte(s.value))
	}
}

// connect hides all that a client sends with CONNECT, save what connection state
// recovery needs.
func (r *redactor) connect(b []byte, base int) {
	r.all(b, base, func(path []string) bool {
		return len(path) != 1 || path[0] != "pid" && path[0] != "offset"
	})
}

// authNames are the names of messages that carry what CONNECT does.
var authNames = []string{"auth", "authenticate", "authentication", "authorize", "login", "connect"}

// message looks through the payload of an event or an acknowledgement: an array
// whose member at first is the first argument.
func (r *redactor) message(b []byte, base int, first string, client bool) {
	auth := client && r.isAuth(b, b[:min(len(b), 64)], "0")
	if !auth && len(r.paths) == 0 {
		return
	}
	r.all(b, base, func(path []string) bool {
		switch {
		case auth && len(path) > 0 && path[0] != "0":
			return authPart(path[1:])
		case len(path) == 0 || path[0] != first:
			return false
		}
		return r.pointed(path[1:])
	})
}

// plain looks through a message of the plain form.
func (r *redactor) plain(b []byte, base int, client bool) {
	auth := client && r.isAuth(b, b, "event")
	if !auth && len(r.paths) == 0 {
		return
	}
	r.all(b, base, func(path []string) bool {
		return len(path) > 0 && path[0] == "data" && (auth && authPart(path[1:]) || r.pointed(path[1:]))
	})
}

// isAuth reports whether b is a message of one of the authNames: one of them
// stands somewhere within part of it, and then as its member.
func (r *redactor) isAuth(b, part []byte, member string) (auth bool) {
	if !slices.ContainsFunc(authNames, func(name string) bool { return bytes.Contains(part, []byte(`"`+name+`"`)) }) {
		return false
	}
	r.leaves(b, 0, func(path []string, l leaf) {
		auth = auth || l.text && len(path) == 1 && path[0] == member && slices.Contains(authNames, string(unquoted(l.raw)))
	})
	return auth
}

// authPart reports whether the value at a path into an auth message is a secret:
// one of a token-like name, or one that is all there is.
func authPart(path []string) bool {
	return len(path) == 0 || slices.ContainsFunc(path, tokenLike)
}

// pointed reports whether one of the JSON pointers leads to path, or above it.
func (r *redactor) pointed(path []string) bool {
	return slices.ContainsFunc(r.paths, func(pointer []string) bool {
		if len(pointer) > len(path) {
			return false
		}
		for i, token := range pointer {
			if token != "*" && token != path[i] {
				return false
			}
		}
		return true
	})
}
