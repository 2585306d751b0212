package proxy

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/json"
	"io"
	"time"

	"tapedeck/protocol/capture"
)

// What the proxy itself must know of Engine.IO, to tell which requests are one
// connection. All else is package wire's.
const (
	separator      = 0x1e // between the packets of a polling body
	unknownSession = "Session ID unknown"
	maxRefusal     = 512
	// maxInflated bounds what a compressed polling body may become: it is
	// inflated only to look for a handshake or a close packet.
	maxInflated = 1 << 20
)

// parseHandshake returns the sid of an Engine.IO handshake, "" if body holds
// none, and how long its session may be silent. It reads the length-prefixed
// form of Engine.IO 3 too.
func parseHandshake(body []byte) (sid string, patience time.Duration) {
	start := bytes.IndexByte(body, '{')
	if start < 1 || body[start-1] != '0' || start > 1 && body[start-2] != ':' && body[start-2] != 0xff {
		return "", 0
	}
	var h struct {
		SID          string `json:"sid"`
		PingInterval int64  `json:"pingInterval"`
		PingTimeout  int64  `json:"pingTimeout"`
	}
	if err := json.NewDecoder(bytes.NewReader(body[start:])).Decode(&h); err != nil {
		return "", 0
	}
	const most = int64(24 * time.Hour / time.Millisecond)
	if h.PingInterval <= 0 || h.PingTimeout <= 0 || h.PingInterval > most || h.PingTimeout > most {
		return h.SID, defaultPatience
	}
	return h.SID, time.Duration(h.PingInterval+h.PingTimeout) * time.Millisecond
}

// hasClose reports whether a close packet is in the polling body b.
func hasClose(b *body) bool {
	for packet := range bytes.SplitSeq(plain(b.data, b.flags), []byte{separator}) {
		if len(packet) == 1 && packet[0] == '1' {
			return true
		}
	}
	return false
}

// plain returns data without its content coding, as far as that can be undone.
func plain(data []byte, flags capture.Flags) []byte {
	var r io.Reader
	var err error
	switch {
	case flags.Has(capture.Gzip):
		r, err = gzip.NewReader(bytes.NewReader(data))
	case flags.Has(capture.Deflate):
		// HTTP's deflate is zlib's format, but some send it bare.
		if r, err = zlib.NewReader(bytes.NewReader(data)); err != nil {
			r, err = flate.NewReader(bytes.NewReader(data)), nil
		}
	default:
		return data
	}
	if err != nil {
		return nil
	}
	// What came out before an error is all that there is to look at.
	out, _ := io.ReadAll(io.LimitReader(r, maxInflated))
	return out
}

// isUpgrade reports whether a WebSocket message of a client takes its session
// over from polling.
func isUpgrade(kind capture.Kind, payload []byte) bool {
	return kind == capture.Text && len(payload) == 1 && payload[0] == '5'
}
