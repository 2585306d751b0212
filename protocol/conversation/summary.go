package conversation

import (
	"strings"
	"time"
	"unicode/utf8"

	"tapedeck/protocol/capture"
)

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

const (
	inputRunes = 120 // of Run.Input
	pulseParts = 10  // of Run.Pulse
	pulseBins  = 64  // kept while a run goes on

	// longestRun keeps the stamps of a hostile file from overflowing.
	longestRun = 1 << 56 * time.Nanosecond
)

// beginning returns the first line of text, cut for a list.
func beginning(text string) string {
	text = strings.TrimSpace(text)
	if i := strings.IndexAny(text, "\r\n"); i >= 0 {
		text = text[:i]
	}
	n := 0
	for i := range text {
		if n++; n > inputRunes {
			return strings.Clone(text[:i]) + "…"
		}
	}
	if !utf8.ValidString(text) {
		return strings.ToValidUTF8(text, "\uFFFD")
	}
	return strings.Clone(text)
}

// pulse counts envelopes in bins whose width doubles as a run grows, so that it
// takes the same room for a second and for a day.
type pulse struct {
	bins  [pulseBins]int32
	width time.Duration
}

// add counts an envelope that came so long after the run began.
func (p *pulse) add(after time.Duration) {
	if p.width == 0 {
		p.width = time.Millisecond
	}
	after = min(max(after, 0), longestRun)
	for after >= p.width*pulseBins {
		for i := range pulseBins / 2 {
			p.bins[i] = p.bins[2*i] + p.bins[2*i+1]
		}
		clear(p.bins[pulseBins/2:])
		p.width *= 2
	}
	p.bins[after/p.width]++
}

// parts spreads the bins over equal parts of the run's time. Each bin goes to
// the part in which its middle lies, so the sum is kept.
func (p *pulse) parts(whole time.Duration) []int {
	if p.width == 0 {
		return nil
	}
	parts := make([]int, pulseParts)
	for i, n := range p.bins {
		part := pulseParts - 1
		if middle := time.Duration(i)*p.width + p.width/2; whole > 0 && middle < whole {
			part = int(middle * pulseParts / whole)
		}
		parts[part] += int(n)
	}
	return parts
}
