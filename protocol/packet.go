package protocol

import (
	"fmt"

	"tapedeck/protocol/capture"
	"tapedeck/protocol/wire"
)

// Packet appends what the framing of a packet breaks. Only packets of sockets
// that speak this protocol are its business; the caller knows which do.
func Packet(p *wire.Packet, out []Finding) []Finding {
	var rule, todo string
	switch p.Fault {
	case wire.Malformed:
		rule, todo = "frame-malformed", "its peer drops the connection"
	case wire.BadEncoding:
		rule, todo = "frame-encoding", "its peer cannot parse it"
	case wire.BadBinary:
		rule, todo = "packet-malformed-binary", "its peer drops the connection"
	case wire.OtherVersion:
		rule, todo = "engine-version", "use a client of Socket.IO 3 or later"
	default:
		return out
	}
	return append(out, Finding{
		Rule: rule, Severity: defaultSeverity(rule),
		At: p.Address, Connection: p.Connection,
		Text: clip(p.Reason + ": " + todo),
	})
}

// Frame appends what a frame breaks as a whole: that the client sent more than
// the maxPayload of its handshake, which the caller knows; 0 is no limit.
func Frame(f *capture.Frame, maxPayload int64, out []Finding) []Finding {
	if maxPayload <= 0 || f.Direction != capture.FromClient || f.Size <= maxPayload {
		return out
	}
	switch f.Kind {
	case capture.Text, capture.Binary, capture.Polling:
	default:
		return out
	}
	const rule = "packet-over-limit"
	return append(out, Finding{
		Rule: rule, Severity: defaultSeverity(rule),
		At: capture.Address{Position: f.Position}, Connection: f.Connection,
		Text: fmt.Sprintf("%d B > maxPayload %d from the handshake: the gateway answers 413 or closes with 1009; send less, or raise its maxHttpBufferSize", f.Size, maxPayload),
	})
}
