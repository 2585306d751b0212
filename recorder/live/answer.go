package live

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"sync"

	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
	"tapedeck/recorder"
)

// guard lets only those in who read the token's file. A web page may send a
// request to a loopback port, with a name of its own that leads there.
func guard(l *Listener, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Host != l.Addr().String() || r.Header.Get("Origin") != "":
			http.Error(w, fmt.Sprintf("host %q or origin %q is foreign", r.Host, r.Header.Get("Origin")), http.StatusForbidden)
		case subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+l.token)) != 1:
			http.Error(w, "the token is wrong", http.StatusUnauthorized)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// query reads a request's query and keeps the first error.
type query struct {
	r   *http.Request
	err error
}

func (q *query) number(name string) uint64 {
	n, err := strconv.ParseUint(q.r.FormValue(name), 10, 63)
	if err != nil && q.err == nil {
		q.err = fmt.Errorf("%s=%q is not a number", name, q.r.FormValue(name))
	}
	return n
}

func (q *query) run() conversation.RunKey {
	session := q.number("session")
	if session > 1<<32-1 && q.err == nil {
		q.err = fmt.Errorf("there is no session %d", session)
	}
	return conversation.RunKey{Session: capture.SessionID(session), Run: q.r.FormValue("run")}
}

func (q *query) ok(w http.ResponseWriter) bool {
	if q.err != nil {
		http.Error(w, q.err.Error(), http.StatusBadRequest)
	}
	return q.err == nil
}

// respond returns a function that writes a call's results as an answer. A
// LostError may come with results.
func respond[T any](w http.ResponseWriter) func([]T, error) {
	return func(items []T, err error) {
		out := json.NewEncoder(w)
		for i := range items {
			if out.Encode(line[T]{Item: &items[i]}) != nil {
				return // nobody reads it any more
			}
		}
		last := line[T]{End: true}
		if err != nil {
			if last = errorLine[T](err); last.Lost != nil {
				out.Encode(last)
				last = line[T]{End: true}
			}
		}
		out.Encode(last)
	}
}

func errorLine[T any](err error) line[T] {
	if e, ok := errors.AsType[*recorder.LostError](err); ok {
		return line[T]{Lost: &lost{First: e.First, Last: e.Last, Reason: e.Reason.Error()}}
	}
	f := &fault{Text: err.Error()}
	switch {
	case errors.Is(err, recorder.ErrDamaged):
		f.Kind = "damaged"
	case errors.Is(err, recorder.ErrClosed):
		f.Kind = "closed"
	}
	return line[T]{Error: f}
}

// follow writes frames as they come.
func follow(ctx context.Context, w http.ResponseWriter, frames iter.Seq2[capture.Frame, error]) {
	s := newStream(w)
	defer s.close()
	for f, err := range frames {
		l := line[capture.Frame]{Item: &f}
		if err != nil {
			l = errorLine[capture.Frame](err)
		}
		if s.write(l) != nil || l.Error != nil {
			return
		}
	}
	if ctx.Err() == nil {
		s.write(line[capture.Frame]{End: true})
	}
}

// stream writes lines, which are sent on by a goroutine: at once when there are
// few, many together when there are many.
type stream struct {
	mu    sync.Mutex // guards out
	out   http.ResponseWriter
	lines *json.Encoder
	more  chan struct{}
	done  chan struct{}
}

func newStream(w http.ResponseWriter) *stream {
	s := &stream{out: w, lines: json.NewEncoder(w), more: make(chan struct{}, 1), done: make(chan struct{})}
	s.more <- struct{}{} // the head of the answer goes at once
	go s.flush()
	return s
}

func (s *stream) write(v any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.lines.Encode(v); err != nil {
		return err
	}
	select {
	case s.more <- struct{}{}:
	default:
	}
	return nil
}

func (s *stream) flush() {
	defer close(s.done)
	control := http.NewResponseController(s.out)
	for range s.more {
		s.mu.Lock()
		control.Flush() // an error comes again with the next line
		s.mu.Unlock()
	}
}

func (s *stream) close() {
	close(s.more)
	<-s.done
}
