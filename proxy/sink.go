package proxy

import "tapedeck/protocol/capture"

// Sink takes what passed, one call at a time, in the order of the positions. It
// copies what it keeps. While it waits, all traffic does.
type Sink interface {
	Frame(f *capture.Frame)
}
