package proxy

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tapedeck/protocol/capture"
)

const handshake = `0{"sid":"abc","upgrades":["websocket"],"pingInterval":25000,"pingTimeout":20000,"maxPayload":1000000}`

// poller is a gateway that answers polling requests by a table of what to say,
// in order.
func poller(t *testing.T, answers map[string][]string) string {
	next := map[string]int{}
	return gateway(t, func(w http.ResponseWriter, r *http.Request) {
		key := r.Method
		if r.URL.Query().Get("sid") == "" {
			key = "open"
		}
		if r.Method == "POST" {
			io.Copy(io.Discard, r.Body)
		}
		i := next[key]
		next[key]++
		if i >= len(answers[key]) {
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"code":1,"message":"Session ID unknown"}`)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=UTF-8")
		io.WriteString(w, answers[key][i])
	}).URL
}

const pollTarget = "/socket.io/?EIO=4&transport=polling&t=x"

// story writes a tape as one line a frame: what a reader would tell of it.
func story(t *testing.T, frames []capture.Frame) []string {
	var lines []string
	for _, f := range frames {
		what := fmt.Sprintf("%q", f.Data)
		switch f.Kind {
		case capture.Open:
			o := detail[capture.Opening](t, f)
			what = fmt.Sprintf("%s polling=%v sid=%s joined=%v", o.Transport, o.Polling, o.SID, o.Joined)
		case capture.End:
			e := detail[capture.Ending](t, f)
			what = fmt.Sprintf("by=%s code=%d %s", e.By, e.Code, e.Error)
		case capture.Request:
			what = detail[capture.RequestHead](t, f).Method
		case capture.Response:
			h := detail[capture.ResponseHead](t, f)
			what = fmt.Sprintf("%d made=%v", h.Status, h.Made)
		case capture.Done:
			o := detail[capture.Outcome](t, f)
			what = fmt.Sprintf("%d up %d down %s %s", o.RequestBytes, o.ResponseBytes, o.By, o.Error)
		case capture.Act:
			d := detail[capture.Deed](t, f)
			what = fmt.Sprintf("%s #%d as #%d %s%s", d.Did, d.Of, d.Sent, d.Rule, d.Text)
		}
		line := fmt.Sprintf("#%d c%d x%d %s %s %s", f.Position, f.Connection, f.Exchange, f.Direction, f.Kind, what)
		if f.Flags != 0 {
			line += fmt.Sprint(" ", f.Flags.Names())
		}
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return lines
}

// E01: the bodies of a polling session pass as they are and are one frame each;
// the requests of a session are one connection, which its close packet ends.
func TestPollingSession(t *testing.T) {
	several := "42[\"a\"]\x1e451-[\"b\",{\"_placeholder\":true,\"num\":0}]\x1ebAQID"
	upstream := poller(t, map[string][]string{"open": {handshake}, "GET": {several, "6"}, "POST": {"ok", "ok"}})
	address, tape := start(t, upstream, nil)
	base := "http://" + address + pollTarget
	get(t, base)
	c := client(t)
	post := func(body string) {
		res, err := c.Post(base+"&sid=abc", "text/plain;charset=UTF-8", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := io.ReadAll(res.Body); string(got) != "ok" {
			t.Errorf("post: %q", got)
		}
		res.Body.Close()
	}
	post(several)
	if _, body := get(t, base+"&sid=abc"); body != several {
		t.Errorf("get: %q", body)
	}
	post("1")
	get(t, base+"&sid=abc") // what is late belongs to no connection
	got := story(t, tape.wait(t, 5, kind(capture.Done)))
	want := []string{
		"#1 c0 x1 client request GET",
		"#2 c0 x1 gateway response 200 made=false",
		"#3 c3 x1 open socket.io polling=true sid=abc joined=false",
		fmt.Sprintf("#4 c3 x1 gateway polling %q", handshake),
		fmt.Sprintf("#5 c3 x1 done 0 up %d down", len(handshake)),
		"#6 c3 x6 client request POST",
		fmt.Sprintf("#7 c3 x6 client polling %q", several),
		"#8 c3 x6 gateway response 200 made=false",
		`#9 c3 x6 gateway body "ok"`,
		"#10 c3 x6 done 53 up 2 down",
		"#11 c3 x11 client request GET",
		"#12 c3 x11 gateway response 200 made=false",
		fmt.Sprintf("#13 c3 x11 gateway polling %q", several),
		"#14 c3 x11 done 0 up 53 down",
		"#15 c3 x15 client request POST",
		`#16 c3 x15 client polling "1"`,
		"#17 c3 x15 gateway response 200 made=false",
		`#18 c3 x15 gateway body "ok"`,
		"#19 c3 x15 done 1 up 2 down",
		"#20 c3 x0 client end by=client code=0",
		"#21 c0 x21 client request GET",
		"#22 c0 x21 gateway response 200 made=false",
		`#23 c0 x21 gateway body "6"`,
		"#24 c0 x21 done 0 up 1 down",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tape (-want +got):\n%s", diff)
	}
}

// A session is known by its sid however the handshake was coded, and ends when
// the gateway closes it or does not know it.
func TestPollingSessionEnds(t *testing.T) {
	for _, test := range []struct {
		name   string
		answer string
		want   capture.Ending
	}{
		{"close packet", "6\x1e1", capture.Ending{By: capture.FromGateway}},
		{"unknown", "", capture.Ending{By: capture.FromGateway, Error: "the gateway does not know the session"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := gateway(t, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Query().Get("sid") == "":
					w.Header().Set("Content-Encoding", "gzip")
					z := gzip.NewWriter(w)
					io.WriteString(z, handshake)
					z.Close()
				case test.answer == "":
					http.Error(w, `{"code":1,"message":"Session ID unknown"}`, 400)
				default:
					io.WriteString(w, test.answer)
				}
			})
			address, tape := start(t, g.URL, nil)
			get(t, "http://"+address+pollTarget)
			get(t, "http://"+address+pollTarget+"&sid=abc")
			frames := tape.wait(t, 1, kind(capture.End))
			if open := filter(frames, kind(capture.Open)); len(open) != 1 || detail[capture.Opening](t, open[0]).SID != "abc" {
				t.Errorf("the tape has\n%s", list(frames))
			}
			if diff := cmp.Diff(test.want, detail[capture.Ending](t, filter(frames, kind(capture.End))[0])); diff != "" {
				t.Errorf("ending (-want +got):\n%s", diff)
			}
		})
	}
}

