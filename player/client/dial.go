package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gorilla/websocket"
)

// Options configure a Client. URL is required.
type Options struct {
	// URL is the server's address, http or https, with the path of its
	// Socket.IO if that is not /socket.io/.
	URL string
	// Auth is the JSON object sent with CONNECT, nil for none.
	Auth json.RawMessage
	// Header is sent with the handshake.
	Header http.Header
	// Namespace is the one to connect to, "/" if it is empty.
	Namespace string
	// Plain speaks plain JSON in place of Socket.IO: there is no CONNECT then,
	// and so neither Auth nor Namespace, and URL is taken as it is.
	Plain bool
	// Dial opens the connection, in place of the network. Nil is the network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// MaxMessage is the largest message that is taken, in bytes; a larger one
	// ends the socket. 0 is no limit.
	MaxMessage int64
	// Event is called for each event, one at a time, in order. It must not wait
	// for an answer of the same client. Nil ignores them.
	Event func(name string, args []json.RawMessage)
}

// ErrRefused is returned when the server answers CONNECT with CONNECT_ERROR.
var ErrRefused = errors.New("connection refused by the server")

// HandshakeError is returned when the server answers the request for a WebSocket
// with anything else.
type HandshakeError struct {
	Status int    // of the HTTP response
	Body   string // the beginning of it, at most 1 KiB
}

// Error names the status, and the body's first line.
func (e *HandshakeError) Error() string {
	line, _, _ := strings.Cut(strings.TrimSpace(e.Body), "\n")
	if line != "" {
		line = ": " + line
	}
	return fmt.Sprintf("HTTP %d %s%s", e.Status, http.StatusText(e.Status), line)
}

// handshakeLimit is how long a server may take to answer the request for a
// WebSocket.
const handshakeLimit = 45 * time.Second

// Dial connects, and returns when the server has accepted the CONNECT.
func Dial(ctx context.Context, o Options) (*Client, error) {
	address, err := socketURL(o)
	if err != nil {
		return nil, err
	}
	dialer := websocket.Dialer{Proxy: http.ProxyFromEnvironment, NetDialContext: o.Dial, HandshakeTimeout: handshakeLimit}
	socket, response, err := dialer.DialContext(ctx, address, o.Header)
	if err != nil {
		if errors.Is(err, websocket.ErrBadHandshake) && response != nil {
			body, _ := io.ReadAll(response.Body) // gorilla has read what there is of it
			err = &HandshakeError{response.StatusCode, string(body)}
		}
		return nil, err
	}
	if o.MaxMessage > 0 {
		socket.SetReadLimit(o.MaxMessage)
	}
	c := &Client{
		socket: socket, plain: o.Plain, event: o.Event, done: make(chan struct{}), waiting: map[string]func([]json.RawMessage){},
	}
	if o.Namespace != "" && o.Namespace != "/" {
		c.prefix = o.Namespace + ","
	}
	connected := make(chan error, 1)
	if o.Plain {
		connected <- nil
	}
	go c.read(append([]byte("40"+c.prefix), o.Auth...), connected)
	select {
	case err = <-connected:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// socketURL turns the server's address into that of its WebSocket.
func socketURL(o Options) (string, error) {
	u, err := url.Parse(o.URL)
	if err != nil {
		return "", fmt.Errorf("read address: %w", err)
	}
	switch u.Scheme {
	case "http", "ws":
		u.Scheme = "ws"
	case "https", "wss":
		u.Scheme = "wss"
	default:
		return "", fmt.Errorf("address %q needs http:// or https://", o.URL)
	}
	if o.Plain {
		return u.String(), nil
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/socket.io/"
	}
	q := u.Query()
	q.Set("EIO", "4")
	q.Set("transport", "websocket")
	u.RawQuery = q.Encode()
	return u.String(), nil
}
