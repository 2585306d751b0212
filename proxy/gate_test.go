package proxy

import (
	"bufio"
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tapedeck/protocol/capture"
)

type gateFunc func(f *capture.Frame) Verdict

func (g gateFunc) Judge(f *capture.Frame) Verdict { return g(f) }

// strict withholds what has "bad" in it and answers a client that sent it, and
// edits what has "edit".
var strict = gateFunc(func(f *capture.Frame) Verdict {
	switch {
	case bytes.Contains(f.Data, []byte("bad")) && f.Direction == capture.FromClient:
		return Verdict{Withhold: true, Answers: [][]byte{[]byte(`42["no"]`)}, Deed: capture.Deed{Did: "refused", Rule: "R"}}
	case bytes.Contains(f.Data, []byte("bad")):
		return Verdict{Withhold: true, Deed: capture.Deed{Did: "held back"}}
	case bytes.Contains(f.Data, []byte("edit")):
		return Verdict{Replace: bytes.ReplaceAll(f.Data, []byte("edit"), []byte("changed")), Deed: capture.Deed{Did: "edited"}}
	}
	return Verdict{}
})

func gated(c *Config) { c.Gate = strict }

// script is a gateway that runs one socket by hand.
func script(t *testing.T, serve func(conn net.Conn, r *bufio.Reader)) string {
	return rawGateway(t, func(head string, conn net.Conn, r *bufio.Reader) {
		io.WriteString(conn, accept(head))
		serve(conn, r)
		io.Copy(io.Discard, r)
	})
}

const eioTarget = "/socket.io/?EIO=4&transport=websocket"

func socketStory(t *testing.T, frames []capture.Frame) []string {
	return story(t, filter(frames, func(f *capture.Frame) bool {
		return f.Kind == capture.Act || f.Kind >= capture.Text && f.Kind <= capture.Polling
	}))
}

// A refused message is taken out of the stream, though it is fragmented and has
// a ping inside; all other bytes pass as they came. Its sender is told.
func TestGateTakesOutAMessage(t *testing.T) {
	good := fromClient(capture.Text, `42["good"]`)
	ping := fromClient(capture.Ping, "x")
	bad := fromClient(capture.Text, `42["ba`)
	bad[0] &^= 0x80 // not the last fragment
	rest := fromClient(capture.Text, `d"]`)
	rest[0] = 0x80
	upstream := script(t, func(conn net.Conn, r *bufio.Reader) {
		expect(t, r, bytes.Join([][]byte{good, ping, good}, nil))
		conn.Write(fromGateway(capture.Text, `42["end"]`))
	})
	address, tape := start(t, upstream, gated)
	conn, r, _ := dialSocket(t, address, eioTarget)
	conn.Write(bytes.Join([][]byte{good, bad, ping, rest, good}, nil))
	got := make([]byte, len(fromGateway(capture.Text, `42["no"]`))+len(fromGateway(capture.Text, `42["end"]`)))
	if _, err := io.ReadFull(r, got); err != nil || !bytes.Contains(got, []byte(`42["no"]`)) || !bytes.Contains(got, []byte(`42["end"]`)) {
		t.Errorf("the client got %q, %v", got, err)
	}
	conn.Close()
	frames := tape.wait(t, 1, kind(capture.End))
	var told []string
	for _, f := range socketStory(t, frames) {
		if _, rest, _ := strings.Cut(f, " x1 "); !strings.Contains(rest, "good") && !strings.Contains(rest, "end") {
			told = append(told, rest)
		}
	}
	want := []string{
		`client ping "x"`,
		`client text "42[\"bad\"]" [fragmented withheld]`,
		`act refused #6 as #0 R`,
		`gateway text "42[\"no\"]" [injected]`,
		`act injected #6 as #9 R`,
	}
	want[2] = told[2] // its numbers depend on how the bytes were cut
	want[4] = told[4]
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("tape (-want +got):\n%s", diff)
	}
	refused := filter(frames, func(f *capture.Frame) bool { return f.Flags.Has(capture.Withheld) })[0]
	injected := filter(frames, func(f *capture.Frame) bool { return f.Flags.Has(capture.Injected) })[0]
	acts := filter(frames, kind(capture.Act))
	if d := detail[capture.Deed](t, acts[0]); d != (capture.Deed{Did: "refused", Of: refused.Position, Rule: "R"}) {
		t.Errorf("the refusal is %+v", d)
	}
	if d := detail[capture.Deed](t, acts[1]); d != (capture.Deed{Did: "injected", Of: refused.Position, Sent: injected.Position, Rule: "R"}) {
		t.Errorf("the answer is %+v", d)
	}
}

