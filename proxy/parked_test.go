package proxy

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tapedeck/protocol/capture"
)

// holder is a gateway that holds polls until the test answers them.
type holder struct {
	proxy *Proxy
	polls chan *heldPoll
	posts chan string
	open  atomic.Int32
}

type heldPoll struct {
	answer func(w http.ResponseWriter)
	ready  chan struct{} // answer is set
	gone   chan struct{} // it was cut before it was answered
}

func (h *heldPoll) reply(text string) {
	h.do(func(w http.ResponseWriter) { io.WriteString(w, text) })
}

func (h *heldPoll) do(f func(w http.ResponseWriter)) {
	h.answer = f
	close(h.ready)
}

// hold runs a holder, which answers other origins, and a gated proxy before it.
// It returns the address for polls of the session that it begins.
func hold(t *testing.T, gate Gate) (h *holder, base string, tape *memory) {
	t.Helper()
	h = &holder{polls: make(chan *heldPoll, 8), posts: make(chan string, 1000)}
	g := gateway(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
		w.Header().Set("Vary", "Origin")
		w.Header().Set("Set-Cookie", "io=abc")
		w.Header().Set("Content-Type", "text/plain; charset=UTF-8")
		switch {
		case wantsWebSocket(r):
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			io.WriteString(conn, accept("Sec-Websocket-Key: "+r.Header.Get("Sec-Websocket-Key")+"\r\n"))
			io.Copy(io.Discard, conn)
			conn.Close()
		case r.URL.Query().Get("sid") == "":
			io.WriteString(w, handshake)
		case r.Method == http.MethodPost:
			body, _ := io.ReadAll(r.Body)
			h.posts <- string(body)
			io.WriteString(w, "ok")
		default:
			if h.open.Add(1) > 1 {
				t.Error("the gateway holds two polls at once")
			}
			q := &heldPoll{ready: make(chan struct{}), gone: make(chan struct{})}
			h.polls <- q
			select {
			case <-q.ready:
				h.open.Add(-1)
				q.answer(w)
			case <-r.Context().Done():
				h.open.Add(-1)
				close(q.gone)
			}
		}
	})
	h.proxy, tape = build(t, g.URL, func(c *Config) { c.Gate = gate })
	ls, _, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	run(t, h.proxy, ls)
	base = "http://" + ls[0].Addr().String() + pollTarget
	ask(t.Context(), client(t), http.MethodGet, base, "").want(t, handshake)
	return h, base + "&sid=abc", tape
}

// reply is what a client's request got.
type reply struct {
	status int
	header http.Header
	body   string
	err    error
}

// ask sends a request as a page of another origin does, and leaves when ctx is
// done.
func ask(ctx context.Context, c *http.Client, method, url, body string) reply {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return reply{err: err}
	}
	req.Header.Set("Origin", "http://page")
	res, err := c.Do(req)
	if err != nil {
		return reply{err: err}
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	return reply{res.StatusCode, res.Header, string(data), err}
}

// startPoll begins a poll, and returns where its answer comes.
func startPoll(ctx context.Context, t *testing.T, url string) <-chan reply {
	c, got := client(t), make(chan reply, 1)
	go func() { got <- ask(ctx, c, http.MethodGet, url, "") }()
	return got
}

func post(t *testing.T, url, body string) {
	t.Helper()
	if got := ask(t.Context(), client(t), http.MethodPost, url, body); got.body != "ok" || got.header.Get("Access-Control-Allow-Origin") != "http://page" {
		t.Errorf("post %q: %+v", body, got)
	}
}

func (r reply) want(t *testing.T, body string) {
	t.Helper()
	if r.err != nil || r.body != body {
		t.Errorf("got %d %q, %v; want %q", r.status, r.body, r.err, body)
	}
}

const (
	bad = `42["bad"]`
	no  = `42["no"]`
)

