package tape

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"compress/zlib"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

// maxInflated bounds what a recorded body may inflate to, in bytes.
const maxInflated = 64 << 20

// exchange takes a frame of an HTTP exchange. Those that carry a connection are
// not answers: the player speaks on its own sockets.
func (l *loader) exchange(f *capture.Frame) {
	if f.Connection != 0 {
		return
	}
	if f.Kind == capture.Request {
		head, err := capture.Detail[capture.RequestHead](f)
		if err != nil {
			return
		}
		path, query, _ := strings.Cut(head.Target, "?")
		if values, err := url.ParseQuery(query); err == nil && values.Has("EIO") {
			return
		}
		l.http[f.Exchange] = &exchange{method: head.Method, path: path, query: query}
		return
	}
	x := l.http[f.Exchange]
	if x == nil {
		return
	}
	switch f.Kind {
	case capture.Response:
		head, err := capture.Detail[capture.ResponseHead](f)
		if err != nil || head.Made {
			delete(l.http, f.Exchange)
			return
		}
		x.head = head
	case capture.Body:
		if f.Direction == capture.FromGateway {
			x.body = append(x.body, f.Data...)
			x.flags |= f.Flags
			l.size += len(f.Data)
		}
	case capture.Done:
		delete(l.http, f.Exchange)
		if x.head.Status >= 200 {
			l.exchanges = append(l.exchanges, x)
		}
	}
}

// Answer returns what answers an HTTP request: the recorded answers to its
// method and path in their order, the last one again and again. Those to the
// same query are preferred. It is nil for /health and /protocol where the tape
// has no answer.
func (s *Source) Answer(r *http.Request) http.Handler {
	path, m := s.recordedPath(r.URL.EscapedPath())
	query, other := s.recordedQuery(r.URL.RawQuery)
	m = cmp.Or(m, other)
	method := r.Method
	if method == http.MethodHead && !s.has(http.MethodHead, path) {
		method = http.MethodGet
	}
	conditional := r.Header.Get("If-None-Match") != "" || r.Header.Get("If-Modified-Since") != ""
	x := s.take(method, path, query, conditional)
	switch {
	case x != nil:
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { x.serve(w, r, m) })
	case path == "/health" || path == "/protocol":
		return nil
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { s.unknown(w, method, path) })
}

func (s *Source) has(method, path string) bool {
	return slices.ContainsFunc(s.tape.exchanges, func(x *exchange) bool { return x.method == method && x.path == path })
}

// take returns the next answer. 304 is none to a client that has nothing yet.
func (s *Source) take(method, path, query string, conditional bool) *exchange {
	var found []*exchange
	exact := false
	for _, x := range s.tape.exchanges {
		if x.method != method || x.path != path || x.head.Status == http.StatusNotModified && !conditional {
			continue
		}
		if same := x.query == query; same && !exact {
			found, exact = found[:0], true
		} else if !same && exact {
			continue
		}
		found = append(found, x)
	}
	if len(found) == 0 {
		return nil
	}
	key := method + " " + path
	if exact {
		key += "?" + query
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.served[key]
	s.served[key]++
	return found[min(n, len(found)-1)]
}

// recordedPath puts recorded ids in place of live ones, and returns whose they
// are.
func (s *Source) recordedPath(path string) (string, *binding) {
	var of *binding
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if plain, err := url.PathUnescape(part); err == nil && plain != "" {
			if id, m := s.recordedID(plain); m != nil {
				parts[i], of = url.PathEscape(id), m
			}
		}
	}
	return strings.Join(parts, "/"), of
}

func (s *Source) recordedQuery(query string) (string, *binding) {
	var of *binding
	parts := strings.Split(query, "&")
	for i, part := range parts {
		name, value, _ := strings.Cut(part, "=")
		if plain, err := url.QueryUnescape(value); err == nil && plain != "" {
			if id, m := s.recordedID(plain); m != nil {
				parts[i], of = name+"="+url.QueryEscape(id), m
			}
		}
	}
	return strings.Join(parts, "&"), of
}

func (s *Source) recordedID(live string) (string, *binding) {
	var all []*binding
	s.mu.Lock()
	for _, of := range s.bindings {
		all = append(all, of...)
	}
	s.mu.Unlock()
	for _, b := range all {
		if id, ok := b.recorded(live); ok {
			return id, b
		}
	}
	return "", nil
}

// unknown says that the tape has no answer, and which one is nearest.
func (s *Source) unknown(w http.ResponseWriter, method, path string) {
	s.missed()
	known := []string{"GET /health", "GET /protocol"} // which the player has of its own
	for _, x := range s.tape.exchanges {
		if other := x.method + " " + x.path; !slices.Contains(known, other) {
			known = append(known, other)
		}
	}
	near := cmp.Or(protocol.Nearest(method+" "+path, known), nearestPath(method+" "+path, known))
	field := "path"
	if strings.HasSuffix(near, " "+path) {
		field = "method"
	}
	problem(w, http.StatusNotFound, "NOT_FOUND", fmt.Sprintf(
		"the tape has no answer to %s %s: the nearest that there is is %s, which differs in its %s", method, path, near, field))
}