// A binary event is judged whole: nothing of it passes before its last part has
// come, and all of it is refused with any part.
func TestGateJudgesBinaryEventsWhole(t *testing.T) {
	header, part := fromGateway(capture.Text, `451-["b",{"_placeholder":true,"num":0}]`), fromGateway(capture.Binary, "\x01")
	beat, no := fromGateway(capture.Text, "2"), fromGateway(capture.Text, `42["no"]`)
	end := fromClient(capture.Text, "3")
	upstream := script(t, func(conn net.Conn, r *bufio.Reader) {
		conn.Write(header)
		expect(t, r, end) // what was refused before it does not come
		conn.Write(slices.Concat(beat, part))
	})
	address, tape := start(t, upstream, gated)
	conn, r, _ := dialSocket(t, address, eioTarget)
	conn.Write(fromClient(capture.Text, `452-["x",{"_placeholder":true,"num":0},{"_placeholder":true,"num":1}]`))
	conn.Write(fromClient(capture.Binary, "\x02"))
	conn.Write(fromClient(capture.Binary, "bad"))
	expect(t, r, no)
	conn.Write(end)
	expect(t, r, slices.Concat(beat, header, part))
	frames := tape.wait(t, 2, sent(capture.FromGateway, capture.Binary, capture.Text))
	if n := len(filter(frames, func(f *capture.Frame) bool { return f.Flags.Has(capture.Withheld) })); n != 3 {
		t.Errorf("%d frames withheld, want 3:\n%s", n, list(frames))
	}
}

// Trap 15: where an event is too long to be held, an answer waits for its last
// attachment.
func TestGateKeepsAttachmentsTogether(t *testing.T) {
	header, part := fromGateway(capture.Text, `452-["b",{"_placeholder":true,"num":0},{"_placeholder":true,"num":1}]`), fromGateway(capture.Binary, strings.Repeat("x", 80))
	end := fromClient(capture.Text, "3")
	upstream := script(t, func(conn net.Conn, r *bufio.Reader) {
		conn.Write(slices.Concat(header, part))
		expect(t, r, end)
		conn.Write(part)
	})
	address, _ := start(t, upstream, func(c *Config) { c.Gate, c.BodyLimit = strict, 100 })
	conn, r, _ := dialSocket(t, address, eioTarget)
	expect(t, r, slices.Concat(header, part))
	conn.Write(slices.Concat(fromClient(capture.Text, `42["bad"]`), end))
	expect(t, r, slices.Concat(part, fromGateway(capture.Text, `42["no"]`)))
}

// Half an event passes as far as it came.
func TestGatePassesHalfAnEvent(t *testing.T) {
	header := fromGateway(capture.Text, `451-["b",{"_placeholder":true,"num":0}]`)
	upstream := rawGateway(t, func(head string, conn net.Conn, r *bufio.Reader) {
		conn.Write(append([]byte(accept(head)), header...))
	})
	address, _ := start(t, upstream, gated)
	_, r, _ := dialSocket(t, address, eioTarget)
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, header) {
		t.Errorf("got %q, %v", got, err)
	}
}

