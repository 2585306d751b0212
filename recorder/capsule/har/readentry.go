package har

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tapedeck/protocol/capture"
)

// told is an entry that is being read.
type told struct {
	r       *reader
	g       *group
	name    string
	e       entry
	began   int64 // nanoseconds since 1970
	until   int64
	query   url.Values
	scheme  string
	head    capture.RequestHead
	request *link
	own     bool // it is of our own writing
}

// entry reads an entry.
func (r *reader) entry(name string, raw []byte) error {
	t := &told{r: r, name: name}
	if err := decode(raw, &t.e); err != nil {
		return err
	}
	began, err := time.Parse(time.RFC3339, t.e.Started)
	if err != nil {
		return fmt.Errorf("startedDateTime %q is no time", t.e.Started)
	}
	if y := began.Year(); y < 1970 || y > 2200 {
		return fmt.Errorf("startedDateTime %q is far away", t.e.Started)
	}
	t.began = began.UnixNano()
	t.until = t.began + nanoseconds(t.e.Time, 1e6)
	session := 0
	if t.own = t.e.Tape != nil; t.own {
		session = t.e.Tape.Session
	} else {
		t.e.Tape = &remark{}
	}
	if session < 0 || session > len(r.rows) {
		return fmt.Errorf("it belongs to session %d, and there are %d", session, len(r.rows))
	}
	t.g = r.group(session)
	return t.read()
}

// nanoseconds turns a number of some unit into nanoseconds, within bounds.
func nanoseconds(n, unit float64) int64 {
	const bound = 1 << 62
	if v := n * unit; v > -bound && v < bound { // not, if it is no number
		return int64(math.Round(v))
	}
	return 0
}

func (t *told) read() error {
	scheme, host, target := targetOf(t.e.Request.URL)
	if target == "" {
		return fmt.Errorf("request.url %q is no address", t.e.Request.URL)
	}
	_, query, _ := strings.Cut(target, "?")
	t.query, _ = url.ParseQuery(query) // what cannot be read of it is left out
	t.scheme = scheme
	t.head = capture.RequestHead{
		Method: t.e.Request.Method, Target: target, Proto: protoOf(t.e.Request.HTTPVersion), Host: host, Header: headerOf(t.e.Request.Headers),
	}
	socket := t.e.Messages != nil || t.e.Resource == "websocket" || scheme == "ws" || scheme == "wss"
	polling := t.query.Has("EIO") && t.query.Get("transport") == "polling"
	if t.own {
		socket, polling = t.e.Messages != nil, t.e.Tape.Poll
	}
	if (socket || polling) && t.g.host == "" {
		web := strings.Replace(scheme, "ws", "http", 1)
		t.g.host = web + "://" + host
	}
	switch {
	case socket:
		return t.socket()
	case polling:
		return t.poll()
	}
	return t.exchange(capture.Body, nil)
}

func protoOf(version string) string {
	switch strings.ToLower(version) {
	case "h2", "http/2", "http/2.0":
		return "HTTP/2.0"
	case "h3", "http/3":
		return "HTTP/3.0"
	case "", "unknown":
		return "HTTP/1.1"
	}
	return strings.ToUpper(version)
}

// put adds a frame that passed at a time; of ours, with the number and the time
// that it had.
func (t *told) put(f capture.Frame, wall int64, m *mark, of *link) *item {
	i := &item{frame: f, wall: wall, key: wall, of: of, via: t.request}
	i.frame.Size = int64(len(f.Data))
	if m != nil {
		i.n, i.exact, i.frame.At = m.N, true, m.At
		i.frame.Flags |= m.Flags
		if m.Size > 0 {
			i.frame.Size = m.Size
		}
	}
	t.g.add(i)
	return i
}

// ask adds the request. Of ours that had none nothing is made up.
func (t *told) ask(of *link) {
	m := t.e.Tape.Request
	if t.own && m == nil {
		return
	}
	t.request = &link{}
	t.request.first = t.put(capture.Frame{Kind: capture.Request, Direction: capture.FromClient, Data: jsonOf(t.head)}, t.began, m, of)
}

