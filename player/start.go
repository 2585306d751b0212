package player

import (
	"encoding/json"
	"slices"

	"tapedeck/protocol"
)

// start answers run:start.
func (g *Gateway) start(o order) error {
	c := o.Command
	t, err := g.thread(c.ThreadID)
	if err != nil {
		return err
	}
	t.lock()
	defer t.unlock()
	g.prelude(t)
	fork, err := t.admits(c)
	if err != nil {
		return err
	}
	earlier := t.past.inputs()
	if fork >= 0 {
		earlier = earlier[:t.past.turnsBefore(fork)]
	}
	opened := t.opened + 1
	id := g.ident("run", t.id, opened)
	opening := openingMessage(c)
	segments, err := g.source.Begin(Start{Command: c, Run: id, Opened: opened, Earlier: earlier, Opening: opening,
		State: t.setting.State})
	if err != nil {
		return err
	}
	tools := [][]string{toolNames(c.ClientTools)}
	first, err := segments(Turn{Run: id, Tools: tools})
	if err != nil {
		return err
	}
	// Nothing of the thread was changed up to here: a refused command leaves it
	// as it was.
	if fork >= 0 {
		t.past.rewind(fork)
	}
	t.opened = opened
	t.past.turns = append(t.past.turns, turn{c.Input, len(t.past.messages)})
	if !g.config.StrictRooms {
		g.enter(o.from, t)
	}
	o.accept()
	message := g.userMessage(opening)
	g.begin(g.newRun(t, id, &chain{segments: segments, opened: opened, opening: opening, message: message, tools: tools}), first)
	t.heard(c.Name)
	return nil
}

// admits returns where the thread is forked, -1 for nowhere, or why the thread
// cannot start a run now.
func (t *thread) admits(c protocol.Command) (int, error) {
	fork := -1
	if t.run != nil {
		return fork, refuse(protocol.InvalidCommand, "run %q is in flight in this thread: wait for its end or cancel it", t.run.id)
	}
	if t.pause != nil && len(t.pause.open) > 0 {
		return fork, refuse(protocol.InvalidCommand, "the thread waits on decision %q: answer it by run:resume", t.pause.open[0].id)
	}
	if t.task != nil {
		return fork, refuse(protocol.InvalidCommand, "this is the conversation of a background task: runs are started in %q", t.parent.id)
	}
	if c.ForkFromMessageID != "" {
		if fork = t.past.index(c.ForkFromMessageID); fork < 0 {
			return fork, refuse(protocol.ForkPointNotFound, "there is no message %q in this thread", c.ForkFromMessageID)
		}
	}
	if at := t.past.index(c.MessageID); at >= 0 && (fork < 0 || at < fork) {
		return fork, refuse(protocol.DuplicateMessage, "message %q is in this thread already", c.MessageID)
	}
	return fork, nil
}

// turnsBefore counts the turns whose message stands before an index.
func (h *history) turnsBefore(index int) int {
	n := 0
	for _, t := range h.turns {
		if t.first < index {
			n++
		}
	}
	return n
}

// openingMessage is the message that opens a run, as RUN_STARTED shows it.
func openingMessage(c protocol.Command) json.RawMessage {
	return object{}.text("id", c.MessageID).text("role", "user").text("content", c.Input).
		some("attachments", c.Attachments).close()
}

// userMessage is a message that opened a run, as the history keeps it.
func (g *Gateway) userMessage(opening json.RawMessage) Message {
	var m struct {
		ID          string          `json:"id"`
		Content     json.RawMessage `json:"content"`
		Attachments json.RawMessage `json:"attachments"`
	}
	if json.Unmarshal(opening, &m) != nil || m.ID == "" {
		return Message{}
	}
	return Message{ID: m.ID, Role: "user", Content: m.Content, Attachments: m.Attachments, CreatedAt: g.stamp()}
}

func toolNames(tools []protocol.ClientTool) []string {
	names := make([]string, 0, len(tools))
	for _, tool := range tools {
		names = append(names, tool.Name)
	}
	return names
}

// resume answers run:resume.
func (g *Gateway) resume(o order) error {
	c := o.Command
	t, err := g.thread(c.ThreadID)
	if err != nil {
		return err
	}
	t.lock()
	defer t.unlock()
	g.prelude(t)
	p := t.pause
	at := -1
	if p != nil {
		at = slices.IndexFunc(p.open, func(d decision) bool { return d.id == c.InterruptID })
	}
	if at < 0 {
		return refuse(protocol.UnknownRun, "the thread is not waiting on decision %q", c.InterruptID)
	}
	if len(p.open) > 1 {
		o.accept()
		p.open = slices.Delete(slices.Clone(p.open), at, at+1)
		p.answers[c.InterruptID] = slices.Clone(c.Answer)
		t.heard(c.Name)
		return nil
	}
	if err := g.goOn(t, p, o); err != nil {
		return err
	}
	t.heard(c.Name)
	return nil
}

// goOn plays what follows once the last decision of a pause is answered.
func (g *Gateway) goOn(t *thread, p *pause, c order) error {
	chain := p.run.chain
	if chain.segments == nil {
		return refuse(protocol.UnknownRun, "nobody here knows how run %q goes on", p.run.id)
	}
	pauses := slices.Clone(chain.pauses)
	answers := map[string]json.RawMessage{c.InterruptID: slices.Clone(c.Answer)}
	for id, answer := range p.answers {
		answers[id] = answer
	}
	pauses = append(pauses, answers)
	tools := append(slices.Clone(chain.tools), toolNames(c.ClientTools))
	id := g.ident("run", t.id, t.opened+1)
	next, err := chain.segments(Turn{Run: id, Tools: tools, Pauses: pauses})
	if err != nil {
		return err
	}
	c.accept()
	chain.pauses, chain.tools = pauses, tools
	if p.run.play != nil {
		p.run.play.finish()
	}
	t.pause = nil
	if next.SameRun {
		r := g.newRun(t, p.run.id, chain)
		r.sequence = p.run.sequence
		g.begin(r, next)
		return nil
	}
	t.opened++
	g.begin(g.newRun(t, id, chain), next)
	return nil
}

// cancel answers run:cancel.
func (g *Gateway) cancel(r *run, o order) error {
	o.accept()
	p := r.play
	if p != nil && p.task != nil {
		p.task.result = "cancelled"
	}
	switch {
	case p == nil || p.cancel.Ignore:
	case p.cancel.Recorded && p.position() >= p.cancel.Since:
		p.reach(protocol.RunCancel)
	case p.cancel.Instead != nil:
		p.replace(p.cancel.Instead)
	default:
		p.replace(cancelled())
		p.finish()
	}
	return nil
}
