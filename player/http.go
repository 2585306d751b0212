package player

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"tapedeck/protocol"
)

// ServeHTTP serves the sockets, the HTTP surface and the control API.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) { g.mux.ServeHTTP(w, r) }

// routes are the gateway's paths.
func (g *Gateway) routes() *http.ServeMux {
	mux := http.NewServeMux()
	if control := g.config.Control; !control.Off && !control.Apart {
		g.addControl(mux)
	}
	if recorded, ok := g.source.(Answerer); ok {
		mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { g.serveRecorded(w, r, recorded) })
		return mux
	}
	mux.HandleFunc("/health", g.open(serveHealth))
	mux.HandleFunc("/protocol", g.open(g.serveProtocol))
	for _, name := range collections() {
		mux.HandleFunc("/"+name, g.closed(g.serveShelf(name)))
		mux.HandleFunc("/"+name+"/{id...}", g.closed(g.serveItem(name)))
	}
	mux.HandleFunc("/", g.serveRest)
	return mux
}

// open wraps what anyone may read.
func (g *Gateway) open(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if g.crossOrigin(w, r) {
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			problem(w, http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED", "%s is read by GET, not %s", r.URL.Path, r.Method)
			return
		}
		h(w, r)
	}
}

// closed wraps what asks for the token.
func (g *Gateway) closed(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if g.crossOrigin(w, r) {
			return
		}
		if !g.allowed(bearer(r.Header)) && !g.allowed(r.URL.Query().Get("token")) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			problem(w, http.StatusUnauthorized, "UNAUTHORIZED", "send the header Authorization: Bearer TOKEN, with the token that the player was started with")
			return
		}
		h(w, r)
	}
}

// serveRecorded serves the sockets' paths, and leaves all else to a recording.
func (g *Gateway) serveRecorded(w http.ResponseWriter, r *http.Request, recorded Answerer) {
	if g.engine != nil && g.isSocket(r.URL.Path) {
		g.engine.ServeHTTP(w, r)
		return
	}
	own := map[string]http.HandlerFunc{"/health": serveHealth, "/protocol": g.serveProtocol}[r.URL.Path]
	switch answer := recorded.Answer(r); {
	case answer == nil && own != nil:
		g.open(own)(w, r)
	case answer == nil:
		g.closed(g.notFound)(w, r)
	case own != nil:
		g.open(answer.ServeHTTP)(w, r)
	default:
		g.closed(answer.ServeHTTP)(w, r)
	}
}

func serveHealth(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, json.RawMessage(`{"ok":true}`))
}

func (g *Gateway) serveProtocol(w http.ResponseWriter, r *http.Request) {
	hello := g.announcement()
	if hello == nil {
		g.notFound(w, r)
		return
	}
	writeJSON(w, http.StatusOK, hello)
}

// serveRest serves the sockets' paths, and says of all others what there is.
func (g *Gateway) serveRest(w http.ResponseWriter, r *http.Request) {
	if g.engine != nil && g.isSocket(r.URL.Path) {
		g.engine.ServeHTTP(w, r)
		return
	}
	if !g.crossOrigin(w, r) {
		g.notFound(w, r)
	}
}

func (g *Gateway) isSocket(path string) bool {
	socketIO, plain := g.config.Engine.Path, g.config.Engine.PlainPath
	if socketIO == "" {
		socketIO = "/socket.io/"
	}
	if plain == "" {
		plain = "/ws"
	}
	return strings.HasPrefix(path, strings.TrimSuffix(socketIO, "/")+"/") || path == plain
}

func (g *Gateway) notFound(w http.ResponseWriter, r *http.Request) {
	known := []string{"/health", "/protocol"}
	for _, name := range collections() {
		known = append(known, "/"+name)
	}
	hint := "there are " + strings.Join(known, ", ") + ", and the sockets"
	first := "/" + strings.SplitN(strings.TrimPrefix(r.URL.Path, "/"), "/", 2)[0]
	if near := protocol.Nearest(first, known); near != "" && near != first {
		hint = fmt.Sprintf("did you mean %s? %s", near, hint)
	} else if slices.Contains([]string{"/agent-admin", "/presentations", "/usage", "/schedules", "/model-gateway"}, first) {
		hint = "a synthetic gateway has no such data; a tape that recorded it does. Here " + hint
	}
	problem(w, http.StatusNotFound, "NOT_FOUND", "nothing is served at %s: %s", r.URL.Path, hint)
}

// crossOrigin lets pages of the configured origins read answers, and answers a
// preflight itself.
func (g *Gateway) crossOrigin(w http.ResponseWriter, r *http.Request) bool {
	origin, origins := r.Header.Get("Origin"), g.config.Engine.Origins
	if origin == "" || !slices.Contains(origins, origin) && !slices.Contains(origins, "*") {
		return false
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", origin)
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Allow-Credentials", "true")
	if r.Method != http.MethodOptions {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE")
	h.Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
	w.WriteHeader(http.StatusNoContent)
	return true
}

func writeJSON(w http.ResponseWriter, status int, body json.RawMessage) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// A client that is gone needs no answer.
	_, _ = w.Write(append(body, '\n'))
}

// problem answers with an error as the protocol writes them.
func problem(w http.ResponseWriter, status int, code, format string, args ...any) {
	inner := object{}.text("code", code).text("message", fmt.Sprintf(format, args...)).close()
	writeJSON(w, status, object{}.raw("error", inner).close())
}