// A request under a sid that the tape does not know joins a session that had
// begun before.
func TestJoinedSession(t *testing.T) {
	address, tape := start(t, poller(t, map[string][]string{"GET": {"2"}}), nil)
	get(t, "http://"+address+pollTarget+"&sid=old")
	want := []string{
		"#1 c1 x0 open socket.io polling=true sid=old joined=true",
		"#2 c1 x2 client request GET",
		"#3 c1 x2 gateway response 200 made=false",
		`#4 c1 x2 gateway polling "2"`,
		"#5 c1 x2 done 0 up 1 down",
	}
	if diff := cmp.Diff(want, story(t, tape.wait(t, 1, kind(capture.Done)))); diff != "" {
		t.Errorf("tape (-want +got):\n%s", diff)
	}
}

// E02: the WebSocket that a session is upgraded to is the same connection, and
// its end is the session's. One that fails before it took over ends nothing.
func TestUpgradeOfASession(t *testing.T) {
	upstream := rawGateway(t, func(head string, conn net.Conn, r *bufio.Reader) {
		switch {
		case !strings.Contains(head, "sid="):
			fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(handshake), handshake)
		case strings.Contains(head, "transport=polling"):
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n6")
		default:
			io.WriteString(conn, accept(head))
			io.ReadFull(r, make([]byte, len(fromClient(capture.Text, "2probe"))))
			conn.Write(fromGateway(capture.Text, "3probe"))
			io.Copy(io.Discard, r)
		}
	})
	address, tape := start(t, upstream, nil)
	get(t, "http://"+address+pollTarget)
	for _, takes := range []bool{false, true} {
		conn, r, _ := dialSocket(t, address, "/socket.io/?EIO=4&transport=websocket&sid=abc")
		conn.Write(fromClient(capture.Text, "2probe"))
		expect(t, r, fromGateway(capture.Text, "3probe"))
		get(t, "http://"+address+pollTarget+"&sid=abc")
		if takes {
			conn.Write(fromClient(capture.Text, "5"))
			tape.wait(t, 1, func(f *capture.Frame) bool { return f.Kind == capture.Text && string(f.Data) == "5" })
		}
		conn.Close()
		if !takes {
			tape.wait(t, 3, kind(capture.Done))
		}
	}
	frames := tape.wait(t, 1, kind(capture.End))
	connections := map[capture.Position]bool{}
	for _, f := range filter(frames, func(f *capture.Frame) bool { return f.Position > 3 }) {
		connections[f.Connection] = true
	}
	if len(connections) != 1 || len(filter(frames, kind(capture.Open))) != 1 {
		t.Errorf("one session is %d connections:\n%s", len(connections), list(frames))
	}
	if end := filter(frames, kind(capture.End)); end[0].Position != frames[len(frames)-1].Position {
		t.Errorf("the end is not at the end:\n%s", list(frames))
	}
}

