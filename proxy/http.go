package proxy

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync"

	"tapedeck/protocol/capture"
)

// pass hands r to the gateway and the answer to w, as both come. It reports
// whether the answer was cut short.
func (p *Proxy) pass(w http.ResponseWriter, r *http.Request, x *exchange) (broken bool) {
	ctx, cancel := p.bound(r.Context(), x.polls() && r.Method == http.MethodGet)
	defer cancel()
	if r.ContentLength != 0 {
		// The gateway may answer before it has read all, and go on reading.
		// Servers that cannot do this still pass everything, only later.
		http.NewResponseController(w).EnableFullDuplex()
	}
	early := &informational{w: w, x: x}
	out := p.outgoing(early.watch(ctx), r, x)
	res, err := p.roads.pass(out, x.polls())
	early.stop()
	if err != nil {
		return p.failed(ctx, w, r, x, err)
	}
	defer res.Body.Close()
	p.head(w, r, x, res)
	by, cause := p.copyBody(ctx, w, r, x, res)
	x.finish(by, cause)
	return cause != ""
}

// outgoing is r as it is sent to the gateway.
func (p *Proxy) outgoing(ctx context.Context, r *http.Request, x *exchange) *http.Request {
	if r.ContentLength < 0 && r.Trailer == nil {
		r.Trailer = http.Header{} // for those that were not announced
	}
	out := (&http.Request{
		Method: r.Method, Host: p.gateway.Host, Header: r.Header.Clone(), ProtoMajor: 1, ProtoMinor: 1,
		ContentLength: r.ContentLength, Trailer: r.Trailer,
	}).WithContext(ctx)
	stripHops(out.Header)
	if did := p.adapt.request(out.Header); did != nil {
		x.act(capture.Deed{Did: "adapted", Of: x.position, Text: strings.Join(did, "; ")})
	}
	if p.cfg.Origin != "" && out.Header.Get("Origin") != "" && out.Header.Get("Origin") != p.cfg.Origin {
		out.Header.Set("Origin", p.cfg.Origin)
		x.act(capture.Deed{Did: "adapted", Of: x.position, Text: "Origin is " + p.cfg.Origin + ", as --origin asked"})
	}
	if _, sent := out.Header["User-Agent"]; !sent {
		out.Header["User-Agent"] = nil // else net/http names itself
	}
	if r.ContentLength != 0 {
		out.Body = &requestBody{ReadCloser: r.Body, x: x, r: r}
	}
	out.URL = target(p.gateway, r.RequestURI, p.viaPlain(out, r))
	return out
}

// viaPlain reports whether a forward proxy reads the target of the request.
func (p *Proxy) viaPlain(out, r *http.Request) bool {
	if p.cfg.Via == nil || p.gateway.Scheme != "http" {
		return false
	}
	out.URL = target(p.gateway, r.RequestURI, false)
	via, err := p.cfg.Via(out)
	return err == nil && via != nil && strings.HasPrefix(via.Scheme, "http")
}

// head records the head of res and sends it to the client.
func (p *Proxy) head(w http.ResponseWriter, r *http.Request, x *exchange, res *http.Response) {
	p.respond(r, x, res)
	stripHops(res.Header)
	h := w.Header()
	maps.Copy(h, res.Header)
	for _, name := range [...]string{"Date", "Content-Type"} {
		if _, sent := h[name]; !sent {
			h[name] = nil // else net/http invents it
		}
	}
	for name := range res.Trailer {
		h.Add("Trailer", name)
	}
	w.WriteHeader(res.StatusCode)
	if res.ContentLength != 0 {
		http.NewResponseController(w).Flush()
	}
}

