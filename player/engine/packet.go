package engine

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"tapedeck/protocol/wire"
)

// The Engine.IO packet types, by their digit.
const (
	packetOpen    = '0'
	packetClose   = '1'
	packetPing    = '2'
	packetPong    = '3'
	packetMessage = '4'
	packetUpgrade = '5'
	packetNoop    = '6'
)

// separator stands between the packets of a polling payload.
const separator = 0x1e

// The opcodes of the WebSocket frames that are sent.
const (
	opText   = 1
	opBinary = 2
	opClose  = 8
	opPing   = 9
	opPong   = 10
)

// packet is an Engine.IO packet on its way out, or a plain message. It is
// immutable: a broadcast shares one among its receivers.
type packet struct {
	payload []byte // a text with its digit, or an attachment
	frame   []byte // the whole WebSocket frame that carries payload
	binary  bool
}

// headroom is the room for a frame's header in front of its payload.
const headroom = 10

// seal makes the packet of a buffer that begins with headroom free bytes.
func seal(buf []byte, opcode byte) packet {
	n := len(buf) - headroom
	head := headroom - 2
	switch {
	case n < 126:
		buf[head+1] = byte(n)
	case n < 1<<16:
		head -= 2
		buf[head+1] = 126
		binary.BigEndian.PutUint16(buf[head+2:], uint16(n))
	default:
		head -= 8
		buf[head+1] = 127
		binary.BigEndian.PutUint64(buf[head+2:], uint64(n))
	}
	buf[head] = 0x80 | opcode
	return packet{payload: buf[headroom:], frame: buf[head:], binary: opcode == opBinary}
}

// framed returns the packet whose payload is a copy of data.
func framed(opcode byte, data []byte) packet {
	return seal(append(make([]byte, headroom, headroom+len(data)), data...), opcode)
}

// weight is how many bytes packets are on a WebSocket.
func weight(packets []packet) int {
	n := 0
	for _, p := range packets {
		n += len(p.frame)
	}
	return n
}

func textPacket(s string) packet { return framed(opText, []byte(s)) }

// closePayload is the payload of a close frame. Texts that are too long for one
// are cut at a character.
func closePayload(code int, text string) []byte {
	const limit = 123
	if len(text) > limit {
		text = text[:limit]
		for len(text) > 0 && !validEnd(text) {
			text = text[:len(text)-1]
		}
	}
	return append(binary.BigEndian.AppendUint16(nil, uint16(code)), text...)
}

// polled appends packets as one polling payload.
func polled(packets []packet) []byte {
	size := len(packets)
	for _, p := range packets {
		size += len(p.payload)
		if p.binary {
			size += 3 + len(p.payload)/3
		}
	}
	b := make([]byte, 0, size)
	for i, p := range packets {
		if i > 0 {
			b = append(b, separator)
		}
		if p.binary {
			b = append(b, 'b')
			b = base64.StdEncoding.AppendEncode(b, p.payload)
			continue
		}
		b = append(b, p.payload...)
	}
	return b
}

// openPacket is the handshake, its keys in the order of npm's.
func (s *Server) openPacket(sid string, upgrades bool) packet {
	list := "[]"
	if upgrades {
		list = `["websocket"]`
	}
	b := append(make([]byte, headroom, 160), `0{"sid":"`...)
	b = append(b, sid...)
	b = append(b, `","upgrades":`...)
	b = append(b, list...)
	b = strconv.AppendInt(append(b, `,"pingInterval":`...), s.config.PingInterval.Milliseconds(), 10)
	b = strconv.AppendInt(append(b, `,"pingTimeout":`...), s.config.PingTimeout.Milliseconds(), 10)
	b = strconv.AppendInt(append(b, `,"maxPayload":`...), int64(s.config.MaxPayload), 10)
	return seal(append(b, '}'), opText)
}

// header begins the buffer of a Socket.IO packet; room is what will follow.
func header(kind wire.Type, namespace, id string, attachments, room int) []byte {
	b := make([]byte, headroom, headroom+len(namespace)+len(id)+room+16)
	b = append(b, packetMessage, '0'+byte(kind))
	if attachments > 0 {
		b = strconv.AppendInt(b, int64(attachments), 10)
		b = append(b, '-')
	}
	if namespace != "/" {
		b = append(b, namespace...)
		b = append(b, ',')
	}
	return append(b, id...)
}

