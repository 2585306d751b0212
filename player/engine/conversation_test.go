package engine

import (
	"context"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

// TestConversations holds the conversations of testdata/conversations.txtar over
// both transports, each on a clock of its own, where 300 ms take no time. In a
// conversation `> ` is what the client sends, `< ` what it gets; binary messages
// are written as over polling, b and base64; `end` is the end of the session and
// `end CODE` that by a close frame with this code, where there are any. `at T`
// says how long after the session began the line above came.
func TestConversations(t *testing.T) {
	data, err := os.ReadFile("testdata/conversations.txtar")
	if err != nil {
		t.Fatal(err)
	}
	files := txtar.Parse(data).Files
	if len(files) == 0 {
		t.Fatal("no conversations in testdata/conversations.txtar")
	}
	for _, f := range files {
		for _, transport := range []string{"websocket", "polling"} {
			only, _, _ := strings.Cut(f.Name, ":")
			if (only == "websocket" || only == "polling") && only != transport {
				continue
			}
			t.Run(f.Name+"/"+transport, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { converse(t, transport, string(f.Data)) })
			})
		}
	}
}

// peer is a client of either transport.
type peer interface {
	say(text string)
	hear() string
	close()
}

func converse(t *testing.T, transport, script string) {
	h := serve(t, echo())
	var p peer
	if transport == "websocket" {
		p = &socketPeer{h.dialEngine()}
	} else {
		p = &pollingPeer{h: h, target: h.open("")}
	}
	defer p.close()
	begin := time.Now()
	for i, line := range strings.Split(strings.TrimSpace(script), "\n") {
		verb, text, _ := strings.Cut(line, " ")
		text = strings.ReplaceAll(text, `\x1e`, "\x1e")
		switch verb {
		case ">":
			p.say(text)
		case "<", "end":
			want := text
			if verb == "end" {
				want = strings.TrimSpace("closed " + text)
				if transport == "polling" {
					want = "closed"
				}
			}
			if got := p.hear(); !matches(want, got) {
				t.Fatalf("line %d, %s: got %q", i+1, line, got)
			}
		case "at":
			if got := time.Since(begin).String(); got != text {
				t.Fatalf("line %d, %s: the line before it came after %s", i+1, line, got)
			}
		case "":
		default:
			t.Fatalf("line %d: no such verb: %q", i+1, line)
		}
	}
}

type socketPeer struct{ socket }

func (p *socketPeer) say(text string) {
	if data, ok := strings.CutPrefix(text, "b"); ok {
		if decoded, err := decodeBase64([]byte(data)); err == nil {
			p.sendBinary(decoded)
			return
		}
	}
	p.send(text)
}

func (p *socketPeer) hear() string { return p.text() }
func (p *socketPeer) close()       { p.Close() }

type pollingPeer struct {
	h      *host
	target string
	heard  []string
}

func (p *pollingPeer) say(text string) {
	p.h.t.Helper()
	if got := p.h.do("POST", p.target, text); got.status != 200 || got.body != "ok" {
		p.h.t.Fatalf("POST %q: got %d %q, want 200 ok", text, got.status, got.body)
	}
}

// hear returns the next packet; the end of a session is a close packet or the
// refusal of its id.
func (p *pollingPeer) hear() string {
	if len(p.heard) == 0 {
		got, err := p.h.try(context.Background(), "GET", p.target, "")
		switch {
		case err != nil:
			return "closed by the network"
		case got.status == 400 && got.body == `{"code":1,"message":"Session ID unknown"}` || got.body == "1":
			return "closed"
		}
		p.heard = strings.Split(got.body, "\x1e")
	}
	first := p.heard[0]
	p.heard = p.heard[1:]
	return first
}

func (p *pollingPeer) close() {}
