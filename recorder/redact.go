package recorder

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"tapedeck/protocol/capture"
)

// redactor takes secrets out of frames before they touch the disk:
//
//	r, err := newRedactor(key, opts.Redact, opts.KeepSecrets)
//	f = r.frame(f)
//
// A secret becomes redacted-<8 hex>-<length>, where the hex is an HMAC with the
// tape's own key: the same secret, the same token, whether it stood in a header,
// a query or a JSON string. The bytes around it stay as they passed. What looks
// for secrets is not sure of the bytes: where they break off or cannot be read,
// the rest of what would hold one is taken for one.
//
// It takes, by itself: credentials and keys in headers, cookies, subprotocols
// that carry more than a name, token-like parameters of targets and links, what
// a client sends with CONNECT, and token-like members of what it sends as auth.
// It sees no secret in a compressed HTTP body, nor one that is cut over several
// frames.
//
// It keeps nothing of a frame, and is not safe for concurrent use.
type redactor struct {
	key   []byte
	keep  bool
	names []string   // of headers, fields and parameters, besides the usual ones
	paths [][]string // JSON pointers into the first argument of messages

	edits []edit // of the frame at hand
	out   capture.Frame
	buf   []byte
}

// edit replaces a stretch of a frame's data.
type edit struct {
	from, to int
	text     string
}

// newRedactor returns a redactor with a tape's key. Extra names more to be
// redacted: a header, a field, or a JSON pointer into a message's first argument,
// where * stands for any member; one that is none of them is an error. Keep turns
// redaction off.
func newRedactor(key []byte, extra []string, keep bool) (*redactor, error) {
	r := &redactor{key: key, keep: keep}
	for _, name := range extra {
		switch {
		case strings.HasPrefix(name, "/"):
			path, err := parsePointer(name)
			if err != nil {
				return nil, err
			}
			r.paths = append(r.paths, path)
		case name == "" || strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c == '"' || c == '\\' || c == 0x7f }):
			return nil, fmt.Errorf("redact %q: it is no header such as X-Api-Key, no field such as password and no JSON pointer such as /event/delta", name)
		default:
			r.names = append(r.names, name)
		}
	}
	return r, nil
}

func parsePointer(pointer string) ([]string, error) {
	path := strings.Split(pointer[1:], "/")
	for i, token := range path {
		plain := strings.NewReplacer("~0", "", "~1", "").Replace(token)
		if strings.Contains(plain, "~") {
			return nil, fmt.Errorf("redact %q: in a JSON pointer ~ is written ~0, and / within a name ~1", pointer)
		}
		path[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
	}
	return path, nil
}

// frame returns f as it is to be written: f itself if it holds no secret, else a
// frame that is valid until the next call.
func (r *redactor) frame(f *capture.Frame) *capture.Frame {
	if r.keep || len(f.Data) == 0 {
		return f
	}
	r.edits = r.edits[:0]
	data, flags := f.Data, f.Flags
	switch f.Kind {
	case capture.Open, capture.End, capture.Request, capture.Response, capture.Done, capture.Gap, capture.Act:
		r.head(f.Kind, data)
	case capture.Text:
		r.packet(data, 0, f.Direction)
		r.fields(data)
	case capture.Polling:
		data, flags = r.polling(f)
	case capture.Binary:
		if f.Direction == capture.FromClient {
			r.msgpack(data)
		}
	case capture.Body, capture.Stream:
		r.fields(data)
	}
	if len(r.edits) == 0 {
		return f
	}
	r.out = *f
	r.out.Data, r.out.Flags = r.apply(data), flags|capture.Redacted
	return &r.out
}

// apply makes the edits. Where two overlap, the one that begins first counts.
func (r *redactor) apply(data []byte) []byte {
	slices.SortFunc(r.edits, func(a, b edit) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to))
	})
	out, at := r.buf[:0], 0
	for _, e := range r.edits {
		switch {
		case e.from >= at:
			out = append(append(out, data[at:e.from]...), e.text...)
			at = e.to
		case e.to > at: // what sticks out of the one before goes with it
			at = e.to
		}
	}
	out = append(out, data[at:]...)
	if r.buf = out; cap(out) > 1<<20 {
		r.buf = nil
	}
	return out
}

// replace plans an edit: what stands from from to to is secret, and says value.
func (r *redactor) replace(from, to int, value []byte) {
	if text := r.token(value); text != "" {
		r.edits = append(r.edits, edit{from, to, text})
	}
}

var tokenForm = regexp.MustCompile(`^redacted-[0-9a-f]{8}-[0-9]+$`)

// token returns what stands for a secret, "" if there is nothing to hide: an
// empty value, or one that was redacted before.
func (r *redactor) token(secret []byte) string {
	if len(secret) == 0 || tokenForm.Match(secret) {
		return ""
	}
	mac := hmac.New(sha256.New, r.key)
	mac.Write(secret)
	return fmt.Sprintf("redacted-%x-%d", mac.Sum(nil)[:4], len(secret))
}

// named reports whether the user asked for name, whatever its case.
func (r *redactor) named(name string) bool {
	return slices.ContainsFunc(r.names, func(n string) bool { return strings.EqualFold(n, name) })
}
