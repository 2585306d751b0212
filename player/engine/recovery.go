package engine

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"
)

// historyLimit bounds the bytes of events that a namespace keeps for recovery.
// A session whose offset has been dropped is not recovered.
const historyLimit = 16 << 20

// history is what connection state recovery needs of a namespace: the events of
// the last while, and the sessions that were lost in it.
type history struct {
	window   time.Duration
	prefix   string // of offsets, so that those of another server are unknown
	count    uint64
	events   []keptEvent
	size     int
	sessions map[string]keptSession // by pid
}

type keptEvent struct {
	offset  string
	room    string
	packets []packet
	at      time.Time
}

type keptSession struct {
	id    string
	rooms []string
	at    time.Time
}

func newHistory(window time.Duration) *history {
	return &history{window: window, prefix: newID()[:4], sessions: make(map[string]keptSession)}
}

// next returns the offset of the next event.
func (h *history) next() string {
	h.count++
	return h.prefix + strconv.FormatUint(h.count, 36)
}

// add keeps an event, and drops those that are too old or too much.
func (h *history) add(offset, room string, packets []packet) {
	now := time.Now()
	h.events = append(h.events, keptEvent{offset, room, packets, now})
	h.size += weight(packets)
	drop := 0
	for drop < len(h.events)-1 && (h.size > historyLimit || now.Sub(h.events[drop].at) > h.window) {
		h.size -= weight(h.events[drop].packets)
		drop++
	}
	h.events = slices.Delete(h.events, 0, drop)
}

// keep remembers the session of a socket that is about to go.
func (h *history) keep(s *Socket) {
	now := time.Now()
	for pid, k := range h.sessions {
		if now.Sub(k.at) > h.window {
			delete(h.sessions, pid)
		}
	}
	h.sessions[s.pid] = keptSession{id: s.id, rooms: slices.Clone(s.rooms), at: now}
}

// missed returns what a session has missed since offset; false if that is not
// known any more.
func (h *history) missed(k keptSession, offset string) ([]packet, bool) {
	at := slices.IndexFunc(h.events, func(e keptEvent) bool { return e.offset == offset })
	if at < 0 {
		return nil, false
	}
	var packets []packet
	for _, e := range h.events[at+1:] {
		if e.room == "" || slices.Contains(k.rooms, e.room) {
			packets = append(packets, e.packets...)
		}
	}
	return packets, true
}

// restore joins a socket whose CONNECT names a session that was lost: what it
// missed goes out before the reply, and no broadcast comes between. It returns
// whether there is such a session, and whether it has been joined.
func (h *hub) restore(s *Socket) (found, joined bool) {
	var ask struct {
		PID    any `json:"pid"`
		Offset any `json:"offset"`
	}
	if json.Unmarshal(s.handshake.Auth, &ask) != nil {
		return false, false
	}
	pid, _ := ask.PID.(string)
	offset, _ := ask.Offset.(string)
	h.mu.Lock()
	defer h.mu.Unlock()
	sp := h.spaces[s.namespace]
	if pid == "" || offset == "" || sp == nil || sp.history == nil {
		return false, false
	}
	kept, ok := sp.history.sessions[pid]
	if !ok || time.Since(kept.at) > h.recovery {
		return false, false
	}
	packets, ok := sp.history.missed(kept, offset)
	if !ok {
		return false, false
	}
	s.id, s.pid, s.recovered = kept.id, pid, true
	if !h.admit(s, append(packets, connectReply(s.namespace, s.id, s.pid))) {
		return true, false // the session waits for another connection
	}
	delete(sp.history.sessions, pid)
	for _, room := range kept.rooms {
		h.enter(s, room)
	}
	return true, true
}

// recoverable reports whether a session that ended so can be taken up again: not
// when one side said goodbye to the namespace, or the client broke the framing.
func recoverable(reason string) bool {
	switch reason {
	case ReasonClientDisconnect, ReasonServerDisconnect, ReasonParse:
		return false
	}
	return true
}
