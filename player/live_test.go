package player

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// live serves a gateway on a real port.
func live(t *testing.T, c Config) (*Gateway, string) {
	t.Helper()
	g, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(g)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := g.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
		server.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return g, server.URL
}

// dial opens a Socket.IO connection, up to the CONNECT reply.
func dial(t *testing.T, url, auth string) *websocket.Conn {
	t.Helper()
	conn, answer, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(url, "http")+"/socket.io/?EIO=4&transport=websocket", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	t.Cleanup(func() { conn.Close() })
	if open := read(t, conn); !strings.HasPrefix(open, "0{") {
		t.Fatalf("the first packet is %s", open)
	}
	write(t, conn, "40"+auth)
	return conn
}

func read(t *testing.T, conn *websocket.Conn) string {
	t.Helper()
	conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	_, data, err := conn.ReadMessage()
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func write(t *testing.T, conn *websocket.Conn, text string) {
	t.Helper()
	if err := conn.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// TestLive speaks with the gateway over a real socket: the announcement right
// behind CONNECT, a command with the acknowledgement id that this client uses
// (P02), and a run to its end.
func TestLive(t *testing.T) {
	_, url := live(t, Config{Scenario: "tool", Speed: math.Inf(1)})
	conn := dial(t, url, "")
	if got := read(t, conn); !strings.HasPrefix(got, `40{"sid":`) {
		t.Fatalf("CONNECT was answered %s", got)
	}
	if got, want := read(t, conn), `42["protocol:hello",{"protocol":{"major":1,"minor":17},"minClientMajor":1}]`; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	write(t, conn, `427["run:start",{"threadId":"T2","messageId":"m","input":"hi"}]`)
	if got, want := read(t, conn), `437[{"ok":true}]`; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	for sequence := int64(1); ; sequence++ {
		data := strings.TrimSuffix(strings.TrimPrefix(read(t, conn), `42["run:event",`), "]")
		e := readEnvelope(t, data)
		if e.Sequence != sequence || e.ThreadID != "T2" {
			t.Fatalf("envelope %d is %s", sequence, data)
		}
		if e.Event.Type == "RUN_FINISHED" {
			return
		}
	}
}

// TestToken asks every socket and every closed path for the token.
func TestToken(t *testing.T) {
	_, url := live(t, Config{Token: "s3cret"})
	if got := read(t, dial(t, url, `{"token":"wrong"}`)); !strings.HasPrefix(got, `44{"message":"unauthorized`) {
		t.Errorf("a wrong token was answered %s", got)
	}
	if got := read(t, dial(t, url, `{"token":"s3cret"}`)); !strings.HasPrefix(got, `40{"sid":`) {
		t.Errorf("the right token was answered %s", got)
	}
	for path, want := range map[string]int{"/health": 200, "/protocol": 200, "/conversations": 401, "/agents": 401} {
		status, body := get(t, "GET", url+path, "", "")
		if status != want || !json.Valid([]byte(body)) {
			t.Errorf("GET %s: %d %s, want %d", path, status, body, want)
		}
	}
	if status, body := get(t, "GET", url+"/agents", "", "Bearer s3cret"); status != 200 || !strings.Contains(body, "tapedeck") {
		t.Errorf("with the token: %d %s", status, body)
	}
}

func get(t *testing.T, method, url, body, authorization string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", authorization)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	out, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, strings.TrimSpace(string(out))
}

// TestSurface puts things in over HTTP and takes them out again; what is not
// there is a 404 that says what to do (P05).
func TestSurface(t *testing.T) {
	_, url := live(t, Config{})
	tests := []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/conversations", "", 200, `{"conversations":[]}`},
		{"POST", "/conversations", `{"id":"c1","title":"Orders"}`, 201, `{"id":"c1","title":"Orders"}`},
		{"GET", "/conversations/c1", "", 200, `"title":"Orders"`},
		{"PUT", "/conversations/c1", `{"id":"c1","title":"Bills"}`, 200, `Bills`},
		{"GET", "/conversations", "", 200, `Bills`},
		{"DELETE", "/conversations/c1", "", 204, ""},
		{"GET", "/conversations/c1", "", 404, `POST /conversations`},
		{"POST", "/agents", `{"name":"x"}`, 201, `"name":"x"`},
		{"POST", "/agents", `{`, 400, `no JSON`},
		{"PATCH", "/agents", ``, 405, `GET and POST`},
		{"GET", "/conversation", "", 404, `did you mean /conversations?`},
		{"GET", "/usage", "", 404, `a tape that recorded it does`},
		{"GET", "/protocol", "", 200, `"minClientMajor":1`},
		{"POST", "/health", "", 405, `by GET`},
	}
	for _, test := range tests {
		status, body := get(t, test.method, url+test.path, test.body, "")
		if status != test.status || !strings.Contains(body, test.want) {
			t.Errorf("%s %s: %d %s, want %d and %s", test.method, test.path, status, body, test.status, test.want)
		}
	}
}

// TestControl drives the gateway as a UI test does.
func TestControl(t *testing.T) {
	_, url := live(t, Config{Speed: math.Inf(1)})
	control := url + "/__tapedeck/"
	tests := []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "state", "", 200, `"speed":"max"`},
		{"POST", "scenario", `{"scenario":"aproval"}`, 400, `did you mean \"approval\"?`},
		{"POST", "scenario", `{"scenario":"approval"}`, 200, `{"ok":true}`},
		{"POST", "speed", `{"speed":0}`, 400, `not above 0`},
		{"POST", "speed", `{"speed":2}`, 200, `ok`},
		{"GET", "state", "", 200, `"speed":2`},
		{"POST", "step", ``, 400, `pause it before stepping`},
		{"POST", "pause", ``, 200, `ok`},
		{"POST", "step", `{"steps":3}`, 200, `ok`},
		{"POST", "resume", ``, 200, `ok`},
		{"POST", "speed", `{"sped":2}`, 400, `unknown field`},
		{"POST", "inject", `{"thread":"x","event":{}}`, 400, `no client has spoken of`},
		{"GET", "journal?threads=x", "", 400, `not by \"threads\"`},
		{"GET", "journal", "", 200, `[]`},
		{"GET", "verify?thread=t1&scenario=hello", "", 200, `run:start was expected and never came`},
		{"POST", "drop", ``, 200, `{"dropped":0}`},
		{"POST", "reset", ``, 200, `ok`},
		{"GET", "nothing", "", 404, `there are GET state`},
	}
	for _, test := range tests {
		status, body := get(t, test.method, control+test.path, test.body, "")
		if status != test.status || !strings.Contains(body, test.want) {
			t.Errorf("%s %s: %d %s, want %d and %s", test.method, test.path, status, body, test.status, test.want)
		}
	}
}

