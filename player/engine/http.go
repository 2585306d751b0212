package engine

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gorilla/websocket"
)

// The reasons for which Engine.IO refuses a request; the numbers are its codes.
const (
	refuseTransport = iota
	refuseSession
	refuseMethod
	refuseRequest
	_ // 4 is a server's own choice, which is Connect's here
	refuseVersion
	accept
)

func refusalText(code int) string {
	return [...]string{
		refuseTransport: "Transport unknown",
		refuseSession:   "Session ID unknown",
		refuseMethod:    "Bad handshake method",
		refuseRequest:   "Bad request",
		refuseVersion:   "Unsupported protocol version",
	}[code]
}

// ServeHTTP serves the two paths, and answers 404 elsewhere.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		http.Error(w, "the server is shutting down", http.StatusServiceUnavailable)
		return
	}
	defer s.work.Done()
	path := r.URL.Path
	switch {
	case strings.HasPrefix(path, s.config.Path):
		s.serveSocketIO(w, r)
	case strings.TrimSuffix(path, "/") == s.config.PlainPath:
		s.servePlain(w, r)
	case path+"/" == s.config.Path:
		http.Error(w, "Socket.IO answers at "+s.config.Path+", with a slash at its end", http.StatusNotFound)
	default:
		http.Error(w, "no socket answers here: Socket.IO does at "+s.config.Path, http.StatusNotFound)
	}
}

func (s *Server) serveSocketIO(w http.ResponseWriter, r *http.Request) {
	headers := s.cors(r)
	for name, values := range headers {
		w.Header()[name] = values
	}
	upgrade := websocket.IsWebSocketUpgrade(r)
	switch {
	case r.Method == http.MethodOptions && len(s.config.Origins) > 0:
		w.Header().Set("Content-Length", "0")
		w.WriteHeader(http.StatusNoContent)
		return
	case !upgrade && isScript(r.URL.Path[len(s.config.Path):]):
		http.Error(w, "the client's script is not served here: take socket.io.min.js from "+
			"https://cdn.socket.io/ or from the npm package socket.io-client (client-dist/)", http.StatusNotFound)
		return
	}
	query := r.URL.Query()
	code, c := s.verify(r, query, upgrade)
	switch {
	case code == refuseSession && r.Method == http.MethodGet && !upgrade:
		s.refusePoll(w, last(query, "sid"))
	case code != accept:
		refuse(w, code, upgrade)
	case upgrade:
		s.serveWebSocket(w, r, last(query, "transport"), c, headers)
	case c == nil:
		s.serveHandshake(w, r)
	case r.Method == http.MethodGet:
		c.servePoll(w, r)
	case r.Method == http.MethodPost:
		c.servePost(w, r)
	default:
		w.WriteHeader(http.StatusInternalServerError)
	}
}

// verify finds the connection that a request is for, nil for a new one, or the
// reason to refuse it. The order of the checks is npm's.
func (s *Server) verify(r *http.Request, query url.Values, upgrade bool) (int, *conn) {
	transport := last(query, "transport")
	version := last(query, "EIO")
	if transport != "polling" && transport != "websocket" {
		return refuseTransport, nil
	}
	if sid := last(query, "sid"); sid != "" {
		c := s.find(sid)
		switch {
		case c == nil || c.plain:
			return refuseSession, nil
		case version != "4" || !upgrade && !c.speaks(transport):
			return refuseRequest, nil
		}
		return accept, c
	}
	switch {
	case r.Method != http.MethodGet:
		return refuseMethod, nil
	case transport == "websocket" && !upgrade:
		return refuseRequest, nil
	case version != "4":
		return refuseVersion, nil
	}
	return accept, nil
}

func (c *conn) speaks(transport string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.transport() == transport
}

// refuse answers in JSON, and a WebSocket handshake in plain words, as npm does.
func refuse(w http.ResponseWriter, code int, upgrade bool) {
	if upgrade {
		w.Header().Set("Connection", "close")
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, refusalText(code))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	body, _ := json.Marshal(struct { // cannot fail
		Code    int    `json:"code"`
		Message string `json:"message"`
	}{code, refusalText(code)})
	w.Write(body)
}

// cors returns the headers that let a page of another origin read the answer, as
// the npm package cors makes them. A foreign origin gets none, and the answer.
func (s *Server) cors(r *http.Request) http.Header {
	h := make(http.Header)
	switch origin := r.Header.Get("Origin"); {
	case len(s.config.Origins) == 0:
		return h
	case slices.Contains(s.config.Origins, "*"):
		h.Set("Access-Control-Allow-Origin", "*")
	default:
		h.Set("Vary", "Origin")
		if slices.Contains(s.config.Origins, origin) {
			h.Set("Access-Control-Allow-Origin", origin)
		}
		h.Set("Access-Control-Allow-Credentials", "true")
	}
	if r.Method != http.MethodOptions {
		return h
	}
	h.Set("Access-Control-Allow-Methods", "GET,HEAD,PUT,PATCH,POST,DELETE")
	h.Add("Vary", "Access-Control-Request-Headers")
	if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
		h.Set("Access-Control-Allow-Headers", asked)
	}
	return h
}

// isScript reports whether a path names one of the files that npm's server
// serves beside the sockets.
func isScript(name string) bool {
	name = strings.TrimSuffix(name, ".map")
	name, ok := strings.CutSuffix(name, ".js")
	if !ok {
		return false
	}
	switch strings.TrimSuffix(name, ".min") {
	case "socket.io", "socket.io.esm", "socket.io.msgpack":
		return true
	}
	return false
}

// last returns the last value of a query parameter: a user's own query stands
// before what the client adds.
func last(query url.Values, name string) string {
	values := query[name]
	if len(values) == 0 {
		return ""
	}
	return values[len(values)-1]
}
