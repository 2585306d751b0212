package engine

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// A close frame may wait closingTime for what is queued before it, and closeGrace
// for the peer's answer.
const (
	closingTime = 30 * time.Second // as long as npm waits, over polling too
	closeGrace  = 2 * time.Second
)

// settle is how long after a frame the next one is left to the writer: what
// comes in a burst then leaves in few writes, and what comes alone at once.
const settle = time.Millisecond

// batchSize is how many bytes of small frames are joined into one write.
const batchSize = 64 << 10

var errQueueFull = errors.New("more bytes wait for the client than MaxQueue")

// link is a WebSocket and the one way to write to it: a queue that is written by
// whoever finds it idle. Nobody waits for the peer but the goroutine that drain
// runs on, and that exists only while something waits.
//
// Frames are written here and not by gorilla, so that a broadcast is framed once
// and a burst is one write. Gorilla itself writes a close frame when the peer
// breaks the protocol; net.Conn keeps such a frame whole among ours.
type link struct {
	ws    *websocket.Conn
	net   net.Conn
	try   *tryWriter // nil where a write cannot be tried without waiting
	limit int
	work  *sync.WaitGroup

	mu      sync.Mutex // guards what follows; never held over a write
	queue   [][]byte
	spare   [][]byte // the slice that queue had before, to use again
	size    int
	writing bool
	last    time.Time
	closed  bool  // nothing more is queued
	err     error // the connection is broken, or was cut
	done    chan struct{}
}

func newLink(ws *websocket.Conn, limit int, work *sync.WaitGroup) *link {
	l := &link{ws: ws, net: ws.NetConn(), limit: limit, work: work, done: make(chan struct{})}
	l.try = newTryWriter(l.net)
	ws.SetPingHandler(func(data string) error {
		l.push(framed(opPong, []byte(data)))
		l.flush()
		return nil
	})
	ws.SetCloseHandler(func(code int, _ string) error {
		if code == websocket.CloseNoStatusReceived {
			l.finish(nil)
		} else {
			l.finish(closePayload(code, ""))
		}
		return nil
	})
	return l
}

// push queues packets, all or none. They leave with the next flush. Only what
// waits already counts, so that one packet may be larger than the limit.
func (l *link) push(packets ...packet) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size > l.limit {
		return errQueueFull
	}
	return l.add(packets)
}

// force is push without the limit, for the few packets that are not to be lost.
func (l *link) force(packets ...packet) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.add(packets)
}

// waiting returns how many bytes are queued.
func (l *link) waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.size
}

// add queues packets; l.mu is held.
func (l *link) add(packets []packet) error {
	if l.closed || l.err != nil {
		return net.ErrClosed
	}
	for _, p := range packets {
		l.queue = append(l.queue, p.frame)
	}
	l.size += weight(packets)
	return nil
}

// flush sees to it that what is queued gets written, and does not wait.
func (l *link) flush() {
	l.mu.Lock()
	if l.writing || l.err != nil || len(l.queue) == 0 {
		l.mu.Unlock()
		return
	}
	l.writing = true
	now := time.Now()
	if l.try == nil || len(l.queue) > 1 || now.Sub(l.last) < settle {
		l.last = now
		l.work.Go(l.drain) // the reader is still counted: it ends after err is set
		l.mu.Unlock()
		return
	}
	l.last = now
	frame := l.queue[0]
	l.queue[0] = nil
	l.queue = l.queue[:0]
	l.mu.Unlock()

	n, err := l.try.write(frame)

	l.mu.Lock()
	defer l.mu.Unlock()
	l.size -= n
	if err != nil || l.err != nil {
		l.stop(err)
		return
	}
	if n < len(frame) {
		l.queue = append(l.queue, nil)
		copy(l.queue[1:], l.queue)
		l.queue[0] = frame[n:]
	}
	if len(l.queue) > 0 {
		l.work.Go(l.drain)
		return
	}
	l.stop(nil)
}