// An edited message is on the tape in both forms.
func TestGateEdits(t *testing.T) {
	upstream := script(t, func(conn net.Conn, r *bufio.Reader) {
		message := fromClient(capture.Text, `42["changed"]`)
		got := make([]byte, len(message))
		io.ReadFull(r, got)
		if !bytes.Equal(got[:2], message[:2]) {
			t.Errorf("the gateway got a head of %x", got[:2])
		}
		conn.Write(fromGateway(capture.Text, `42["edit"]`))
	})
	address, tape := start(t, upstream, gated)
	conn, r, _ := dialSocket(t, address, eioTarget)
	conn.Write(fromClient(capture.Text, `42["edit"]`))
	expect(t, r, fromGateway(capture.Text, `42["changed"]`))
	want := []string{
		`#4 c2 x1 client text "42[\"edit\"]" [withheld]`,
		`#5 c2 x1 client text "42[\"changed\"]" [injected]`,
		`#6 c2 x1 act edited #4 as #5`,
		`#7 c2 x1 gateway text "42[\"edit\"]" [withheld]`,
		`#8 c2 x1 gateway text "42[\"changed\"]" [injected]`,
		`#9 c2 x1 act edited #7 as #8`,
	}
	if diff := cmp.Diff(want, socketStory(t, first(tape.all()))); diff != "" {
		t.Errorf("tape (-want +got):\n%s", diff)
	}
}

// What passes a gate passes byte for byte, however the bytes were cut, also what
// is too long to be held.
func TestGatePassesBytesUnchanged(t *testing.T) {
	var stream []byte
	for i := range 300 {
		switch {
		case i%50 == 7:
			stream = append(stream, fromGateway(capture.Ping, "p")...)
		case i%50 == 9:
			stream = append(stream, fromGateway(capture.Binary, strings.Repeat("long", 5000))...)
		default:
			stream = append(stream, fromGateway(capture.Text, strings.Repeat("x", i))...)
		}
	}
	stream = append(stream, 0x81, 50, 'h', 'a', 'l', 'f')
	rng := rand.New(rand.NewPCG(1, 2))
	upstream := rawGateway(t, func(head string, conn net.Conn, r *bufio.Reader) {
		io.WriteString(conn, accept(head))
		for b := stream; len(b) > 0; {
			n := min(len(b), 1+rng.IntN(3000))
			conn.Write(b[:n])
			b = b[n:]
		}
	})
	address, tape := start(t, upstream, func(c *Config) { c.Gate, c.BodyLimit = strict, 10000 })
	conn, r, _ := dialSocket(t, address, eioTarget)
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, stream) {
		t.Errorf("%d bytes arrived of %d, %v", len(got), len(stream), err)
	}
	conn.Close()
	frames := filter(tape.wait(t, 1, kind(capture.End)), sent(capture.FromGateway, capture.Text, capture.Binary, capture.Ping))
	if len(frames) != 301 || !frames[300].Flags.Has(capture.Partial) {
		t.Errorf("%d messages on the tape, want 301, the last of them partial", len(frames))
	}
}

