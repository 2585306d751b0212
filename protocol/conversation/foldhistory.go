package conversation

import (
	"bytes"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

// answer takes an acknowledgement: the thread's history, or a refusal.
func (f *Fold) answer(m *protocol.Message) bool {
	if m.Name != protocol.ThreadMessages {
		return false
	}
	if _, is := f.answers[m.Answers]; !is {
		return false
	}
	delete(f.answers, m.Answers)
	h, ok := protocol.ReadHistory(m.Payload)
	if !ok || !h.OK {
		return true
	}
	f.stored = true
	for i := range h.Messages {
		if b := f.storedMessage(&h.Messages[i]); b != nil {
			f.before(b, h.Messages[i+1:])
		}
	}
	if h.Todos != nil {
		f.todos = readTodos(h.Todos)
	}
	if h.Task != nil {
		f.task = bytes.Clone(h.Task)
	}
	f.replay(m, &h)
	f.stored = false
	if !h.Replaying {
		f.settle(m)
	}
	return true
}

// before moves a block to where the history has it: before the first of those
// that follow it there and stood here already.
func (f *Fold) before(b *block, following []protocol.HistoryMessage) {
	for i := range following {
		m := &following[i]
		next := f.find(historyKind(m), m.ID)
		if next == nil || m.ID == "" {
			continue
		}
		behind := next.rank - 1
		for j := range f.blocks {
			if rank := f.blocks[j].rank; rank < next.rank {
				behind = max(behind, rank)
			}
		}
		b.rank, f.reordered = (behind+next.rank)/2, true
		return
	}
}

func historyKind(m *protocol.HistoryMessage) BlockKind {
	if m.Role == "user" {
		return UserBlock
	}
	return TextBlock
}

// storedMessage shows a message of the history that did not pass live, and
// completes one that broke off while nobody watched. It returns the block that it
// made, nil if the message stands there already.
func (f *Fold) storedMessage(m *protocol.HistoryMessage) *block {
	kind := historyKind(m)
	content := contentText(m.Content)
	if b := f.find(kind, m.ID); b != nil && m.ID != "" {
		if b.Open && len(content) > len(b.text) {
			b.text, b.Text, b.joiner = []byte(content), "", joiner{}
			f.touch(b)
		}
		return nil
	}
	if f.shown(kind, content) {
		return nil // under an id of its own
	}
	return f.add(Block{Kind: kind, ID: m.ID, Role: m.Role, Text: content})
}

// shown reports whether a text stands there already: a history may give its
// messages other ids than the stream did.
func (f *Fold) shown(kind BlockKind, content string) bool {
	for i := range f.blocks {
		b := &f.blocks[i]
		if b.Kind == kind && !b.Stored && string(b.text) == content {
			return true
		}
	}
	return false
}

// replay folds the envelopes of a replay in, through the same path as the live
// stream.
func (f *Fold) replay(m *protocol.Message, h *protocol.History) {
	for _, raw := range h.Envelopes {
		envelope := protocol.Message{
			Address: m.Address, At: m.At, Connection: m.Connection, Direction: capture.FromGateway,
			Name: protocol.RunEvent, Payload: raw, Envelope: &f.scratch,
		}
		f.reader.Validate(&envelope, nil)
		f.envelope(envelope.Envelope, len(raw), false)
	}
}

// settle takes note that no run is in flight: what was open has ended unseen.
func (f *Fold) settle(m *protocol.Message) {
	for _, l := range f.runs {
		s := l.last()
		if s.Status != Running || s.To.Compare(m.Answers) > 0 {
			continue // it ended, or began after the question
		}
		s.Status = Truncated
		for i := min(l.first, len(f.blocks)); i < len(f.blocks); i++ {
			if b := &f.blocks[i]; b.Open && b.Run == s.Run {
				f.flush(b)
				b.Open = false
			}
		}
	}
}
