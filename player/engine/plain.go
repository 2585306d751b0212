package engine

import (
	"encoding/json"
	"net/http"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/gorilla/websocket"

	"tapedeck/protocol/wire"
)

// plainNamespace is the namespace of the plain JSON sockets.
const plainNamespace = ""

// servePlain begins to serve a plain JSON socket.
func (s *Server) servePlain(w http.ResponseWriter, r *http.Request) {
	if !websocket.IsWebSocketUpgrade(r) {
		w.Header().Set("Upgrade", "websocket")
		http.Error(w, "plain JSON sockets answer here: connect with a WebSocket", http.StatusUpgradeRequired)
		return
	}
	l := s.upgradeSocket(w, r, nil)
	if l != nil {
		s.begin(s.open(r, l, true), l, (*conn).greetPlain)
	}
}

// greetPlain lets a plain socket in.
func (c *conn) greetPlain(l *link) {
	l.ws.SetPongHandler(func(string) error {
		c.heard(true)
		return nil
	})
	c.turn <- struct{}{}
	c.connectPlain()
	<-c.turn
}

// connectPlain lets a plain socket in. It has nothing to connect with but its
// handshake, and no form for a refusal but the close frame.
func (c *conn) connectPlain() {
	s := &Socket{conn: c, id: c.id, namespace: plainNamespace, handshake: Handshake{
		Auth: json.RawMessage("{}"), Header: c.header, Query: c.query, Remote: c.remote,
	}}
	if refusal := c.server.admit(s); refusal != nil {
		c.server.hub.drop(s)
		c.end(ReasonForcedServer, ending{close: closePayload(1008, refusal.Message)})
		return
	}
	if c.server.hub.add(s, nil) {
		c.joined(s)
	}
}

// receivePlain takes a message of a plain socket, in the connection's turn.
func (c *conn) receivePlain(binary bool, data []byte) {
	s := c.socket(plainNamespace)
	if s == nil {
		return
	}
	c.heard(false)
	if binary {
		c.refusePlain(1003, "plain JSON sockets take text, not binary messages")
		return
	}
	var m struct {
		Event *string        `json:"event"`
		Data  jsontext.Value `json:"data"`
		ID    jsontext.Value `json:"id"`
		Ack   jsontext.Value `json:"ack"`
	}
	err := jsonv2.Unmarshal(data, &m, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	p := &received{id: string(m.ID)}
	if len(m.Data) > 0 {
		p.args = []json.RawMessage{json.RawMessage(m.Data)}
	}
	switch {
	case err != nil:
		c.refusePlain(1007, "not a message: "+err.Error())
	case m.Event != nil:
		p.kind, p.name = wire.Event, *m.Event
		if p.args == nil {
			p.args = []json.RawMessage{}
		}
		s.receiveEvent(p)
	case len(m.Ack) > 0:
		p.kind, p.id = wire.Ack, string(m.Ack)
		s.receiveAck(p)
	default:
		c.refusePlain(1008, `a message has an "event" or an "ack"`)
	}
}

// refusePlain closes a plain socket for what its client sent.
func (c *conn) refusePlain(code int, why string) {
	c.server.config.Logger.Warn("client sent what cannot be read", "conn", c.id, "err", why)
	c.end(ReasonParse, ending{close: closePayload(code, why)})
}

// plainEvent is an event in the plain form; id is "" if no answer is asked for.
func plainEvent(id, name string, args []json.RawMessage) packet {
	b := make([]byte, headroom, headroom+len(name)+len(id)+size(args)+40)
	b = appendQuoted(append(b, `{"event":`...), name)
	b = plainData(b, args)
	if id != "" {
		b = append(append(b, `,"id":`...), id...)
	}
	return seal(append(b, '}'), opText)
}

// plainAck is an acknowledgement in the plain form.
func plainAck(id string, args []json.RawMessage) packet {
	b := make([]byte, headroom, headroom+len(id)+size(args)+24)
	b = append(append(b, `{"ack":`...), id...)
	return seal(append(plainData(b, args), '}'), opText)
}

// plainData appends the arguments as the one payload that a message has: none,
// the one, or several as an array.
func plainData(b []byte, args []json.RawMessage) []byte {
	if len(args) == 0 {
		return b
	}
	b = append(b, `,"data":`...)
	if len(args) == 1 {
		return appendValue(b, args[0])
	}
	return append(appendValues(append(b, '['), args), ']')
}