// A refused packet is cut out of a posted body. The client is told by its poll.
func TestGateOnPolling(t *testing.T) {
	posts, polled, reply := make(chan string, 4), make(chan struct{}), make(chan string)
	g := gateway(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Query().Get("sid") == "":
			io.WriteString(w, handshake)
		case r.Method == "POST":
			body, _ := io.ReadAll(r.Body)
			posts <- string(body)
			io.WriteString(w, "ok")
		default:
			polled <- struct{}{}
			w.Header().Set("Content-Type", "text/plain; charset=UTF-8")
			io.WriteString(w, <-reply)
		}
	})
	address, tape := start(t, g.URL, gated)
	base := "http://" + address + pollTarget
	get(t, base)
	post := func(body string) {
		res, err := client(t).Post(base+"&sid=abc", "text/plain", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := io.ReadAll(res.Body); string(got) != "ok" {
			t.Errorf("post %q: %q", body, got)
		}
		res.Body.Close()
	}
	post("42[\"a\"]\x1e42[\"bad\"]\x1e42[\"edit\"]")
	if got := <-posts; got != "42[\"a\"]\x1e42[\"changed\"]" {
		t.Errorf("the gateway got %q", got)
	}
	post("451-[\"bad\"]\x1ebAQID") // all of it is refused, and nothing is posted
	if _, got := get(t, base+"&sid=abc"); got != "42[\"no\"]\x1e42[\"no\"]" {
		t.Errorf("the first poll: %q", got)
	}
	// A poll that waits at the gateway is answered with the refusal.
	answer := make(chan string)
	go func() {
		_, body := get(t, base+"&sid=abc")
		answer <- body
	}()
	<-polled
	post(`42["bad"]`)
	if got := <-answer; got != `42["no"]` {
		t.Errorf("the poll that waited: %q", got)
	}
	go func() { reply <- "2" }()
	if _, got := get(t, base+"&sid=abc"); got != "2" {
		t.Errorf("the next poll: %q", got)
	}
	// An answer of which nothing is left says something all the same.
	go func() { <-polled; reply <- `42["bad"]` }()
	if res, got := get(t, base+"&sid=abc"); got != "6" || res.ContentLength != 1 {
		t.Errorf("an answer that was refused: %q, %d bytes", got, res.ContentLength)
	}
	go func() { <-polled; reply <- "2" }()
	if _, got := get(t, base+"&sid=abc"); got != "2" {
		t.Errorf("an answer that passes: %q", got)
	}
	if len(posts) > 0 {
		t.Errorf("the gateway got %q", <-posts)
	}
	frames := tape.wait(t, 9, kind(capture.Done))
	for _, want := range []string{
		`client polling "42[\"a\"]\x1e42[\"bad\"]\x1e42[\"edit\"]" [withheld]`,
		`client polling "42[\"a\"]\x1e42[\"changed\"]" [injected]`,
		`client polling "451-[\"bad\"]\x1ebAQID" [withheld]`,
		`gateway response 200 made=true`,
		`gateway polling "42[\"no\"]\x1e42[\"no\"]" [injected]`,
		`gateway polling "2"`,
		`gateway polling "42[\"bad\"]" [withheld]`,
		`gateway polling "6" [injected]`,
	} {
		found := false
		for _, line := range story(t, frames) {
			found = found || strings.HasSuffix(line, want)
		}
		if !found {
			t.Errorf("the tape has no %s:\n%s", want, strings.Join(story(t, frames), "\n"))
		}
	}
}

// A refusal that still waits for a poll when the session is upgraded goes out by
// the WebSocket.
func TestGateAnswersAfterAnUpgrade(t *testing.T) {
	g := rawGateway(t, func(head string, conn net.Conn, r *bufio.Reader) {
		if !strings.Contains(head, "websocket") {
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: "+strconv.Itoa(len(handshake))+"\r\n\r\n"+handshake)
			return
		}
		io.WriteString(conn, accept(head))
		io.Copy(io.Discard, r)
	})
	address, _ := start(t, g, gated)
	get(t, "http://"+address+pollTarget)
	res, err := client(t).Post("http://"+address+pollTarget+"&sid=abc", "text/plain", strings.NewReader(`42["bad"]`))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	conn, r, _ := dialSocket(t, address, eioTarget+"&sid=abc")
	conn.Write(fromClient(capture.Text, "5"))
	expect(t, r, fromGateway(capture.Text, `42["no"]`))
}

func TestAttachmentCount(t *testing.T) {
	for packet, want := range map[string]int{
		`451-["b"]`: 1, `4612-/a,3[]`: 12, `42["a"]`: 0, "45": 0, "45-": 0, "45x-": 0, "451": 0, `4599999999999999999999-["q"]`: 0, "": 0, "2": 0,
	} {
		if got := attachmentCount([]byte(packet)); got != want {
			t.Errorf("%q: %d, want %d", packet, got, want)
		}
	}
}
