package wire

import (
	"time"

	"tapedeck/protocol/capture"
)

// Engine is an Engine.IO packet type, or one of the forms beside it.
type Engine uint8

// The forms of a packet. The first seven are Engine.IO's, by their digit.
const (
	EngineOpen Engine = iota
	EngineClose
	EnginePing
	EnginePong
	EngineMessage
	EngineUpgrade
	EngineNoop
	// PlainJSON is a message of the plain form, {"event": …} or {"ack": …}.
	PlainJSON
	// Opaque is what could not be read; Reason says why.
	Opaque
)

// Type is a Socket.IO packet type, by its digit. Plain messages are given the
// types Event and Ack.
type Type uint8

// The types of a Socket.IO packet.
const (
	Connect Type = iota
	Disconnect
	Event
	Ack
	ConnectError
	BinaryEvent
	BinaryAck
)

// Packet is one Engine.IO packet and the Socket.IO packet in it, or one plain
// message. Its slices are valid as long as the frame's Data is, save those of a
// packet with attachments, which are the packet's own.
type Packet struct {
	// Address is where the packet began; its attachments may stand in later
	// frames. Last is the frame that completed it.
	Address    capture.Address
	Last       capture.Position
	At         time.Duration // of the frame that completed it
	Connection capture.Position
	Direction  capture.Direction

	Engine Engine
	// Type and what follows are set if Engine is EngineMessage or PlainJSON. Of
	// an Opaque packet they hold what was read before the trouble.
	Type      Type
	Namespace string // "/" by default; "" in a plain message
	// ID is the acknowledgement id, its digits as sent; "" if there is none.
	ID string
	// Name is an event's name, unescaped. NameRaw is its JSON.
	Name    string
	NameRaw []byte
	// Args are the JSON values after the name of an event, or those of an
	// acknowledgement; for the other types, and for EngineOpen, one value or
	// none.
	Args [][]byte
	// Offset is the trailing argument that connection state recovery adds to an
	// event; it is not in Args. It is recognised once the gateway gave the
	// namespace a pid.
	Offset string
	// Attachments are the binary parts as they came; a placeholder's num counts
	// them from 0.
	Attachments [][]byte
	// Answers is the packet that an Ack answers, and Asked that packet's name;
	// zero if nobody is known to have asked.
	Answers capture.Address
	Asked   string
	// Repeated is set on an Ack whose question had been answered before.
	Repeated bool

	// Raw is the packet as it passed, its Engine.IO digit included.
	Raw []byte
	// Reason says what is wrong: why an Opaque packet could not be read, or
	// what a peer would refuse in one that could.
	Reason string
	// Fault classifies Reason, for the rules about frames.
	Fault Fault
	// Offending is the index in Raw of the byte that Reason is about, -1 if no
	// one byte is to blame.
	Offending int
}

// Fault is a class of what can be wrong with a packet.
type Fault uint8

// The faults of a packet.
const (
	// NoFault: nothing is wrong, or the bytes are another protocol's business.
	NoFault Fault = iota
	// Malformed: the Engine.IO or Socket.IO framing cannot be parsed.
	Malformed
	// BadEncoding: a text that is no UTF-8, or a payload that is no JSON.
	BadEncoding
	// BadBinary: attachments missing, out of range or out of order, too many of
	// them, or an acknowledgement id too large for its peer.
	BadBinary
	// OtherVersion: Engine.IO 3, which is relayed and not read.
	OtherVersion
)
