package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log"
	"net/http"
	"sync"
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

const (
	version = 1
	// grace is how long answers may take to end when the server does.
	grace = time.Second
	// maxMark bounds a mark, in bytes.
	maxMark = 64 << 10
)

// Tape is what can be read of a tape, of a file or through its process.
type Tape interface {
	Sessions(ctx context.Context) ([]capture.Session, error)
	Runs(ctx context.Context) ([]conversation.Run, error)
	Threads(ctx context.Context) ([]conversation.Thread, error)
	Rows(ctx context.Context, run conversation.RunKey, from, n int) ([]capture.Frame, error)
	Frames(ctx context.Context, from capture.Position, n int) ([]capture.Frame, error)
	Findings(ctx context.Context, run *conversation.RunKey) ([]protocol.Finding, error)
	Follow(ctx context.Context, from capture.Position) iter.Seq2[capture.Frame, error]
	// Close lets go of the file or of the process.
	Close() error
}

// line is one line of an answer.
type line[T any] struct {
	Item  *T     `json:"item,omitempty"`
	Lost  *lost  `json:"lost,omitempty"`
	Error *fault `json:"error,omitempty"`
	End   bool   `json:"end,omitempty"`
}

// lost is a recorder.LostError.
type lost struct {
	First  capture.Position `json:"first"`
	Last   capture.Position `json:"last"`
	Reason string           `json:"reason"`
}

// fault is any other error, with the kind that callers test for.
type fault struct {
	Kind string `json:"kind,omitempty"` // "damaged", "closed"
	Text string `json:"text"`
}

// Serve answers for tape on l until ctx ends, and closes l; mark puts a mark on
// it. Answers that are
// under way then, such as to those who follow, have a second to end.
func Serve(ctx context.Context, l *Listener, tape Tape, mark func(context.Context, capture.Mark) error) error {
	server := &http.Server{
		Handler:           newHandler(l, tape, mark),
		ReadHeaderTimeout: 5 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	var ended sync.WaitGroup
	defer ended.Wait()
	served := make(chan struct{})
	ended.Go(func() {
		select {
		case <-ctx.Done():
		case <-served:
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			server.Close() // who reads no more is cut off
		}
	})
	err := server.Serve(l)
	close(served)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("share the tape: %w", err)
}

func newHandler(l *Listener, tape Tape, mark func(context.Context, capture.Mark) error) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/version", func(w http.ResponseWriter, r *http.Request) {
		json.NewEncoder(w).Encode(map[string]int{"version": version})
	})
	mux.HandleFunc("GET /v1/sessions", func(w http.ResponseWriter, r *http.Request) {
		respond[capture.Session](w)(tape.Sessions(r.Context()))
	})
	mux.HandleFunc("GET /v1/runs", func(w http.ResponseWriter, r *http.Request) {
		respond[conversation.Run](w)(tape.Runs(r.Context()))
	})
	mux.HandleFunc("GET /v1/threads", func(w http.ResponseWriter, r *http.Request) {
		respond[conversation.Thread](w)(tape.Threads(r.Context()))
	})
	mux.HandleFunc("GET /v1/rows", func(w http.ResponseWriter, r *http.Request) {
		q := query{r: r}
		run, from, n := q.run(), q.number("from"), q.number("n")
		if q.ok(w) {
			respond[capture.Frame](w)(tape.Rows(r.Context(), run, int(from), int(n)))
		}
	})
	mux.HandleFunc("GET /v1/frames", func(w http.ResponseWriter, r *http.Request) {
		q := query{r: r}
		from, n := q.number("from"), q.number("n")
		if q.ok(w) {
			respond[capture.Frame](w)(tape.Frames(r.Context(), capture.Position(from), int(n)))
		}
	})
	mux.HandleFunc("GET /v1/findings", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery == "" {
			respond[protocol.Finding](w)(tape.Findings(r.Context(), nil))
			return
		}
		q := query{r: r}
		if run := q.run(); q.ok(w) {
			respond[protocol.Finding](w)(tape.Findings(r.Context(), &run))
		}
	})
	mux.HandleFunc("GET /v1/follow", func(w http.ResponseWriter, r *http.Request) {
		q := query{r: r}
		if from := q.number("from"); q.ok(w) {
			follow(r.Context(), w, tape.Follow(r.Context(), capture.Position(from)))
		}
	})
	mux.HandleFunc("POST /v1/mark", func(w http.ResponseWriter, r *http.Request) {
		var m capture.Mark
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxMark)).Decode(&m); err != nil {
			http.Error(w, fmt.Sprintf("read the mark: %v", err), http.StatusBadRequest)
			return
		}
		respond[struct{}](w)(nil, mark(r.Context(), m))
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, fmt.Sprintf("the recording tapedeck shares its tape by version %d and does not know %q; use the same tapedeck for both", version, r.URL.Path), http.StatusNotFound)
	})
	if l.token == "" {
		return mux
	}
	return guard(l, mux)
}
