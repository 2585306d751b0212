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
	// Recorded says that the script knows a run:cancel. One that comes before
	// Since is another one, and does what the zero value does. From then on it
	// is that one: what lies before the script's Await of run:cancel is sent at
	// once, and the script goes on behind it, or goes on undisturbed if it does
	// not wait for the command.
	Recorded bool
	Since    time.Duration
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
	// Recorded is the envelope around the event, if it is one off a tape. Nil
	// leaves the envelope to the stage.
	Recorded *Recorded
}

// Delta is an event of a stream. Nearly all events of a run are deltas, which is
// why they are not written out.
type Delta struct {
	Of   *Stream
	Text json.RawMessage // a JSON string
}

// Stream is what the deltas of a text, a reasoning or a tool call share.
type Stream struct {
	Type protocol.EventType
	ID   string // as an Event's
	Head []byte // the event object, up to its delta
}

// AppendJSON appends the event object.
func (d *Delta) AppendJSON(b []byte) []byte {
	return append(append(append(b, d.Of.Head...), d.Text...), '}')
}

// EventOf returns the event that an act is, written out, and whether it is one.
func EventOf(a Act) (e Event, ok bool) {
	switch a := a.(type) {
	case Event:
		return a, true
	case *Delta:
		return Event{Type: a.Of.Type, ID: a.Of.ID, JSON: a.AppendJSON(nil), Delta: a.Text}, true
	}
	return Event{}, false
}

// Recorded is an envelope as a gateway sent it. It goes out byte for byte, its
// faults included, as long as the run goes as it went then: after a cancel or a
// detach that the recording does not know, the stage makes the envelopes.
type Recorded struct {
	Envelope json.RawMessage
	Sequence int64 // that it bears, 0 if it bears none
	Stray    bool  // it is not this run's, and counts for nothing in it
	Repeat   bool  // it is the envelope before it once more, and no replay holds it
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
	Name    string
	Payload json.RawMessage
	// Attachments follow the message, whose Args then stand in place of Payload;
	// nil is one placeholder.
	Attachments [][]byte
	Args        []json.RawMessage
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
	// Streamed are the events of the run that nobody here has heard: those with
	// a recorded envelope are in its replay, and all count for its state.
	// Truncated says that there were others before them.
	Streamed  []Event
	Truncated bool
	// Next are the segments that follow the pauses of the run; nil if none can.
	Next Segments
}

// Segments returns a run's next segment: the first, or after a pause the one
// that its answers lead to.
type Segments func(t Turn) (Script, error)

// Turn is where a run stands when its next segment is asked for.
type Turn struct {
	Run    string     // the id of the run that the segment will be
	Tools  [][]string // the client tools that were declared for each segment so far
	Pauses []map[string]json.RawMessage
}

// Remember makes the thread's history what it says, as far as it is not nil.
type Remember struct {
	Messages []json.RawMessage // all checkpointed messages, as the history shows them
	Todos    json.RawMessage
	Task     json.RawMessage // whose conversation the thread is
}

func (Event) act()    {}
func (*Delta) act()   {}
func (Send) act()     {}
func (Cut) act()      {}
func (Forget) act()   {}
func (Await) act()    {}
func (Open) act()     {}
func (Remember) act() {}
