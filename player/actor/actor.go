// Package actor plays the client of a scenario on real sockets: it starts,
// answers, cancels and leaves when the scenario says that a client does. The
// demo is one, and so are the tests that play every scenario through the proxy.
package actor

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"sync"
	"time"

	"tapedeck/player/client"
	"tapedeck/player/scenario"
	"tapedeck/protocol"
)

// Options say where to play.
type Options struct {
	URL    string          // the gateway's, or the proxy's
	Thread string          // the thread's id
	Auth   json.RawMessage // sent with CONNECT, nil for none
	// Patience is how long a move may wait for what it waits for, 30 s by
	// default.
	Patience time.Duration
	// Think is how long a decision is looked at before it is answered.
	Think time.Duration
	// Linger is how long the windows stay open after the last move.
	Linger time.Duration
	// Dial opens the connections, in place of the network. Nil is the network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// heard is a message that a window got, or the end of its socket.
type heard struct {
	name    string
	payload json.RawMessage
}

// socketEnd is what a move waits for by the end of a socket.
const socketEnd = "end"

// actor plays a part in one or more windows.
type actor struct {
	Options
	part    Part
	windows map[int]*client.Client

	mu    sync.Mutex // guards what follows
	inbox []heard    // in the order in which they came
	news  chan struct{}
}

// Play does all that s expects of its client, in order. It returns an error
// when something that a move waits for does not come, or when an answer is not
// the one that s names.
func Play(ctx context.Context, s *scenario.Scenario, o Options) error {
	if o.Patience <= 0 {
		o.Patience = 30 * time.Second
	}
	a := &actor{
		Options: o, part: Part{Thread: o.Thread}, windows: map[int]*client.Client{}, news: make(chan struct{}, 1),
	}
	defer a.leave()
	for i, m := range s.Client {
		if err := a.move(ctx, m); err != nil {
			return fmt.Errorf("play %s: move %d: %w", s.Name, i+1, err)
		}
	}
	return sleep(ctx, o.Linger)
}

// leave closes all windows.
func (a *actor) leave() {
	for _, w := range a.windows {
		w.Close()
	}
}

func (a *actor) move(ctx context.Context, m scenario.Move) error {
	if err := a.await(ctx, m); err != nil {
		return err
	}
	if m.Leave {
		if w := a.windows[m.Window]; w != nil {
			w.Close()
			delete(a.windows, m.Window)
		}
		return nil
	}
	window, err := a.window(ctx, m.Window)
	name := m.Command()
	if err != nil || name == "" {
		return err
	}
	payload, err := a.part.Say(m)
	if err != nil {
		return err
	}
	if m.Resume != nil {
		if err := sleep(ctx, a.Think); err != nil {
			return err
		}
	}
	return a.send(ctx, window, m, name, payload)
}

// send sends a command. What a run answers by its events needs no
// acknowledgement; of the others, and where the scenario says that it is
// refused, the answer is checked.
func (a *actor) send(ctx context.Context, window *client.Client, m scenario.Move, name protocol.Name, payload []byte) error {
	ctx, cancel := context.WithTimeout(ctx, a.Patience)
	defer cancel()
	if (name == protocol.RunStart || name == protocol.RunResume) && m.Refused == "" {
		return window.Emit(string(name), payload)
	}
	args, err := window.Ask(ctx, string(name), payload)
	if err != nil {
		return err
	}
	var answer struct {
		OK    bool
		Error struct{ Code string }
	}
	if len(args) == 0 || json.Unmarshal(args[0], &answer) != nil || answer.OK != (m.Refused == "") || answer.Error.Code != m.Refused {
		return fmt.Errorf("%s %s was answered %s, expected %s", name, payload, args, expected(m.Refused))
	}
	return nil
}

func expected(code string) string {
	if code == "" {
		return "ok"
	}
	return code
}

// reconnectDelay is how long a window waits before it connects again.
const reconnectDelay = 200 * time.Millisecond

// window returns a connected window. One whose socket ended connects again, as
// an app does.
func (a *actor) window(ctx context.Context, number int) (*client.Client, error) {
	if w := a.windows[number]; w != nil && w.Err() == nil {
		return w, nil
	}
	ctx, cancel := context.WithTimeout(ctx, a.Patience)
	defer cancel()
	for {
		w, err := a.connect(ctx)
		if err == nil {
			a.windows[number] = w
			return w, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(reconnectDelay):
		}
	}
}

// connect opens a socket, and waits for the gateway's announcement as chat-core
// does, which sends nothing before it: no longer than protocolGraceMs.
func (a *actor) connect(ctx context.Context) (*client.Client, error) {
	greeted := make(chan struct{})
	var once sync.Once
	w, err := client.Dial(ctx, client.Options{URL: a.URL, Auth: a.Auth, Dial: a.Dial, Event: func(name string, args []json.RawMessage) {
		if protocol.Name(name) == protocol.Hello {
			once.Do(func() { close(greeted) })
		}
		a.hear(name, args)
	}})
	if err != nil {
		return nil, err
	}
	select {
	case <-greeted:
	case <-time.After(protocol.HelloGraceMS * time.Millisecond):
	case <-w.Done():
	case <-ctx.Done():
	}
	return w, nil
}

// hear takes an event of any window. It never waits: the same goroutine reads
// the acknowledgement that a command waits for.
func (a *actor) hear(name string, args []json.RawMessage) {
	h := heard{name: name}
	if len(args) > 0 {
		h.payload = args[0]
	}
	a.mu.Lock()
	a.inbox = append(a.inbox, h)
	a.mu.Unlock()
	select {
	case a.news <- struct{}{}:
	default: // there is news already
	}
}

// heed takes messages out of the inbox, up to the count-th of a kind, and
// returns how many of the kind are still to come.
func (a *actor) heed(kind string, count int) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.inbox) > 0 && count > 0 {
		h := a.inbox[0]
		a.inbox = a.inbox[1:]
		if a.part.Hear(h.name, h.payload) == kind {
			count--
		}
	}
	return count
}

// await waits until what a move waits for has come.
func (a *actor) await(ctx context.Context, m scenario.Move) error {
	kind, count, err := m.Trigger()
	if err != nil {
		return err
	}
	timer := time.NewTimer(a.Patience)
	defer timer.Stop()
	ended := a.ended(m, kind)
	for kind != "" {
		if count = a.heed(kind, count); count <= 0 {
			break
		}
		select {
		case <-a.news:
		case <-ended:
			count, ended = count-1, nil
		case <-timer.C:
			return fmt.Errorf("%s did not come within %v", m.When, a.Patience)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return sleep(ctx, m.After)
}

// ended is closed when the window's socket has ended, if the move waits for it.
func (a *actor) ended(m scenario.Move, kind string) <-chan struct{} {
	if w := a.windows[m.Window]; kind == socketEnd && w != nil {
		return w.Done()
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
