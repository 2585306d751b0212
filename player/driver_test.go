package player

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tapedeck/player/actor"
	"tapedeck/player/scenario"
	"tapedeck/protocol/capture"
)

// driver is a client that does what a scenario expects of it.
type driver struct {
	*world
	scenario *scenario.Scenario
	part     actor.Part
	windows  map[int]*fakeSocket
	seen     int // frames that were looked at
}

// drive plays a scenario against its gateway, inside a bubble of synctest.
func drive(t *testing.T, w *world, s *scenario.Scenario, thread string) {
	t.Helper()
	d := &driver{world: w, scenario: s, part: actor.Part{Thread: thread}, windows: map[int]*fakeSocket{}}
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
	payload, err := d.part.Say(m)
	if err != nil {
		return err
	}
	answer := window.send(string(name), string(payload))
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
		if d.part.Hear(name, []byte(payload)) == kind {
			if *count--; *count == 0 {
				return true
			}
		}
	}
	return false
}
