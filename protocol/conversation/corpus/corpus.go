// Package corpus reads conversations that are written by hand: what passed
// between clients and a gateway, a line each, and the findings that it raises.
// The conversations under protocol/testdata/conversations are in this form.
//
// A file is prose, then a part "messages", then a part "findings". A line of
// messages is a time in seconds, a connection and what passed:
//
//	0.000 a connect                      a Socket.IO WebSocket, joined and greeted
//	0.000 a open                         the WebSocket alone; also: open polling,
//	                                     open plain, open joined, open eio=3
//	0.010 a> 40{"token":"t"}             a packet from the client, as it passed
//	0.020 a> run:start {"threadId":"t"}  an event; run:start+7 asks for an answer
//	0.030 a< ack+7 {"ok":true}           the answer
//	0.040 a< t/r/1 RUN_STARTED {}        an envelope: thread, run, sequence, event
//	0.050 a<binary 01020304              a binary frame, in hexadecimal
//	0.060 a<injected protocol:error {}   a frame that the proxy made; also withheld
//	0.070 a< 42["e"]␞42["e"]             several packets of a polling body
//	1.000 a end gateway 1006             the end; by client, gateway or proxy
//	1.000 - http GET /protocol 200 {}    an exchange
//	1.000 - gap                          frames that were not recorded
//	1.000 - act adapted a cookie         what the proxy did
//
//	0.1+0.01*250 a< t/r/{3} …            250 times, every 0.01 s, {3} counting from 3
//	… "delta":"{x*300}"                  300 times x
//
// Empty lines and lines that begin with # are left out.
package corpus

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"tapedeck/protocol/capture"
)

// Conversation is what a file holds.
type Conversation struct {
	Prose    string
	Frames   []capture.Frame
	Findings string
}

// All reads the files of a folder, by their names without their ending.
func All(folder string) (map[string]*Conversation, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.txtar"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("there is none in %q", folder)
	}
	if err != nil {
		return nil, fmt.Errorf("read conversations: %w", err)
	}
	all := map[string]*Conversation{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read conversations: %w", err)
		}
		c, err := Read(text)
		if err != nil {
			return nil, fmt.Errorf("read conversation %q: %w", file, err)
		}
		all[strings.TrimSuffix(filepath.Base(file), ".txtar")] = c
	}
	return all, nil
}

// Read reads a file.
func Read(data []byte) (*Conversation, error) {
	archive := txtar.Parse(data)
	c := &Conversation{Prose: string(archive.Comment)}
	w := writer{connections: make(map[string]*client)}
	found := false
	for _, f := range archive.Files {
		switch f.Name {
		case "messages":
			found = true
			for i, line := range strings.Split(string(f.Data), "\n") {
				if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
					continue
				}
				if err := w.lines(line); err != nil {
					return nil, fmt.Errorf("line %d of messages: %w", i+1, err)
				}
			}
		case "findings":
			c.Findings = string(f.Data)
		default:
			return nil, fmt.Errorf("part %q: there is messages, and findings", f.Name)
		}
	}
	if !found {
		return nil, fmt.Errorf("no part is called messages")
	}
	c.Frames = w.frames
	return c, nil
}

// writer turns lines into frames.
type writer struct {
	frames      []capture.Frame
	connections map[string]*client
}

// client is a connection as the lines name it.
type client struct {
	open    capture.Position
	polling bool
	plain   bool
}

const (
	handshake = `0{"sid":"engine","upgrades":[],"pingInterval":25000,"pingTimeout":20000,"maxPayload":1000000}`
	greeting  = `42["protocol:hello",{"protocol":{"major":1,"minor":17},"minClientMajor":1}]`
)

// lines takes a line, as often as it says.
func (w *writer) lines(line string) error {
	stamp, rest, _ := strings.Cut(line, " ")
	step, times := 0.0, 1
	if start, every, repeats := strings.Cut(stamp, "+"); repeats {
		seconds, n, _ := strings.Cut(every, "*")
		var err error
		if step, err = strconv.ParseFloat(seconds, 64); err != nil {
			return fmt.Errorf("step %q is no number of seconds", seconds)
		}
		if times, err = strconv.Atoi(n); err != nil {
			return fmt.Errorf("%q is no number of times", n)
		}
		stamp = start
	}
	seconds, err := strconv.ParseFloat(stamp, 64)
	if err != nil {
		return fmt.Errorf("time %q is no number of seconds", stamp)
	}
	for n := range times {
		text, err := expand(strings.TrimSpace(rest), n)
		if err != nil {
			return err
		}
		at := time.Duration(math.Round((seconds+float64(n)*step)*1e6)) * time.Microsecond
		if err := w.line(at, text); err != nil {
			return err
		}
	}
	return nil
}

