package conversation

import (
	"bytes"
	"encoding/json"
	"hash/maphash"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

// record remembers which envelopes of a run were seen, so that a second
// delivery can be compared with the first. It is a ring over the sequences and
// forgets the oldest.
type record struct {
	slots []delivery
}

// delivery is the first delivery of an envelope.
type delivery struct {
	sequence int64
	what     uint64 // a hash of what it says
	at       capture.Address
	live     bool // it was delivered live, to any socket
}

const (
	firstSlots = 16
	maxSlots   = 1 << 13
)

// get returns the delivery of a sequence, nil if none is remembered.
func (r *record) get(sequence int64) *delivery {
	if len(r.slots) == 0 {
		return nil
	}
	if d := &r.slots[sequence&int64(len(r.slots)-1)]; d.sequence == sequence {
		return d
	}
	return nil
}

// put remembers a delivery.
func (r *record) put(d delivery) {
	if len(r.slots) == 0 {
		r.slots = make([]delivery, firstSlots)
	}
	for len(r.slots) < maxSlots {
		if old := r.slots[d.sequence&int64(len(r.slots)-1)]; old.sequence == 0 || old.sequence == d.sequence {
			break
		}
		grown := record{make([]delivery, 2*len(r.slots))}
		for _, old := range r.slots {
			if old.sequence != 0 {
				grown.slots[old.sequence&int64(len(grown.slots)-1)] = old
			}
		}
		r.slots = grown.slots
	}
	r.slots[d.sequence&int64(len(r.slots)-1)] = d
}

// hash says what an event says, whatever the spelling: the order of an object's
// members and the way its strings are escaped make no difference, since a
// gateway may keep its replay in a store that changes them. So two events
// compare equal that a client could not tell apart.
func (s *State) hash(e *protocol.Event) uint64 {
	h := maphash.String(s.seed, string(e.Type))
	for _, field := range [...]string{
		e.MessageID, e.Role, e.Delta, e.ToolCallID, e.ToolCallName, e.ParentMessageID, e.InterruptID,
		e.TaskID, e.ChildThreadID, e.SubagentName, e.Status, e.Code, e.Message,
	} {
		h *= 0x9E3779B97F4A7C15 // so that a text in another field is another event
		if field != "" {
			h ^= maphash.String(s.seed, field)
		}
	}
	if e.Detached {
		h++
	}
	if e.Body != nil {
		h = h*0x9E3779B97F4A7C15 ^ s.hashJSON(e.Body)
	} else if !known(e.Type) {
		h ^= s.hashJSON(e.Raw)
	}
	return h
}

// hashJSON hashes a value whatever its spelling.
func (s *State) hashJSON(value []byte) uint64 {
	return maphash.Bytes(s.seed, canonical(value))
}

// canonical returns a JSON value with the members of its objects sorted and its
// strings spelled in one way; what is no JSON it returns as it is.
func canonical(value []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return bytes.TrimSpace(value)
	}
	spelled, err := json.Marshal(v)
	if err != nil {
		return bytes.TrimSpace(value)
	}
	return spelled
}
