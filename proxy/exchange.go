package proxy

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"tapedeck/protocol/capture"
)

// exchange is the record of one HTTP request and its answer.
type exchange struct {
	tap      *tap
	limit    int
	head     *capture.RequestHead
	query    url.Values
	position capture.Position

	// mu guards what follows: a request's body is read by the transport, on
	// another goroutine than the answer's, and maybe beyond the exchange's end.
	mu       sync.Mutex
	conn     *connection
	up, down body
	expected int64    // announced length of the answer
	status   int      // of the answer, 0 before there is one
	answers  []answer // of a gate, that make up the answer
	failed   bool     // the client broke off its request's body
	done     bool
	fields   http.Header // of a gated handshake: see gateState
}

// body is the record of one body.
type body struct {
	dir   capture.Direction
	kind  capture.Kind  // Polling, which is kept until it is whole, or Body
	flags capture.Flags // its content coding
	size  int64         // what passed
	kept  int
	data  []byte // of a Polling body
	ended bool
	mute  bool // a gate has the say, and its frames are put one by one
	// trailer is the fields that followed it. Where some were announced, they
	// are waited for: open.
	trailer http.Header
	open    bool
}

// polls reports whether x is an Engine.IO polling request.
func (x *exchange) polls() bool {
	return x.query.Has("EIO") && x.query.Get("transport") == "polling" && !x.query.Has("j") &&
		(x.head.Method == http.MethodGet || x.head.Method == http.MethodPost)
}

func (x *exchange) opening(transport capture.Transport) *capture.Opening {
	return &capture.Opening{
		Transport: transport, EIO: x.query.Get("EIO"), SID: x.query.Get("sid"),
		Target: x.head.Target, Remote: x.head.Remote,
	}
}

// exchange puts the Request frame of r on the tape. A request that belongs to a
// Socket.IO session joins it.
func (t *tap) exchange(r *http.Request, limit int) *exchange {
	x := &exchange{tap: t, limit: limit, query: r.URL.Query(), expected: -1}
	x.head = &capture.RequestHead{
		Method: r.Method, Target: r.RequestURI, Proto: r.Proto, Host: r.Host, Remote: r.RemoteAddr,
		Header: withCoding(r.Header, r.TransferEncoding),
	}
	x.up = body{dir: capture.FromClient, kind: capture.Body, flags: coding(r.Header)}
	x.down = body{dir: capture.FromGateway, kind: capture.Body}
	polling := x.polls()
	if x.query.Get("sid") != "" && (polling || x.query.Has("EIO") && wantsWebSocket(r)) {
		o := x.opening(capture.SocketIO)
		o.Polling = polling
		x.conn = t.join(o)
	}
	if polling && x.conn != nil {
		x.up.kind = capture.Polling
	}
	x.position = t.mark(capture.Frame{Kind: capture.Request, Connection: x.connection(), Direction: capture.FromClient}, x.head)
	return x
}

// withCoding adds what net/http took out of a head.
func withCoding(h http.Header, transfer []string) http.Header {
	h = h.Clone()
	if len(transfer) > 0 {
		h["Transfer-Encoding"] = transfer
	}
	return h
}

// coding returns the flag of a body's content coding, 0 if it has none that the
// tape knows.
func coding(h http.Header) capture.Flags {
	switch strings.ToLower(h.Get("Content-Encoding")) {
	case "gzip", "x-gzip":
		return capture.Gzip
	case "deflate":
		return capture.Deflate
	}
	return 0
}

// connection returns the position of x's connection, 0 if it has none yet.
func (x *exchange) connection() capture.Position {
	if x.conn == nil {
		return 0
	}
	return x.conn.position
}

// frame is a frame of x, sent by dir.
func (x *exchange) frame(kind capture.Kind, dir capture.Direction) capture.Frame {
	return capture.Frame{Kind: kind, Direction: dir, Connection: x.connection(), Exchange: x.position}
}

// response puts a response's head on the tape.
func (x *exchange) response(h *capture.ResponseHead, length int64) capture.Position {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.expected, x.status = length, h.Status
	x.down.flags = coding(h.Header)
	if h.Made {
		x.down.flags |= capture.Injected
	}
	if h.Status == http.StatusOK && x.polls() && x.head.Method == http.MethodGet && !x.lateComer() {
		x.down.kind = capture.Polling
	}
	return x.tap.mark(x.frame(capture.Response, capture.FromGateway), h)
}

// lateComer reports whether x came under the sid of a session that had ended.
func (x *exchange) lateComer() bool { return x.conn == nil && x.query.Get("sid") != "" }

// act tells what the proxy itself did.
func (x *exchange) act(d capture.Deed) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.tap.mark(x.frame(capture.Act, 0), &d)
}

// add records p, which is a part of the body that dir sends. If that makes the
// answer as long as was announced, the exchange is finished.
func (x *exchange) add(dir capture.Direction, p []byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	b := x.body(dir)
	if x.done || b.ended || len(p) == 0 {
		return
	}
	x.keep(b, p)
	if dir == capture.FromGateway && b.size == x.expected && !b.mute && !b.open {
		x.whole(b, 0)
		x.conclude(0, "")
	}
}

