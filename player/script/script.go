// Package script is what the player's sources and its stage say to each other:
// a source answers a command with a [Script], the stage plays it.
//
// A script is one segment of a run, from its beginning or its resumption to its
// pause or its end. Its cues stand at times counted from the script's own
// beginning, so that nothing adds up to a drift. It knows nothing of sockets,
// rooms or sequences: those are the stage's.
package script

import (
	"encoding/json"
	"time"

	"tapedeck/protocol"
)

// Script is a segment of a run. The zero value is a segment without events.
type Script struct {
	// Cues are in the order of their times.
	Cues []Cue
	// SameRun lets a resumed segment go on under the id of the run that paused.
	// Else it is a run of its own.
	SameRun bool
	// OnCancel says what a run:cancel does.
	OnCancel Cancel
}

// Cancel is what a run:cancel does to a script. The zero value ends the run
// with RUN_CANCELLED at once.
type Cancel struct {
	// Ignore accepts the command and plays on.
	Ignore bool
	// Instead, if it is not nil, is played in place of what is left. Times
	// count from the command.
	Instead []Cue
}

// Cue is one act and its time.
type Cue struct {
	At  time.Duration // since the script began, at speed 1
	Act Act
	// Lane is the tool call id of the subagent that acts, "" for the run itself.
	// Nested subagents are parted by "/", the outermost first. run:detach moves
	// a lane to the background.
	Lane string
}

// Act is what the stage does at a cue: one of the types of this file.
type Act interface{ act() }

// Event is an event of the run: an envelope to the thread's room.
type Event struct {
	Type protocol.EventType
	// ID is the message, tool call or interrupt id that the event is about.
	ID string
	// JSON is the event object, byte for byte.
	JSON json.RawMessage
	// Delta is the event's delta, a JSON string, if it has one.
	Delta json.RawMessage
	// Warp damages the envelope. Nil leaves it right.
	Warp *Warp
}

// Warp says what of an envelope is not as it should be. Zero fields are as they
// should be.
type Warp struct {
	Version  int
	Thread   string
	Run      string
	Sequence int64 // this number instead; the run's own count stays as it was
	Skip     int64 // numbers left out before it
	Repeat   bool  // the last envelope once more, byte for byte; the event does not count
	Extra    json.RawMessage
}

// Send is a message other than an envelope, to the thread's room.
type Send struct {
	Name        string
	Payload     json.RawMessage
	Attachments [][]byte
}

// Cut ends the sockets in the thread's room: as a broken network does, or with
// Politely as a gateway that closes.
type Cut struct{ Politely bool }

// Forget makes the gateway forget the thread's run in flight, as a restart does.
// What was checkpointed stays.
type Forget struct{}

// Await stops the clock until a client sends a command in this thread, or until
// Within has passed, if it is not 0.
type Await struct {
	Command protocol.Name
	Within  time.Duration
}

// Open starts a run that no client asked for.
type Open struct {
	// Thread is the thread's id, "" for this one.
	Thread string
	// Run and Message are the ids of the run and of the message that opened it.
	Run     string
	Message json.RawMessage
	Script  Script
}

func (Event) act()  {}
func (Send) act()   {}
func (Cut) act()    {}
func (Forget) act() {}
func (Await) act()  {}
func (Open) act()   {}
