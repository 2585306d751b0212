package conversation

import (
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/wire"
)

// State is what is known of a session after the frames seen so far. Use New.
type State struct{}

// New returns the state of a session of which nothing was seen yet.
func New() *State { return &State{} }

// Step is what one frame told. It is valid until the next call of Observe.
type Step struct {
	Frame *capture.Frame
	// Packets are the packets that the frame completed.
	Packets []wire.Packet
	// Messages are those among them that are the protocol's.
	Messages []protocol.Message
	// Posts say which frames belong to which run. A frame may be posted later
	// than it passed: a run:start is, once the run that it started is known.
	Posts []Post
	// Findings are the rules that were broken.
	Findings []protocol.Finding
}

// Post says that a frame belongs to a run.
type Post struct {
	Run      RunKey
	Position capture.Position
}

// RunKey names a run within a tape: a run id is the gateway's, and may come
// again in another session.
type RunKey struct {
	Session capture.SessionID `json:"session"`
	Run     string            `json:"run"`
}

// Status is how a run stands.
type Status string

// The statuses of a run.
const (
	Running   Status = "running"
	Paused    Status = "paused"
	Finished  Status = "finished"
	Cancelled Status = "cancelled"
	Failed    Status = "error"
	Truncated Status = "truncated" // it broke off: no end came
)

// Run is a run's summary.
type Run struct {
	Session capture.SessionID `json:"session"`
	ID      string            `json:"id"`
	Thread  string            `json:"thread"`
	Status  Status            `json:"status"`
	// Input is the beginning of what the user asked, for lists.
	Input string `json:"input,omitempty"`
	// First and Last are the first and the last frame posted to it.
	First   capture.Position `json:"first"`
	Last    capture.Position `json:"last"`
	Started time.Duration    `json:"started"`         // since the session began
	Ended   time.Duration    `json:"ended,omitempty"` // of its last envelope
	// FirstToken is from the command, or from RUN_STARTED if no command was
	// seen, to the first delta; -1 if there was none.
	FirstToken time.Duration `json:"firstToken"`
	// Human is the time in which a decision was waited for.
	Human     time.Duration `json:"human,omitempty"`
	Envelopes int           `json:"envelopes"`           // delivered live; replayed ones do not count
	Bytes     int64         `json:"bytes"`               // of those envelopes
	Waiting   string        `json:"waiting,omitempty"`   // the interrupt id it waits on
	Continues string        `json:"continues,omitempty"` // the run whose pause this one resumes
	Errors    int           `json:"errors,omitempty"`
	Warnings  int           `json:"warnings,omitempty"`
	Notes     int           `json:"notes,omitempty"`
	// Pulse counts envelopes over ten equal parts of the run's time, for a
	// sparkline.
	Pulse []int `json:"pulse,omitempty"`
}

// Thread is a thread's summary.
type Thread struct {
	ID       string           `json:"id"`
	Runs     int              `json:"runs"`
	First    capture.Position `json:"first"`
	Last     capture.Position `json:"last"`
	Status   Status           `json:"status"` // of its latest run
	Errors   int              `json:"errors,omitempty"`
	Warnings int              `json:"warnings,omitempty"`
	Task     bool             `json:"task,omitempty"` // a background task's own conversation
}

// Observe takes the next frame.
func (s *State) Observe(f *capture.Frame) *Step { return &Step{Frame: f} }

// Changed returns the runs whose summaries changed since the last call.
func (s *State) Changed() []*Run { return nil }

// End closes the books when the recording stops, and returns what can only be
// said then.
func (s *State) End() *Step { return &Step{} }
