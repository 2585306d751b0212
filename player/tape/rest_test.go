package tape

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tapedeck/protocol/capture"

	"tapedeck/player"
)

// exchanges is a tape of HTTP exchanges, behind some lines.
func exchanges(t *testing.T, lines string, list ...exchange) *written {
	t.Helper()
	w := write(t, lines)
	add := func(f capture.Frame, of capture.Position) capture.Position {
		f.Position = capture.Position(len(w.frames) + 1)
		f.Exchange = of
		if of == 0 {
			f.Exchange = f.Position
		}
		w.frames = append(w.frames, f)
		w.sessions[0].Last = f.Position
		return f.Exchange
	}
	for _, x := range list {
		target := x.path
		if x.query != "" {
			target += "?" + x.query
		}
		of := add(capture.Frame{Kind: capture.Request, Direction: capture.FromClient, Data: marshal(t, capture.RequestHead{Method: x.method, Target: target})}, 0)
		add(capture.Frame{Kind: capture.Body, Direction: capture.FromClient, Data: []byte("asked")}, of)
		add(capture.Frame{Kind: capture.Response, Direction: capture.FromGateway, Data: marshal(t, x.head)}, of)
		half := len(x.body) / 2
		add(capture.Frame{Kind: capture.Body, Direction: capture.FromGateway, Flags: x.flags, Data: x.body[:half]}, of)
		add(capture.Frame{Kind: capture.Body, Direction: capture.FromGateway, Flags: x.flags, Data: x.body[half:]}, of)
		add(capture.Frame{Kind: capture.Done, Data: marshal(t, capture.Outcome{})}, of)
	}
	return w
}

func answer(status int, kind string) capture.ResponseHead {
	return capture.ResponseHead{Status: status, Header: http.Header{"Content-Type": {kind}, "Etag": {`"1"`}, "Set-Cookie": {"redacted-00000000-8"}, "Date": {"then"}}}
}

// get asks a source over HTTP.
func get(s *Source, method, target string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	if h := s.Answer(r); h != nil {
		h.ServeHTTP(w, r)
	} else {
		w.Code = -1
	}
	return w
}

// TestAnswers: what was asked is answered as it was, in order, the last answer
// again and again; what never was is explained (P05).
func TestAnswers(t *testing.T) {
	page := func(n int) capture.ResponseHead { return answer(n, "application/json") }
	s := open(t, exchanges(t, opened,
		exchange{method: "GET", path: "/usage", head: page(200), body: []byte(`{"used":1}`)},
		exchange{method: "GET", path: "/usage", head: page(200), body: []byte(`{"used":2}`)},
		exchange{method: "GET", path: "/agents", query: "page=2", head: page(200), body: []byte(`{"page":2}`)},
		exchange{method: "GET", path: "/agents", query: "page=1", head: page(200), body: []byte(`{"page":1}`)},
		exchange{method: "POST", path: "/conversations", head: page(201), body: []byte(`{"id":"T"}`)},
		exchange{method: "GET", path: "/cached", head: page(304)},
		exchange{method: "GET", path: "/cached", head: page(200), body: []byte(`{"fresh":true}`)},
		exchange{method: "GET", path: "/broken", head: capture.ResponseHead{Status: 502, Made: true, Header: http.Header{}}},
		exchange{method: "GET", path: "/long", head: page(200), body: []byte(`{"x":`), flags: capture.Cut},
	), Options{})
	for _, c := range []struct {
		method, target string
		status         int
		want           string
	}{
		{"GET", "/usage", 200, `{"used":1}`},
		{"GET", "/usage", 200, `{"used":2}`},
		{"GET", "/usage?since=today", 200, `{"used":1}`},
		{"GET", "/usage", 200, `{"used":2}`},
		{"GET", "/agents?page=1", 200, `{"page":1}`},
		{"GET", "/agents?page=2", 200, `{"page":2}`},
		{"POST", "/conversations", 201, `{"id":"T"}`},
		{"GET", "/cached", 200, `{"fresh":true}`},
		{"GET", "/usages", 404, "the nearest that there is is GET /usage, which differs in its path"},
		{"GET", "/conversations", 404, "POST /conversations, which differs in its method"},
		{"GET", "/broken", 404, "no answer to GET /broken"},
		{"GET", "/long", 502, "only 5 bytes"},
		{"GET", "/health", -1, ""},
		{"GET", "/protocol", -1, ""},
	} {
		w := get(s, c.method, c.target)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s %s: %d %s, want %d %s", c.method, c.target, w.Code, w.Body, c.status, c.want)
		}
		if w.Header().Get("Set-Cookie") != "" || w.Header().Get("Date") != "" {
			t.Errorf("%s %s: the answer has the recorded connection's fields: %v", c.method, c.target, w.Header())
		}
	}
	if w := get(s, "GET", "/usage"); w.Header().Get("Etag") != `"1"` {
		t.Errorf("the answer's own fields are lost: %v", w.Header())
	}
	if s.Misses() != 3 {
		t.Errorf("%d misses were counted, want 3", s.Misses())
	}
}

