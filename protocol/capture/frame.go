package capture

import (
	"fmt"
	"time"
)

// Direction says who sent a frame.
type Direction uint8

// The two senders. The zero value is for marks that nobody sent.
const (
	FromClient  Direction = 1
	FromGateway Direction = 2
)

// String returns "client" or "gateway", or "" for the zero value.
func (d Direction) String() string {
	switch d {
	case FromClient:
		return "client"
	case FromGateway:
		return "gateway"
	}
	return ""
}

// Other returns the direction of an answer.
func (d Direction) Other() Direction {
	switch d {
	case FromClient:
		return FromGateway
	case FromGateway:
		return FromClient
	}
	return 0
}

// MarshalText writes what String does.
func (d Direction) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what String writes.
func (d *Direction) UnmarshalText(text []byte) error {
	switch string(text) {
	case "client":
		*d = FromClient
	case "gateway":
		*d = FromGateway
	case "":
		*d = 0
	default:
		return fmt.Errorf("direction %q is neither client nor gateway", text)
	}
	return nil
}

// Kind says what a frame is.
type Kind uint8

// The kinds of a frame. Their numbers are on every tape and never change.
const (
	// Open marks the beginning of a connection. Data is an [Opening].
	Open Kind = 1
	// End marks the end of a connection. Data is an [Ending].
	End Kind = 2

	// Text and Binary are WebSocket messages: the payload, unmasked, the
	// fragments joined.
	Text   Kind = 3
	Binary Kind = 4
	// Ping, Pong and Close are WebSocket control frames. A Close payload still
	// begins with its two bytes of status code, if it has any.
	Ping  Kind = 5
	Pong  Kind = 6
	Close Kind = 7
	// Polling is one Engine.IO polling body, as it passed: a request's when it
	// came from the client, else an answer's.
	Polling Kind = 8
	// Stream is what passed on an upgraded connection that is no WebSocket
	// frame, such as the raw HTTP that a gateway may write after its 101.
	Stream Kind = 9

	// Request is the head of an HTTP request. Data is a [RequestHead].
	Request Kind = 10
	// Response is the head of an HTTP response. Data is a [ResponseHead].
	Response Kind = 11
	// Body is a piece of an HTTP body, as it was read.
	Body Kind = 12
	// Done marks the end of an exchange. Data is an [Outcome].
	Done Kind = 13

	// Gap marks frames that were relayed but could not be recorded. Data is a
	// [Loss].
	Gap Kind = 14
	// Act tells what the proxy itself did to a frame. Data is a [Deed].
	Act Kind = 15
)

var kindNames = [...]string{
	Open: "open", End: "end", Text: "text", Binary: "binary", Ping: "ping", Pong: "pong", Close: "close",
	Polling: "polling", Stream: "stream", Request: "request", Response: "response", Body: "body", Done: "done",
	Gap: "gap", Act: "act",
}

// String returns the kind's name in lower case, such as "polling".
func (k Kind) String() string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}
	return fmt.Sprintf("kind-%d", uint8(k))
}

// MarshalText writes what String does.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads what String writes.
func (k *Kind) UnmarshalText(text []byte) error {
	for i, name := range kindNames {
		if name != "" && name == string(text) {
			*k = Kind(i)
			return nil
		}
	}
	return fmt.Errorf("no kind of frame is called %q", text)
}

// Flags say what is particular about a frame.
type Flags uint16

// The flags of a frame. Their numbers are on every tape and never change.
const (
	// Cut: Data is the beginning only, since the whole was over a limit; Size
	// is the length of the whole.
	Cut Flags = 1 << iota
	// Partial: the connection ended before the whole of it had come.
	Partial
	// Fragmented: the WebSocket message came in more than one frame.
	Fragmented
	// Inflated: the message passed compressed (permessage-deflate) and Data is
	// what it inflates to.
	Inflated
	// Gzip and Deflate: Data is a body in that content coding.
	Gzip
	Deflate
	// Withheld: the frame was received and not sent on.
	Withheld
	// Injected: the proxy made the frame; it was sent and never received.
	Injected
	// Redacted: secrets in Data were replaced before it was written.
	Redacted
	// Imported: the frame came from a file and not from a live connection.
	Imported
)

var flagNames = []string{"cut", "partial", "fragmented", "inflated", "gzip", "deflate", "withheld", "injected", "redacted", "imported"}

// Has reports whether all of g are set.
func (f Flags) Has(g Flags) bool { return f&g == g }

// Names returns the names of the flags that are set, in a fixed order.
func (f Flags) Names() []string {
	var names []string
	for i, name := range flagNames {
		if f&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// Frame is one thing that passed, or a mark of a beginning or an end.
//
// A Frame handed to a function is that function's until it returns: whoever
// keeps Data longer copies it.
type Frame struct {
	Position Position
	// At is the time since the session began, by a clock that never jumps. In
	// an imported session it is what the file said, and may run backwards.
	At time.Duration
	// Connection is the position of the Open frame, 0 if there is none.
	Connection Position
	// Exchange is the position of the Request frame, 0 if there is none.
	Exchange  Position
	Direction Direction
	Kind      Kind
	Flags     Flags
	// Size is the number of bytes that passed. It differs from len(Data) only
	// with Cut, and with Redacted.
	Size int64
	// Data is the bytes as they passed, or the JSON that the kind names.
	Data []byte
}