func (t *told) answer(wall int64, of *link) {
	m := t.e.Tape.Answer
	if t.own && m == nil || !t.own && t.e.Response.Status == 0 {
		return
	}
	head := capture.ResponseHead{Status: t.e.Response.Status, Proto: protoOf(t.e.Response.HTTPVersion), Header: headerOf(t.e.Response.Headers)}
	if coding := head.Header["Content-Encoding"]; coding != nil {
		// The body stands here without it.
		head.Adapted = http.Header{"Content-Encoding": coding}
		delete(head.Header, "Content-Encoding")
	}
	t.put(capture.Frame{Kind: capture.Response, Direction: capture.FromGateway, Data: jsonOf(head)}, wall, m, of)
}

// open adds the beginning of a connection.
func (t *told) open(c *link, wall int64, o capture.Opening) {
	m := t.e.Tape.Opened
	data := jsonOf(o)
	if m != nil && m.Detail != nil {
		data = m.Detail
	}
	f := capture.Frame{Kind: capture.Open, Data: data}
	if m != nil {
		f.Direction = m.Dir
	}
	c.first = t.put(f, wall, m, c)
}

// connection is the one that an entry of ours names.
func (t *told) connection() *link {
	if t.own && t.e.Tape.Conn != 0 {
		return t.g.numbered(t.e.Tape.Conn)
	}
	return nil
}

// socket reads a WebSocket: its request, and its messages.
func (t *told) socket() error {
	c := t.connection()
	sid := t.query.Get("sid")
	if c == nil && t.query.Has("EIO") && sid != "" {
		c = t.g.polls[sid]
	}
	fresh := c == nil || t.own && t.e.Tape.Opened != nil
	if c == nil {
		c = &link{}
	}
	if fresh {
		t.ask(nil)
	} else {
		t.ask(c)
	}
	transport := capture.WebSocket
	if t.query.Has("EIO") {
		transport = capture.SocketIO
	}
	if fresh {
		t.open(c, t.began, capture.Opening{
			Transport: transport, EIO: t.query.Get("EIO"), SID: sid, Target: t.head.Target, Joined: sid != "",
			Protocol: http.Header(headerOf(t.e.Response.Headers)).Get("Sec-Websocket-Protocol"),
		})
	}
	t.answer(t.began, c)
	latest := t.began
	for i := range t.e.Messages {
		m := &t.e.Messages[i]
		f, err := m.frame()
		if err != nil {
			t.r.fault(fmt.Sprintf("%s._webSocketMessages[%d]", t.name, i), err)
			continue
		}
		wall := wallOf(m.Time)
		if wall == 0 {
			wall = latest
		}
		it := t.put(f, wall, m.mark(), c)
		latest = max(latest, wall) // the order stays, though times run backwards
		it.key = latest
	}
	t.done(max(latest, t.until), c)
	return nil
}

// wallOf reads a message's time, be it in seconds, in milliseconds or in
// microseconds. Finer than microseconds it cannot be.
func wallOf(at float64) int64 {
	switch {
	case at > 1e14:
	case at > 1e11:
		at *= 1e3
	default:
		at *= 1e6
	}
	return nanoseconds(math.Round(at), 1e3)
}

func (m *message) mark() *mark {
	if m.Tape == nil {
		return nil
	}
	return &mark{N: m.Tape.N, At: m.Tape.At, Flags: m.Tape.Flags, Size: m.Tape.Size}
}

// frame reads a message.
func (m *message) frame() (f capture.Frame, err error) {
	switch {
	case strings.HasPrefix(m.Type, "sen"):
		f.Direction = capture.FromClient
	case strings.HasPrefix(m.Type, "receive"):
		f.Direction = capture.FromGateway
	default:
		return f, fmt.Errorf("its type %q is neither send nor receive", m.Type)
	}
	kind, ok := kindOf(m.Opcode)
	if !ok {
		return f, fmt.Errorf("no message has the opcode %d", m.Opcode)
	}
	f.Kind, f.Data = kind, []byte(m.Data)
	stream := m.Tape != nil && m.Tape.Stream
	if stream {
		f.Kind = capture.Stream
	}
	if kind != capture.Text || stream || m.Tape != nil && m.Tape.Base64 {
		data, err := base64.StdEncoding.DecodeString(m.Data)
		switch {
		case err == nil:
			f.Data = data
		case kind == capture.Binary:
			return f, errors.New("its data is no base64")
		}
	}
	return f, nil
}

