package wire

import (
	"bytes"
	"compress/flate"
	"fmt"
	"io"
	"strings"

	"tapedeck/protocol/capture"
)

// Deflate says how one direction of a WebSocket is compressed (RFC 7692).
type Deflate uint8

// What a 101 may say of permessage-deflate for one direction.
const (
	NoDeflate       Deflate = iota
	DeflateTakeover         // a message may refer to the messages before it
	DeflateAlone            // each message is compressed by itself
)

// NegotiatedDeflate reads what the Sec-WebSocket-Extensions of a 101 says for
// the messages that dir sends.
func NegotiatedDeflate(extensions string, dir capture.Direction) Deflate {
	alone := "server_no_context_takeover"
	if dir == capture.FromClient {
		alone = "client_no_context_takeover"
	}
	for extension := range strings.SplitSeq(extensions, ",") {
		name, params, _ := strings.Cut(extension, ";")
		if !strings.EqualFold(strings.TrimSpace(name), "permessage-deflate") {
			continue
		}
		for param := range strings.SplitSeq(params, ";") {
			if strings.EqualFold(strings.TrimSpace(param), alone) {
				return DeflateAlone
			}
		}
		return DeflateTakeover
	}
	return NoDeflate
}

const (
	deflateWindow = 32 << 10
	// maxInflated is where counting what is beyond the limit ends: a small
	// message can claim to hold a thousand times its size.
	maxInflated = 1 << 30
)

// deflateTail is what a sender takes off a message's end, and an empty last
// block, so that the reader finds an end.
const deflateTail = "\x00\x00\xff\xff\x01\x00\x00\xff\xff"

// inflater inflates the compressed messages of one direction.
type inflater struct {
	mode   Deflate
	flate  io.ReadCloser // nil until the first compressed message
	src    deflated
	window []byte // the last 32 KiB that came out
	out    []byte
	broken string // why later messages cannot be read either
}

// deflated reads a message and its tail. It has both methods that package flate
// asks for, which else would put a buffer between.
type deflated struct {
	body bytes.Reader
	tail strings.Reader
}

func (d *deflated) Read(p []byte) (int, error) {
	if d.body.Len() > 0 {
		return d.body.Read(p)
	}
	return d.tail.Read(p)
}

func (d *deflated) ReadByte() (byte, error) {
	if d.body.Len() > 0 {
		return d.body.ReadByte()
	}
	return d.tail.ReadByte()
}

func newInflater(mode Deflate) *inflater {
	if mode == NoDeflate {
		return nil
	}
	return &inflater{mode: mode}
}

// message replaces m's payload by what it inflates to. If that fails, m becomes
// a Stream with the reason, since its bytes are neither text nor an attachment.
func (f *inflater) message(m *Message, limit int64) {
	reason := f.broken
	if reason == "" {
		switch {
		case m.Flags.Has(capture.Partial):
			reason = "the connection ended inside a compressed message"
		case int64(len(m.Payload)) < m.Size:
			reason = fmt.Sprintf("a compressed message of %d bytes is over the limit of %d", m.Size, limit)
		default:
			size, err := f.inflate(m.Payload, limit)
			if err == nil {
				m.Payload, m.Size = f.out, size
				m.Flags |= capture.Inflated
				return
			}
			reason = fmt.Sprintf("a compressed message could not be inflated: %v", err)
		}
		if f.mode == DeflateTakeover {
			f.broken = "a compressed message may refer to one before it that could not be inflated"
		}
	}
	m.Kind, m.Reason = capture.Stream, reason
}

// inflate fills out with the beginning of what b inflates to, up to limit, and
// returns the length of the whole.
func (f *inflater) inflate(b []byte, limit int64) (size int64, err error) {
	f.src.body.Reset(b)
	f.src.tail.Reset(deflateTail)
	dict := f.window
	if f.mode == DeflateAlone {
		dict = nil
	}
	if f.flate == nil {
		f.flate = flate.NewReaderDict(&f.src, dict)
	} else if err := f.flate.(flate.Resetter).Reset(&f.src, dict); err != nil {
		return 0, err
	}
	f.out = reuse(f.out)
	for {
		if len(f.out) == cap(f.out) {
			f.out = append(f.out, 0)[:len(f.out)]
		}
		n, err := f.flate.Read(f.out[len(f.out):cap(f.out)])
		f.remember(f.out[len(f.out) : len(f.out)+n])
		size += int64(n)
		f.out = f.out[:min(int64(len(f.out)+n), limit)]
		switch {
		case err == io.EOF:
			return size, nil
		case err != nil:
			return size, err
		case size > max(limit, maxInflated):
			return size, fmt.Errorf("it holds more than %d bytes", max(limit, maxInflated))
		}
	}
}

// remember slides the window over what came out.
func (f *inflater) remember(b []byte) {
	if f.mode != DeflateTakeover {
		return
	}
	if len(b) >= deflateWindow {
		f.window = append(f.window[:0], b[len(b)-deflateWindow:]...)
		return
	}
	if over := len(f.window) + len(b) - deflateWindow; over > 0 {
		f.window = f.window[:copy(f.window, f.window[over:])]
	}
	f.window = append(f.window, b...)
}
