package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
	"tapedeck/recorder"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(recorderTape); path != "" {
		recordUntilKilled(path)
	}
	goleak.VerifyTestMain(m)
}

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// recording begins a tape, writes 100 frames and an index, and returns when all
// of it is committed.
func recording(t *testing.T) (string, *recorder.Writer) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.tape")
	s := &capture.Session{Started: epoch, Source: "proxy", Tool: "test"}
	w, err := recorder.OpenWriter(path, s, recorder.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close(time.Second) })
	index := &recorder.Index{Judged: 100}
	for p := capture.Position(1); p <= 100; p++ {
		w.Frame(frame(p))
		index.Posts = append(index.Posts, conversation.Post{Run: runKey, Position: p})
	}
	index.Runs = []*conversation.Run{{Session: 1, ID: runKey.Run, Status: conversation.Paused, First: 1, Last: 100, FirstToken: -1}}
	index.Threads = []*conversation.Thread{{ID: "t", Runs: 1, First: 1, Last: 100, Status: conversation.Paused}}
	index.Findings = []protocol.Finding{
		{Rule: "a", Severity: protocol.Error, At: capture.Address{Position: 3, Packet: 2}, Run: runKey.Run, Text: "no"},
		{Rule: "b", Severity: protocol.Note, At: capture.Address{Position: 4, Packet: 1}, Run: "another"},
	}
	w.Index(index)
	r := w.Reader()
	for _, err := range r.Follow(t.Context(), 100) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	for runs := []conversation.Run(nil); len(runs) == 0; { // it comes a commit later
		if runs, err = r.Runs(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return path, w
}

var runKey = conversation.RunKey{Session: 1, Run: "run/7 &\xff"}

func frame(p capture.Position) *capture.Frame {
	f := &capture.Frame{Position: p, At: time.Duration(p) * time.Millisecond, Connection: 1, Kind: capture.Text, Direction: capture.FromGateway, Data: fmt.Appendf(nil, "42[%d,\"\xff\"]", p)}
	switch p {
	case 1:
		f.Kind, f.Direction, f.Data = capture.Open, 0, []byte(`{"transport":"socket.io"}`)
	case 2:
		f.Kind, f.Data = capture.Ping, nil
	case 3:
		f.Flags, f.Exchange, f.Data = capture.Cut|capture.Gzip, 9, []byte(strings.Repeat("long ", 20_000))
	}
	f.Size = int64(len(f.Data)) + 7
	return f
}

// serve answers for a tape until the test ends.
func serve(t *testing.T, l *Listener, tape Tape) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, l, tape, noMarks) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func noMarks(context.Context, capture.Mark) error { return errors.New("this tape takes no marks") }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// All ways to read a tape tell the same.
func TestConformance(t *testing.T) {
	path, w := recording(t)
	l := must(Listen(path))
	serve(t, l, w.Reader())
	unix := must(Dial(path))
	defer unix.Close()
	wherever := must(Open(path))
	defer wherever.Close()
	port := must(listenTCP(path + ".port"))
	serve(t, port, w.Reader())
	tcp := &Client{base: "http://" + port.Addr().String(), token: port.token}
	tcp = must(tcp.connect("tcp", port.Addr().String()))
	defer tcp.Close()

	for name, tape := range map[string]Tape{"writer": w.Reader(), "unix": unix, "tcp": tcp, "wherever": wherever} {
		t.Run(name, func(t *testing.T) { conform(t, tape, false) })
	}
	if err := w.Close(3 * time.Second); err != nil {
		t.Fatal(err)
	}
	file := must(recorder.Open(path))
	defer file.Close()
	t.Run("file", func(t *testing.T) { conform(t, file, true) })
	t.Run("wherever it went", func(t *testing.T) { conform(t, wherever, true) })
	if _, err := unix.Sessions(t.Context()); !errors.Is(err, recorder.ErrClosed) {
		t.Errorf("through a process that closed the tape: %v, want ErrClosed", err)
	}
}

