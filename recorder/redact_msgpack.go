package recorder

import (
	"encoding/base64"
	"encoding/binary"
	"slices"
)

// msgpack looks through a packet of socket.io's msgpack parser, {type, data, …}
// in one binary message. The data of a CONNECT, type 0, is hidden as a whole.
func (r *redactor) msgpack(b []byte) {
	from, to, ok := msgpackAuth(b)
	if !ok {
		return
	}
	if text := r.token(b[from:to]); text != "" {
		r.edits = append(r.edits, edit{from, to, msgpackString(text)})
	}
}

// msgpackText does the same for a packet in base64, as long polling has it,
// which begins at base.
func (r *redactor) msgpackText(b []byte, base int) {
	var start [3]byte
	if n, err := base64.StdEncoding.Decode(start[:], b[:min(4, len(b))]); n < 3 || err != nil || !msgpackMap(start[:]) {
		return // most are attachments, and large
	}
	data := make([]byte, base64.StdEncoding.DecodedLen(len(b)))
	n, _ := base64.StdEncoding.Decode(data, b) // as far as it goes
	from, to, ok := msgpackAuth(data[:n])
	if !ok {
		return
	}
	if text := r.token(data[from:to]); text != "" {
		data = slices.Concat(data[:from], []byte(msgpackString(text)), data[to:n])
		r.edits = append(r.edits, edit{base, base + len(b), base64.StdEncoding.EncodeToString(data)})
	}
}

// msgpackString is a token in msgpack, a string of up to 255 bytes.
func msgpackString(token string) string { return "\xd9" + string([]byte{byte(len(token))}) + token }

// msgpackMap reports whether b begins like a map whose first key is a short
// string.
func msgpackMap(b []byte) bool {
	return len(b) >= 2 && b[0] >= 0x81 && b[0] <= 0x8f && b[1]&0xe0 == 0xa0
}

// msgpackAuth returns where the data of a CONNECT stands in b. Where b breaks
// off, all that follows the name is taken for it.
func msgpackAuth(b []byte) (from, to int, ok bool) {
	if !msgpackMap(b) {
		return 0, 0, false
	}
	connect := false
	at := 1
	for range int(b[0] & 0x0f) {
		end := msgpackEnd(b, at, 1)
		if end < 0 {
			break
		}
		name := string(b[at:end])
		at = end
		if end = msgpackEnd(b, at, 1); end < 0 {
			end = len(b)
		}
		switch name {
		case "\xa4type":
			connect = end > at && b[at] == 0
		case "\xa4data":
			from, to = at, end
		}
		at = end
	}
	return from, to, connect && to > from
}

// msgpackEnd returns where n values end that begin at at, -1 if b is too short.
func msgpackEnd(b []byte, at, n int) int {
	for ; n > 0; n-- {
		if at >= len(b) {
			return -1
		}
		c := b[at]
		size, more := 0, 0 // bytes that follow, and values
		length := func(width int) int {
			if at+1+width > len(b) {
				return len(b) + 1 // further than there are bytes
			}
			var wide [8]byte
			copy(wide[8-width:], b[at+1:at+1+width])
			return int(min(binary.BigEndian.Uint64(wide[:]), uint64(len(b)+1)))
		}
		switch {
		case c <= 0x7f || c >= 0xe0 || c == 0xc0 || c == 0xc2 || c == 0xc3: // small integers, nil, false, true
		case c <= 0x8f:
			more = 2 * int(c&0x0f)
		case c <= 0x9f:
			more = int(c & 0x0f)
		case c <= 0xbf:
			size = int(c & 0x1f)
		case c >= 0xc4 && c <= 0xc6: // bin 8, 16, 32
			width := 1 << (c - 0xc4)
			size = width + length(width)
		case c >= 0xc7 && c <= 0xc9: // ext 8, 16, 32
			width := 1 << (c - 0xc7)
			size = width + 1 + length(width)
		case c == 0xca || c == 0xcb: // float 32, 64
			size = 4 << (c - 0xca)
		case c >= 0xcc && c <= 0xcf: // uint 8 to 64
			size = 1 << (c - 0xcc)
		case c >= 0xd0 && c <= 0xd3: // int 8 to 64
			size = 1 << (c - 0xd0)
		case c >= 0xd4 && c <= 0xd8: // fixext 1 to 16
			size = 1 + 1<<(c-0xd4)
		case c >= 0xd9 && c <= 0xdb: // str 8, 16, 32
			width := 1 << (c - 0xd9)
			size = width + length(width)
		case c == 0xdc || c == 0xdd: // array 16, 32
			size = 2 << (c - 0xdc)
			more = length(size)
		case c == 0xde || c == 0xdf: // map 16, 32
			size = 2 << (c - 0xde)
			more = 2 * length(size)
		default: // 0xc1 is never used
			return -1
		}
		if at += 1 + size; at > len(b) || more > len(b)-at {
			return -1
		}
		n += more
	}
	return at
}
