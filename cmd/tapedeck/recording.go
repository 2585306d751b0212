package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
	"tapedeck/recorder"
	"tapedeck/recorder/live"
)

// recording is a session that is being recorded: the tape, the judge beside it,
// and the control socket by which others read the tape meanwhile. It is the
// proxy's Sink.
type recording struct {
	session capture.Session
	writer  *recorder.Writer
	judge   *judge
	gate    *enforcer // nil if nothing is enforced
	start   time.Time

	stopLive context.CancelFunc
	liveDone chan error
}

// recordingOptions say what to record, and who watches.
type recordingOptions struct {
	path    string
	session capture.Session
	writer  recorder.WriterOptions
	judge   conversation.Options
	watch   func(*conversation.Step) // may be nil
}

// startRecording opens the tape and begins the session on it.
func startRecording(o recordingOptions) (*recording, error) {
	r := &recording{session: o.session, start: time.Now(), liveDone: make(chan error, 1)}
	r.session.Started = r.start
	r.session.Tool = version()
	o.writer.Observe = func(frames []capture.Frame) { r.judge.observe(frames) }
	var err error
	if r.writer, err = recorder.OpenWriter(o.path, &r.session, o.writer); err != nil {
		return nil, err
	}
	listener, err := live.Listen(o.path)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the control socket: %w", err), r.writer.Close(0))
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.stopLive = cancel
	go func() { r.liveDone <- live.Serve(ctx, listener, r.writer.Reader(), r.writer.SetMark) }()
	o.judge.Session = r.session.ID
	r.judge = newJudge(conversation.New(o.judge), r.writer.Index, o.watch)
	return r, nil
}

// Frame gives what passed to the tape, and that to the judge: both see the same
// bytes, without secrets, so that what is shown live is what the tape says later.
func (r *recording) Frame(f *capture.Frame) {
	r.writer.Frame(f)
	if r.gate != nil {
		r.gate.Frame(f)
	}
}

// close judges and commits what is left. Nothing may pass any more.
func (r *recording) close() error {
	r.writer.Drain()
	r.judge.close()
	err := r.writer.Close(time.Since(r.start))
	r.stopLive()
	return errors.Join(err, <-r.liveDone)
}

// settle judges what was recorded and not judged, since the recorder was
// killed. It needs to write to the tape.
func settle(ctx context.Context, path string, sessions []capture.Session, o conversation.Options) error {
	for _, s := range sessions {
		if err := settleSession(ctx, path, s, o); err != nil {
			return fmt.Errorf("judge session %d of %q: %w", s.ID, path, err)
		}
	}
	return nil
}

// settlePage is how many frames are read at once.
const settlePage = 4096

func settleSession(ctx context.Context, path string, s capture.Session, o conversation.Options) (err error) {
	x, err := recorder.OpenIndexer(path, s.ID)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	o.Session = s.ID
	state := conversation.New(o)
	for position := s.First; position <= s.Last; {
		page, err := x.Reader().Frames(ctx, position, min(settlePage, int(s.Last-position)+1))
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}
		index := &recorder.Index{Judged: page[len(page)-1].Position}
		for i := range page {
			add(index, state.Observe(&page[i]))
		}
		if err := x.Index(finish(index, state)); err != nil {
			return err
		}
		position = index.Judged + 1
	}
	index := &recorder.Index{Judged: s.Last}
	add(index, state.End())
	return x.Index(finish(index, state))
}

// add puts what a step told into an index entry, and finish the summaries that
// changed.
func add(x *recorder.Index, step *conversation.Step) {
	x.Posts = append(x.Posts, step.Posts...)
	x.Findings = append(x.Findings, step.Findings...)
}

func finish(x *recorder.Index, state *conversation.State) *recorder.Index {
	x.Runs, x.Threads = state.Changed(), state.ChangedThreads()
	return x
}
