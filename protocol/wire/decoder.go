package wire

import (
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"tapedeck/protocol/capture"
)

const (
	// maxPackets is how many packets of one polling body are read.
	maxPackets = 1 << 16
	// keptPackets is how many packets' room is kept for the next frame.
	keptPackets = 1 << 10
	// maxNames is how many names are kept to be used again.
	maxNames = 1 << 10
)

// Decoder reads the frames of a session. The zero value is ready to use. It
// needs a connection's Open frame to know how it speaks; frames of a connection
// that it has not seen open are read as Socket.IO. A Decoder is not safe for
// concurrent use.
//
// For each connection it keeps at most one packet a direction that waits for its
// attachments, and what was asked and may yet be acknowledged, until the End
// frame. Frames that the proxy made are put together apart from those that it
// received, since an edited packet passes twice.
type Decoder struct {
	connections map[capture.Position]*connection

	// Of the frame that is being read:
	frame *capture.Frame
	conn  *connection
	half  *half

	packets []Packet
	args    [][]byte // where packets' Args lie
	likes   []Like   // of packets, as far as there are some
	changes []Change // where those of likes lie
	json    splitter
	body    body
	names   map[string]string
}

// connection is what must be remembered of one connection.
type connection struct {
	id        capture.Position
	transport capture.Transport
	eio       string
	halves    [2][2]half // by direction, and received or made by the proxy
	asked     questions
	// recovers holds the namespaces whose gateway gave a pid.
	recovers map[string]bool
	plain    bool // a plain message was seen
	msgpack  bool // a packet of the msgpack parser was seen
}

// half is one direction of a connection.
type half struct {
	pending *Packet // waits for its attachments
	want    int     // how many pending has announced
	held    int     // bytes in its attachments
	skip    int     // attachments still to come of a packet that was given up
	repeats *repeats
}

// Decode returns the packets that f completes, in their order. The slice, and
// what its packets point to, is valid until the next call.
func (d *Decoder) Decode(f *capture.Frame) []Packet {
	if cap(d.packets) > keptPackets {
		d.packets, d.args, d.likes, d.changes = nil, nil, nil, nil
	}
	d.packets, d.args = d.packets[:0], d.args[:0]
	d.likes, d.changes = d.likes[:0], d.changes[:0]
	switch f.Kind {
	case capture.Open:
		d.open(f)
		return nil
	case capture.Gap:
		d.gap(f)
		return d.packets
	case capture.End, capture.Text, capture.Binary, capture.Polling, capture.Stream:
	default:
		return nil
	}
	d.enter(f)
	switch {
	case f.Kind == capture.End:
		d.end()
	case f.Kind == capture.Stream:
		d.opaque(f.Data, 1, NoFault, "not a WebSocket message", -1)
	case d.conn.transport == capture.WebSocket:
		d.plain()
	case d.conn.eio != "" && d.conn.eio != "4":
		d.opaque(f.Data, 1, OtherVersion, fmt.Sprintf("Engine.IO %q, which is passed on and not read", d.conn.eio), -1)
	case f.Kind == capture.Polling:
		d.polling()
	case f.Kind == capture.Binary:
		d.attachment(f.Data, f.Data, 1, "")
	default:
		d.engine(f.Data, 1, !f.Flags.Has(capture.Cut) && !f.Flags.Has(capture.Partial))
	}
	d.frame, d.half = nil, nil
	return d.packets
}

// open begins a connection. One whose Opening cannot be read is taken for
// Socket.IO, like one that was not seen open.
func (d *Decoder) open(f *capture.Frame) {
	o, err := capture.Detail[capture.Opening](f)
	if err != nil {
		o = capture.Opening{Transport: capture.SocketIO}
	}
	c := &connection{id: f.Position, transport: o.Transport, eio: o.EIO}
	if o.Joined {
		c.forgive()
	}
	d.add(c)
}

func (d *Decoder) add(c *connection) {
	if d.connections == nil {
		d.connections = map[capture.Position]*connection{}
	}
	d.connections[c.id], d.conn = c, c
}

// enter finds what is remembered for f.
func (d *Decoder) enter(f *capture.Frame) {
	if d.conn == nil || d.conn.id != f.Connection {
		if c := d.connections[f.Connection]; c != nil {
			d.conn = c
		} else {
			c := &connection{id: f.Connection, transport: capture.SocketIO}
			c.forgive()
			d.add(c)
		}
	}
	made, from := 0, 0
	if f.Flags.Has(capture.Injected) {
		made = 1
	}
	if f.Direction == capture.FromGateway {
		from = 1
	}
	d.frame, d.half = f, &d.conn.halves[from][made]
}

// end gives what still waits for attachments, and forgets the connection.
func (d *Decoder) end() {
	d.abandon(d.conn, "the connection ended")
	delete(d.connections, d.conn.id)
	d.conn = nil
}

// gap gives what waits for attachments that may have been lost.
func (d *Decoder) gap(f *capture.Frame) {
	d.frame = f
	for _, id := range slices.Sorted(maps.Keys(d.connections)) {
		c := d.connections[id]
		d.abandon(c, "frames were lost")
		c.forgive()
	}
	d.frame = nil
}

// abandon gives what waits for attachments on c.
func (d *Decoder) abandon(c *connection, why string) {
	for i := range c.halves {
		for j := range c.halves[i] {
			if h := &c.halves[i][j]; h.pending != nil {
				p := h.give(d)
				p.Engine = Opaque
				p.blame(NoFault, fmt.Sprintf("%s when %d of its %d attachments had come", why, len(p.Attachments), h.want), -1)
			}
		}
	}
}

// forgive lets attachments pass whose packet may have come before.
func (c *connection) forgive() {
	for i := range c.halves {
		for j := range c.halves[i] {
			c.halves[i][j].skip = maxAttachments
		}
	}
}

// packet adds the n-th packet of the frame.
func (d *Decoder) packet(raw []byte, n int, form Engine) *Packet {
	f := d.frame
	d.packets = append(d.packets, Packet{
		Address: capture.Address{Position: f.Position, Packet: n}, Last: f.Position, At: f.At,
		Connection: f.Connection, Direction: f.Direction, Engine: form, Raw: raw, Offending: -1,
	})
	return &d.packets[len(d.packets)-1]
}

// opaque adds a packet that cannot be read.
func (d *Decoder) opaque(raw []byte, n int, fault Fault, reason string, offending int) {
	d.packet(raw, n, Opaque).blame(fault, reason, offending)
}

// blame says what is wrong with p; the first thing that is said stands.
func (p *Packet) blame(fault Fault, reason string, offending int) {
	if p.Reason == "" {
		p.Reason, p.Fault, p.Offending = reason, fault, offending
	}
}

// refuse makes p opaque: it cannot be read.
func (p *Packet) refuse(fault Fault, reason string, offending int) {
	p.Engine, p.Reason, p.Fault, p.Offending = Opaque, reason, fault, offending
	p.Args = nil
}

// intern returns name as a string, the same one for the same name.
func (d *Decoder) intern(name []byte) string {
	if s, ok := d.names[string(name)]; ok {
		return s
	}
	s := string(name)
	if d.names == nil {
		d.names = map[string]string{}
	}
	if len(d.names) < maxNames && len(s) <= 64 {
		d.names[s] = s
	}
	return s
}

// invalidUTF8 returns the index of the first byte that is no UTF-8.
func invalidUTF8(b []byte) int {
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}
