package wire

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
)

const (
	// peerAttachments is how many attachments socket.io-parser 4.2.7 takes.
	peerAttachments = 10
	// maxAttachments and maxAttached bound what is kept of one packet: older
	// peers send more than ten attachments.
	maxAttachments = 256
	maxAttached    = 64 << 20
)

// giveUp lets the attachments of a packet pass that cannot be read, as many as
// its beginning announces.
func (d *Decoder) giveUp(raw []byte) {
	if len(raw) == 0 || raw[0] != '4' {
		return
	}
	d.interrupt()
	if h, why, _ := parseHead(raw); why == "" {
		d.half.skip, _ = strconv.Atoi(string(h.attachments)) // beyond int it is the largest one
	}
}

// await keeps p, the last packet, until its attachments have come.
func (d *Decoder) await(p *Packet, digits []byte) {
	h := d.half
	want, err := strconv.Atoi(string(digits))
	switch {
	case p.Engine == Opaque:
		h.skip = want
		return
	case want == 0 && err == nil:
		p.blame(BadBinary, "a binary packet without attachments: socket.io drops the connection", 2)
		d.done(p)
		return
	case err != nil || want > maxAttachments:
		p.blame(BadBinary, fmt.Sprintf("it announces %s attachments, and socket.io takes at most %d", shorten(digits), peerAttachments), 2)
		h.skip = want
		d.done(p)
		return
	case want > peerAttachments:
		p.blame(BadBinary, fmt.Sprintf("%d attachments, and socket.io takes at most %d", want, peerAttachments), 2)
	}
	waiting := *p
	waiting.Args = slices.Clone(p.Args)
	h.pending, h.want, h.held = &waiting, want, 0
	d.packets = d.packets[:len(d.packets)-1]
}

// attachment takes the binary data of the n-th packet, raw as it passed. Reason
// says what is wrong with it.
func (d *Decoder) attachment(raw, data []byte, n int, reason string) {
	h := d.half
	switch {
	case h.pending != nil:
	case h.skip > 0:
		h.skip--
		d.opaque(raw, n, NoFault, "an attachment of a packet that was not read", -1)
		return
	case reason != "":
		d.opaque(raw, n, BadBinary, reason, -1)
		return
	case d.conn.msgpack || isMsgpack(data):
		d.conn.msgpack = true
		d.opaque(raw, n, NoFault, "a packet of socket.io's msgpack parser", -1)
		return
	default:
		d.opaque(raw, n, BadBinary, "an attachment that no packet has announced", -1)
		return
	}
	p := h.pending
	if reason != "" {
		p.blame(BadBinary, reason, -1)
	}
	if h.held += len(data); h.held > maxAttached {
		h.skip = h.want - len(p.Attachments) - 1
		p = h.give(d)
		p.blame(NoFault, fmt.Sprintf("its attachments are over %d bytes and were not kept", maxAttached), -1)
		d.done(p)
		return
	}
	p.Attachments = append(p.Attachments, bytes.Clone(data))
	if len(p.Attachments) < h.want {
		return
	}
	p = h.give(d)
	d.checkPlaceholders(p)
	d.done(p)
}

// interrupt gives up what waits for attachments when another packet comes first.
func (d *Decoder) interrupt() {
	h := d.half
	h.skip = 0
	if h.pending == nil {
		return
	}
	p := h.give(d)
	p.blame(BadBinary, fmt.Sprintf("another packet came when %d of %d attachments had come: socket.io drops the connection", len(p.Attachments), h.want), -1)
	d.done(p)
}

// give moves what waits for attachments to the packets of this frame.
func (h *half) give(d *Decoder) *Packet {
	p := *h.pending
	h.pending = nil
	p.Last, p.At = d.frame.Position, d.frame.At
	d.packets = append(d.packets, p)
	return &d.packets[len(d.packets)-1]
}

// isMsgpack reports whether b begins like a map whose first key is a short
// string, as every packet of socket.io-msgpack-parser does.
func isMsgpack(b []byte) bool {
	return len(b) >= 2 && b[0] >= 0x81 && b[0] <= 0x8f && b[1]&0xe0 == 0xa0
}

// checkPlaceholders holds p's placeholders against its attachments.
func (d *Decoder) checkPlaceholders(p *Packet) {
	count, next := len(p.Attachments), 0
	var seen [maxAttachments]bool
	for _, arg := range p.Args {
		for num := range placeholders(arg) {
			i, err := strconv.Atoi(string(num))
			switch {
			case num == nil:
				p.blame(BadBinary, "a placeholder without a num", -1)
				continue
			case err != nil || i < 0 || i >= count:
				p.blame(BadBinary, fmt.Sprintf("a placeholder names attachment %s, and the last of them is %d", shorten(num), count-1), -1)
				continue
			case seen[i]:
				p.blame(BadBinary, fmt.Sprintf("two placeholders name attachment %d", i), -1)
			case i != next:
				p.blame(BadBinary, fmt.Sprintf("the placeholders are out of order: %d stands where %d is due", i, next), -1)
			}
			seen[i] = true
			next = i + 1
		}
	}
	if i := slices.Index(seen[:count], false); i >= 0 {
		p.blame(BadBinary, fmt.Sprintf("no placeholder names attachment %d", i), -1)
	}
}
