package engine

import (
	"slices"
	"sync"
	"time"
)

// hub holds the namespaces and their rooms. Its one lock orders broadcasts: all
// members of a room get them in one order, and a session that is recovered misses
// none and gets none twice. It is never held over a write or a callback.
type hub struct {
	recovery time.Duration // how long lost sessions are kept, 0 for not at all

	mu     sync.Mutex
	spaces map[string]*space
}

// space is a namespace that somebody joined, or sent an acknowledged event in.
type space struct {
	sockets []*Socket            // in the order of joining
	rooms   map[string][]*Socket // a socket's id is a room
	ids     uint64               // the next acknowledgement id
	history *history             // nil without recovery
}

// space returns a namespace, new if need be; h.mu is held.
func (h *hub) space(name string) *space {
	sp := h.spaces[name]
	if sp == nil {
		sp = &space{rooms: make(map[string][]*Socket)}
		if h.recovery > 0 && name != plainNamespace {
			sp.history = newHistory(h.recovery)
		}
		h.spaces[name] = sp
	}
	return sp
}

func (h *hub) nextID(namespace string) uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	sp := h.space(namespace)
	sp.ids++
	return sp.ids - 1
}

// add lets a socket join its namespace and queues the packets that say so. It
// returns false if the connection has ended meanwhile.
func (h *hub) add(s *Socket, reply []packet) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.admit(s, reply)
}

// admit is add; h.mu is held.
func (h *hub) admit(s *Socket, reply []packet) bool {
	c := s.conn
	c.mu.Lock()
	alive := c.state == open
	if alive {
		c.sockets = append(c.sockets, s)
		c.due[dueConnect] = time.Time{}
		c.force(reply...)
	}
	c.mu.Unlock()
	if !alive {
		h.expel(s)
		return false
	}
	sp := h.space(s.namespace)
	sp.sockets = append(sp.sockets, s)
	s.member = true
	h.enter(s, s.id)
	return true
}

// remove takes sockets out of their namespaces and rooms. Where the reason is
// one that a client comes back from, their sessions are kept.
func (h *hub) remove(sockets []*Socket, reason string) {
	if len(sockets) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range sockets {
		if sp := h.spaces[s.namespace]; sp != nil && sp.history != nil && s.pid != "" && recoverable(reason) {
			sp.history.keep(s)
		}
		h.expel(s)
	}
}

// drop forgets a socket that was refused.
func (h *hub) drop(s *Socket) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.expel(s)
}

// expel takes a socket out of everything; h.mu is held.
func (h *hub) expel(s *Socket) {
	s.left = true
	sp := h.spaces[s.namespace]
	if sp == nil {
		return
	}
	for _, room := range s.rooms {
		sp.without(room, s)
	}
	s.rooms = nil
	if s.member {
		s.member = false
		sp.sockets = without(sp.sockets, s)
	}
}

func (h *hub) join(s *Socket, room string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.enter(s, room)
}

// enter is join; h.mu is held.
func (h *hub) enter(s *Socket, room string) {
	if s.left || slices.Contains(s.rooms, room) {
		return
	}
	sp := h.space(s.namespace)
	s.rooms = append(s.rooms, room)
	sp.rooms[room] = append(sp.rooms[room], s)
}

func (h *hub) leave(s *Socket, room string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := slices.Index(s.rooms, room)
	if at < 0 {
		return
	}
	s.rooms = slices.Delete(s.rooms, at, at+1)
	h.spaces[s.namespace].without(room, s)
}

func (sp *space) without(room string, s *Socket) {
	members := without(sp.rooms[room], s)
	if len(members) == 0 {
		delete(sp.rooms, room)
		return
	}
	sp.rooms[room] = members
}

func without(sockets []*Socket, s *Socket) []*Socket {
	if at := slices.Index(sockets, s); at >= 0 {
		return slices.Delete(sockets, at, at+1)
	}
	return sockets
}

func (h *hub) all() []*Socket {
	h.mu.Lock()
	defer h.mu.Unlock()
	names := make([]string, 0, len(h.spaces))
	for name := range h.spaces {
		names = append(names, name)
	}
	slices.Sort(names)
	var sockets []*Socket
	for _, name := range names {
		sockets = append(sockets, h.spaces[name].sockets...)
	}
	return sockets
}

// emit sends the packets that build makes to a room, "" for all sockets. They
// are encoded once, with an offset where there is recovery.
func (h *hub) emit(namespace, room string, build func(offset string) []packet) {
	h.mu.Lock()
	sp := h.spaces[namespace]
	if sp == nil {
		h.mu.Unlock()
		return
	}
	members := sp.sockets
	if room != "" {
		members = sp.rooms[room]
	}
	if len(members) == 0 && sp.history == nil {
		h.mu.Unlock()
		return
	}
	offset := ""
	if sp.history != nil {
		offset = sp.history.next()
	}
	packets := build(offset)
	if sp.history != nil {
		sp.history.add(offset, room, packets)
	}
	var full []*conn
	var few [4]*conn // most rooms are small
	conns := few[:0]
	for _, s := range members {
		if s.conn.push(packets) {
			full = append(full, s.conn)
			continue
		}
		conns = append(conns, s.conn)
	}
	h.mu.Unlock()
	for _, c := range conns {
		c.flush()
	}
	for _, c := range full {
		c.overflow()
	}
}