// A refusal answers the poll that the gateway holds, at once and as often as it
// must; what the gateway then says answers the next one. It is asked once.
func TestRefusalAnswersAHeldPoll(t *testing.T) {
	h, base, tape := hold(t, strict)
	first := startPoll(t.Context(), t, base)
	held := <-h.polls
	post(t, base, bad)
	got := <-first
	got.want(t, no)
	want := http.Header{
		"Access-Control-Allow-Origin": {"http://page"}, "Vary": {"Origin"},
		"Content-Type": {"text/plain; charset=UTF-8"}, "Content-Length": {"8"}, "Date": got.header["Date"],
	}
	if diff := cmp.Diff(want, got.header); diff != "" {
		t.Errorf("fields of the refusal (-want +got):\n%s", diff)
	}
	second := startPoll(t.Context(), t, base)
	tape.wait(t, 4, kind(capture.Request))
	post(t, base, bad)
	(<-second).want(t, no)
	third := startPoll(t.Context(), t, base)
	tape.wait(t, 6, kind(capture.Request))
	held.reply(`42["late"]`)
	(<-third).want(t, `42["late"]`)

	frames := tape.wait(t, 6, kind(capture.Done))
	polls := filter(frames, func(f *capture.Frame) bool {
		return f.Kind == capture.Request && f.Position > 1 && detail[capture.RequestHead](t, *f).Method == http.MethodGet
	})
	var told []string
	for i, q := range polls {
		for _, line := range story(t, filter(frames, func(f *capture.Frame) bool { return f.Exchange == q.Position && f.Kind != capture.Request })) {
			_, line, _ = strings.Cut(line, fmt.Sprintf(" x%d ", q.Position))
			line, _, _ = strings.Cut(line, " #")
			told = append(told, fmt.Sprint(i+1, " ", line))
		}
	}
	wantStory := []string{
		`1 gateway response 200 made=true`,
		`1 gateway polling "42[\"no\"]" [injected]`,
		`1 act injected`,
		`1 done 0 up 8 down`,
		`2 gateway response 200 made=true`,
		`2 gateway polling "42[\"no\"]" [injected]`,
		`2 act injected`,
		`2 done 0 up 8 down`,
		`3 act adapted`,
		`3 gateway response 200 made=false`,
		`3 gateway polling "42[\"late\"]"`,
		`3 done 0 up 10 down`,
	}
	if diff := cmp.Diff(wantStory, told); diff != "" {
		t.Errorf("tape (-want +got):\n%s", diff)
	}
	for _, f := range filter(frames, kind(capture.Act)) {
		if d := detail[capture.Deed](t, f); d.Did == "adapted" && !strings.Contains(d.Text, fmt.Sprintf("poll at #%d ", polls[0].Position)) {
			t.Errorf("the third poll says %q", d.Text)
		}
	}
}

// What the gateway says of a poll whose client was answered already waits for
// the client's next one, whatever it is.
func TestAnswerWaitsForTheNextPoll(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	io.WriteString(z, `42["packed"]`)
	z.Close()
	for _, test := range []struct {
		name   string
		answer func(w http.ResponseWriter)
		status int
		body   string
	}{
		{"message", func(w http.ResponseWriter) { io.WriteString(w, `42["late"]`) }, 200, `42["late"]`},
		{"heartbeat", func(w http.ResponseWriter) { io.WriteString(w, "2") }, 200, "2"},
		{"refused too", func(w http.ResponseWriter) { io.WriteString(w, bad) }, 200, "6"},
		{"edited", func(w http.ResponseWriter) { io.WriteString(w, `42["edit"]`) }, 200, `42["changed"]`},
		{"close", func(w http.ResponseWriter) { io.WriteString(w, "6\x1e1") }, 200, "6\x1e1"},
		{"gzip", func(w http.ResponseWriter) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(packed.Bytes())
		}, 200, packed.String()},
		{"unknown", func(w http.ResponseWriter) { http.Error(w, "Session ID unknown", 400) }, 400, "Session ID unknown\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h, base, tape := hold(t, strict)
			first := startPoll(t.Context(), t, base)
			held := <-h.polls
			post(t, base, bad)
			(<-first).want(t, no)
			held.do(test.answer)
			second := <-startPoll(t.Context(), t, base)
			second.want(t, test.body)
			if second.status != test.status || (test.name == "gzip") != (second.header.Get("Content-Encoding") == "gzip") {
				t.Errorf("got %d, %v", second.status, second.header)
			}
			if test.name == "close" || test.name == "unknown" {
				frames := tape.wait(t, 1, kind(capture.End))
				if e := detail[capture.Ending](t, filter(frames, kind(capture.End))[0]); e.By != capture.FromGateway {
					t.Errorf("the session ended as %+v", e)
				}
			}
		})
	}
}

