package driver

import (
	"fmt"
	"slices"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

// Result is what came of a drive.
type Result struct {
	// Suffix made the ids that the client chose.
	Suffix string
	// Steps are what the client did and left out: by client, in order.
	Steps []Step
	// Divergences are where the live gateway led the client another way.
	Divergences []Divergence
	// Runs are the recorded runs beside the live ones, by thread, in order. A
	// run that goes on under its id after a pause is there once for each part.
	Runs []Run
	// Notes are what else was otherwise, and is no divergence.
	Notes []string
}

// Step is something that the recorded client did.
type Step struct {
	At capture.Address // on the tape
	// Name is that of the message, if it is a Message; else it is "connect",
	// "leave", "network failure" or "end by the gateway".
	Name    string
	Message bool
	Thread  string // the recorded id, "" for none
	Window  int    // counted from 1
	Done    bool
	Why     string // it was left out
}

// Divergence is a place where the recorded client could not go on as recorded,
// or where the gateway took a message otherwise.
type Divergence struct {
	Thread string          // the recorded id, "" for none
	At     capture.Address // of what the client did then
	Name   string          // of it, as in Step
	Waited string          // what it waited for, "" for nothing
	Cause  capture.Address // where that came in the recording
	Got    string          // what came instead
}

// String is the divergence in a line.
func (d Divergence) String() string {
	s := d.Got
	if d.Waited != "" {
		cause := ""
		if !d.Cause.IsZero() {
			cause = fmt.Sprintf(" (#%s)", d.Cause)
		}
		s = fmt.Sprintf("waited for %s%s: %s", d.Waited, cause, d.Got)
	}
	if d.At.IsZero() {
		return s
	}
	return fmt.Sprintf("#%s %s: %s", d.At, d.Name, s)
}

// Run is a recorded run and the live one that stands for it; either may be
// missing, and its id is "" then.
type Run struct {
	Thread, LiveThread string
	ID, LiveID         string
	// End and LiveEnd are how they ended, "" if the client did not see it.
	End, LiveEnd protocol.EventType
}

// Sent returns how many messages were sent, and how many left out.
func (r *Result) Sent() (sent, skipped int) {
	for _, s := range r.Steps {
		switch {
		case !s.Message:
		case s.Done:
			sent++
		default:
			skipped++
		}
	}
	return sent, skipped
}

// report adds what came of a party.
func (p *player) report(r *Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.Steps = append(r.Steps, p.steps...)
	r.Divergences = append(r.Divergences, p.divergences...)
	for _, note := range p.notes {
		if !slices.Contains(r.Notes, note) {
			r.Notes = append(r.Notes, note)
		}
	}
	names := map[string]string{}
	for live, recorded := range p.alias {
		names[recorded] = live
	}
	for _, id := range p.party.threads {
		r.Runs = append(r.Runs, pairs(id, names[id], p.recorded.threads[id], p.story.threads[id])...)
	}
}

func pairs(id, liveID string, recorded, live *thread) []Run {
	var a, b []*segment
	if recorded != nil {
		a = recorded.segments
	}
	if live != nil {
		b = live.segments
	}
	runs := make([]Run, max(len(a), len(b)))
	for i := range runs {
		x := &runs[i]
		x.Thread, x.LiveThread = id, liveID
		if i < len(a) {
			x.ID, x.End = a[i].run, a[i].end
		}
		if i < len(b) {
			x.LiveID, x.LiveEnd = b[i].run, b[i].end
		}
	}
	return runs
}
