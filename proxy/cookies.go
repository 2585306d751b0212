package proxy

import (
	"net"
	"net/http"
	"net/url"
	"strings"
)

// cookieMark is put before a cookie's name that browsers accept over TLS only
// (__Host-, __Secure-), and taken off again on the way back.
const cookieMark = "tapedeck"

// adapter makes answers fit the proxy's own origin.
type adapter struct {
	gateway url.URL
	cookies bool // adapt them
}

// answer changes in h what would not work at the proxy's own origin, as the
// client of r reached it. It returns the fields as they were, nil if none was
// changed, and says what it did.
func (a *adapter) answer(h http.Header, r *http.Request) (was http.Header, did []string) {
	keep := func(name string) {
		if was == nil {
			was = http.Header{}
		}
		if _, kept := was[name]; !kept {
			was[name] = append([]string(nil), h[name]...)
		}
	}
	for _, name := range []string{"Location", "Content-Location"} {
		for i, value := range h[name] {
			if local, ok := localLocation(value, a.gateway, r); ok && local != value {
				keep(name)
				h[name][i] = local
				did = append(did, name+" leads to the gateway, and now to the proxy")
			}
		}
	}
	if !a.cookies {
		return was, did
	}
	for i, value := range h["Set-Cookie"] {
		if fit, why := fitCookie(value, r); why != "" {
			keep("Set-Cookie")
			h["Set-Cookie"][i] = fit
			did = append(did, why)
		}
	}
	return was, did
}

// request undoes what answer did to the names of cookies, and says whether
// there was something to undo.
func (a *adapter) request(h http.Header) (did []string) {
	if !a.cookies {
		return nil
	}
	for i, line := range h["Cookie"] {
		back := strings.NewReplacer(cookieMark+"__Host-", "__Host-", cookieMark+"__Secure-", "__Secure-").Replace(line)
		if back != line {
			h["Cookie"][i] = back
			did = append(did, "Cookie: a name got back its prefix, which a browser does not take from the proxy's origin")
		}
	}
	return did
}

// fitCookie returns the Set-Cookie value line as a browser would keep it at the
// proxy's origin, and why it was changed, "" if it was not.
func fitCookie(line string, r *http.Request) (fit, why string) {
	scheme, host := ownOrigin(r)
	plain := scheme == "http"
	parts := strings.Split(line, ";")
	name, _, _ := strings.Cut(strings.TrimSpace(parts[0]), "=")
	kept := parts[:1:1]
	var changes []string
	for _, part := range parts[1:] {
		key, value, _ := strings.Cut(part, "=")
		key, value = strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(value)
		switch {
		case key == "domain" && value != "" && !domainMatches(value, host):
			changes = append(changes, "without Domain="+value+", which is not the proxy's")
		case plain && (key == "secure" || key == "partitioned"):
			changes = append(changes, "without "+strings.TrimSpace(part)+", since this is plain HTTP")
		case plain && key == "samesite" && strings.EqualFold(value, "none"):
			changes = append(changes, "without SameSite=None, which needs TLS")
		default:
			kept = append(kept, part)
		}
	}
	if plain && (strings.HasPrefix(name, "__Host-") || strings.HasPrefix(name, "__Secure-")) {
		kept[0] = strings.Replace(kept[0], name, cookieMark+name, 1)
		changes = append(changes, "as "+cookieMark+name+", since its prefix needs TLS")
	}
	if len(changes) == 0 {
		return line, ""
	}
	return strings.Join(kept, ";"), "Set-Cookie " + name + " passed " + strings.Join(changes, "; ")
}

// domainMatches reports whether a cookie's Domain fits the host that the client
// asked (RFC 6265, section 5.1.3).
func domainMatches(domain, hostport string) bool {
	u := url.URL{Host: hostport}
	host := strings.ToLower(u.Hostname())
	domain = strings.ToLower(strings.TrimPrefix(domain, "."))
	if host == domain {
		return true
	}
	return net.ParseIP(host) == nil && strings.HasSuffix(host, "."+domain)
}