func conform(t *testing.T, tape Tape, ended bool) {
	ctx := t.Context()
	session := capture.Session{ID: 1, Started: epoch, Source: "proxy", Tool: "test", First: 1, Last: 100, Judged: 100, Rules: protocol.CatalogueVersion, Live: !ended}
	if ended {
		session.Clean, session.Ended = true, epoch.Add(3*time.Second)
	}
	var all []capture.Frame
	for p := capture.Position(1); p <= 100; p++ {
		all = append(all, *frame(p))
	}
	run := conversation.Run{Session: 1, ID: "run/7 &\ufffd", Status: conversation.Paused, First: 1, Last: 100, FirstToken: -1}
	key := conversation.RunKey{Session: 1, Run: run.ID} // as Runs tells it
	thread := conversation.Thread{ID: "t", Runs: 1, First: 1, Last: 100, Status: conversation.Paused}
	findings := []protocol.Finding{
		{Rule: "a", Severity: protocol.Error, At: capture.Address{Position: 3, Packet: 2}, Run: run.ID, Text: "no"},
		{Rule: "b", Severity: protocol.Note, At: capture.Address{Position: 4, Packet: 1}, Run: "another"},
	}
	check := func(what string, want, got any, err error) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s (-want +got):\n%s%v", what, diff, err)
		}
	}
	sessions, err := tape.Sessions(ctx)
	check("sessions", []capture.Session{session}, sessions, err)
	runs, err := tape.Runs(ctx)
	check("runs", []conversation.Run{run}, runs, err)
	threads, err := tape.Threads(ctx)
	check("threads", []conversation.Thread{thread}, threads, err)
	frames, err := tape.Frames(ctx, 0, 1000)
	check("all frames", all, frames, err)
	frames, err = tape.Frames(ctx, 50, 2)
	check("two frames", all[49:51], frames, err)
	frames, err = tape.Frames(ctx, 101, 2)
	check("no frames", []capture.Frame(nil), frames, err)
	frames, err = tape.Frames(ctx, 1, -1)
	check("fewer than no frames", []capture.Frame(nil), frames, err)
	frames, err = tape.Rows(ctx, key, 49, 2)
	check("two rows and their connection", []capture.Frame{all[0], all[49], all[50]}, frames, err)
	frames, err = tape.Rows(ctx, conversation.RunKey{Session: 1, Run: "none"}, 0, 2)
	check("rows of no run", []capture.Frame(nil), frames, err)
	found, err := tape.Findings(ctx, nil)
	check("findings", findings, found, err)
	found, err = tape.Findings(ctx, &key)
	check("findings of the run", findings[:1], found, err)

	following, cancel := context.WithCancel(ctx)
	defer cancel()
	frames = nil
	for f, err := range tape.Follow(following, 99) {
		if err != nil {
			t.Fatal(err)
		}
		if frames = append(frames, f); len(frames) == 2 {
			cancel()
		}
	}
	check("followed", all[98:], frames, nil)
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := tape.Runs(canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("after a cancellation: %v", err)
	}
}

// A reader that stops reading holds up neither the writer nor its end (E11).
func TestStoppedFollower(t *testing.T) {
	path, w := recording(t)
	l := must(Listen(path))
	serve(t, l, w.Reader())
	client := must(Dial(path))
	defer client.Close()
	stopped := must(client.get(t.Context(), "follow", url.Values{"from": {"1"}}))
	defer stopped.Close()
	for p := capture.Position(101); p <= 3000; p++ {
		f := frame(p)
		f.Data = append(f.Data, strings.Repeat(fmt.Sprint(p), 3000)...)
		w.Frame(f)
	}
	if err := w.Close(time.Minute); err != nil {
		t.Fatal(err)
	}
	r := must(recorder.Open(path))
	defer r.Close()
	last := must(r.Frames(t.Context(), 3000, 2))
	if len(last) != 1 {
		t.Errorf("%d frames from 3000 on, want 1", len(last))
	}
}