var short = regexp.MustCompile(`\{(\d+)\}|\{x\*(\d+)\}`)

// expand writes out {3}, the n-th number from 3 on, and {x*300}.
func expand(text string, n int) (out string, err error) {
	out = short.ReplaceAllStringFunc(text, func(found string) string {
		m := short.FindStringSubmatch(found)
		first, fault := strconv.Atoi(m[1] + m[2])
		if fault != nil || first > 1<<24 {
			err = fmt.Errorf("%q counts too far", found)
			return ""
		}
		if m[2] != "" {
			return strings.Repeat("x", first)
		}
		return strconv.Itoa(first + n)
	})
	return out, err
}

func (w *writer) line(at time.Duration, line string) error {
	who, what, _ := strings.Cut(line, " ")
	what = strings.TrimSpace(what)
	if who == "-" {
		return w.mark(at, what)
	}
	if name, option, ok := strings.Cut(who, ">"); ok {
		return w.pass(at, capture.FromClient, name, option, what)
	}
	if name, option, ok := strings.Cut(who, "<"); ok {
		return w.pass(at, capture.FromGateway, name, option, what)
	}
	word, options, _ := strings.Cut(what, " ")
	switch word {
	case "connect":
		return w.connect(at, who, options)
	case "open":
		return w.openConnection(at, who, options)
	case "end":
		return w.end(at, who, options)
	}
	return fmt.Errorf("connection %q does %q: there is connect, open and end", who, word)
}

func (w *writer) add(f capture.Frame) capture.Position {
	f.Position = capture.Position(len(w.frames) + 1)
	f.Size = int64(len(f.Data))
	w.frames = append(w.frames, f)
	return f.Position
}

// detail adds a frame whose data is the JSON of v.
func (w *writer) detail(f capture.Frame, v any) capture.Position {
	f.Data, _ = json.Marshal(v) // of this package's own structs, which always encode
	return w.add(f)
}

func (w *writer) openConnection(at time.Duration, name, options string) error {
	c := &client{}
	o := capture.Opening{Transport: capture.SocketIO, EIO: "4", Target: "/socket.io/?EIO=4&transport=websocket"}
	for _, option := range strings.Fields(options) {
		switch {
		case option == "polling":
			c.polling, o.Polling = true, true
		case option == "plain":
			c.plain = true
			o = capture.Opening{Transport: capture.WebSocket, Target: "/ws"}
		case option == "joined":
			o.Joined = true
		case strings.HasPrefix(option, "eio="):
			o.EIO = strings.TrimPrefix(option, "eio=")
		default:
			return fmt.Errorf("open %q: there is polling, plain, joined and eio=N", option)
		}
	}
	c.open = w.detail(capture.Frame{At: at, Kind: capture.Open, Direction: capture.FromClient}, o)
	w.frames[c.open-1].Connection = c.open
	w.connections[name] = c
	return nil
}

// connect opens a connection and does what comes before the first command.
// Options are those of open, and a payload for CONNECT.
func (w *writer) connect(at time.Duration, name, options string) error {
	options, auth := cutAuth(options)
	if err := w.openConnection(at, name, options); err != nil {
		return err
	}
	c := w.connections[name]
	if c.plain {
		return w.pass(at, capture.FromGateway, name, "", `protocol:hello {"protocol":{"major":1,"minor":17},"minClientMajor":1}`)
	}
	for _, p := range []struct {
		from capture.Direction
		text string
	}{
		{capture.FromGateway, handshake},
		{capture.FromClient, "40" + auth},
		{capture.FromGateway, `40{"sid":"socket-` + name + `"}`},
		{capture.FromGateway, greeting},
	} {
		if err := w.pass(at, p.from, name, "", p.text); err != nil {
			return err
		}
	}
	return nil
}

func cutAuth(options string) (rest, auth string) {
	if i := strings.IndexByte(options, '{'); i >= 0 {
		return options[:i], options[i:]
	}
	return options, ""
}

func (w *writer) end(at time.Duration, name, options string) error {
	c := w.connections[name]
	if c == nil {
		return fmt.Errorf("connection %q ends and was never opened", name)
	}
	by, code, _ := strings.Cut(options, " ")
	ending := capture.Ending{}
	if err := ending.By.UnmarshalText([]byte(strings.TrimPrefix(by, "proxy"))); err != nil {
		return err
	}
	if code != "" {
		n, err := strconv.Atoi(code)
		if err != nil {
			return fmt.Errorf("close code %q is no number", code)
		}
		ending.Code = n
	}
	w.detail(capture.Frame{At: at, Connection: c.open, Kind: capture.End, Direction: ending.By}, ending)
	return nil
}

