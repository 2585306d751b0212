package player

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tapedeck/player/scenario"
	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

// driver is a client that does what a scenario expects of it.
type driver struct {
	*world
	scenario *scenario.Scenario
	thread   string
	windows  map[int]*fakeSocket
	seen     int      // envelopes, of all that window 0 and others saw, looked at
	runs     []string // by RUN_STARTED
	open     []string // decisions
	subs     []string
	task     string // the own thread of the last subagent
	messages int
	said     map[string]string
}

// drive plays a scenario against its gateway, inside a bubble of synctest.
func drive(t *testing.T, w *world, s *scenario.Scenario, thread string) {
	t.Helper()
	d := &driver{world: w, scenario: s, thread: thread, windows: map[int]*fakeSocket{}, said: map[string]string{}}
	for i, m := range s.Client {
		if err := d.move(m); err != nil {
			lines := w.lines()
			t.Fatalf("client move %d: %v\n%s", i+1, err, strings.Join(lines[max(0, len(lines)-10):], "\n"))
		}
	}
	time.Sleep(time.Minute)
	synctest.Wait()
}

func (d *driver) move(m scenario.Move) error {
	if err := d.waitFor(m); err != nil {
		return err
	}
	time.Sleep(m.After)
	window := d.windows[m.Window]
	if m.Leave {
		window.end("client left")
		delete(d.windows, m.Window)
		return nil
	}
	for tries := 0; window == nil || window.left(); tries++ {
		if tries > 10 {
			return fmt.Errorf("no connection after %d tries", tries)
		}
		if window = d.connect(m.Window); window == nil {
			time.Sleep(time.Second)
		}
		d.windows[m.Window] = window
	}
	name := m.Command()
	if name == "" {
		return nil
	}
	payload, err := d.payload(m)
	if err != nil {
		return err
	}
	answer := window.send(string(name), payload)
	synctest.Wait() // what it leads to at once comes before the next move
	var a struct {
		OK    bool
		Error struct{ Code string }
	}
	if err := json.Unmarshal([]byte(answer), &a); err != nil {
		return fmt.Errorf("%s %s was answered %q", name, payload, answer)
	}
	if a.Error.Code != m.Refused || a.OK != (m.Refused == "") {
		return fmt.Errorf("%s %s was answered %s, expected %q", name, payload, answer, m.Refused)
	}
	return nil
}

// waitFor waits until the event came that a move waits for.
func (d *driver) waitFor(m scenario.Move) error {
	kind, count, err := m.Trigger()
	if err != nil {
		return err
	}
	deadline := time.Now().Add(10 * time.Minute)
	for kind != "" {
		synctest.Wait()
		if d.look(kind, &count) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s never came", m.When)
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

// look reads the frames that came, up to the count-th of a kind.
func (d *driver) look(kind string, count *int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.seen < len(d.frames) {
		f := d.frames[d.seen]
		d.seen++
		data, ok := strings.CutPrefix(string(f.Data), `42["`)
		if f.Direction != capture.FromGateway || !ok {
			if f.Kind == capture.End && kind == "end" {
				if *count--; *count == 0 {
					return true
				}
			}
			continue
		}
		name, payload, _ := strings.Cut(strings.TrimSuffix(data, "]"), `",`)
		event := name
		if name == "run:event" {
			var e envelope
			// An envelope that is damaged on purpose has no type here.
			_ = json.Unmarshal([]byte(payload), &e)
			event = e.Event.Type
			d.note(e)
		}
		if event == kind {
			if *count--; *count == 0 {
				return true
			}
		}
	}
	return false
}

func (d *driver) note(e envelope) {
	switch e.Event.Type {
	case "RUN_STARTED":
		d.runs = append(d.runs, e.RunID)
	case "INTERRUPT":
		if !slices.Contains(d.open, e.Event.InterruptID) {
			d.open = append(d.open, e.Event.InterruptID)
		}
	case "SUBAGENT_STARTED":
		d.subs, d.task = append(d.subs, e.Event.ToolCallID), e.Event.ChildThreadID
	}
}

func (d *driver) payload(m scenario.Move) (string, error) {
	thread := quote(d.thread + m.Thread)
	if m.Thread == "task" {
		thread = quote(d.task)
	}
	o := object{}
	switch m.Command() {
	case protocol.RunStart:
		d.messages++
		id := "message-" + strconv.Itoa(d.messages)
		if m.Start.Message != "" {
			id = m.Start.Message
		}
		o = o.raw("threadId", thread).text("messageId", id).text("input", m.Start.Input).
			some("attachments", json.RawMessage(m.Start.Attachments))
		if m.Start.Fork != "" {
			o = o.text("forkFromMessageId", m.Start.Fork)
		}
	case protocol.RunResume:
		id, err := pick(&d.open, m.Which)
		if err != nil {
			return "", err
		}
		o = o.raw("threadId", thread).text("interruptId", id).raw("answer", json.RawMessage(*m.Resume))
	case protocol.RunCancel:
		id := *m.Cancel
		if id == "run" {
			if len(d.runs) == 0 {
				return "", fmt.Errorf("there is no run to cancel")
			}
			id = d.runs[len(d.runs)-1]
		}
		o = o.text("runId", id)
	case protocol.RunDetach:
		o = o.text("runId", d.runs[len(d.runs)-1])
		if *m.Detach != "all" {
			subs := slices.Clone(d.subs)
			id, err := pick(&subs, *m.Detach)
			if err != nil {
				return "", err
			}
			o = o.text("toolCallId", id)
		}
	case protocol.ThreadMessages:
		o = o.raw("threadId", thread)
	}
	if len(m.Tools) > 0 {
		o = o.raw("clientTools", declare(m.Tools))
	}
	return string(o.close()), nil
}

// pick takes the n-th of a list, or an id as it is.
func pick(list *[]string, which string) (string, error) {
	n := 1
	if which != "" {
		var err error
		if n, err = strconv.Atoi(which); err != nil {
			return which, nil
		}
	}
	if n > len(*list) {
		return "", fmt.Errorf("there is no number %d of %v", n, *list)
	}
	id := (*list)[n-1]
	*list = slices.Delete(slices.Clone(*list), n-1, n)
	return id, nil
}

func declare(tools []scenario.ClientDecl) json.RawMessage {
	out := []byte{'['}
	for i, t := range tools {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, object{}.text("name", t.Name).text("description", t.Description).text("kind", t.Kind).
			some("arguments", json.RawMessage(t.Arguments)).some("result", json.RawMessage(t.Result)).close()...)
	}
	return append(out, ']')
}
