// Package proxy is the man in the middle: it passes HTTP, event streams,
// long polling and WebSockets between clients and one gateway, byte for byte,
// and hands a copy of all that passes to a [Sink].
//
// # What it promises
//
// Bodies and WebSocket streams pass as they came, one write for each read; codes
// and reasons of closing, fragments, pings and half-closed or broken connections
// pass as what they are. Request targets are not cleaned, header values are not
// rewritten, nothing is retried, nothing is cut for being idle, and nothing but
// WebSockets is upgraded, so that nothing passes unseen.
//
// Each frame is with the Sink before the last of it is passed on. Whatever
// answers it therefore has a later position: the order of positions is an order
// of causes.
//
// A connection is one client socket, whatever carries it: requests of Engine.IO
// polling and the WebSocket that takes over from them are found by their sid. A
// message of a WebSocket names, as its exchange, the request that was upgraded.
// An informational answer (1xx) is a Response of its own, before the final one.
//
// # What it changes
//
// Host is the gateway's; fields that speak of one connection only are this
// proxy's; Sec-WebSocket-Extensions are taken off unless
// [Config.KeepCompression] is set. Cookies and redirects that would not work at
// the proxy's own origin are adapted, and the tape has both forms. Where the
// gateway cannot be asked, the proxy answers 502, says why, and marks the answer
// as its own. A [Gate] can withhold, replace and answer messages.
//
// # What it does not do
//
// net/http reads the heads: the order and the case of field names are lost, and
// a request that is not HTTP at all is refused without a trace on the tape. It
// also reads chunks: a part of one passes when the chunk is whole, the buffer is
// full or the connection ends.
// Trailers of an HTTP/2 answer whose head told its length cannot be passed on by
// HTTP/1.1, and are on the tape if that told of them. A client that half-closes
// its side of a plain request is taken for one that has left.
package proxy