// encodeEvent encodes an event; id is "" if no acknowledgement is asked for. The
// plain namespace has no attachments and no offsets.
func encodeEvent(namespace, id, name string, attachments [][]byte, args []json.RawMessage, offset string) []packet {
	if namespace == plainNamespace {
		return []packet{plainEvent(id, name, args)}
	}
	kind := wire.Event
	if len(attachments) > 0 {
		kind = wire.BinaryEvent
	}
	b := header(kind, namespace, id, len(attachments), len(name)+len(offset)+8+size(args))
	b = appendQuoted(append(b, '['), name)
	for _, a := range args {
		b = appendValue(append(b, ','), a)
	}
	if offset != "" {
		b = appendQuoted(append(b, ','), offset)
	}
	return attach(seal(append(b, ']'), opText), attachments)
}

// encodeArray encodes an event whose array is given. An offset is put before its
// last bracket; where there is none the array goes out as it is.
func encodeArray(namespace string, array json.RawMessage, attachments [][]byte, offset string) []packet {
	kind := wire.Event
	if len(attachments) > 0 {
		kind = wire.BinaryEvent
	}
	b := header(kind, namespace, "", len(attachments), len(array)+len(offset)+4)
	end := bytes.LastIndexByte(array, ']')
	if offset == "" || end < 0 {
		b = append(b, array...)
	} else {
		b = appendQuoted(append(append(b, array[:end]...), ','), offset)
		b = append(b, array[end:]...)
	}
	return attach(seal(b, opText), attachments)
}

// encodeAck encodes an acknowledgement.
func encodeAck(namespace, id string, attachments [][]byte, args []json.RawMessage) []packet {
	if namespace == plainNamespace {
		return []packet{plainAck(id, args)}
	}
	kind := wire.Ack
	if len(attachments) > 0 {
		kind = wire.BinaryAck
	}
	b := append(header(kind, namespace, id, len(attachments), size(args)+2), '[')
	return attach(seal(append(appendValues(b, args), ']'), opText), attachments)
}

// connectReply is the answer to a CONNECT. pid is "" without recovery.
func connectReply(namespace, sid, pid string) packet {
	b := append(header(wire.Connect, namespace, "", 0, 64), `{"sid":"`...)
	b = append(append(b, sid...), '"')
	if pid != "" {
		b = append(append(append(b, `,"pid":"`...), pid...), '"')
	}
	return seal(append(b, '}'), opText)
}

func connectError(namespace string, r *Refusal) packet {
	b := append(header(wire.ConnectError, namespace, "", 0, len(r.Message)+len(r.Data)+32), `{"message":`...)
	b = appendQuoted(b, r.Message)
	if len(r.Data) > 0 {
		b = append(append(b, `,"data":`...), r.Data...)
	}
	return seal(append(b, '}'), opText)
}

func disconnectPacket(namespace string) packet {
	return seal(header(wire.Disconnect, namespace, "", 0, 0), opText)
}

func attach(head packet, attachments [][]byte) []packet {
	packets := make([]packet, 1, 1+len(attachments))
	packets[0] = head
	for _, a := range attachments {
		packets = append(packets, framed(opBinary, a))
	}
	return packets
}

func size(args []json.RawMessage) int {
	n := len(args)
	for _, a := range args {
		n += max(len(a), len("null"))
	}
	return n
}

// appendValue appends a value as it is; a missing one is null, as JavaScript's
// undefined becomes in an array.
func appendValue(b []byte, v json.RawMessage) []byte {
	if len(v) == 0 {
		return append(b, "null"...)
	}
	return append(b, v...)
}

func appendValues(b []byte, args []json.RawMessage) []byte {
	for i, a := range args {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendValue(b, a)
	}
	return b
}

// appendQuoted appends a JSON string that escapes only what it must.
func appendQuoted(b []byte, s string) []byte {
	// The error is about invalid UTF-8, which is replaced.
	b, _ = jsontext.AppendQuote(b, s)
	return b
}
