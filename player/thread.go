package player

import (
	"encoding/json"
	"strconv"
	"sync"

	"tapedeck/player/script"
	"tapedeck/protocol"
)

// thread is a conversation. Everything about it happens under its lock, sending
// to its room included: a socket that joins gets what came before in its
// answer and what comes after from the room, and nothing twice.
type thread struct {
	id      string
	setting Setting
	parent  *thread // of a background task's own conversation, which no one else starts runs in

	mu         sync.Mutex // protects following
	later      []func()   // done once the lock is free
	sockets    map[socket]bool
	namespaces []string // of all sockets that ever joined
	past       history
	run        *run   // in flight
	pause      *pause // that the thread waits in
	opened     int    // runs opened so far
	todos      json.RawMessage
	task       *task           // what it is the conversation of
	taskSeen   json.RawMessage // that, as a recording says it
	plays      map[*play]bool
}

func (t *thread) lock() { t.mu.Lock() }

// unlock frees the thread and does what had to wait for it: what may call back
// into the gateway, such as the end of a socket.
func (t *thread) unlock() {
	later := t.later
	t.later = nil
	t.mu.Unlock()
	for _, f := range later {
		f()
	}
}

// strike takes everything that is on its way off the stage.
func (t *thread) strike() {
	for p := range t.plays {
		p.turn++
		p.cues = nil
	}
	clear(t.plays)
	t.run, t.pause = nil, nil
}

// run is one run id in flight.
type run struct {
	id        string
	thread    *thread
	chain     *chain
	head      []byte // of its envelopes, up to the sequence's number
	sequence  int64
	envelopes []kept // those that a replay holds
	truncated bool
	played    []noted // since the last checkpoint
	scratch   []byte  // for an envelope on its way out
	asked     []decision
	paused    bool // RUN_PAUSED was sent
	altered   bool // it goes no longer as a recording went
	ended     bool
	play      *play
}

// kept is an envelope that a replay holds. Nearly all are deltas: of them, what
// all envelopes of a run share is not kept again. Any other envelope is the Text
// of a delta of no stream, byte for byte.
type kept struct {
	sequence int64
	delta    *script.Delta
}

func whole(envelope json.RawMessage) kept { return kept{delta: &script.Delta{Text: envelope}} }

// append appends what was sent.
func (k kept) append(b []byte, r *run) []byte {
	if k.delta.Of == nil {
		return append(b, k.delta.Text...)
	}
	return append(k.delta.AppendJSON(r.open(b, k.sequence)), '}')
}

// open begins an envelope.
func (r *run) open(b []byte, sequence int64) []byte {
	return append(strconv.AppendInt(append(b, r.head...), sequence, 10), `,"event":`...)
}

// noted is an event that counts at the next checkpoint, and the deltas that
// followed it at once.
type noted struct {
	script.Event
	more []*script.Delta
}

// chain is what the client sees as one run, over all its pauses.
type chain struct {
	segments Segments // nil for a run that no client asked for
	opened   int
	opening  json.RawMessage
	message  Message    // that opened it, until it is checkpointed
	tools    [][]string // declared for each segment
	pauses   []map[string]json.RawMessage
}

// decision is what an INTERRUPT asks.
type decision struct {
	id      string
	payload json.RawMessage
}

// pause is a run that waits for answers.
type pause struct {
	run     *run
	open    []decision
	answers map[string]json.RawMessage
}

// pending is pendingInterrupt of the history, nil if nothing is waited for.
func (p *pause) pending() json.RawMessage {
	if p == nil || len(p.open) == 0 {
		return nil
	}
	first := p.open[0]
	b := object{}.text("interruptId", first.id).raw("payload", first.payload)
	return b.close()
}

// thread returns a thread, and makes it if it is new. It is a *Refusal if there
// is no such thread.
func (g *Gateway) thread(id string) (*thread, error) {
	g.mu.Lock()
	t := g.threads[id]
	g.mu.Unlock()
	if t == nil {
		if !g.known(id) {
			return nil, unknownThread(id)
		}
		t = g.adopt(newThread(id, g.source.Thread(id)))
	}
	if t.setting.Unknown {
		return nil, unknownThread(id)
	}
	return t, nil
}

func newThread(id string, setting Setting) *thread {
	t := &thread{id: id, setting: setting, sockets: map[socket]bool{}, plays: map[*play]bool{}}
	t.past.begin(setting.History)
	t.remember(setting.Past)
	return t
}

// adopt adds a thread, unless there is one of its id by now.
func (g *Gateway) adopt(t *thread) *thread {
	g.mu.Lock()
	defer g.mu.Unlock()
	if there := g.threads[t.id]; there != nil {
		return there
	}
	g.threads[t.id] = t
	return t
}

func (g *Gateway) known(id string) bool {
	if g.config.KnownThreads == nil {
		return true
	}
	for _, known := range g.config.KnownThreads {
		if known == id {
			return true
		}
	}
	return g.shelves.has("conversations", id)
}

func unknownThread(id string) error {
	return refuse(protocol.ConversationNotFound, "there is no thread %q", id)
}

// newRun makes a run. The caller holds the thread's lock.
func (g *Gateway) newRun(t *thread, id string, c *chain) *run {
	r := &run{id: id, thread: t, chain: c}
	r.head = object{}.raw("v", json.RawMessage("1")).text("threadId", t.id).text("runId", id).key("sequence")
	t.run = r
	g.mu.Lock()
	g.runs[id], g.ran[id] = r, t.id
	g.mu.Unlock()
	return r
}

// object builds a JSON object, its members in the order they are given.
type object []byte

func (o object) key(name string) object {
	if len(o) == 0 {
		o = append(o, '{')
	} else {
		o = append(o, ',')
	}
	return append(append(append(o, '"'), name...), '"', ':')
}

func (o object) raw(name string, value json.RawMessage) object { return append(o.key(name), value...) }

// some adds a member unless it is empty.
func (o object) some(name string, value json.RawMessage) object {
	if len(value) == 0 {
		return o
	}
	return o.raw(name, value)
}

func (o object) text(name, value string) object { return append(o.key(name), quote(value)...) }

func (o object) close() json.RawMessage {
	if len(o) == 0 {
		return json.RawMessage("{}")
	}
	return json.RawMessage(append(o, '}'))
}