// TestControlIsGuarded keeps pages of elsewhere away from the control API.
func TestControlIsGuarded(t *testing.T) {
	g, err := New(Config{Control: Control{Origins: []string{"http://app.test"}, Hosts: []string{"box.test"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close(context.Background())
	tests := []struct {
		host, origin string
		want         int
	}{
		{"127.0.0.1:8080", "", 200},
		{"localhost:8080", "http://localhost:8080", 200},
		{"[::1]:8080", "", 200},
		{"evil.test", "", 403},
		{"box.test", "", 200},
		{"localhost:8080", "http://evil.test", 403},
		{"localhost:8080", "null", 403},
		{"localhost:8080", "http://app.test", 200},
	}
	for _, test := range tests {
		r := httptest.NewRequest("GET", "/__tapedeck/state", nil)
		r.Host = test.host
		if test.origin != "" {
			r.Header.Set("Origin", test.origin)
		}
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		if w.Code != test.want {
			t.Errorf("host %q, origin %q: %d, want %d", test.host, test.origin, w.Code, test.want)
		}
	}
}

// TestConversations lists the threads that were spoken in besides those that were
// put in.
func TestConversations(t *testing.T) {
	_, url := live(t, Config{Speed: math.Inf(1), Seed: 9})
	get(t, "POST", url+"/conversations", `{"id":"made","title":"Put in"}`, "")
	conn := dial(t, url, "")
	write(t, conn, `42["run:start",{"threadId":"spoken","messageId":"m","input":"hi \"there\""}]`)
	for !strings.Contains(read(t, conn), "RUN_FINISHED") {
	}
	write(t, conn, `420["thread:messages",{"threadId":"silent"}]`)
	read(t, conn)
	want := `{"conversations":[{"id":"made","title":"Put in"},{"id":"spoken","title":"hi \"there\"","createdAt":"`
	if _, body := get(t, "GET", url+"/conversations", "", ""); !strings.HasPrefix(body, want) || strings.Contains(body, "silent") {
		t.Errorf("got %s, want it to begin with %s", body, want)
	}
	if status, body := get(t, "GET", url+"/conversations/spoken", "", ""); status != 200 || !strings.Contains(body, `"title":"hi`) {
		t.Errorf("the thread itself: %d %s", status, body)
	}
	if status, _ := get(t, "GET", url+"/conversations/silent", "", ""); status != 404 {
		t.Errorf("a thread in which nothing was said: %d, want 404", status)
	}
	if _, body := get(t, "GET", url+"/__tapedeck/state", "", ""); !strings.Contains(body, `"seed":`) {
		t.Errorf("the state does not tell the seed: %s", body)
	}
}

// TestRecoveredSocketIsCut cuts a socket twice that takes up its session each
// time: it is in its thread's room again, for all that happens to the room.
func TestRecoveredSocketIsCut(t *testing.T) {
	twice := parse(t, `steps: [{text: one}, {drop: true}, {wait: 300ms}, {text: two}, {drop: true}, {wait: 300ms}, {text: three}]`)
	c := with(twice)
	c.Engine.Recovery = time.Minute
	g, url := live(t, c)
	conn := dial(t, url, "")
	var session struct{ SID, PID string }
	if err := json.Unmarshal([]byte(strings.TrimPrefix(read(t, conn), "40")), &session); err != nil {
		t.Fatal(err)
	}
	write(t, conn, `42["run:start",{"threadId":"t","messageId":"m","input":"hi"}]`)
	cuts, offset := 0, ""
	for {
		conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		_, data, err := conn.ReadMessage()
		if err != nil {
			cuts++
			conn = dial(t, url, `{"pid":"`+session.PID+`","offset":"`+offset+`"}`)
			continue
		}
		var event []json.RawMessage
		if strings.HasPrefix(string(data), "42") && json.Unmarshal(data[2:], &event) == nil && len(event) == 3 {
			offset = plainText(event[2])
		}
		if strings.Contains(string(data), "RUN_FINISHED") {
			break
		}
	}
	if cuts != 2 {
		t.Errorf("the socket was cut %d times, want 2", cuts)
	}
	if st := g.state(); len(st.Threads) != 1 || st.Threads[0].Windows != 1 {
		t.Errorf("the thread has the windows %+v, want 1", st.Threads)
	}
}

// TestSlowClientAtFullSpeed: a run without pauses waits for who reads slowly, and
// cuts nobody.
func TestSlowClientAtFullSpeed(t *testing.T) {
	c := with(parse(t, `steps: [{text: {fill: 60000, chunk: 2}}]`))
	c.Speed = math.Inf(1)
	c.Engine.MaxQueue = 64 << 10 // a hundredth of what the run has
	_, url := live(t, c)
	conn := dial(t, url, "")
	write(t, conn, `42["run:start",{"threadId":"t","messageId":"m","input":"hi"}]`)
	for n := 0; ; n++ {
		if n%1000 == 0 {
			time.Sleep(time.Millisecond) // slower than the player
		}
		if strings.Contains(read(t, conn), "RUN_FINISHED") {
			return
		}
	}
}

// TestControlApart serves the control API at an address of its own, guarded as
// ever, and no longer at the gateway's.
func TestControlApart(t *testing.T) {
	g, err := New(Config{Control: Control{Apart: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close(context.Background())
	for _, test := range []struct {
		handler http.Handler
		host    string
		want    int
	}{
		{g, "localhost:1", 404},
		{g.ControlAPI(), "localhost:2", 200},
		{g.ControlAPI(), "evil.test", 403},
	} {
		r := httptest.NewRequest("GET", "/__tapedeck/state", nil)
		r.Host = test.host
		w := httptest.NewRecorder()
		test.handler.ServeHTTP(w, r)
		if w.Code != test.want {
			t.Errorf("%T of %s: %d, want %d", test.handler, test.host, w.Code, test.want)
		}
	}
}

// TestCloseTwice ends a gateway with a run on its way, and ends it again.
func TestCloseTwice(t *testing.T) {
	g, url := live(t, Config{})
	conn := dial(t, url, "")
	read(t, conn)
	read(t, conn)
	write(t, conn, `42["run:start",{"threadId":"t","messageId":"m","input":"hi"}]`)
	if got := read(t, conn); !strings.Contains(got, "RUN_STARTED") {
		t.Fatalf("got %s", got)
	}
	for range 2 {
		if err := g.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	for {
		if _, _, err := conn.ReadMessage(); err != nil {
			if !websocket.IsCloseError(err, 1001) {
				t.Errorf("the socket ended by %v, want 1001", err)
			}
			return
		}
	}
}
