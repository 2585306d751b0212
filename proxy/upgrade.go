package proxy

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"

	"tapedeck/protocol/capture"
	"tapedeck/protocol/wire"
)

// upgrade passes on a request for a WebSocket and, if the gateway agrees, what
// follows it. It reports whether an answer was cut short.
func (p *Proxy) upgrade(w http.ResponseWriter, r *http.Request, x *exchange) (broken bool) {
	ctx, cancel := p.bound(r.Context(), false)
	defer cancel()
	if p.cfg.Gate != nil && x.conn != nil {
		x.conn.gate.enter(ctx, x.conn.patience)
		defer x.conn.gate.exit()
	}
	var conn net.Conn // written before RoundTrip returns
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(i httptrace.GotConnInfo) { conn = i.Conn },
	})
	out := p.outgoing(ctx, r, x)
	out.Header["Connection"] = []string{"Upgrade"}
	out.Header["Upgrade"] = []string{"websocket"}
	if !p.cfg.KeepCompression {
		// So that frames are messages, on both legs.
		delete(out.Header, "Sec-Websocket-Extensions")
	}
	res, err := p.roads.single.RoundTrip(out)
	if err != nil {
		return p.failed(ctx, w, r, x, err)
	}
	if res.StatusCode != http.StatusSwitchingProtocols {
		defer res.Body.Close()
		p.head(w, r, x, res)
		by, cause := p.copyBody(ctx, w, r, x, res)
		x.finish(by, cause)
		return cause != ""
	}
	body, ok := res.Body.(io.ReadWriteCloser)
	if !ok || !hasToken(res.Header["Upgrade"], "websocket") {
		res.Body.Close()
		p.refuse(w, x, http.StatusBadGateway, "the gateway at "+p.gateway.Host+" answered 101 without an upgrade to WebSocket")
		return false
	}
	s := &socket{p: p, x: x, packets: x.query.Has("EIO"), conn: x.conn}
	s.down.src = &leg{Conn: conn, body: body}
	return p.serve(w, r, s, res)
}

// serve takes the client's connection over, sends it the 101 and relays.
func (p *Proxy) serve(w http.ResponseWriter, r *http.Request, s *socket, res *http.Response) (broken bool) {
	defer s.down.src.Close()
	if !p.cfg.KeepCompression {
		delete(res.Header, "Sec-Websocket-Extensions")
	}
	p.openSocket(s, res)
	p.respond(r, s.x, res)
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		s.x.finish(capture.FromClient, "take the connection over: "+err.Error())
		p.endSocket(s, &capture.Ending{By: capture.FromClient, Code: wire.Abnormal, Error: err.Error()})
		return true
	}
	s.up.src = &leg{Conn: client, ahead: buffered.Reader}
	s.connect(res.Header.Get("Sec-Websocket-Extensions"))
	if p.enlist(s) {
		if _, err := client.Write(switching(res.Header)); err != nil {
			s.ended(capture.FromClient, err)
			s.cut()
		}
		s.relay()
		p.dismiss(s)
	} else {
		s.ended(0, net.ErrClosed)
		s.cut()
	}
	s.x.sizes(s.up.passed, s.down.passed)
	s.x.finish(s.ending.By, s.ending.Error)
	p.endSocket(s, s.ending)
	return false
}

// openSocket puts the Open frame of s on the tape, unless its connection began
// with polling.
func (p *Proxy) openSocket(s *socket, res *http.Response) {
	if s.conn != nil {
		return
	}
	transport := capture.WebSocket
	if s.packets {
		transport = capture.SocketIO
	}
	o := s.x.opening(transport)
	o.Protocol = res.Header.Get("Sec-Websocket-Protocol")
	if transport == capture.WebSocket {
		o.SID = "" // a query's sid means something else there
	}
	s.owner = true
	s.conn = p.tap.open(o, s.x.position, defaultPatience)
	s.x.conn = s.conn
	p.tap.upgrade(s.conn)
}

// endSocket puts the End frame on the tape if the connection ends with s.
func (p *Proxy) endSocket(s *socket, e *capture.Ending) {
	if s.owner {
		p.tap.end(s.conn, *e)
	}
}

// enlist makes s known to Shutdown, unless the proxy is closing.
func (p *Proxy) enlist(s *socket) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing {
		return false
	}
	p.sockets[s] = struct{}{}
	return true
}

func (p *Proxy) dismiss(s *socket) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.sockets, s)
}

// switching is the head that tells the client to go on as a WebSocket.
func switching(h http.Header) []byte {
	stripHops(h)
	h["Connection"], h["Upgrade"] = []string{"Upgrade"}, []string{"websocket"}
	var b bytes.Buffer
	b.WriteString("HTTP/1.1 101 Switching Protocols\r\n")
	h.Write(&b)
	b.WriteString("\r\n")
	return b.Bytes()
}

// sizes notes how many bytes passed beyond the heads.
func (x *exchange) sizes(up, down int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.up.size, x.down.size = up, down
}
