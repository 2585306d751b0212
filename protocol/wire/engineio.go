package wire

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"fmt"
	"io"
	"unicode/utf8"

	"tapedeck/protocol/capture"
)

// maxBody is how much of a compressed polling body is inflated, in bytes.
const maxBody = 64 << 20

// separator stands between the packets of a polling body. It cannot stand in
// JSON, so a body can be split before it is read.
const separator = '\x1e'

// engine reads one Engine.IO packet, the n-th of its frame. Whole is false if
// only its beginning is there.
func (d *Decoder) engine(raw []byte, n int, whole bool) {
	switch {
	case !whole:
		d.torn(raw, n)
		return
	case len(raw) == 0:
		d.opaque(raw, n, Malformed, "an empty Engine.IO packet", -1)
		return
	case d.repeated(raw, n):
		return
	case !utf8.Valid(raw):
		i := invalidUTF8(raw)
		d.opaque(raw, n, BadEncoding, fmt.Sprintf("not UTF-8 at byte %d: 0x%02x", i, raw[i]), i)
		d.giveUp(raw)
		return
	}
	switch digit := raw[0]; digit {
	case '4':
		d.socketIO(raw, n)
	case 'b':
		d.base64(raw, n)
	case '0':
		d.handshake(raw, n)
	case '1', '2', '3', '5', '6':
		d.packet(raw, n, Engine(digit-'0'))
	default:
		d.opaque(raw, n, Malformed, fmt.Sprintf("not an Engine.IO packet: it begins with %q and not with 0 to 6", firstRune(raw)), 0)
	}
}

// torn reports a packet whose end is not there, and so cannot be blamed for it.
func (d *Decoder) torn(raw []byte, n int) {
	reason := "the connection ended before the whole of it had come"
	if d.frame.Flags.Has(capture.Cut) {
		reason = fmt.Sprintf("only the beginning of its %d bytes was kept", d.frame.Size)
	}
	d.opaque(raw, n, NoFault, reason, -1)
	d.giveUp(raw)
}

// handshake reads Engine.IO's open packet. Its JSON is in Args.
func (d *Decoder) handshake(raw []byte, n int) {
	p := d.packet(raw, n, EngineOpen)
	d.json.reset(raw, 1)
	if !d.json.value() || !d.json.atEnd() {
		reason, offending := d.json.complaint()
		p.refuse(BadEncoding, reason, offending)
		return
	}
	d.args = append(d.args, raw[1:])
	p.Args = d.args[len(d.args)-1:]
}

// base64 reads an attachment in its text form.
func (d *Decoder) base64(raw []byte, n int) {
	encoding, text := base64.StdEncoding, raw[1:]
	if len(text)%4 != 0 {
		encoding = base64.RawStdEncoding // Node takes it without its padding
	}
	data := make([]byte, encoding.DecodedLen(len(text)))
	length, err := encoding.Decode(data, text)
	reason := ""
	if err != nil {
		reason = fmt.Sprintf("an attachment that is no base64: %v", err)
	}
	d.attachment(raw, data[:length], n, reason)
}

// polling reads one body of long polling.
func (d *Decoder) polling() {
	f := d.frame
	data, cut, err := d.body.read(f)
	switch {
	case f.Flags.Has(capture.Partial):
		// A peer drops a body that broke off, so its packets count for nothing.
		d.torn(data, 1)
		return
	case err != nil:
		d.opaque(f.Data, 1, BadEncoding, err.Error(), -1)
		return
	case f.Direction == capture.FromGateway && string(data) == "ok":
		d.opaque(data, 1, NoFault, "the answer to a posted body", -1)
		return
	case f.Direction == capture.FromGateway && bytes.HasPrefix(data, []byte(`{"code":`)):
		d.opaque(data, 1, NoFault, "the answer of a gateway that refused the request", -1)
		return
	}
	for n := 1; ; n++ {
		if n > maxPackets {
			d.opaque(data, n, Malformed, fmt.Sprintf("more than %d packets in one body", maxPackets), -1)
			return
		}
		end := bytes.IndexByte(data, separator)
		if end < 0 {
			d.engine(data, n, !cut)
			return
		}
		d.engine(data[:end:end], n, true)
		data = data[end+1:]
	}
}

// body inflates the bodies of long polling, in buffers that it keeps.
type body struct {
	src  bytes.Reader
	gzip *gzip.Reader
	out  bytes.Buffer
}

// read returns f's body without its content coding. Cut says that its end is
// missing, through no fault of the peer.
func (b *body) read(f *capture.Frame) (data []byte, cut bool, err error) {
	cut = f.Flags.Has(capture.Cut)
	var coding string
	switch {
	case f.Flags.Has(capture.Gzip):
		coding, err = "gzip", b.inflate(f.Data, b.gunzip)
	case f.Flags.Has(capture.Deflate):
		coding, err = "deflate", b.inflate(f.Data, unzlib)
		if err != nil && b.out.Len() == 0 {
			// Some peers leave out the frame that the name stands for.
			err = b.inflate(f.Data, func(r *bytes.Reader) (io.Reader, error) { return flate.NewReader(r), nil })
		}
	default:
		return f.Data, cut, nil
	}
	if b.out.Len() > maxBody {
		b.out.Truncate(maxBody)
		return b.out.Bytes(), true, nil
	}
	if err != nil && cut {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("a body that is no %s: %w", coding, err)
	}
	return b.out.Bytes(), cut, err
}

func (b *body) inflate(data []byte, open func(*bytes.Reader) (io.Reader, error)) error {
	if b.out.Cap() > keptBuffer {
		b.out = bytes.Buffer{}
	}
	b.out.Reset()
	b.src.Reset(data)
	r, err := open(&b.src)
	if err != nil {
		return err
	}
	_, err = io.Copy(&b.out, io.LimitReader(r, maxBody+1))
	return err
}

func (b *body) gunzip(r *bytes.Reader) (io.Reader, error) {
	if b.gzip == nil {
		b.gzip = new(gzip.Reader)
	}
	return b.gzip, b.gzip.Reset(r)
}

func unzlib(r *bytes.Reader) (io.Reader, error) { return zlib.NewReader(r) }

func firstRune(b []byte) rune {
	r, _ := utf8.DecodeRune(b)
	return r
}
