package tape

import (
	"time"

	"tapedeck/player/engine"
	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

// recording is what was read of a tape.
type recording struct {
	threads   []*thread
	exchanges []*exchange
	greeted   bool // a socket joined, and hello is what it was told, nil for nothing
	hello     []byte
	refusals  []engine.Refusal // of the CONNECTs before the first that was accepted
	accepted  bool
	size      int // bytes of what is kept
	remarks   []string
}

// thread is a recorded conversation, in one session.
type thread struct {
	id      string
	at      capture.Position // where it was first spoken of
	root    *segment         // what went on without a command
	current *segment         // of the latest command that was obeyed
	starts  []*start
	child   bool // a background task's own
	unknown bool // the gateway knew no such thread
	past    *snapshot
	replay  int    // the most envelopes that a truncated replay held
	seam    string // damage where replay and live stream met
}

// start is a run:start.
type start struct {
	thread  *thread
	index   int // in its thread
	at      capture.Position
	command protocol.Command
	busy    bool // the thread could not have started a run then
	refused *protocol.Failure
	first   *segment
}

// segment is a run from a command to its pause or its end, with all that went to
// its thread's room until the next command.
type segment struct {
	thread  *thread
	run     string        // "" if nothing of it came
	at      time.Duration // of the command
	items   []item
	sameRun bool              // it goes on under the id of the run that paused
	asked   []string          // the decisions that it asked
	answers map[string][]byte // to the decisions that led to it
	paused  bool
	over    bool // it paused, ended, or was forgotten
	next    *segment
	cancel  *wait // the first run:cancel that was not refused

	// checkpoint is the number of items before which the latest change of the
	// history lies, and seen how the history looked then, if a client asked.
	checkpoint int
	seen       *snapshot
}

// item is one thing that went to the room, or that was waited for.
type item struct {
	at  time.Duration
	act any // *envelope, *message, *cut, *wait, *opening, *snapshot or forget
}

// envelope is a payload of run:event.
type envelope struct {
	payload  []byte
	typ      protocol.EventType
	id       string // the message, tool call or interrupt id
	sequence int64
	stray    bool
	repeat   bool
}

// message is a message other than run:event.
type message struct {
	name        string
	args        [][]byte
	attachments [][]byte
}

// cut is the end of a socket, by the gateway or the network.
type cut struct{ politely bool }

// wait is a command that what follows it may have waited for.
type wait struct {
	command protocol.Name
	at      time.Duration
	void    bool // it was refused, or made no difference
}

// opening is a run that no client here asked for. What was streamed before the
// first client came is in its replay.
type opening struct {
	segment   *segment
	message   []byte // that opened it
	streamed  []*envelope
	truncated bool
	decision  []byte // pendingInterrupt, if that is all that is known of the run
}

// snapshot is a history as a client was told it.
type snapshot struct {
	messages    [][]byte
	todos, task []byte
}

// forget is where a gateway forgot its run.
type forget struct{}

// exchange is one HTTP request and its answer.
type exchange struct {
	method, path, query string
	head                capture.ResponseHead
	body                []byte
	flags               capture.Flags
}
