package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"sync"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/wire"
	"tapedeck/proxy"
)

// enforcer is a proxy.Gate that refuses what a single message breaks: a command
// of the client is answered with the protocol's own error, and a message of the
// gateway is held back. Rules about the order of messages are the judge's, who
// sees what passed.
type enforcer struct {
	gateway  bool // messages of the gateway too
	settings protocol.Settings

	mu        sync.Mutex // guards what follows
	decoder   wire.Decoder
	validator *protocol.Validator
	found     []protocol.Finding
	minors    map[gateSocket]int // of the gateways' announcements
}

// gateSocket is a namespace of a connection.
type gateSocket struct {
	connection capture.Position
	namespace  string
}

// newEnforcer reads --enforce, which is "client" or "both". Of "" it makes none.
func newEnforcer(mode string, settings protocol.Settings, schemas *protocol.Schemas) (*enforcer, error) {
	switch mode {
	case "":
		return nil, nil
	case "client", "both":
		return &enforcer{
			gateway: mode == "both", settings: settings,
			validator: protocol.NewValidator(protocol.Options{Schemas: schemas}), minors: map[gateSocket]int{},
		}, nil
	}
	return nil, usageError("proxy: --enforce is client or both, not %q", mode)
}

// Frame tells the enforcer of the beginnings and ends of connections. It is
// nobody's Sink: the recording passes these on.
func (e *enforcer) Frame(f *capture.Frame) {
	if f.Kind != capture.Open && f.Kind != capture.End {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.decoder.Decode(f)
	maps.DeleteFunc(e.minors, func(s gateSocket, _ int) bool { return f.Kind == capture.End && s.connection == f.Connection })
}

// Judge refuses a message that breaks a rule of severity error.
func (e *enforcer) Judge(f *capture.Frame) proxy.Verdict {
	e.mu.Lock()
	defer e.mu.Unlock()
	packets := e.decoder.Decode(f)
	for i := range packets {
		p := &packets[i]
		if p.Direction == capture.FromGateway {
			e.announced(p)
			if !e.gateway {
				continue
			}
		}
		if bad := e.broken(p); bad != nil {
			return e.verdict(p, bad)
		}
	}
	return proxy.Verdict{}
}

// announced remembers what version a gateway speaks: a newer one may know keys
// that the rules do not.
func (e *enforcer) announced(p *wire.Packet) {
	if p.Type != wire.Event || protocol.Name(p.Name) != protocol.Hello || len(p.Args) == 0 {
		return
	}
	if hello, ok := protocol.ReadHello(p.Args[0]); ok {
		e.minors[gateSocket{p.Connection, p.Namespace}] = hello.Minor
	}
}

// broken returns the first error of a message, nil if there is none.
func (e *enforcer) broken(p *wire.Packet) *protocol.Finding {
	m := protocol.Message{
		Address: p.Address, Connection: p.Connection, Namespace: p.Namespace, Direction: p.Direction,
		Name: protocol.Name(p.Name), AckID: p.ID, GatewayMinor: e.minors[gateSocket{p.Connection, p.Namespace}],
	}
	switch {
	case p.Engine != wire.EngineMessage && p.Engine != wire.PlainJSON:
		return nil
	case p.Type == wire.Ack || p.Type == wire.BinaryAck:
		m.Name, m.Answer, m.Answers = protocol.Name(p.Asked), true, p.Answers
	case p.Type != wire.Event && p.Type != wire.BinaryEvent:
		return nil
	}
	if !m.Name.Known() { // another application's event
		return nil
	}
	if len(p.Args) > 0 {
		m.Payload, m.Extra = p.Args[0], p.Args[1:]
	}
	e.found = e.settings.Apply(e.validator.Validate(&m, e.found[:0]))
	for i := range e.found {
		if e.found[i].Severity == protocol.Error {
			return &e.found[i]
		}
	}
	return nil
}

func (e *enforcer) verdict(p *wire.Packet, bad *protocol.Finding) proxy.Verdict {
	v := proxy.Verdict{Withhold: true, Deed: capture.Deed{Did: "held back", Rule: bad.Rule, Text: bad.Text}}
	if p.Direction == capture.FromClient {
		v.Deed.Did = "refused"
		v.Answers = [][]byte{refusal(p, bad)}
	}
	return v
}

// refusal is the protocol's own error for a command: through the
// acknowledgement for thread:messages, as protocol:error for the others.
func refusal(p *wire.Packet, bad *protocol.Finding) []byte {
	problem := struct {
		Code    protocol.ErrorCode `json:"code"`
		Message string             `json:"message"`
	}{protocol.InvalidCommand, fmt.Sprintf("%s at %q: %s (refused by tapedeck)", bad.Rule, bad.Pointer, bad.Text)}
	acknowledged := p.ID != "" && protocol.Name(p.Name) == protocol.ThreadMessages
	var payload any = problem
	if acknowledged {
		payload = struct {
			OK    bool `json:"ok"`
			Error any  `json:"error"`
		}{false, problem}
	}
	body, err := json.Marshal(payload)
	if err != nil {
		panic(err) // two strings always encode
	}
	switch {
	case p.Engine == wire.PlainJSON && acknowledged:
		return fmt.Appendf(nil, `{"ack":%s,"data":%s}`, p.ID, body)
	case p.Engine == wire.PlainJSON:
		return fmt.Appendf(nil, `{"event":"protocol:error","data":%s}`, body)
	}
	namespace := ""
	if p.Namespace != "/" {
		namespace = p.Namespace + ","
	}
	if acknowledged {
		return fmt.Appendf(nil, `43%s%s[%s]`, namespace, p.ID, body)
	}
	return fmt.Appendf(nil, `42%s["protocol:error",%s]`, namespace, body)
}
