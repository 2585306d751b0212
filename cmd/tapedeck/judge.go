package main

import (
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
	"tapedeck/recorder"
)

// judge reads what passed in one session, beside the path, and says what it
// means: runs, threads and findings, for the tape's index and for whoever
// watches. It is given what the tape has, so that it holds nothing up and sees no
// secret. One goroutine at a time, since runs and reconnects cross connections.
type judge struct {
	state *conversation.State
	index func(*recorder.Index)    // the tape's; keeps nothing of what it is given
	watch func(*conversation.Step) // the live view's; may be nil
	room  recorder.Index           // of the index before, to be used again
}

// newJudge returns the judge of a session.
func newJudge(state *conversation.State, index func(*recorder.Index), watch func(*conversation.Step)) *judge {
	return &judge{state: state, index: index, watch: watch}
}

// observe judges the next frames and writes one index entry for them.
func (j *judge) observe(frames []capture.Frame) {
	x := &j.room
	*x = recorder.Index{Posts: x.Posts[:0], Findings: x.Findings[:0]}
	for i := range frames {
		f := &frames[i]
		x.Judged = f.Position
		j.collect(j.state.Observe(f), x)
	}
	j.index(finish(x, j.state))
}

// close ends the books.
func (j *judge) close() {
	x := &recorder.Index{}
	j.collect(j.state.End(), x)
	j.index(finish(x, j.state))
}

func (j *judge) collect(step *conversation.Step, x *recorder.Index) {
	add(x, step)
	if j.watch != nil {
		j.watch(step)
	}
}