// A gateway that breaks off a poll whose client was answered already is told of
// by the next one.
func TestGatewayFailsAfterARefusal(t *testing.T) {
	h, base, _ := hold(t, strict)
	first := startPoll(t.Context(), t, base)
	held := <-h.polls
	post(t, base, bad)
	(<-first).want(t, no)
	held.do(func(http.ResponseWriter) { panic(http.ErrAbortHandler) })
	if got := <-startPoll(t.Context(), t, base); got.status != http.StatusBadGateway || !strings.Contains(got.body, "closed the connection") {
		t.Errorf("got %d %q, %v", got.status, got.body, got.err)
	}
}

// Trap 10: a poll that the gateway holds ends with its client, also if that was
// answered meanwhile: when it leaves its next poll, when the session ends, and
// when the proxy does.
func TestHeldPollEnds(t *testing.T) {
	for name, leave := range map[string]func(t *testing.T, p *Proxy, base string, tape *memory){
		"next poll left": func(t *testing.T, _ *Proxy, base string, tape *memory) {
			ctx, cancel := context.WithCancel(t.Context())
			second := startPoll(ctx, t, base)
			tape.wait(t, 4, kind(capture.Request))
			cancel()
			if got := <-second; got.err == nil {
				t.Errorf("got %+v", got)
			}
		},
		"session closed": func(t *testing.T, _ *Proxy, base string, _ *memory) { post(t, base, "1") },
		"proxy stopped":  func(_ *testing.T, p *Proxy, _ string, _ *memory) { p.Shutdown(context.Background()) },
		"proxy stopped with the next poll": func(t *testing.T, p *Proxy, base string, tape *memory) {
			second := startPoll(t.Context(), t, base)
			tape.wait(t, 4, kind(capture.Request))
			p.Shutdown(context.Background())
			if got := <-second; got.err == nil {
				t.Errorf("got %+v", got)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, base, tape := hold(t, strict)
			first := startPoll(t.Context(), t, base)
			held := <-h.polls
			post(t, base, bad)
			(<-first).want(t, no)
			leave(t, h.proxy, base, tape)
			<-held.gone
		})
	}
}

// An event and its attachments come together also if they are two answers: what
// the gate has to say waits.
func TestRefusalWaitsForAttachments(t *testing.T) {
	h, base, _ := hold(t, strict)
	first := startPoll(t.Context(), t, base)
	(<-h.polls).reply(`451-["b",{"_placeholder":true,"num":0}]`)
	(<-first).want(t, `451-["b",{"_placeholder":true,"num":0}]`)
	second := startPoll(t.Context(), t, base)
	held := <-h.polls
	post(t, base, bad)
	held.reply("bAQID")
	(<-second).want(t, "bAQID\x1e"+no)
}

// E02, trap 1: while a WebSocket may take the session over, a refusal takes no
// poll from the gateway, whose answer lets the client go on. When the WebSocket
// is gone, it does again.
func TestRefusalDuringAnUpgrade(t *testing.T) {
	h, base, tape := hold(t, strict)
	address, _, _ := strings.Cut(strings.TrimPrefix(base, "http://"), "/")
	conn, _, _ := dialSocket(t, address, eioTarget+"&sid=abc")
	first := startPoll(t.Context(), t, base)
	held := <-h.polls
	post(t, base, bad)
	held.reply("6")
	(<-first).want(t, "6\x1e"+no)
	second := startPoll(t.Context(), t, base)
	held = <-h.polls
	post(t, base, bad)
	conn.Close()
	(<-second).want(t, no)

	// A WebSocket does not begin before the client has taken up the poll that
	// the gateway still holds.
	began := make(chan error, 1)
	dialed, r := dialRaw(t, address, upgradeRequest(eioTarget+"&sid=abc"))
	go func() { _, err := http.ReadResponse(r, nil); began <- err }()
	tape.wait(t, 7, kind(capture.Request))
	third := startPoll(t.Context(), t, base)
	if err := <-began; err != nil {
		t.Error(err)
	}
	frames, _ := tape.all()
	requests, sockets := filter(frames, kind(capture.Request)), filter(frames, func(f *capture.Frame) bool {
		return f.Kind == capture.Response && bytes.Contains(f.Data, []byte(`"status":101`))
	})
	if len(requests) != 8 || sockets[1].Position < requests[7].Position {
		t.Errorf("the WebSocket began before the client had polled:\n%s", list(frames))
	}
	held.reply("6")
	(<-third).want(t, "6")
	dialed.Close()
}

