package player

import "time"

// entry is a play that is due. It is void if the play was rescheduled since,
// which its turn tells.
type entry struct {
	due   time.Duration
	order uint64 // among equals the first comes first
	play  *play
	turn  uint64
}

// before orders entries.
func (e *entry) before(other *entry) bool {
	return e.due < other.due || e.due == other.due && e.order < other.order
}

// queue is a heap of entries. Package heap would put each in an interface, at the
// cost of two allocations an envelope.
type queue []entry

func (q *queue) push(e entry) {
	h := append(*q, e)
	*q = h
	i := len(h) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !e.before(&h[parent]) {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = e
}

// pop takes the first entry off; there must be one.
func (q *queue) pop() entry {
	h := *q
	first, last := h[0], h[len(h)-1]
	h[len(h)-1] = entry{}
	h = h[:len(h)-1]
	*q = h
	i := 0
	for child := 1; child < len(h); child = 2*i + 1 {
		if child+1 < len(h) && h[child+1].before(&h[child]) {
			child++
		}
		if !h[child].before(&last) {
			break
		}
		h[i] = h[child]
		i = child
	}
	if len(h) > 0 {
		h[i] = last
	}
	return first
}
