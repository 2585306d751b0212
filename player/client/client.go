// Package client is a client over WebSocket, of Socket.IO 5 or of plain JSON, as
// small as a demo and a driver of recordings need it: one namespace, text
// events, acknowledgements. It does not reconnect: whoever uses it wants to know
// when a socket ends.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"tapedeck/protocol/capture"
	"tapedeck/protocol/wire"
)

// Client is a connected socket. Its methods are safe for concurrent use.
type Client struct {
	socket *websocket.Conn
	prefix string // of each packet behind its type: the namespace
	plain  bool   // it speaks plain JSON
	event  func(string, []json.RawMessage)
	done   chan struct{} // closed when reading has ended

	writing sync.Mutex // held while a message is written

	mu      sync.Mutex // guards what follows
	next    int        // the next acknowledgement id
	waiting map[string]func([]json.RawMessage)
	err     error // why it ended
}

// Emit sends an event without asking for an answer.
func (c *Client) Emit(name string, args ...json.RawMessage) error {
	return c.send("", name, args)
}

// Ask sends an event and returns the arguments of its acknowledgement.
func (c *Client) Ask(ctx context.Context, name string, args ...json.RawMessage) ([]json.RawMessage, error) {
	answer := make(chan []json.RawMessage, 1)
	if err := c.Request(func(args []json.RawMessage) { answer <- args }, name, args...); err != nil {
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

// Request sends an event and returns. When its acknowledgement comes, answered
// is called with the arguments, in order with the events and as they are. It is
// never called if none comes.
func (c *Client) Request(answered func(args []json.RawMessage), name string, args ...json.RawMessage) error {
	c.mu.Lock()
	id := strconv.Itoa(c.next)
	c.next++
	c.waiting[id] = answered
	c.mu.Unlock()
	return c.send(id, name, args)
}

func (c *Client) send(id, name string, args []json.RawMessage) error {
	quoted, err := json.Marshal(name)
	if err != nil {
		return fmt.Errorf("send %q: %w", name, err)
	}
	if c.plain {
		return c.write(plainMessage(id, quoted, args))
	}
	message := append([]byte("42"+c.prefix+id+"["), quoted...)
	for _, arg := range args {
		message = append(append(message, ','), arg...)
	}
	return c.write(append(message, ']'))
}

// plainMessage is an event in the plain form, which has room for one argument.
func plainMessage(id string, name []byte, args []json.RawMessage) []byte {
	message := append([]byte(`{"event":`), name...)
	if len(args) > 0 {
		message = append(append(message, `,"data":`...), args[0]...)
	}
	if id != "" {
		message = append(append(message, `,"id":`...), id...)
	}
	return append(message, '}')
}

// writeLimit is how long a server may take to read a message.
const writeLimit = 30 * time.Second

func (c *Client) write(message []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.socket.SetWriteDeadline(time.Now().Add(writeLimit))
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
	if !c.plain {
		c.write([]byte("41" + c.prefix)) // a socket that is gone needs no farewell
	}
	deadline := time.Now().Add(closeGrace)
	c.socket.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), deadline)
	c.socket.SetReadDeadline(deadline)
	<-c.done
	return nil
}

// Drop ends the connection without a word, as a network does that fails, and
// waits until reading ended.
func (c *Client) Drop() {
	c.socket.Close()
	<-c.done
}

// read takes what the server sends, until the socket ends.
func (c *Client) read(connect []byte, connected chan<- error) {
	defer close(c.done)
	defer c.socket.Close()
	var decoder wire.Decoder
	if c.plain {
		decoder.Decode(&capture.Frame{Position: 1, Connection: 1, Kind: capture.Open, Data: []byte(`{"transport":"websocket"}`)})
	}
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
	case wire.EngineMessage, wire.PlainJSON:
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
		answer(args)
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