// A WebSocket waits for a poll to be taken up no longer than the session can
// live, nor longer than its client.
func TestWebSocketWaitsForASparePoll(t *testing.T) {
	for name, release := range map[string]func(g *gateState, leave context.CancelFunc){
		"taken up":    func(g *gateState, _ context.CancelFunc) { g.next() },
		"client left": func(_ *gateState, leave context.CancelFunc) { leave() },
		"session over": func(g *gateState, _ context.CancelFunc) {
			if g.end() == nil {
				t.Error("no poll was left")
			}
		},
		"too late": func(*gateState, context.CancelFunc) { time.Sleep(time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				g := &gateState{answers: []answer{{}}}
				q := &poll{done: make(chan struct{})}
				if a, _ := g.leave(q, func() bool { return true }); len(a) != 1 {
					t.Fatal("the poll was not spared")
				}
				entered := make(chan struct{})
				go func() { g.enter(ctx, time.Minute); close(entered) }()
				synctest.Wait()
				select {
				case <-entered:
					t.Fatal("the WebSocket did not wait")
				default:
				}
				release(g, cancel)
				<-entered
				g.wait([]answer{{}})
				if a, _ := g.leave(new(poll), func() bool { return true }); a != nil {
					t.Error("a poll was spared while there is a WebSocket")
				}
			})
		})
	}
}

// A client that never polls again: the poll that the gateway holds for it ends
// with its session, and what the gateway had said is on the tape.
func TestNobodyPollsAgain(t *testing.T) {
	for name, answered := range map[string]bool{"held": false, "answered": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sink := newMemory()
				tp := newTap(sink, 1, time.Now(), slog.New(slog.DiscardHandler))
				c := tp.open(&capture.Opening{Transport: capture.SocketIO, SID: "a"}, 0, 45*time.Second)
				q := &poll{done: make(chan struct{})}
				var ctx context.Context
				ctx, q.cancel = context.WithCancel(t.Context())
				if answered {
					q.data, q.whole = []byte("2"), true
					close(q.done)
				}
				c.gate.wait([]answer{{}})
				c.gate.leave(q, func() bool { return true })
				tp.leave(c, 0)
				<-ctx.Done()
				synctest.Wait()
				tp.close()
				frames, _ := sink.all()
				want := []string{"#1 c1 x0 open socket.io polling=false sid=a joined=false"}
				if answered {
					want = append(want, `#2 c1 x0 gateway polling "2" [withheld]`, "#3 c1 x0 act held back #2 as #0 the client did not poll again")
				}
				want = append(want, fmt.Sprintf("#%d c1 x0 client end by=client code=0 no request for 50s", len(want)+1))
				if diff := cmp.Diff(want, story(t, frames)); diff != "" {
					t.Errorf("tape (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// Whatever comes in the same instant, everything arrives once and in its order.
func TestRefusalsAndAnswersTogether(t *testing.T) {
	const n = 200
	numbered := gateFunc(func(f *capture.Frame) Verdict {
		if number, ok := bytes.CutPrefix(f.Data, []byte("4bad")); ok {
			return Verdict{Withhold: true, Answers: [][]byte{append([]byte("4no"), number...)}}
		}
		return Verdict{}
	})
	h, base, _ := hold(t, numbered)
	c := client(t)
	var all sync.WaitGroup
	all.Go(func() {
		for i := range n {
			(<-h.polls).reply(fmt.Sprint("4say", i))
		}
	})
	all.Go(func() {
		for i := range n {
			ask(t.Context(), c, http.MethodPost, base, fmt.Sprint("4bad", i))
		}
	})
	var said, refused []string
	for len(said) < n || len(refused) < n {
		got := ask(t.Context(), c, http.MethodGet, base, "")
		if got.err != nil || got.status != http.StatusOK {
			t.Fatalf("got %d, %v after %d and %d", got.status, got.err, len(said), len(refused))
		}
		for packet := range strings.SplitSeq(got.body, "\x1e") {
			if strings.HasPrefix(packet, "4say") {
				said = append(said, packet)
			} else {
				refused = append(refused, packet)
			}
		}
	}
	all.Wait()
	for i := range n {
		if said[i] != fmt.Sprint("4say", i) || refused[i] != fmt.Sprint("4no", i) {
			t.Fatalf("number %d is %q, and %q", i, said[i], refused[i])
		}
	}
}