// nearestPath is the path that begins most alike, where none is alike enough to
// be meant.
func nearestPath(path string, known []string) string {
	best, length := known[0], -1
	for _, k := range known {
		n := 0
		for n < len(k) && n < len(path) && k[n] == path[n] {
			n++
		}
		if n > length {
			best, length = k, n
		}
	}
	return best
}

// problem answers with an error as the protocol writes them.
func problem(w http.ResponseWriter, status int, code, message string) {
	var body struct {
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	body.Error.Code, body.Error.Message = code, message
	out, err := json.Marshal(body)
	if err != nil {
		panic(err) // two strings
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// A client that is gone needs no answer.
	_, _ = w.Write(append(out, '\n'))
}

// dropped are the fields of an answer that are about the connection it came on,
// or about the moment.
func dropped(name string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Transfer-Encoding", "Upgrade", "Trailer", "Proxy-Authenticate", "Content-Length",
		"Content-Encoding", "Date", "Set-Cookie", "Strict-Transport-Security", "Alt-Svc":
		return true
	}
	return false
}

// serve answers as it was recorded, with live ids.
func (x *exchange) serve(w http.ResponseWriter, r *http.Request, m *binding) {
	if x.flags.Has(capture.Cut) {
		problem(w, http.StatusBadGateway, "BODY_CUT", fmt.Sprintf("only %d bytes of the answer to %s %s were recorded: record it again with a higher --body-limit", len(x.body), x.method, x.path))
		return
	}
	coding := strings.ToLower(x.head.Header.Get("Content-Encoding"))
	body := x.body
	isJSON := x.json()
	if coding != "" && (isJSON && m != nil || !accepts(r.Header, coding)) {
		plain, err := inflate(coding, body)
		switch {
		case err == nil:
			body, coding = plain, ""
		case !accepts(r.Header, coding):
			problem(w, http.StatusNotAcceptable, "NOT_ACCEPTABLE", fmt.Sprintf("the answer was recorded as %s, which the client does not accept: %v", coding, err))
			return
		}
	}
	if isJSON && m != nil && coding == "" {
		body = m.splice(free, body).payload
	}
	h := w.Header()
	for name, values := range x.head.Header {
		if len(h[name]) == 0 && !dropped(name) {
			h[name] = values
		}
	}
	if coding != "" {
		h.Set("Content-Encoding", coding)
	}
	if x.head.Header.Get("Content-Encoding") != "" && !strings.Contains(strings.Join(h.Values("Vary"), ","), "Accept-Encoding") {
		h.Add("Vary", "Accept-Encoding")
	}
	w.WriteHeader(x.head.Status)
	// A client that is gone needs no answer; one without a body takes none.
	_, _ = w.Write(body)
}

func (x *exchange) json() bool {
	kind, _, err := mime.ParseMediaType(x.head.Header.Get("Content-Type"))
	return err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json"))
}

// accepts reports whether a client asked for a content coding.
func accepts(h http.Header, coding string) bool {
	for _, part := range strings.Split(strings.Join(h.Values("Accept-Encoding"), ","), ",") {
		name, parameter, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.EqualFold(strings.TrimSpace(name), coding) {
			q := strings.TrimPrefix(strings.ReplaceAll(parameter, " ", ""), "q=")
			return strings.Trim(q, "0.") != "" || q == ""
		}
	}
	return false
}

// inflate undoes a content coding.
func inflate(coding string, body []byte) ([]byte, error) {
	var r io.Reader
	var err error
	switch coding {
	case "gzip", "x-gzip":
		r, err = gzip.NewReader(bytes.NewReader(body))
	case "deflate":
		r, err = zlib.NewReader(bytes.NewReader(body))
	case "zstd":
		var d *zstd.Decoder
		if d, err = zstd.NewReader(bytes.NewReader(body), zstd.WithDecoderConcurrency(1)); err == nil {
			defer d.Close()
			r = d
		}
	case "identity":
		return body, nil
	default:
		return nil, fmt.Errorf("decode %q: the player knows gzip, deflate and zstd", coding)
	}
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", coding, err)
	}
	plain, err := io.ReadAll(io.LimitReader(r, maxInflated+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("decode %s: %w", coding, err)
	case len(plain) > maxInflated:
		return nil, fmt.Errorf("decode %s: it is larger than %d bytes", coding, maxInflated)
	}
	return plain, nil
}
