package wire

import "tapedeck/protocol/capture"

// Decoder reads the frames of a session. The zero value is ready to use. It
// needs a connection's Open frame to know how it speaks; frames of a connection
// that it has not seen open are read as Socket.IO. A Decoder is not safe for
// concurrent use.
type Decoder struct{}

// Decode returns the packets that f completes, in their order. The slice, and
// what its packets point to, is valid until the next call.
func (d *Decoder) Decode(f *capture.Frame) []Packet { return nil }