func (x *exchange) keep(b *body, p []byte) {
	b.size += int64(len(p))
	keep := p[:max(0, min(len(p), x.limit-b.kept))]
	if b.kind == capture.Polling {
		b.kept += len(keep)
		b.data = append(b.data, keep...)
		return
	}
	if b == &x.down && x.status == http.StatusBadRequest && len(b.data) < maxRefusal {
		b.data = append(b.data, keep...)
	}
	if b.kept > x.limit { // said already that the rest is cut
		return
	}
	f := x.frame(b.kind, b.dir)
	f.Flags, f.Size, f.Data = b.flags, int64(len(p)), keep
	b.kept += len(keep)
	if len(keep) < len(p) {
		f.Flags |= capture.Cut
		b.kept = x.limit + 1
	}
	x.tap.put(f)
}

func (x *exchange) body(dir capture.Direction) *body {
	if dir == capture.FromClient {
		return &x.up
	}
	return &x.down
}

// ended says that the body that dir sends is over, in order or not.
func (x *exchange) ended(dir capture.Direction, flags capture.Flags) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.whole(x.body(dir), flags)
}

// expectTrailer says that the answer's body is not its end.
func (x *exchange) expectTrailer() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.down.open = true
}

// trailed notes the fields that followed the body that dir sends.
func (x *exchange) trailed(dir capture.Direction, trailer http.Header) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.body(dir).trailer = trailer.Clone()
}

// whole puts a polling body on the tape and reads from it how its session fares.
func (x *exchange) whole(b *body, flags capture.Flags) {
	if x.done || b.ended {
		return
	}
	b.ended = true
	if b.kind != capture.Polling || b.size == 0 {
		return
	}
	if b.dir == capture.FromGateway && x.conn == nil && flags == 0 {
		x.handshake(b)
	}
	if x.conn != nil && flags == 0 && hasClose(b) {
		x.tap.ends(x.conn, capture.Ending{By: b.dir})
	}
	if b.mute {
		return
	}
	f := x.frame(capture.Polling, b.dir)
	f.Flags, f.Size, f.Data = b.flags|flags, b.size, b.data
	if b.size > int64(len(b.data)) {
		f.Flags |= capture.Cut
	}
	x.tell(x.tap.put(f), x.answers)
	b.data, x.answers = nil, nil
}

// handshake opens the connection that b is the handshake of.
func (x *exchange) handshake(b *body) {
	sid, patience := parseHandshake(plain(b.data, b.flags))
	if sid == "" {
		return
	}
	o := x.opening(capture.SocketIO)
	o.Polling, o.SID = true, sid
	x.conn = x.tap.open(o, x.position, patience)
	if x.fields != nil {
		x.conn.gate.lend(x.fields)
	}
}

// lend is gateState.lend, also for a handshake, which has no connection yet.
func (x *exchange) lend(h http.Header) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.fields = h; x.conn != nil {
		x.conn.gate.lend(h)
	}
}

// finish puts the Done frame on the tape, unless it is there, and leaves the
// connection. By is who cut x short, zero if nobody did or the proxy did; fault
// says how.
func (x *exchange) finish(by capture.Direction, fault string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.conclude(by, fault)
}

// conclude is finish with mu held.
func (x *exchange) conclude(by capture.Direction, fault string) {
	if x.done {
		return
	}
	x.whole(&x.up, capture.Partial) // unless it was whole before
	if fault == "" {
		x.whole(&x.down, 0)
	} else {
		x.whole(&x.down, capture.Partial)
	}
	x.done = true
	x.tap.mark(x.frame(capture.Done, 0), &capture.Outcome{
		RequestBytes: x.up.size, ResponseBytes: x.down.size, Expected: x.expected, By: by, Error: fault,
		RequestTrailer: x.up.trailer, Trailer: x.down.trailer,
	})
	if x.conn == nil {
		return
	}
	if x.status == http.StatusBadRequest && bytes.Contains(x.down.data, []byte(unknownSession)) {
		x.tap.ends(x.conn, capture.Ending{By: capture.FromGateway, Error: "the gateway does not know the session"})
	}
	x.tap.leave(x.conn, by)
}

// requestBody records a request's body as the transport reads it.
type requestBody struct {
	io.ReadCloser
	x *exchange
	r *http.Request // whose Trailer is filled at the end of its body
}

func (b *requestBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.x.add(capture.FromClient, p[:n])
	if err == io.EOF {
		b.x.trailed(capture.FromClient, b.r.Trailer)
		b.x.ended(capture.FromClient, 0)
	} else if err != nil {
		b.x.clientFailed()
	}
	return n, err
}

// clientFailed notes that the client broke off its request.
func (x *exchange) clientFailed() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.whole(&x.up, capture.Partial)
	x.failed = true
}

// clientLeft reports whether the client broke off r.
func (x *exchange) clientLeft(r *http.Request) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.failed || r.Context().Err() != nil
}