func (t *told) done(wall int64, of *link) {
	if t.request == nil {
		return
	}
	m := t.e.Tape.Done
	if t.own {
		if m != nil {
			t.put(capture.Frame{Kind: capture.Done, Direction: m.Dir, Data: m.Detail}, wall, m, of)
		}
		return
	}
	outcome := capture.Outcome{RequestBytes: max(t.e.Request.BodySize, 0), ResponseBytes: max(t.e.Response.BodySize, 0), Expected: -1, Error: t.e.Response.Error}
	t.put(capture.Frame{Kind: capture.Done, Data: jsonOf(outcome)}, wall, nil, of)
}

// poll reads a request of long polling. The first of a connection has no sid yet:
// it is in the answer.
func (t *told) poll() error {
	c := t.connection()
	sid := t.query.Get("sid")
	switch {
	case c != nil:
	case sid != "":
		if c = t.g.polls[sid]; c == nil { // its beginning is not in the archive
			c = &link{}
			t.g.polls[sid] = c
			t.open(c, t.began, capture.Opening{Transport: capture.SocketIO, Polling: true, EIO: t.query.Get("EIO"), SID: sid, Joined: true, Target: t.head.Target})
		}
	default:
		got, _ := t.e.Response.Content.bytes()
		var hand struct {
			SID string `json:"sid"`
		}
		if len(got) > 0 && got[0] == '0' && json.NewDecoder(strings.NewReader(string(got[1:]))).Decode(&hand) == nil && hand.SID != "" {
			c = &link{}
			t.g.polls[hand.SID] = c
			t.ask(nil)
			t.open(c, t.began, capture.Opening{Transport: capture.SocketIO, Polling: true, EIO: t.query.Get("EIO"), SID: hand.SID, Target: t.head.Target})
		}
	}
	return t.exchange(capture.Polling, c)
}

// exchange reads a request and its answer.
func (t *told) exchange(kind capture.Kind, c *link) error {
	if t.request == nil {
		if t.own && t.e.Tape.Opened != nil {
			t.ask(nil)
			t.open(c, t.began, capture.Opening{})
		} else {
			t.ask(c)
		}
	}
	if p := t.e.Request.PostData; p != nil && (p.Text != "" || t.e.Tape.Sent != nil) {
		data := []byte(p.Text)
		if p.Encoding == "base64" {
			plain, err := base64.StdEncoding.DecodeString(p.Text)
			if err != nil {
				return errors.New("postData.text is no base64")
			}
			data = plain
		}
		t.put(capture.Frame{Kind: kind, Direction: capture.FromClient, Data: data}, t.began, t.e.Tape.Sent, c)
	}
	answered := t.began + nanoseconds(max(t.e.Timings.Send, 0)+max(t.e.Timings.Wait, 0), 1e6)
	answered = min(max(answered, t.began), max(t.until, t.began))
	t.answer(answered, c)
	got, err := t.e.Response.Content.bytes()
	if err != nil {
		return err
	}
	if len(got) > 0 || t.e.Tape.Got != nil {
		t.put(capture.Frame{Kind: kind, Direction: capture.FromGateway, Data: got}, max(t.until, answered), t.e.Tape.Got, c)
	}
	t.done(max(t.until, answered), c)
	return nil
}

// bytes is an answer's body.
func (c *content) bytes() ([]byte, error) {
	if c.Encoding != "base64" {
		return []byte(c.Text), nil
	}
	data, err := base64.StdEncoding.DecodeString(c.Text)
	if err != nil {
		return nil, errors.New("response.content.text is no base64")
	}
	return data, nil
}