// respond puts the head of res on the tape, as it is going to be sent.
func (p *Proxy) respond(r *http.Request, x *exchange, res *http.Response) {
	was, did := p.adapt.answer(res.Header, r)
	if p.cfg.Gate != nil && x.polls() {
		x.lend(res.Header)
	}
	length := res.ContentLength
	if r.Method == http.MethodHead {
		length = 0
	}
	if len(res.Trailer) > 0 {
		x.expectTrailer()
	}
	of := x.response(&capture.ResponseHead{
		Status: res.StatusCode, Proto: res.Proto, Header: withCoding(res.Header, res.TransferEncoding), Adapted: was,
	}, length)
	if did != nil {
		x.act(capture.Deed{Did: "adapted", Of: of, Text: strings.Join(did, "; ")})
	}
}

// copyBody passes the body of res on, a write and a flush for each read. It
// returns who cut it short and how, "" if it is whole.
func (p *Proxy) copyBody(ctx context.Context, w http.ResponseWriter, r *http.Request, x *exchange, res *http.Response) (capture.Direction, string) {
	flush := http.NewResponseController(w)
	buf := p.pieces.Get().(*piece)
	defer p.pieces.Put(buf)
	for {
		n, err := res.Body.Read(buf[:])
		if n > 0 {
			x.add(capture.FromGateway, buf[:n])
			_, werr := w.Write(buf[:n])
			if werr == nil {
				werr = flush.Flush()
			}
			if werr != nil {
				return p.blame(ctx, r, x, werr, capture.FromClient)
			}
		}
		if err == io.EOF {
			x.trailed(capture.FromGateway, res.Trailer)
			x.ended(capture.FromGateway, 0)
			copyTrailer(w, res)
			return 0, ""
		}
		if err != nil {
			return p.blame(ctx, r, x, err, capture.FromGateway)
		}
	}
}

// copyTrailer sends the fields that followed the body, announced or not.
func copyTrailer(w http.ResponseWriter, res *http.Response) {
	for name, values := range res.Trailer {
		w.Header()[http.TrailerPrefix+name] = values
	}
}

// blame says who cut an exchange short, given the error that one side's reading
// or writing met.
func (p *Proxy) blame(ctx context.Context, r *http.Request, x *exchange, err error, side capture.Direction) (capture.Direction, string) {
	switch {
	case context.Cause(ctx) == errStopped:
		return 0, errStopped.Error()
	case side == capture.FromClient, x.clientLeft(r):
		return capture.FromClient, x.progress("client left after")
	}
	return capture.FromGateway, x.progress("gateway cut the answer after") + ": " + fault(err)
}

// progress says how much of the answer had passed.
func (x *exchange) progress(what string) string {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.expected >= 0 {
		return fmt.Sprintf("%s %d of %d bytes", what, x.down.size, x.expected)
	}
	return fmt.Sprintf("%s %d bytes", what, x.down.size)
}

// failed ends an exchange that the gateway did not answer.
func (p *Proxy) failed(ctx context.Context, w http.ResponseWriter, r *http.Request, x *exchange, err error) (broken bool) {
	switch {
	case context.Cause(ctx) == errStopped:
		x.finish(0, errStopped.Error())
		return true
	case x.clientLeft(r):
		x.finish(capture.FromClient, "client left before the answer")
		return true
	}
	text := explain(p.gateway, err)
	p.log.Warn("gateway did not answer", "exchange", uint64(x.position), "err", err)
	p.answer(w, x, http.StatusBadGateway, "text/plain; charset=utf-8", "tapedeck: "+text+"\n", capture.FromGateway, text)
	return false
}

// informational passes 1xx answers on, which come while the gateway's answer is
// waited for. The 100 is not among them: net/http sends it when the body is
// asked for.
type informational struct {
	w http.ResponseWriter
	x *exchange

	mu   sync.Mutex // guards over, and w until then
	over bool
}

func (i *informational) watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{Got1xxResponse: i.pass})
}

func (i *informational) pass(code int, header textproto.MIMEHeader) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.over || code == http.StatusContinue {
		return nil
	}
	h := http.Header(header)
	i.x.response(&capture.ResponseHead{Status: code, Proto: "HTTP/1.1", Header: h}, -1)
	maps.Copy(i.w.Header(), h)
	i.w.WriteHeader(code)
	clear(i.w.Header())
	return nil
}

func (i *informational) stop() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.over = true
}
