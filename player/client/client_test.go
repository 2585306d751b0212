package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tapedeck/player/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve serves an engine that echoes events, answers those that ask, and cuts
// the socket on "cut".
func serve(t *testing.T) string {
	e := engine.New(engine.Config{
		Connect: func(s *engine.Socket) *engine.Refusal {
			if strings.Contains(string(s.Handshake().Auth), "wrong") {
				return &engine.Refusal{Message: "unauthorized"}
			}
			return nil
		},
		Event: func(s *engine.Socket, e engine.Event) {
			switch {
			case e.Name == "cut":
				s.Cut()
			case e.Ack != nil:
				s.Emit("first", json.RawMessage(`1`))
				e.Ack(append(e.Args, json.RawMessage(`"`+s.Namespace()+`"`))...)
			default:
				s.Emit(e.Name, e.Args...)
			}
		},
	})
	server := httptest.NewServer(e)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := e.Close(ctx); err != nil {
			t.Errorf("close the engine: %v", err)
		}
		server.Close()
	})
	return server.URL
}

func TestClient(t *testing.T) {
	url := serve(t)
	for name, c := range map[string]struct {
		o      Options
		answer string
	}{
		"the default namespace": {Options{URL: url}, `{"a":1} "/"`},
		"another namespace":     {Options{URL: url, Namespace: "/admin", Auth: json.RawMessage(`{"token":"right"}`)}, `{"a":1} "/admin"`},
		"plain JSON":            {Options{URL: url + "/ws", Plain: true}, `[{"a":1},""]`},
	} {
		t.Run(name, func(t *testing.T) {
			heard := make(chan string, 10)
			c.o.Event = func(name string, args []json.RawMessage) { heard <- name + join(args) }
			client, err := Dial(t.Context(), c.o)
			if err != nil {
				t.Fatal(err)
			}
			if err := client.Emit("echo", json.RawMessage(`{ "x": 1.50 }`)); err != nil {
				t.Fatal(err)
			}
			if got := <-heard; got != `echo { "x": 1.50 }` {
				t.Errorf("heard %s", got)
			}
			// An answer comes in order with the events.
			if err := client.Request(func(args []json.RawMessage) { heard <- "answer" + join(args) }, "ask", json.RawMessage(`{"a":1}`)); err != nil {
				t.Fatal(err)
			}
			if first, second := <-heard, <-heard; first != "first 1" || second != "answer "+c.answer {
				t.Errorf("heard %s, then %s", first, second)
			}
			if _, err := client.Ask(t.Context(), "ask"); err != nil {
				t.Errorf("ask: %v", err)
			}
			if err := client.Emit("cut"); err != nil {
				t.Fatal(err)
			}
			<-client.Done()
			if client.Err() == nil {
				t.Error("it does not say why it ended")
			}
			client.Close()
		})
	}
}

func join(args []json.RawMessage) (s string) {
	for _, arg := range args {
		s += " " + string(arg)
	}
	return s
}

func TestDialRefused(t *testing.T) {
	url := serve(t)
	_, err := Dial(t.Context(), Options{URL: url, Auth: json.RawMessage(`{"token":"wrong"}`)})
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "unauthorized") {
		t.Errorf("error %v, want a refusal that says why", err)
	}
	var answer *HandshakeError
	_, err = Dial(t.Context(), Options{URL: url + "/nowhere", Plain: true})
	if !errors.As(err, &answer) || answer.Status != http.StatusNotFound || !strings.HasPrefix(err.Error(), "HTTP 404 Not Found: no socket answers here") {
		t.Errorf("error %v, want the response", err)
	}
	if _, err := Dial(t.Context(), Options{URL: "file:///etc"}); err == nil || !strings.Contains(err.Error(), "needs http:// or https://") {
		t.Errorf("error %v, want what an address is", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Dial(ctx, Options{URL: url}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that it was cancelled", err)
	}
}

func TestMaxMessage(t *testing.T) {
	client, err := Dial(t.Context(), Options{URL: serve(t), MaxMessage: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Emit("echo", json.RawMessage(`"`+strings.Repeat("x", 2000)+`"`)); err != nil {
		t.Fatal(err)
	}
	<-client.Done()
	if err := client.Err(); err == nil || !strings.Contains(err.Error(), "read limit exceeded") {
		t.Errorf("it ended with %v", err)
	}
	client.Drop()
}
