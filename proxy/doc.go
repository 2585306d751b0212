// Package proxy is the man in the middle: it passes HTTP, event streams,
// long polling and WebSockets between clients and one gateway, byte for byte,
// and hands a copy of all that passes to a [Sink].
package proxy
