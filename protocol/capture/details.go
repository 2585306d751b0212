package capture

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// SessionID numbers the sessions of a tape from 1.
type SessionID uint32

// Session is one start of the proxy, or one import, on a tape.
type Session struct {
	ID      SessionID `json:"id"`
	Started time.Time `json:"started"`        // wall clock; frames count from here
	Ended   time.Time `json:"ended,omitzero"` // zero while it goes on, or when it was killed
	First   Position  `json:"first"`          // its first frame
	Last    Position  `json:"last,omitempty"` // its last frame, as far as is known
	Source  string    `json:"source"`         // "proxy", "player" or the file imported
	Gateway string    `json:"gateway"`        // the upstream's address
	Listen  string    `json:"listen"`         // where clients connected
	// Played is what the built-in gateway played, and by which seed.
	Played string `json:"played,omitempty"`
	Tool   string `json:"tool"`  // tapedeck's version
	Clean  bool   `json:"clean"` // it was ended, not cut off
	// Live is set by who reads a tape that is being written: the session goes on.
	Live    bool     `json:"live,omitempty"`
	Fault   string   `json:"fault,omitempty"`   // why the recording is incomplete
	Secrets bool     `json:"secrets,omitempty"` // nothing was redacted, as --keep-secrets asked
	Judged  Position `json:"judged,omitempty"`  // the derived rows reach this far
	// Rules is the version of the catalogue that the findings rest on.
	Rules int `json:"rules,omitempty"`
	// Notes are those of the capsule that it came out of, nil if it is none.
	Notes *Notes `json:"notes,omitempty"`
}

// Transport is how a connection speaks.
type Transport string

// The transports of a connection.
const (
	// SocketIO is a connection whose query has EIO: polling, WebSocket, or
	// polling upgraded to WebSocket.
	SocketIO Transport = "socket.io"
	// WebSocket is any other WebSocket.
	WebSocket Transport = "websocket"
)

// Opening is the Data of an Open frame.
type Opening struct {
	Transport Transport `json:"transport"`
	Polling   bool      `json:"polling,omitempty"` // it began with long polling
	EIO       string    `json:"eio,omitempty"`     // the query's EIO, as sent
	SID       string    `json:"sid,omitempty"`     // the Engine.IO session
	Joined    bool      `json:"joined,omitempty"`  // it had begun before it passed here
	Target    string    `json:"target"`            // the request target of its first request, as sent
	Remote    string    `json:"remote"`            // the client's address
	// Protocol is the WebSocket subprotocol that the gateway chose.
	Protocol string `json:"protocol,omitempty"`
}

// Ending is the Data of an End frame.
type Ending struct {
	// By is who ended it; zero if the proxy did.
	By Direction `json:"by"`
	// Code and Reason are those of the first WebSocket Close frame. Code 1005
	// is a Close frame without a code, 1006 an end without a Close frame.
	Code   int    `json:"code,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Error says how it broke, if it did not end in order.
	Error string `json:"error,omitempty"`
}

// RequestHead is the Data of a Request frame.
type RequestHead struct {
	Method string      `json:"method"`
	Target string      `json:"target"` // as sent: nothing cleaned, nothing sorted
	Proto  string      `json:"proto"`
	Host   string      `json:"host"` // as the client sent it
	Remote string      `json:"remote"`
	Header http.Header `json:"header"`
}

// ResponseHead is the Data of a Response frame.
type ResponseHead struct {
	Status int         `json:"status"`
	Proto  string      `json:"proto"`
	Header http.Header `json:"header"`
	// Made is set when the proxy answered itself, since no gateway did.
	Made bool `json:"made,omitempty"`
	// Adapted holds what the gateway sent of the header fields that were
	// changed on their way, such as a cookie's Domain.
	Adapted http.Header `json:"adapted,omitempty"`
}

// Outcome is the Data of a Done frame.
type Outcome struct {
	RequestBytes  int64 `json:"requestBytes"`
	ResponseBytes int64 `json:"responseBytes"`
	// Expected is the announced length of the answer, -1 if there was none.
	Expected int64 `json:"expected"`
	// By is who cut the exchange short; zero if nobody did.
	By    Direction `json:"by,omitzero"`
	Error string    `json:"error,omitempty"`
	// RequestTrailer and Trailer are the fields that followed the bodies of the
	// request and of the answer.
	RequestTrailer http.Header `json:"requestTrailer,omitempty"`
	Trailer        http.Header `json:"trailer,omitempty"`
}

// Loss is the Data of a Gap frame.
type Loss struct {
	Frames uint64 `json:"frames"`
	Bytes  uint64 `json:"bytes"`
	Error  string `json:"error"`
}

// Deed is the Data of an Act frame: what the proxy did, to which frame.
type Deed struct {
	Did  string   `json:"did"`            // "refused", "held back", "delayed", "edited", "injected", "adapted"
	Of   Position `json:"of,omitempty"`   // the frame as received
	Sent Position `json:"sent,omitempty"` // the frame as sent
	Rule string   `json:"rule,omitempty"`
	Text string   `json:"text,omitempty"`
}

// Detail decodes the JSON that f's kind carries into T.
func Detail[T Opening | Ending | RequestHead | ResponseHead | Outcome | Loss | Deed](f *Frame) (T, error) {
	var detail T
	if err := json.Unmarshal(f.Data, &detail); err != nil {
		return detail, fmt.Errorf("read the %s frame at %d: %w", f.Kind, f.Position, err)
	}
	return detail, nil
}
