package wire

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"

	"tapedeck/protocol/capture"
)

// The opcodes of RFC 6455, section 5.2.
const (
	opContinuation = 0
	opText         = 1
	opBinary       = 2
	opClose        = 8
	opPing         = 9
	opPong         = 10
)

// Close codes that say how a connection ended and that are never sent (RFC
// 6455, section 7.4.1).
const (
	NoStatus = 1005 // a Close frame without a code
	Abnormal = 1006 // an end without a Close frame
)

const (
	maxHeader  = 14
	maxControl = 125
	// maxFrame is where a length stops being one: no peer sends a frame of a
	// tebibyte, and bytes that are no frames seem to.
	maxFrame = 1 << 40
)

// header is the head of one WebSocket frame.
type header struct {
	opcode byte
	rsv    byte // RSV1, RSV2 and RSV3, where they stand: 0x40, 0x20, 0x10
	fin    bool
	masked bool
	key    [4]byte
	length int64 // of the payload; negative if the top bit was set
}

// parseHeader reads the head of a frame, and returns its length, 0 if b is too
// short to hold it.
func parseHeader(b []byte) (h header, n int) {
	if len(b) < 2 {
		return h, 0
	}
	h.fin, h.rsv, h.opcode = b[0]&0x80 != 0, b[0]&0x70, b[0]&0x0f
	h.masked, h.length = b[1]&0x80 != 0, int64(b[1]&0x7f)
	n = 2
	switch h.length {
	case 126:
		if len(b) < 4 {
			return h, 0
		}
		h.length, n = int64(binary.BigEndian.Uint16(b[2:])), 4
	case 127:
		if len(b) < 10 {
			return h, 0
		}
		h.length, n = int64(binary.BigEndian.Uint64(b[2:])), 10
	}
	if h.masked {
		if len(b) < n+4 {
			return h, 0
		}
		h.key = [4]byte(b[n:])
		n += 4
	}
	return h, n
}

func (h *header) control() bool { return h.opcode&8 != 0 }

// kind is the kind of message that h begins, 0 if it begins none.
func (h *header) kind() capture.Kind {
	switch h.opcode {
	case opText:
		return capture.Text
	case opBinary:
		return capture.Binary
	case opClose:
		return capture.Close
	case opPing:
		return capture.Ping
	case opPong:
		return capture.Pong
	}
	return 0
}

// objection says why h is no frame that may stand here, "" if it is one. Open
// is whether a fragmented message is unfinished, deflate whether RSV1 has a
// meaning.
func (h *header) objection(open, deflate bool) string {
	rsv := h.rsv
	if deflate && (h.opcode == opText || h.opcode == opBinary) {
		rsv &^= 0x40
	}
	switch {
	case rsv != 0:
		return fmt.Sprintf("not a WebSocket frame: reserved bits %03b are set and nothing was negotiated for them", rsv>>4)
	case h.opcode != opContinuation && h.kind() == 0:
		return fmt.Sprintf("not a WebSocket frame: opcode %d is reserved", h.opcode)
	case h.control() && !h.fin:
		return fmt.Sprintf("not a WebSocket frame: a fragmented control frame, opcode %d", h.opcode)
	case h.control() && h.length > maxControl:
		return fmt.Sprintf("not a WebSocket frame: a control frame of %d bytes, over %d", h.length, maxControl)
	case h.length < 0 || h.length > maxFrame:
		return fmt.Sprintf("not a WebSocket frame: a length of %d bytes", uint64(h.length))
	case h.opcode == opContinuation && !open:
		return "not a WebSocket message: a continuation of nothing"
	case h.opcode != opContinuation && !h.control() && open:
		return "not a WebSocket message: a new one begins inside a fragmented one"
	}
	return ""
}

// appendUnmasked appends src XOR the key, whose turn begins at offset pos of
// the frame's payload.
func appendUnmasked(dst, src []byte, key [4]byte, pos int64) []byte {
	start := len(dst)
	dst = append(dst, src...)
	mask(dst[start:], key, pos)
	return dst
}

// mask XORs b with the key in place, eight bytes at a time.
func mask(b []byte, key [4]byte, pos int64) {
	var turned [8]byte
	for i := range turned {
		turned[i] = key[(int(pos)+i)&3]
	}
	word := binary.LittleEndian.Uint64(turned[:])
	for len(b) >= 8 {
		binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)^word)
		b = b[8:]
	}
	for i := range b {
		b[i] ^= turned[i]
	}
}

// AppendServerFrame appends to dst one whole WebSocket frame as a gateway sends
// it, unmasked. Kind is capture.Text, Binary, Ping, Pong or Close.
func AppendServerFrame(dst []byte, kind capture.Kind, payload []byte) []byte {
	return append(appendHeader(dst, kind, len(payload), 0), payload...)
}

// AppendClientFrame appends to dst one whole WebSocket frame as a client sends
// it, masked with key, which should be random.
func AppendClientFrame(dst []byte, kind capture.Kind, payload []byte, key [4]byte) []byte {
	dst = append(appendHeader(dst, kind, len(payload), 0x80), key[:]...)
	return appendUnmasked(dst, payload, key, 0)
}

func appendHeader(dst []byte, kind capture.Kind, length int, masked byte) []byte {
	var opcode byte
	switch kind {
	case capture.Text:
		opcode = opText
	case capture.Binary:
		opcode = opBinary
	case capture.Close:
		opcode = opClose
	case capture.Ping:
		opcode = opPing
	case capture.Pong:
		opcode = opPong
	default:
		panic(fmt.Sprintf("wire: a %s is no WebSocket frame", kind))
	}
	dst = append(dst, 0x80|opcode)
	switch {
	case length <= maxControl:
		return append(dst, masked|byte(length))
	case length <= 0xffff:
		return binary.BigEndian.AppendUint16(append(dst, masked|126), uint16(length))
	}
	return binary.BigEndian.AppendUint64(append(dst, masked|127), uint64(length))
}

// AppendClose appends to dst the payload of a Close frame. A code that must not
// be sent (NoStatus, Abnormal, 1015, or 0) gives the payload without a code; a
// reason that does not fit into a control frame is cut between two characters.
func AppendClose(dst []byte, code int, reason string) []byte {
	if code < 1000 || code > 4999 || code == NoStatus || code == Abnormal || code == 1015 {
		return dst
	}
	if limit := maxControl - 2; len(reason) > limit {
		for limit > 0 && !utf8.RuneStart(reason[limit]) {
			limit--
		}
		reason = reason[:limit]
	}
	return append(binary.BigEndian.AppendUint16(dst, uint16(code)), reason...)
}

// ParseClose reads the payload of a Close frame. The code is NoStatus if it has
// none; the reason is as it passed, which need not be UTF-8.
func ParseClose(payload []byte) (code int, reason string) {
	if len(payload) < 2 {
		return NoStatus, ""
	}
	return int(binary.BigEndian.Uint16(payload)), string(payload[2:])
}
