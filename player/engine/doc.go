// Package engine is a Socket.IO 5 server over Engine.IO 4 for a player: long
// polling, WebSocket and the upgrade between them, namespaces, rooms,
// acknowledgements and binary attachments, and the plain JSON form beside it.
// Payloads go out byte for byte as they were given, and whoever uses it decides
// when a socket ends and how.
//
// A connection is an Engine.IO session, or the WebSocket of a plain client. It
// has one queue, and whatever it sends goes through it: what is emitted by one
// goroutine arrives in that order, and a binary event is never cut by another
// packet. No method waits for a client: one that does not read is dropped when more
// than [Config.MaxQueue] bytes wait for it, and no other client notices.
//
// Callbacks of one connection run one at a time, never on the goroutine of a
// caller of this package, so they may take the locks that their user holds while
// it emits. Until a callback returns, nothing more is read from that client, its
// heartbeats included: long work belongs elsewhere, and a callback that waits for
// an answer of its own socket waits in vain.
//
// The answers are those of engine.io 6.6 and socket.io 4.8, quirks included,
// save two: an EIO 3 client is refused before the WebSocket handshake, not by
// HTTP text inside the WebSocket, and a POST whose Socket.IO packet cannot be
// read is answered before its session is closed. It never compresses, checks no
// Origin on WebSockets, as npm does not, and does not serve the client's script.
package engine