// TestGzip (R02): who asks for gzip gets the recorded bytes, everybody else gets
// what they inflate to.
func TestGzip(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	fmt.Fprint(z, `{"used":1}`)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	head := answer(200, "application/json")
	head.Header.Set("Content-Encoding", "gzip")
	other := answer(200, "text/plain")
	other.Header.Set("Content-Encoding", "br")
	s := open(t, exchanges(t, "", exchange{method: "GET", path: "/usage", head: head, body: packed.Bytes(), flags: capture.Gzip},
		exchange{method: "GET", path: "/br", head: other, body: []byte("????")}), Options{})
	for _, accept := range []string{"", "identity", "gzip;q=0", "deflate, br"} {
		if w := get(s, "GET", "/usage", "Accept-Encoding", accept); w.Body.String() != `{"used":1}` || w.Header().Get("Content-Encoding") != "" {
			t.Errorf("a client that accepts %q got %v %q", accept, w.Header(), w.Body)
		}
	}
	for _, accept := range []string{"gzip", "deflate, GZIP;q=0.5"} {
		if w := get(s, "GET", "/usage", "Accept-Encoding", accept); !bytes.Equal(w.Body.Bytes(), packed.Bytes()) || w.Header().Get("Content-Encoding") != "gzip" {
			t.Errorf("a client that accepts %q got %v %q", accept, w.Header(), w.Body)
		}
	}
	if w := get(s, "GET", "/br", "Accept-Encoding", "gzip"); w.Code != http.StatusNotAcceptable || !strings.Contains(w.Body.String(), "br") {
		t.Errorf("a client without br got %d %s", w.Code, w.Body)
	}
}

// TestAnswersAreRebound: a live id in a path finds the recorded answer, and the
// answer speaks of live ids, even if it was recorded as gzip.
func TestAnswersAreRebound(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	fmt.Fprint(z, `{"id":"T","title":"T","runs":[{"runId":"R"}]}`)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	head := answer(200, "application/json; charset=utf-8")
	head.Header.Set("Content-Encoding", "gzip")
	s := open(t, exchanges(t, opened+startT+event("1s", "a", "T", "R", 1, "RUN_STARTED", ""),
		exchange{method: "GET", path: "/conversations/T", head: head, body: packed.Bytes()},
		exchange{method: "GET", path: "/usage", query: "thread=T", head: answer(200, "application/json"), body: []byte(`{"threadId":"T"}`)}), Options{})
	segments, err := ask(s, s.Thread("live thread"), "live thread", "Hi")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := segments(player.Turn{Run: "live-run"}); err != nil {
		t.Fatal(err)
	}
	if got, want := get(s, "GET", "/conversations/live%20thread", "Accept-Encoding", "gzip").Body.String(), `{"id":"live thread","title":"T","runs":[{"runId":"live-run"}]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if w := get(s, "GET", "/usage?thread=live+thread"); w.Body.String() != `{"threadId":"live thread"}` {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}
