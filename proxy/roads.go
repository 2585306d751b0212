package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// expectWait is how long a client's body waits for the gateway's 100, as HTTP
// asks not to wait for ever.
const expectWait = time.Second

// A shared connection that has been silent for sharedPing is asked whether it is
// alive, and given up sharedDead later; one that nobody uses is closed after
// sharedIdle.
const (
	sharedPing = 30 * time.Second
	sharedDead = 15 * time.Second
	sharedIdle = 90 * time.Second
)

// roads are the ways to the gateway.
type roads struct {
	// rest is for plain HTTP, over HTTP/2 where the gateway offers it.
	rest *http.Transport
	// single is HTTP/1.1, a connection for each request: for polling and for
	// upgrades.
	single *http.Transport
	// shared is set while the gateway speaks HTTP/2. A connection of HTTP/1.1 is
	// never used twice: the gateway may close it just then, and a request that
	// is tried again may reach it twice.
	shared *atomic.Bool
}

func newRoads(c *Config) roads {
	newTransport := func() *http.Transport {
		t := &http.Transport{
			Proxy:                 c.Via,
			DialContext:           dial,
			TLSClientConfig:       &tls.Config{RootCAs: c.RootCAs, InsecureSkipVerify: c.Insecure},
			DisableCompression:    true,
			ExpectContinueTimeout: expectWait,
			Protocols:             new(http.Protocols),
			WriteBufferSize:       relaySmall,
			ReadBufferSize:        relaySmall,
		}
		t.Protocols.SetHTTP1(true)
		return t
	}
	r := roads{rest: newTransport(), single: newTransport(), shared: new(atomic.Bool)}
	r.rest.Protocols.SetHTTP2(true)
	r.rest.HTTP2 = &http.HTTP2Config{SendPingTimeout: sharedPing, PingTimeout: sharedDead}
	r.rest.IdleConnTimeout = sharedIdle
	r.single.DisableKeepAlives = true
	return r
}

// pass sends out to the gateway. Poll is whether it is an Engine.IO polling
// request.
func (r *roads) pass(out *http.Request, poll bool) (*http.Response, error) {
	if poll {
		return r.single.RoundTrip(out)
	}
	out.Close = !r.shared.Load()
	res, err := r.rest.RoundTrip(out)
	if err == nil {
		r.shared.Store(res.ProtoMajor == 2)
	}
	return res, err
}

func (r *roads) close() {
	r.rest.CloseIdleConnections()
	r.single.CloseIdleConnections()
}

// dial connects to address. A localhost is tried on both of its families, since
// not every machine's resolver knows both and dev servers listen on one of them.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	host, port, err := net.SplitHostPort(address)
	if err != nil || !isLocalhost(host) {
		return d.DialContext(ctx, network, address)
	}
	var errs []error
	for _, literal := range []string{"127.0.0.1", "::1"} {
		conn, err := d.DialContext(ctx, network, net.JoinHostPort(literal, port))
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

func isLocalhost(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}