// Those who follow a session see its end.
func TestFollowToTheEnd(t *testing.T) {
	path, w := recording(t)
	l := must(Listen(path))
	serve(t, l, w.Reader())
	client := must(Dial(path))
	defer client.Close()
	seen := make(chan capture.Position)
	begun := make(chan struct{})
	go func() {
		var last capture.Position
		for f, err := range client.Follow(context.Background(), 1) {
			if err != nil {
				t.Error(err)
			}
			if last = f.Position; last == 100 {
				close(begun)
			}
		}
		seen <- last
	}()
	<-begun
	for p := capture.Position(101); p <= 5000; p++ {
		w.Frame(frame(p))
	}
	if err := w.Close(time.Minute); err != nil {
		t.Fatal(err)
	}
	if last := <-seen; last != 5000 {
		t.Errorf("followed up to %d, want 5000", last)
	}
}

func TestLostFramesComeThrough(t *testing.T) {
	path, _ := recording(t)
	l := must(Listen(path))
	serve(t, l, lossy{})
	client := must(Dial(path))
	defer client.Close()
	want := &recorder.LostError{First: 2, Last: 5, Reason: errors.New("the checksum is wrong")}
	frames, err := client.Rows(t.Context(), runKey, 0, 9)
	if lost, ok := errors.AsType[*recorder.LostError](err); !ok || lost.Error() != want.Error() || len(frames) != 1 {
		t.Errorf("got %d frames and %v, want 1 and %v", len(frames), err, want)
	}
	if _, err := client.Runs(t.Context()); !errors.Is(err, recorder.ErrDamaged) || !strings.Contains(err.Error(), "tapedeck repair") {
		t.Errorf("got %v, want ErrDamaged with what to do", err)
	}
}

// lossy is a tape of which a part is lost.
type lossy struct{ Tape }

func (lossy) Rows(context.Context, conversation.RunKey, int, int) ([]capture.Frame, error) {
	return []capture.Frame{*frame(1)}, &recorder.LostError{First: 2, Last: 5, Reason: errors.New("the checksum is wrong")}
}

func (lossy) Runs(context.Context) ([]conversation.Run, error) {
	return nil, fmt.Errorf("read runs: %w\nSave it with: tapedeck repair a.tape", recorder.ErrDamaged)
}

func TestSockets(t *testing.T) {
	path, w := recording(t)
	locked := func(want string) {
		t.Helper()
		if _, err := Open(path); !errors.Is(err, recorder.ErrLocked) {
			t.Errorf("%s: %v, want ErrLocked", want, err)
		}
	}
	locked("no socket")

	// One that nobody answers any more.
	stale := must(net.Listen("unix", path+".sock")).(*net.UnixListener)
	stale.SetUnlinkOnClose(false)
	stale.Close()
	locked("a stale socket")
	l := must(Listen(path))
	if mode := must(os.Stat(path + ".sock")).Mode(); mode.Perm() != 0o600 {
		t.Errorf("the socket has mode %v", mode)
	}
	if _, err := Listen(path); err == nil || !strings.Contains(err.Error(), "another process answers") {
		t.Errorf("a second listener: %v", err)
	}
	// It listens and does not answer, as when its process is stopped.
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("a silent process: %v", err)
	}
	l.Close()
	if _, err := os.Stat(path + ".sock"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is left behind: %v", err)
	}

	os.WriteFile(path+".sock", []byte("mine"), 0o600)
	if _, err := Listen(path); err == nil || !strings.Contains(err.Error(), "no socket; remove it") {
		t.Errorf("a file in the socket's place: %v", err)
	}
	os.Remove(path + ".sock")
	w.Close(time.Second)
	tape := must(Open(path))
	if _, err := tape.Runs(t.Context()); err != nil || tape.client != nil {
		t.Errorf("a tape that nobody writes is read through %v: %v", tape.client, err)
	}
	tape.Close()
	if _, err := tape.Runs(t.Context()); !errors.Is(err, recorder.ErrClosed) {
		t.Errorf("after Close: %v, want ErrClosed", err)
	}
	if _, err := Open(path + "2"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no tape: %v", err)
	}
}

