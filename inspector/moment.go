package inspector

import (
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
	"tapedeck/protocol/wire"
)

// Moment is one thing that passed, with what can only be said of it in its
// place. Filters are evaluated on moments, and timelines are folded from them.
// What it points to is valid as long as the step it was made from.
type Moment struct {
	// Frame is the frame that completed it. Packet is nil for a frame that
	// holds no packets, and Message for a packet that is no message.
	Frame   *capture.Frame
	Packet  *wire.Packet
	Message *protocol.Message
	// Findings are the rules that are known to be broken here.
	Findings []protocol.Finding

	Run    string              // the run it belongs to, if it says
	Thread string              // the thread it belongs to, if it says
	Status conversation.Status // of the run, after this
	Gap    time.Duration       // since the message of the same run before it
	Tool   string              // the name of the tool that it is about
	Agent  string              // the name of the subagent that it is about
	// Before is the end of what the same text, reasoning or arguments said up
	// to here, at most 256 bytes: words are found though deltas cut them.
	Before []byte
	// Replayed is set if the gateway sent it again, in a replay.
	Replayed bool

	// Command is what it asks, nil if it is no command.
	Command *protocol.Command
}

// reach is how many bytes before a delta the text of a filter may begin.
const reach = 256

// Address is where it passed.
func (m *Moment) Address() capture.Address {
	switch {
	case m.Message != nil:
		return m.Message.Address
	case m.Packet != nil:
		return m.Packet.Address
	case m.Frame != nil:
		return capture.Address{Position: m.Frame.Position}
	}
	return capture.Address{}
}

// At is when it passed, since its session began.
func (m *Moment) At() time.Duration {
	switch {
	case m.Message != nil:
		return m.Message.At
	case m.Packet != nil:
		return m.Packet.At
	case m.Frame != nil:
		return m.Frame.At
	}
	return 0
}

// Connection is the connection that it passed on, 0 if there is none.
func (m *Moment) Connection() capture.Position {
	switch {
	case m.Message != nil:
		return m.Message.Connection
	case m.Packet != nil:
		return m.Packet.Connection
	case m.Frame != nil:
		return m.Frame.Connection
	}
	return 0
}

// Direction says who sent it, 0 for a mark.
func (m *Moment) Direction() capture.Direction {
	switch {
	case m.Message != nil:
		return m.Message.Direction
	case m.Packet != nil:
		return m.Packet.Direction
	case m.Frame != nil:
		return m.Frame.Direction
	}
	return 0
}

// Bytes are what a person would search in it: a message's payload, a packet, or
// a frame's data.
func (m *Moment) Bytes() []byte {
	switch {
	case m.Message != nil:
		return m.Message.Payload
	case m.Packet != nil:
		return m.Packet.Raw
	case m.Frame != nil:
		return m.Frame.Data
	}
	return nil
}

// Size is the number of those bytes, as they passed.
func (m *Moment) Size() int64 {
	if m.Message == nil && m.Packet == nil && m.Frame != nil {
		return m.Frame.Size
	}
	return int64(len(m.Bytes()))
}

// Source says where it came from: "live", "replay", "imported", or from the
// proxy's own doing, "injected" or "withheld".
func (m *Moment) Source() string {
	if m.Replayed {
		return "replay"
	}
	if m.Frame != nil {
		switch {
		case m.Frame.Flags.Has(capture.Injected):
			return "injected"
		case m.Frame.Flags.Has(capture.Withheld):
			return "withheld"
		case m.Frame.Flags.Has(capture.Imported):
			return "imported"
		}
	}
	return "live"
}

func (m *Moment) event() *protocol.Event {
	if m.Message == nil || m.Message.Envelope == nil {
		return nil
	}
	return &m.Message.Envelope.Event
}

func (m *Moment) sequence() int64 {
	if m.Message == nil || m.Message.Envelope == nil {
		return 0
	}
	return m.Message.Envelope.Sequence
}
