// Package wire turns bytes into packets: WebSocket frames, Engine.IO 4,
// Socket.IO 5, and the plain JSON form of the protocol (protocol page, read in
// section 1 of the README's protocol notes). It does no I/O, keeps no clock and
// never panics, whatever the bytes.
//
// A [Scanner] finds the messages in one direction of an upgraded connection. It
// stands beside the path: the bytes pass on as they were read, and are fed to it
// as well. A proxy that must decide on messages before they pass lets it hold:
// then each message comes with its raw bytes, to be written on unchanged. A
// [Decoder] reads the frames of a whole session, in the order of their
// positions, and gives the packets that each of them completes: it joins binary
// attachments across polling bodies and over the upgrade to WebSocket, and pairs
// acknowledgements with what asked for them.
//
// What cannot be read comes out as an opaque packet with the reason: nothing is
// lost, and decoding goes on. All that a packet holds are slices of the frame
// that it came in, so the bytes are the bytes that passed.
package wire