func TestLongNames(t *testing.T) {
	folder := filepath.Join(t.TempDir(), strings.Repeat("long", 20), strings.Repeat("er", 30))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "a.tape")
	os.WriteFile(path, nil, 0o600)
	runtime := t.TempDir()
	for _, c := range []struct{ name, runtime, temporary string }{
		{"runtime folder", runtime, t.TempDir()},
		{"temporary folder", "", must(os.MkdirTemp("", "live"))},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer os.RemoveAll(c.temporary)
			t.Setenv("XDG_RUNTIME_DIR", c.runtime)
			t.Setenv("TMPDIR", c.temporary)
			l, err := Listen(path)
			if err != nil {
				t.Fatal(err)
			}
			serve(t, l, lossy{})
			client, err := Dial(path)
			if err != nil {
				t.Fatal(err)
			}
			client.Close()
			if c.runtime == "" {
				mine := filepath.Dir(must(socketName(path)))
				os.Chmod(mine, 0o755)
				if _, err := socketName(path); err == nil || !strings.Contains(err.Error(), "mode 0700") {
					t.Errorf("a folder that others may enter: %v", err)
				}
			}
		})
	}
}

func TestPorts(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.tape.sock")
	os.WriteFile(name, []byte(`{"address":"127.0.0.1:1","token":"old"}`), 0o600) // nobody is there
	l := must(listenTCP(name))
	serve(t, l, lossy{})
	if _, err := listenTCP(name); err == nil || !strings.Contains(err.Error(), "another process answers") {
		t.Errorf("a second listener: %v", err)
	}
	if mode := must(os.Stat(name)).Mode(); mode.Perm() != 0o600 {
		t.Errorf("the file has mode %v", mode)
	}
	for _, c := range []struct {
		name, host, origin, token string
		want                      int
	}{
		{"good", l.Addr().String(), "", l.token, 200},
		{"no token", l.Addr().String(), "", "", 401},
		{"wrong token", l.Addr().String(), "", "x", 401},
		{"a page", l.Addr().String(), "http://" + l.Addr().String(), l.token, 403},
		{"rebound name", "evil.example", "", l.token, 403},
	} {
		request := httptest.NewRequest("GET", "http://"+l.Addr().String()+"/v1/version", nil)
		request.RequestURI, request.Host = "", c.host
		request.Header.Set("Authorization", "Bearer "+c.token)
		if c.origin != "" {
			request.Header.Set("Origin", c.origin)
		}
		transport := &http.Transport{DisableKeepAlives: true}
		answer := must(transport.RoundTrip(request))
		answer.Body.Close()
		if answer.StatusCode != c.want {
			t.Errorf("%s: status %d, want %d", c.name, answer.StatusCode, c.want)
		}
	}
	for _, text := range []string{"", "{", `{"address":"10.0.0.1:80","token":"x"}`, strings.Repeat("x", 2000)} {
		os.WriteFile(name+"2", []byte(text), 0o600)
		if p, err := readPlace(name + "2"); err == nil {
			t.Errorf("%.40q names %+v", text, p)
		}
		if _, err := listenTCP(name + "2"); err == nil || !strings.Contains(err.Error(), "remove it") {
			t.Errorf("in the place of %.40q: %v", text, err)
		}
	}
}

func TestRequests(t *testing.T) {
	server := httptest.NewServer(newHandler(&Listener{}, lossy{}, noMarks))
	defer server.Close()
	for _, c := range []struct {
		target string
		status int
		want   string
	}{
		{"/v2/runs", 404, "use the same tapedeck for both"},
		{"/v1/frames", 400, `from="" is not a number`},
		{"/v1/frames?from=1&n=-1", 400, `n="-1" is not a number`},
		{"/v1/rows?session=5000000000&run=a&from=0&n=1", 400, "there is no session 5000000000"},
		{"/v1/rows?session=1&run=a&from=0&n=1", 200, `{"lost":{"first":2,"last":5,"reason":"the checksum is wrong"}}` + "\n" + `{"end":true}`},
	} {
		answer := must(http.Get(server.URL + c.target))
		body := string(must(io.ReadAll(answer.Body)))
		answer.Body.Close()
		if answer.StatusCode != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s: %d %q, want %d %q", c.target, answer.StatusCode, body, c.status, c.want)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}
