package proxy

import (
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"tapedeck/protocol/capture"
)

// tap gives frames their time and their number and hands them to the Sink.
//
// Everything is handed over before it is passed on. So whatever answers it has a
// later position, and the order of positions is an order of causes.
type tap struct {
	sink  Sink
	start time.Time
	log   *slog.Logger

	// mu guards what follows. It is held while the Sink is called, since
	// position and hand-over must be one step: a Sink waits only when its queue
	// is full, and then all traffic is to wait.
	mu       sync.Mutex
	next     capture.Position
	frame    capture.Frame // the one that the Sink sees, so that none is allocated
	sessions map[string]*connection
	closed   bool

	timers sync.WaitGroup // of connections, pending or running
}

func newTap(sink Sink, first capture.Position, start time.Time, log *slog.Logger) *tap {
	return &tap{sink: sink, start: start, log: log, next: max(first, 1), sessions: make(map[string]*connection)}
}

// put hands f on and returns its position, 0 after the tap was closed.
func (t *tap) put(f capture.Frame) capture.Position {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.add(f)
}

// add is put with mu held.
func (t *tap) add(f capture.Frame) capture.Position {
	if t.closed {
		return 0
	}
	position := t.next
	t.next++
	t.frame = f
	t.frame.Position = position
	t.frame.At = time.Since(t.start)
	switch f.Kind {
	case capture.Open:
		t.frame.Connection = position
	case capture.Request:
		t.frame.Exchange = position
	}
	t.sink.Frame(&t.frame)
	t.frame.Data = nil
	return position
}

// mark hands on a frame whose data is the JSON of detail.
func (t *tap) mark(f capture.Frame, detail any) capture.Position {
	f.Data = encode(detail)
	f.Size = int64(len(f.Data))
	return t.put(f)
}

// encode writes one of capture's details, of which none can fail.
func encode(detail any) []byte {
	data, err := json.Marshal(detail)
	if err != nil {
		panic("proxy: encode detail: " + err.Error())
	}
	return data
}

// now is the time that a frame put now would have.
func (t *tap) now() time.Duration { return time.Since(t.start) }

// close ends the connections that are left, stops their timers and waits for
// those that are running. Nothing is handed on afterwards.
func (t *tap) close() {
	t.mu.Lock()
	for _, c := range t.sessions {
		t.finish(c, capture.Ending{Error: "the proxy was stopped"})
		t.disarm(c)
	}
	t.closed = true
	t.mu.Unlock()
	t.timers.Wait()
}
