package driver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

const hi = `0s a open
1s a > run:start {"threadId":"t","messageId":"m","input":"hello"}
`

func TestLoadRefuses(t *testing.T) {
	many := &strings.Builder{}
	for i := range MostWindow + 1 {
		fmt.Fprintf(many, "0s w%d open\n", i)
	}
	for _, c := range []struct {
		name, tape string
		o          LoadOptions
		want       string
	}{
		{"nothing", "0s a open\n", LoadOptions{}, "there is no client to drive"},
		{"another session", hi, LoadOptions{Session: 2}, "session 2 is not on the tape"},
		{"another thread", hi, LoadOptions{Thread: "u"}, `no client spoke of thread "u"`},
		{"large", hi, LoadOptions{Limit: 10}, "the commands are larger than 10 bytes: export the runs that matter"},
		{"many windows", many.String(), LoadOptions{}, "more than 1000 windows"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tape, err := write(c.tape)
			must(t, err)
			if _, err := Load(t.Context(), tape, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// TestLoadThread leaves the client of one thread, with all of its windows.
func TestLoadThread(t *testing.T) {
	tape, err := write(hi + `1s b open
2s b > run:start {"threadId":"u","messageId":"m","input":"hello"}
3s c open
4s c ? thread:messages {"threadId":"t"}
`)
	must(t, err)
	for thread, want := range map[string]Summary{
		"":  {Windows: 3, Clients: 2, Threads: 2, Messages: 3},
		"t": {Windows: 2, Clients: 1, Threads: 1, Messages: 2},
		"u": {Windows: 1, Clients: 1, Threads: 1, Messages: 1},
	} {
		r, err := Load(t.Context(), tape, LoadOptions{Thread: thread})
		must(t, err)
		if got := r.Summary(); got != want {
			t.Errorf("thread %q: %+v, want %+v", thread, got, want)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string // "" is fine
	}{
		{Options{URL: "https://gateway.test/app?token=1"}, ""},
		{Options{}, "no address such as http://localhost:3000"},
		{Options{URL: "ftp://gateway.test"}, "no address"},
		{Options{URL: "http://a", Auth: []byte(`"s3cret"`)}, "auth is no JSON object"},
		{Options{URL: "http://a", Auth: []byte(`null`)}, "auth is no JSON object"},
		{Options{URL: "http://a", Speed: -1}, "speed -1 is below 0"},
		{Options{URL: "http://a", Patience: -1, Limit: -time.Second}, "patience -1ns is below 0\nlimit -1s is below 0"},
	} {
		err := c.o.Validate()
		if c.want == "" {
			must(t, err)
		} else if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%+v: error %v, want %q", c.o, err, c.want)
		}
	}
}

// TestCancelled ends a drive in the middle, and tells what was done.
func TestCancelled(t *testing.T) {
	tape, err := write(hi)
	must(t, err)
	r, err := Load(t.Context(), tape, LoadOptions{})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	g := newGateway("")
	m, stop := serveMemory(g.engine)
	step := func(s Step) {
		if s.Name == "connect" {
			cancel()
		}
	}
	result, err := r.Drive(ctx, Options{URL: "http://gateway.test", Dial: m.dial, Step: step})
	if sent, left := result.Sent(); !errors.Is(err, context.Canceled) || !result.Steps[0].Done || sent != 0 || left != 1 {
		t.Errorf("%v after %+v, want a cancelled drive that connected and left out the message", err, result.Steps)
	}
	must(t, g.close())
	must(t, stop())
}
