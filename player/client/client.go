// Package client is a Socket.IO 5 client over WebSocket, as small as a demo and
// a driver of recordings need it: one namespace, text events, acknowledgements.
// It does not reconnect: whoever uses it wants to know when a socket ends.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"tapedeck/protocol/capture"
	"tapedeck/protocol/wire"
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
	// Event is called for each event, one at a time, in order. It must not wait
	// for an answer of the same client. Nil ignores them.
	Event func(name string, args []json.RawMessage)
}

// ErrRefused is returned when the server answers CONNECT with CONNECT_ERROR.
var ErrRefused = errors.New("connection refused by the server")

// Client is a connected socket. Its methods are safe for concurrent use.
type Client struct {
	socket *websocket.Conn
	event  func(string, []json.RawMessage)
	done   chan struct{} // closed when reading has ended

	writing sync.Mutex // held while a message is written

	mu      sync.Mutex // guards what follows
	next    int        // the next acknowledgement id
	waiting map[string]chan<- []json.RawMessage
	err     error // why it ended
}

// Dial connects, and returns when the server has accepted the CONNECT.
func Dial(ctx context.Context, o Options) (*Client, error) {
	address, err := socketURL(o.URL)
	if err != nil {
		return nil, err
	}
	socket, _, err := websocket.DefaultDialer.DialContext(ctx, address, o.Header)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", o.URL, err)
	}
	c := &Client{socket: socket, event: o.Event, done: make(chan struct{}), waiting: map[string]chan<- []json.RawMessage{}}
	connected := make(chan error, 1)
	go c.read(append([]byte("40"), o.Auth...), connected)
	select {
	case err = <-connected:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("connect to %s: %w", o.URL, err)
	}
	return c, nil
}

// socketURL turns the server's address into that of its WebSocket.
func socketURL(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", fmt.Errorf("read address: %w", err)
	}
	switch u.Scheme {
	case "http", "ws":
		u.Scheme = "ws"
	case "https", "wss":
		u.Scheme = "wss"
	default:
		return "", fmt.Errorf("address %q needs http:// or https://", address)
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

// Emit sends an event without asking for an answer.
func (c *Client) Emit(name string, args ...json.RawMessage) error {
	return c.send("", name, args)
}

// Ask sends an event and returns the arguments of its acknowledgement.
func (c *Client) Ask(ctx context.Context, name string, args ...json.RawMessage) ([]json.RawMessage, error) {
	answer := make(chan []json.RawMessage, 1)
	c.mu.Lock()
	id := strconv.Itoa(c.next)
	c.next++
	c.waiting[id] = answer
	c.mu.Unlock()
	if err := c.send(id, name, args); err != nil {
		return nil, err
	}
	select {
	case got := <-answer:
		return got, nil
	case <-c.done:
		return nil, fmt.Errorf("ask %s: %w", name, c.Err())
	case <-ctx.Done():
		return nil, fmt.Errorf("ask %s: no answer: %w", name, ctx.Err())
	}
}

func (c *Client) send(id, name string, args []json.RawMessage) error {
	quoted, err := json.Marshal(name)
	if err != nil {
		return fmt.Errorf("send %q: %w", name, err)
	}
	message := append([]byte("42"+id+"["), quoted...)
	for _, arg := range args {
		message = append(append(message, ','), arg...)
	}
	return c.write(append(message, ']'))
}

func (c *Client) write(message []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := c.socket.WriteMessage(websocket.TextMessage, message); err != nil {
		return fmt.Errorf("write to the server: %w", err)
	}
	return nil
}

// Done is closed when the socket has ended.
func (c *Client) Done() <-chan struct{} { return c.done }

// Err returns why the socket ended, nil while it has not.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// closeGrace is how long Close waits for the server's close frame.
const closeGrace = time.Second

// Close leaves the namespace, closes the socket and waits until reading ended.
func (c *Client) Close() error {
	c.write([]byte("41")) // a socket that is gone needs no farewell
	deadline := time.Now().Add(closeGrace)
	c.socket.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), deadline)
	c.socket.SetReadDeadline(deadline)
	<-c.done
	return nil
}

// read takes what the server sends, until the socket ends.
func (c *Client) read(connect []byte, connected chan<- error) {
	defer close(c.done)
	defer c.socket.Close()
	var decoder wire.Decoder
	for {
		kind, message, err := c.socket.ReadMessage()
		if err != nil {
			c.end(err)
			tell(connected, err) // of use only before the CONNECT was answered
			return
		}
		frame := capture.Frame{Connection: 1, Direction: capture.FromGateway, Kind: capture.Text, Data: message, Size: int64(len(message))}
		if kind == websocket.BinaryMessage {
			frame.Kind = capture.Binary
		}
		for _, p := range decoder.Decode(&frame) {
			c.take(&p, connect, connected)
		}
	}
}

// take acts on one packet.
func (c *Client) take(p *wire.Packet, connect []byte, connected chan<- error) {
	switch p.Engine {
	case wire.EngineOpen:
		c.write(connect)
	case wire.EnginePing:
		c.write([]byte("3"))
	case wire.EngineMessage:
		switch p.Type {
		case wire.Connect:
			tell(connected, nil)
		case wire.ConnectError:
			tell(connected, fmt.Errorf("%w: %s", ErrRefused, bytes.Join(p.Args, nil)))
		case wire.Event, wire.BinaryEvent:
			if c.event != nil {
				c.event(p.Name, copied(p.Args))
			}
		case wire.Ack, wire.BinaryAck:
			c.answered(p.ID, copied(p.Args))
		}
	}
}

// tell sends the outcome of the CONNECT, once.
func tell(connected chan<- error, err error) {
	select {
	case connected <- err:
	default:
	}
}

func (c *Client) answered(id string, args []json.RawMessage) {
	c.mu.Lock()
	answer := c.waiting[id]
	delete(c.waiting, id)
	c.mu.Unlock()
	if answer != nil {
		answer <- args
	}
}

func (c *Client) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

// copied keeps what a packet's slices lose with the next one.
func copied(args [][]byte) []json.RawMessage {
	out := make([]json.RawMessage, len(args))
	for i, arg := range args {
		out[i] = bytes.Clone(arg)
	}
	return out
}
