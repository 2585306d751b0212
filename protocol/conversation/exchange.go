package conversation

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

// exchange is an HTTP exchange that says something about the protocol: an
// answer of GET /protocol, or a client that speaks Engine.IO 3.
type exchange struct {
	request  capture.Position
	oldSpeak string // the EIO of the query, if it is not 4
	version  bool   // it asks for /protocol
	status   int
	body     []byte
	gzip     bool
}

const (
	maxExchanges = 256
	maxAnswer    = 64 << 10 // bytes of an answer of GET /protocol
)

// exchange takes a part of an HTTP exchange.
func (s *State) exchange(f *capture.Frame) {
	if f.Kind == capture.Request {
		s.request(f)
		return
	}
	x := s.exchanges[f.Exchange]
	if x == nil {
		return
	}
	switch f.Kind {
	case capture.Response:
		head, err := capture.Detail[capture.ResponseHead](f)
		if err != nil || head.Made {
			delete(s.exchanges, f.Exchange)
			return
		}
		if x.status = head.Status; x.oldSpeak != "" && x.status == 400 {
			s.oldEngine(&capture.Frame{Position: x.request}, x.oldSpeak)
		}
	case capture.Body:
		if f.Direction == capture.FromGateway && x.version && len(x.body)+len(f.Data) <= maxAnswer {
			x.body = append(x.body, f.Data...)
			x.gzip = f.Flags.Has(capture.Gzip)
		}
	case capture.Done:
		delete(s.exchanges, f.Exchange)
		if x.version && x.status == 200 {
			s.protocolAnswer(x)
		}
	}
}

func (s *State) request(f *capture.Frame) {
	head, err := capture.Detail[capture.RequestHead](f)
	if err != nil {
		return
	}
	path, query, _ := strings.Cut(head.Target, "?")
	x := &exchange{request: f.Position, version: head.Method == "GET" && strings.HasSuffix(strings.TrimSuffix(path, "/"), "/protocol")}
	if f.Connection == 0 {
		if q, err := url.ParseQuery(query); err == nil && q.Has("transport") && q.Get("EIO") != "4" {
			if x.oldSpeak = q.Get("EIO"); x.oldSpeak == "" {
				x.oldSpeak = "3" // what a query without EIO counts as
			}
		}
	}
	if !x.version && x.oldSpeak == "" {
		return
	}
	if len(s.exchanges) >= maxExchanges {
		clear(s.exchanges)
	}
	s.exchanges[f.Position] = x
}

// protocolAnswer reads what GET /protocol answered.
func (s *State) protocolAnswer(x *exchange) {
	body := x.body
	if x.gzip {
		r, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return
		}
		if body, err = io.ReadAll(io.LimitReader(r, maxAnswer)); err != nil {
			return
		}
	}
	if a, ok := protocol.ReadHello(body); ok {
		s.sameAnnouncement(capture.Address{Position: x.request}, a)
	}
}

// oldEngine reports a client of Engine.IO 3.
func (s *State) oldEngine(f *capture.Frame, eio string) {
	s.blame(protocol.Finding{
		Rule: "engine-version", Severity: protocol.Warning,
		At: capture.Address{Position: f.Position}, Connection: f.Connection,
	}, "the client speaks EIO %s, and gateways of today speak EIO 4: use socket.io-client 3 or later", short(eio))
}

// act takes note of what the proxy did.
func (s *State) act(f *capture.Frame) {
	deed, err := capture.Detail[capture.Deed](f)
	if err != nil || deed.Did != "adapted" {
		return
	}
	text := deed.Text
	if text == "" {
		text = "a cookie was changed so that the browser keeps it"
	}
	s.blame(protocol.Finding{
		Rule: "cookie-adapted", Severity: protocol.Note,
		At: capture.Address{Position: f.Position}, Other: capture.Address{Position: deed.Of}, Connection: f.Connection,
	}, "%s", text)
}

// version writes an announcement for a finding.
func version(a protocol.Announcement) string {
	return fmt.Sprintf("%d.%d, serving majors from %d", a.Major, a.Minor, a.MinClientMajor)
}

// brief writes a duration with three digits or so.
func brief(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
