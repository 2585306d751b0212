// Package har writes sessions as HTTP Archives, which the network tabs of
// browsers open, and reads those that Chrome, Firefox and Playwright save.
//
// A connection's WebSocket messages are the _webSocketMessages of the request
// that was upgraded, as Chrome writes them; long polling is an entry a request.
// What HAR has no place for stands in members that begin with _tape: the order of
// all frames, exact times, how a connection began and ended, and the session's
// row. Archives of others lack them, so there the order is that of the times, and
// within an entry that of its messages. What is lost is where a body was cut into
// pieces, what the proxy did, and frames of exchanges that never ended.
package har

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"tapedeck/protocol/capture"
)

// entry is one of log.entries.
type entry struct {
	Started    string    `json:"startedDateTime"`
	Time       float64   `json:"time"` // in milliseconds
	Request    request   `json:"request"`
	Response   response  `json:"response"`
	Cache      struct{}  `json:"cache"`
	Timings    timings   `json:"timings"`
	Resource   string    `json:"_resourceType,omitempty"`
	Connection string    `json:"connection,omitempty"`
	Tape       *remark   `json:"_tape,omitempty"`
	Messages   []message `json:"_webSocketMessages,omitempty"`
}

type request struct {
	Method      string    `json:"method"`
	URL         string    `json:"url"`
	HTTPVersion string    `json:"httpVersion"`
	Cookies     []pair    `json:"cookies"`
	Headers     []pair    `json:"headers"`
	QueryString []pair    `json:"queryString"`
	PostData    *postData `json:"postData,omitempty"`
	HeadersSize int64     `json:"headersSize"`
	BodySize    int64     `json:"bodySize"`
}

type response struct {
	Status      int     `json:"status"`
	StatusText  string  `json:"statusText"`
	HTTPVersion string  `json:"httpVersion"`
	Cookies     []pair  `json:"cookies"`
	Headers     []pair  `json:"headers"`
	Content     content `json:"content"`
	RedirectURL string  `json:"redirectURL"`
	HeadersSize int64   `json:"headersSize"`
	BodySize    int64   `json:"bodySize"`
	Error       string  `json:"_error,omitempty"`
}

type pair struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type postData struct {
	MimeType string `json:"mimeType"`
	Text     string `json:"text"`
	Encoding string `json:"_encoding,omitempty"` // base64, as content has it
}

type content struct {
	Size     int64  `json:"size"`
	MimeType string `json:"mimeType"`
	Text     string `json:"text,omitempty"`
	Encoding string `json:"encoding,omitempty"`
}

type timings struct {
	Send    float64 `json:"send"`
	Wait    float64 `json:"wait"`
	Receive float64 `json:"receive"`
}

// message is a WebSocket message.
type message struct {
	Type   string       `json:"type"` // send or receive
	Time   float64      `json:"time"` // in seconds since 1970; Playwright has written milliseconds
	Opcode int          `json:"opcode"`
	Data   string       `json:"data"`
	Tape   *messageMark `json:"_tape,omitempty"`
}

// messageMark is what HAR has no place for.
type messageMark struct {
	N      capture.Position `json:"n"`
	At     time.Duration    `json:"at"` // nanoseconds since the session began
	Flags  capture.Flags    `json:"flags,omitempty"`
	Base64 bool             `json:"base64,omitempty"` // the data of a text that is no UTF-8
	Stream bool             `json:"stream,omitempty"` // it was no WebSocket message
	Size   int64            `json:"size,omitempty"`   // that passed, if it is another
}

// remark is what HAR has no place for.
type remark struct {
	Session int              `json:"session"` // counted from 0
	N       capture.Position `json:"n"`       // of the request, or of a connection without one
	Conn    capture.Position `json:"conn,omitempty"`
	Poll    bool             `json:"poll,omitempty"` // it is long polling
	// Opened is the connection that began with this exchange.
	Opened  *mark `json:"opened,omitempty"`
	Request *mark `json:"request,omitempty"`
	Sent    *mark `json:"sent,omitempty"` // the request's body
	Answer  *mark `json:"response,omitempty"`
	Got     *mark `json:"got,omitempty"` // the answer's body
	Done    *mark `json:"done,omitempty"`
}

// leftover is a frame that no entry has a place for: the end of a connection, a
// gap, what the proxy did.
type leftover struct {
	Session int              `json:"session"`
	Conn    capture.Position `json:"conn,omitempty"`
	Kind    capture.Kind     `json:"kind"`
	mark
}

// mark is a frame without what HAR says of it.
type mark struct {
	N      capture.Position  `json:"n"`
	At     time.Duration     `json:"at"`
	Dir    capture.Direction `json:"dir,omitzero"` // where it is not plain which way it went
	Flags  capture.Flags     `json:"flags,omitempty"`
	Size   int64             `json:"size,omitempty"`
	Detail json.RawMessage   `json:"detail,omitempty"`
}

// opcodes are those of WebSocket messages, by kind.
func opcodeOf(k capture.Kind) int {
	switch k {
	case capture.Binary:
		return 2
	case capture.Close:
		return 8
	case capture.Ping:
		return 9
	case capture.Pong:
		return 10
	}
	return 1
}

func kindOf(opcode int) (capture.Kind, bool) {
	switch opcode {
	case 1:
		return capture.Text, true
	case 2:
		return capture.Binary, true
	case 8:
		return capture.Close, true
	case 9:
		return capture.Ping, true
	case 10:
		return capture.Pong, true
	}
	return 0, false
}

// textOf writes bytes as a string, in base64 if they are no text.
func textOf(data []byte) (text string, coded bool) {
	if utf8.Valid(data) {
		return string(data), false
	}
	return base64.StdEncoding.EncodeToString(data), true
}

func pairsOf(h http.Header) []pair {
	pairs := []pair{}
	for name, values := range h {
		for _, v := range values {
			pairs = append(pairs, pair{name, v})
		}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int { return cmp.Compare(a.Name, b.Name) })
	return pairs
}

func headerOf(pairs []pair) http.Header {
	h := http.Header{}
	for _, p := range pairs {
		if strings.HasPrefix(p.Name, ":") {
			continue // of HTTP/2: it is said in the request's line
		}
		name := http.CanonicalHeaderKey(p.Name)
		h[name] = append(h[name], p.Value)
	}
	return h
}

// queryOf lists a target's parameters.
func queryOf(target string) []pair {
	pairs := []pair{}
	_, query, _ := strings.Cut(target, "?")
	for part := range strings.SplitSeq(query, "&") {
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		pairs = append(pairs, pair{plain(name), plain(value)})
	}
	return pairs
}

func plain(text string) string {
	if unescaped, err := url.QueryUnescape(text); err == nil {
		return unescaped
	}
	return text
}

// targetOf cuts an address into what a request says of it: its host, and the
// rest as it was written.
func targetOf(address string) (scheme, host, target string) {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return "", "", address
	}
	rest, _, _ = strings.Cut(rest, "#")
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		host, target = rest[:i], rest[i:]
	} else {
		host = rest
	}
	if i := strings.LastIndexByte(host, '@'); i >= 0 {
		host = host[i+1:]
	}
	if !strings.HasPrefix(target, "/") {
		target = "/" + target
	}
	return strings.ToLower(scheme), host, target
}
