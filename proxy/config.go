package proxy

import (
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"tapedeck/protocol/capture"
)

// DefaultBodyLimit is how much of one body or message is kept unless told
// otherwise: 64 MiB.
const DefaultBodyLimit = 64 << 20

// Config configures a Proxy. Upstream and Sink are required; the zero value of
// any other field means its default.
type Config struct {
	// Upstream is the gateway's address: a scheme (http, https, ws or wss), a
	// host and maybe a port, and nothing more.
	Upstream *url.URL
	// Sink takes what passes.
	Sink Sink
	// Gate is asked before a message is sent on. Nil lets all pass at once.
	Gate Gate

	// FirstPosition is the position of the first frame, 1 by default.
	FirstPosition capture.Position
	// Start is what the frames' times count from, the moment of New by default.
	Start time.Time
	// BodyLimit is how many bytes of one body or message are handed to the Sink,
	// DefaultBodyLimit by default. What is longer is passed on whole all the
	// same, unless a Gate must see it whole.
	BodyLimit int

	// Origin replaces the Origin that clients send, "" keeps it.
	Origin string
	// KeepCookies leaves cookies as the gateway set them, even those that a
	// browser would drop at the proxy's own origin.
	KeepCookies bool
	// KeepCompression lets client and gateway negotiate the compression of
	// WebSocket messages. A Gate and compression exclude each other.
	KeepCompression bool

	// RootCAs are the authorities that the gateway's certificate may be signed
	// by, the system's by default. Insecure accepts any certificate.
	RootCAs  *x509.CertPool
	Insecure bool
	// Via returns the forward proxy that leads to the gateway, as
	// http.ProxyFromEnvironment does, for HTTP and WebSockets alike. Nil
	// connects directly.
	Via func(*http.Request) (*url.URL, error)

	// Logger is told of connections and of trouble, never of payloads. Nil
	// discards.
	Logger *slog.Logger
}

// Validate returns an error that names the first field that is wrong.
func (c *Config) Validate() error {
	u := c.Upstream
	switch {
	case u == nil:
		return errors.New("config: Upstream is missing: give the gateway's address, such as http://localhost:3000")
	case u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "ws" && u.Scheme != "wss":
		return fmt.Errorf("config: Upstream %q needs a scheme, http:// or https://", u.Redacted())
	case u.Hostname() == "":
		return fmt.Errorf("config: Upstream %q has no host", u.Redacted())
	case u.User != nil:
		return fmt.Errorf("config: Upstream %q has credentials in it: clients send their own, and nothing is added to them", u.Redacted())
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("config: Upstream %q has a path: requests keep the paths they come with, so give the address only, up to the port", u.Redacted())
	case c.Sink == nil:
		return errors.New("config: Sink is missing")
	case c.BodyLimit < 0:
		return fmt.Errorf("config: BodyLimit %d is negative", c.BodyLimit)
	case c.Gate != nil && c.KeepCompression:
		return errors.New("config: KeepCompression and Gate exclude each other: a compressed message cannot be taken out without breaking those after it")
	}
	if c.Origin != "" {
		if o, err := url.Parse(c.Origin); err != nil || o.Scheme == "" || o.Host == "" || o.Path != "" {
			return fmt.Errorf("config: Origin %q is no origin such as https://app.example.com", c.Origin)
		}
	}
	return nil
}

// gateway returns Upstream as HTTP names it.
func (c *Config) gateway() url.URL {
	g := url.URL{Scheme: c.Upstream.Scheme, Host: c.Upstream.Host}
	switch g.Scheme {
	case "ws":
		g.Scheme = "http"
	case "wss":
		g.Scheme = "https"
	}
	return g
}