// pass adds a frame that passed on a connection.
func (w *writer) pass(at time.Duration, from capture.Direction, name, option, text string) error {
	c := w.connections[name]
	if c == nil {
		return fmt.Errorf("connection %q was never opened", name)
	}
	f := capture.Frame{At: at, Connection: c.open, Direction: from, Kind: capture.Text}
	if c.polling {
		f.Kind = capture.Polling
	}
	switch option {
	case "":
	case "binary":
		data, err := hex.DecodeString(text)
		if err != nil {
			return fmt.Errorf("binary frame: %w", err)
		}
		f.Kind, f.Data = capture.Binary, data
		w.add(f)
		return nil
	case "injected":
		f.Flags = capture.Injected
	case "withheld":
		f.Flags = capture.Withheld
	default:
		return fmt.Errorf("frame is %q: there is binary, injected and withheld", option)
	}
	packet, err := c.packet(text)
	if err != nil {
		return err
	}
	f.Data = []byte(strings.ReplaceAll(packet, "␞", "\x1e"))
	w.add(f)
	return nil
}

// packet writes out the short forms.
func (c *client) packet(text string) (string, error) {
	head, payload, _ := strings.Cut(text, " ")
	name, id, asks := strings.Cut(head, "+")
	switch parts := strings.Split(head, "/"); {
	case text == "":
		return "", nil
	case name == "ack":
		if c.plain {
			return fmt.Sprintf(`{"ack":%s,"data":%s}`, id, payload), nil
		}
		return fmt.Sprintf("43%s[%s]", id, payload), nil
	case len(parts) == 3:
		typ, fields, _ := strings.Cut(payload, " ")
		return c.event("run:event", "", envelope(parts, typ, strings.TrimSpace(fields))), nil
	case strings.Contains(name, ":") && head[0] >= 'a' && head[0] <= 'z':
		if asks && id == "" {
			return "", fmt.Errorf("event %q asks for an answer without an id", head)
		}
		return c.event(name, id, payload), nil
	}
	return text, nil
}

func (c *client) event(name, id, payload string) string {
	if !c.plain {
		return fmt.Sprintf("42%s[%q,%s]", id, name, payload)
	}
	if id != "" {
		id = `,"id":` + id
	}
	return fmt.Sprintf(`{"event":%q,"data":%s%s}`, name, payload, id)
}

// envelope writes an envelope out. Path is thread, run and sequence, fields the
// members of the event behind its type.
func envelope(path []string, typ, fields string) string {
	fields = strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(fields, "{"), "}"))
	if fields != "" {
		fields = "," + fields
	}
	return fmt.Sprintf(`{"v":1,"threadId":%q,"runId":%q,"sequence":%s,"event":{"type":%q%s}}`,
		path[0], path[1], path[2], typ, fields)
}

// mark adds what belongs to no connection.
func (w *writer) mark(at time.Duration, what string) error {
	word, rest, _ := strings.Cut(what, " ")
	switch word {
	case "gap":
		w.detail(capture.Frame{At: at, Kind: capture.Gap}, capture.Loss{Frames: 1, Error: "the disk was full"})
		return nil
	case "act":
		did, text, _ := strings.Cut(rest, " ")
		w.detail(capture.Frame{At: at, Kind: capture.Act}, capture.Deed{Did: did, Text: text})
		return nil
	case "http":
		return w.exchange(at, rest)
	}
	return fmt.Errorf("%q: there is http, gap and act", word)
}

func (w *writer) exchange(at time.Duration, what string) error {
	fields := strings.SplitN(what, " ", 4)
	if len(fields) < 3 {
		return fmt.Errorf("http %q: write METHOD TARGET STATUS BODY", what)
	}
	status, err := strconv.Atoi(fields[2])
	if err != nil {
		return fmt.Errorf("status %q is no number", fields[2])
	}
	request := w.detail(capture.Frame{At: at, Kind: capture.Request, Direction: capture.FromClient},
		capture.RequestHead{Method: fields[0], Target: fields[1], Proto: "HTTP/1.1"})
	w.frames[request-1].Exchange = request
	answer := capture.Frame{At: at, Exchange: request, Direction: capture.FromGateway}
	answer.Kind = capture.Response
	w.detail(answer, capture.ResponseHead{Status: status, Proto: "HTTP/1.1"})
	if len(fields) == 4 {
		answer.Kind, answer.Data = capture.Body, []byte(fields[3])
		w.add(answer)
	}
	answer.Kind, answer.Data = capture.Done, nil
	w.detail(answer, capture.Outcome{Expected: -1})
	return nil
}
