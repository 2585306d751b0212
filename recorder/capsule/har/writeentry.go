package har

import (
	"bytes"
	"cmp"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"tapedeck/protocol/capture"
)

// socket writes a WebSocket's entry, with its messages.
func (w *writer) socket(s *Session, at capture.Position, k *socket) error {
	if k.exchange == nil {
		return nil
	}
	if !k.over {
		return w.entry(k.exchange, func() error {
			_, err := w.out.Write(k.messages.Bytes())
			return err
		})
	}
	return w.entry(k.exchange, func() error {
		var one bytes.Buffer
		first := true
		for f, err := range s.Frames() {
			if err != nil {
				return err
			}
			switch f.Kind {
			case capture.Text, capture.Binary, capture.Ping, capture.Pong, capture.Close, capture.Stream:
			default:
				continue
			}
			if f.Exchange != at && f.Connection != at {
				continue
			}
			one.Reset()
			if !first {
				w.out.WriteByte(',')
			}
			first = false
			if err := appendMessage(&one, w.row, f); err != nil {
				return err
			}
			if _, err := w.out.Write(one.Bytes()); err != nil {
				return err
			}
		}
		return nil
	})
}

// entry writes an entry, and the messages of one that was upgraded.
func (w *writer) entry(x *exchange, messages func() error) error {
	e, err := w.entryOf(x)
	if err != nil {
		return err
	}
	text, err := encode(e)
	if err != nil {
		return err
	}
	if w.any {
		w.out.WriteByte(',')
	}
	w.any = true
	w.out.WriteByte('\n')
	if messages == nil {
		_, err = w.out.Write(text)
		return err
	}
	w.out.Write(text[:len(text)-1])
	w.out.WriteString(`,"_webSocketMessages":[`)
	if err := messages(); err != nil {
		return err
	}
	_, err = w.out.WriteString("]}")
	return err
}

func (w *writer) entryOf(x *exchange) (*entry, error) {
	milliseconds := func(d time.Duration) float64 { return float64(max(d, 0).Microseconds()) / 1000 }
	e := &entry{
		Started: w.row.Started.Add(x.at).UTC().Format(time.RFC3339Nano), Time: milliseconds(x.until - x.at),
		Timings: timings{Wait: milliseconds(x.answered - x.at), Receive: milliseconds(x.until - x.answered)},
		Tape:    &x.marks,
	}
	if x.connection != 0 {
		e.Connection = fmt.Sprint(x.connection)
		x.marks.Conn = x.connection
	}
	scheme := "http"
	if strings.HasPrefix(w.row.Gateway, "https:") {
		scheme = "https"
	}
	if x.upgraded {
		e.Resource = "websocket"
		scheme = strings.Replace(scheme, "http", "ws", 1)
	} else {
		e.Resource = "xhr"
	}
	sent, err := decoded(x.sent, x.codedSent)
	if err != nil {
		return nil, err
	}
	got, err := decoded(x.got, x.codedGot)
	if err != nil {
		return nil, err
	}
	e.Request = requestOf(x, scheme, w.host(x), sent)
	e.Response = responseOf(x, got)
	return e, nil
}

// host is whom a request was sent to.
func (w *writer) host(x *exchange) string {
	if x.head.Host != "" {
		return x.head.Host
	}
	_, host, _ := targetOf(w.row.Gateway)
	return cmp.Or(host, "gateway.invalid")
}

func requestOf(x *exchange, scheme, host string, sent []byte) request {
	address := x.head.Target
	if strings.HasPrefix(address, "/") || address == "" {
		address = scheme + "://" + host + address
	}
	r := request{
		Method: cmp.Or(x.head.Method, "GET"), URL: address, HTTPVersion: cmp.Or(x.head.Proto, "HTTP/1.1"),
		Cookies: []pair{}, Headers: pairsOf(x.head.Header), QueryString: queryOf(x.head.Target),
		HeadersSize: -1, BodySize: int64(len(sent)),
	}
	if x.marks.Sent != nil {
		r.PostData = &postData{MimeType: x.head.Header.Get("Content-Type")}
		text, coded := textOf(sent)
		if r.PostData.Text = text; coded {
			r.PostData.Encoding = "base64"
		}
	}
	return r
}

func responseOf(x *exchange, got []byte) response {
	r := response{
		Status: x.answer.Status, StatusText: http.StatusText(x.answer.Status), HTTPVersion: cmp.Or(x.answer.Proto, "HTTP/1.1"),
		Cookies: []pair{}, Headers: pairsOf(x.answer.Header), RedirectURL: x.answer.Header.Get("Location"),
		HeadersSize: -1, BodySize: int64(len(x.got)), Error: x.outcome.Error,
	}
	r.Content = content{Size: int64(len(got)), MimeType: cmp.Or(x.answer.Header.Get("Content-Type"), "x-unknown")}
	text, coded := textOf(got)
	if r.Content.Text = text; coded {
		r.Content.Encoding = "base64"
	}
	return r
}

// decoded returns a body without its content coding, as HAR has it.
func decoded(data []byte, coding capture.Flags) ([]byte, error) {
	var in io.Reader
	var err error
	switch {
	case coding.Has(capture.Gzip):
		in, err = gzip.NewReader(bytes.NewReader(data))
	case coding.Has(capture.Deflate):
		if in, err = zlib.NewReader(bytes.NewReader(data)); err != nil {
			in, err = flate.NewReader(bytes.NewReader(data)), nil
		}
	default:
		return data, nil
	}
	if err != nil {
		return data, nil // it is no such thing, and told as it is
	}
	plain, _ := io.ReadAll(io.LimitReader(in, maxBody)) // what broke off counts, too
	return plain, nil
}
