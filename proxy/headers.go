package proxy

import (
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
)

// hopByHop are the fields that speak of one connection only (RFC 9110, section
// 7.6.1), besides those that Connection names. Credentials for a proxy are not
// among them: they may be meant for one further on.
var hopByHop = [...]string{"Connection", "Proxy-Connection", "Keep-Alive", "Te", "Transfer-Encoding", "Upgrade"}

// stripHops removes from h what speaks of one connection only.
func stripHops(h http.Header) {
	trailers := hasToken(h["Te"], "trailers")
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			if name = textproto.TrimString(name); name != "" {
				h.Del(name)
			}
		}
	}
	for _, name := range hopByHop {
		h.Del(name)
	}
	if trailers {
		h.Set("Te", "trailers") // the one that may be said again
	}
}

// hasToken reports whether token is in a comma-separated list, without regard
// to case.
func hasToken(lines []string, token string) bool {
	for _, line := range lines {
		for item := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(textproto.TrimString(item), token) {
				return true
			}
		}
	}
	return false
}

// wantsWebSocket reports whether r asks for an upgrade to WebSocket. Any other
// upgrade is not offered to the gateway: it would pass the recorder by.
func wantsWebSocket(r *http.Request) bool {
	return r.Method == http.MethodGet && r.ProtoAtLeast(1, 1) &&
		hasToken(r.Header["Connection"], "upgrade") && hasToken(r.Header["Upgrade"], "websocket")
}

// target returns the URL that is written as the request target raw, byte for
// byte, in a request to gateway. Absolute says that a forward proxy reads it.
func target(gateway url.URL, raw string, absolute bool) *url.URL {
	u := gateway
	path, query, cut := strings.Cut(raw, "?")
	u.RawQuery, u.ForceQuery = query, cut && query == ""
	switch {
	case absolute && strings.HasPrefix(path, "/"):
		u.Opaque = "//" + u.Host + path
	case strings.HasPrefix(path, "//"):
		// An opaque URL that begins with two slashes would be written with its
		// scheme. As a path it is written as it is, save for bytes that do not
		// belong in one, which are escaped.
		u.RawPath = path
		if u.Path, _ = url.PathUnescape(path); u.Path == "" {
			u.Path = path
		}
	default:
		u.Opaque = path
	}
	return &u
}

// origin is a scheme, a host and a port.
type origin struct{ scheme, host, port string }

func originOf(scheme, hostport string) origin {
	u := url.URL{Host: hostport}
	o := origin{scheme: strings.ToLower(scheme), host: strings.ToLower(u.Hostname()), port: u.Port()}
	if o.port == "" {
		o.port = map[string]string{"http": "80", "https": "443"}[o.scheme]
	}
	return o
}

// ownOrigin is the proxy's origin as the client of r reached it.
func ownOrigin(r *http.Request) (scheme, host string) {
	if r.TLS != nil {
		return "https", r.Host
	}
	return "http", r.Host
}

// localLocation returns location with the gateway's origin replaced by the
// proxy's own, and whether it had the gateway's.
func localLocation(location string, gateway url.URL, r *http.Request) (string, bool) {
	scheme, host := ownOrigin(r)
	u, err := url.Parse(location)
	if err != nil || u.Host == "" || host == "" {
		return location, false
	}
	from := u.Scheme
	if from == "" {
		from = gateway.Scheme
	}
	if originOf(from, u.Host) != originOf(gateway.Scheme, gateway.Host) {
		return location, false
	}
	_, rest, _ := strings.Cut(location, "//")
	if at := strings.IndexAny(rest, "/?#"); at >= 0 {
		rest = rest[at:]
	} else {
		rest = ""
	}
	if u.Scheme == "" {
		return "//" + host + rest, true
	}
	return scheme + "://" + host + rest, true
}
