package driver

import (
	"encoding/json"
	"fmt"

	"tapedeck/protocol"
)

// hear takes an event that a window was sent. It is called by the goroutine that
// reads the socket, and does not wait.
func (p *player) hear(l *live, name string, args []json.RawMessage) {
	if len(args) == 0 {
		return
	}
	p.mu.Lock()
	switch protocol.Name(name) {
	case protocol.Hello:
		if l.announced == nil {
			l.announced = args[0]
			close(l.hello)
		}
	case protocol.RunEvent:
		p.story.envelope(args[0], moment{})
	case protocol.TaskStatus:
		l.statuses++
	case protocol.ProtocolError:
		l.errors++
		if l.last != nil && l.errors > l.last.errors {
			f, _ := protocol.ReadError(args[0])
			p.refuse(l.last, fmt.Sprintf("the gateway says %q: %q, and did not in the recording", f.Code, f.Message))
		}
	}
	p.mu.Unlock()
	p.wake()
}

// hearAnswer takes the acknowledgement of a message.
func (p *player) hearAnswer(m *move, args []json.RawMessage) {
	p.mu.Lock()
	delete(p.unanswered, m)
	if len(args) > 0 {
		p.story.replay(args[0], moment{})
		if got := readOutcome(args[0]); got != nil && m.answer != nil && *got != *m.answer {
			p.refuse(m, fmt.Sprintf("the gateway answers %q, and in the recording %q", got, m.answer))
		}
	}
	p.mu.Unlock()
	p.wake()
}

// refuse takes note that the gateway took a message otherwise than in the
// recording, once. The mutex is held.
func (p *player) refuse(m *move, why string) {
	if p.refused[m] {
		return
	}
	p.refused[m] = true
	p.divergences = append(p.divergences, Divergence{Thread: m.thread, At: m.at.address, Name: m.title(), Got: why})
	if opens(m) {
		p.broken[m.thread] = why
	}
}

func (p *player) wake() {
	select {
	case p.news <- struct{}{}:
	default: // there is news already
	}
}

func (p *player) give(thread, why string) {
	if thread == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken[thread] == "" {
		p.broken[thread] = why
	}
}

func (p *player) diverge(d Divergence) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.divergences = append(p.divergences, d)
}

func (p *player) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notes = append(p.notes, fmt.Sprintf(format, args...))
}

func (p *player) skip(m *move, why string) { p.step(m, false, why) }

func (p *player) step(m *move, done bool, why string) {
	s := Step{At: m.at.address, Name: m.title(), Message: m.kind == send, Thread: m.thread, Window: m.window.index + 1, Done: done, Why: why}
	p.mu.Lock()
	p.steps = append(p.steps, s)
	p.mu.Unlock()
	p.told(s)
}