// A polling session that nobody asks for any more ends, later than the gateway
// would end it; one with a poll under way does not.
func TestSilentSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newMemory()
		tp := newTap(sink, 1, time.Now(), slog.New(slog.DiscardHandler))
		o := &capture.Opening{Transport: capture.SocketIO, Polling: true, SID: "a"}
		c := tp.open(o, 0, 45*time.Second)
		time.Sleep(time.Hour) // a poll is held
		if frames, _ := sink.all(); len(frames) != 1 {
			t.Fatalf("a held poll was ended:\n%s", list(frames))
		}
		tp.leave(c, 0)
		time.Sleep(49 * time.Second)
		if tp.join(&capture.Opening{SID: "a"}) != c {
			t.Fatal("another connection for the same sid")
		}
		tp.leave(c, capture.FromClient)
		time.Sleep(51 * time.Second)
		synctest.Wait()
		frames, _ := sink.all()
		want := []string{
			"#1 c1 x0 open socket.io polling=true sid=a joined=false",
			"#2 c1 x0 client end by=client code=0 no request for 50s",
		}
		if diff := cmp.Diff(want, story(t, frames)); diff != "" {
			t.Errorf("tape (-want +got):\n%s", diff)
		}
		if tp.join(&capture.Opening{SID: "a"}) != nil {
			t.Error("a late request revived the session")
		}
		time.Sleep(51 * time.Second)
		synctest.Wait()
		if len(tp.sessions) != 0 {
			t.Error("the session is never forgotten")
		}
		open := tp.open(o, 0, time.Minute)
		tp.leave(open, 0)
		tp.close()
		if frames, _ = sink.all(); len(frames) != 4 || frames[3].Kind != capture.End {
			t.Errorf("the tap was closed without an end:\n%s", list(frames))
		}
		if tp.put(capture.Frame{Kind: capture.Text}) != 0 {
			t.Error("a closed tap takes frames")
		}
	})
}

// The packets that parseHandshake must find a sid in, and those that have none.
func TestParseHandshake(t *testing.T) {
	for _, test := range []struct {
		body     string
		sid      string
		patience time.Duration
	}{
		{handshake, "abc", 45 * time.Second},
		{`96:0{"sid":"three","pingInterval":300,"pingTimeout":200}2:40`, "three", 500 * time.Millisecond},
		{`0{"sid":"a"}`, "a", defaultPatience},
		{`0{"sid":"a","pingInterval":-1,"pingTimeout":1e3}`, "", 0},
		{`0{"sid":"a","pingInterval":99999999999999,"pingTimeout":1}`, "a", defaultPatience},
		{`{"sid":"a"}`, "", 0}, {`40{"sid":"a"}`, "", 0}, {`0{`, "", 0}, {"", "", 0}, {"6", "", 0}, {`0{"sid":1}`, "", 0},
	} {
		if sid, patience := parseHandshake([]byte(test.body)); sid != test.sid || patience != test.patience {
			t.Errorf("%q: got %q, %v; want %q, %v", test.body, sid, patience, test.sid, test.patience)
		}
	}
}
