// Package capture holds what passed between a client and a gateway, as it
// passed: sessions, connections, exchanges and frames, and the addresses by
// which everything else in tapedeck names a moment.
//
// It is the meeting place of the proxy, the recorder, the player and the
// inspector, which know nothing of each other. It promises raw bytes: nothing
// here is decoded, re-encoded or judged. Packages wire, protocol and
// conversation do that, from these values alone.
//
// One stream carries everything. A [Frame] is a WebSocket message, a polling
// body, a part of an HTTP exchange, or one of the marks that say when a
// connection or an exchange began and ended. Frames are numbered densely from 1
// over the whole tape, and the number, a [Position], is the address of that
// moment for good. A connection is named by the position of its [Open] frame
// and an exchange by that of its [Request] frame, so no other numbering exists.
package capture