// drain writes until the queue is empty.
func (l *link) drain() {
	buf := batches.Get().(*[]byte)
	defer batches.Put(buf)
	for {
		l.mu.Lock()
		if l.err != nil || len(l.queue) == 0 {
			l.stop(l.err)
			l.mu.Unlock()
			return
		}
		frames := l.queue
		l.queue, l.spare = l.spare[:0], nil
		l.mu.Unlock()

		n, err := l.write(*buf, frames)

		clear(frames)
		l.mu.Lock()
		l.spare = frames
		l.size -= n
		l.last = time.Now()
		if err != nil {
			l.stop(err)
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
	}
}

var batches = sync.Pool{New: func() any {
	b := make([]byte, 0, batchSize)
	return &b
}}

// write writes frames, small ones joined in buf. It returns how many bytes of
// them are no longer waiting.
func (l *link) write(buf []byte, frames [][]byte) (int, error) {
	total := 0
	for len(frames) > 0 {
		batch := frames[0]
		used := 1
		if len(frames) > 1 && len(frames[0])+len(frames[1]) <= cap(buf) {
			batch = buf[:0]
			for used = 0; used < len(frames) && len(batch)+len(frames[used]) <= cap(buf); used++ {
				batch = append(batch, frames[used]...)
			}
		}
		n, err := l.net.Write(batch)
		total += n
		if err != nil {
			return total, err
		}
		frames = frames[used:]
	}
	return total, nil
}

// stop ends the writing; l.mu is held. With an error, or after the last frame of
// a closed link, nothing will be written any more.
func (l *link) stop(err error) {
	l.writing = false
	if err != nil && l.err == nil {
		l.err = err
	}
	if l.err != nil {
		l.queue, l.size = nil, 0
	}
	if l.err == nil && !l.closed {
		return
	}
	select {
	case <-l.done:
	default:
		close(l.done)
		l.net.SetReadDeadline(time.Now().Add(closeGrace))
	}
}

// finish queues a close frame after what waits, and lets nothing follow. The
// reader ends when the peer has answered, or has taken too long.
func (l *link) finish(payload []byte) {
	l.mu.Lock()
	if l.closed || l.err != nil {
		l.mu.Unlock()
		return
	}
	l.add([]packet{framed(opClose, payload)})
	l.closed = true
	l.net.SetReadDeadline(time.Now().Add(closingTime))
	l.mu.Unlock()
	l.flush()
}

// mute lets nothing more be queued, and says nothing about it.
func (l *link) mute() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
}

// cut closes the connection under the WebSocket, as a broken network does.
func (l *link) cut() {
	l.mu.Lock()
	l.closed = true
	if l.writing {
		l.err = net.ErrClosed // the writer stops itself
	} else {
		l.stop(net.ErrClosed)
	}
	l.mu.Unlock()
	l.net.Close()
}

// hangUp ends the connection after its reader has ended with err: what is queued
// is written, and a peer that is still sending gets to see our close frame.
func (l *link) hangUp(err error) {
	defer l.cut()
	var closed *websocket.CloseError
	switch {
	case errors.As(err, &closed) && closed.Code != websocket.CloseAbnormalClosure:
		l.mu.Lock()
		if !l.writing && len(l.queue) == 0 {
			l.stop(nil)
		}
		l.mu.Unlock()
		grace := time.NewTimer(closeGrace)
		defer grace.Stop()
		select {
		case <-l.done:
		case <-grace.C:
		}
	case !broken(err):
		// Closed now, with bytes unread, TCP would reset the connection and the
		// peer could lose the reason that is on its way.
		if half, ok := l.net.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
			l.net.SetReadDeadline(time.Now().Add(closeGrace))
			io.Copy(io.Discard, l.net)
		}
	}
}

// broken reports whether a reader's error means that the connection is gone, and
// not that the peer broke the protocol.
func broken(err error) bool {
	var closed *websocket.CloseError
	if errors.As(err, &closed) {
		return closed.Code == websocket.CloseAbnormalClosure
	}
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe)
}

// dismiss ends a WebSocket that nobody serves.
func (l *link) dismiss(payload []byte) {
	l.finish(payload)
	l.hangUp(l.discard())
}

// discard reads until the peer closes.
func (l *link) discard() error {
	for {
		if _, _, err := l.ws.NextReader(); err != nil {
			return err
		}
	}
}
