package inspector

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// News is something that a [Screen] loaded in the background. It is given back
// to the screen's Take.
type News struct {
	job  jobKind
	turn int
	take func(*Screen)
}

// jobKind is a kind of work in the background. There is one of a kind at a
// time: another one ends it.
type jobKind uint8

const (
	watchJob   jobKind = iota // sessions and runs
	filmJob                   // a run's frames
	momentJob                 // one message, whole
	readerJob                 // what a client would show
	exportJob                 // a run's own tape
	markJob                   // the user's marks
	compareJob                // two runs' normal forms
	serveJob                  // a mock gateway
	jobKinds
)

// loader does a screen's work in the background. What it finds comes as news,
// one at a time: nothing is read ahead of what was taken. All its methods but
// those of the jobs belong to the screen's goroutine.
type loader struct {
	source Source
	ctx    context.Context // of all jobs; ends with close
	cancel context.CancelFunc
	news   chan News
	wg     sync.WaitGroup
	jobs   [jobKinds]struct {
		turn   int
		busy   bool
		cancel context.CancelFunc
	}
}

func newLoader(ctx context.Context, source Source) *loader {
	l := &loader{source: source, news: make(chan News)}
	l.ctx, l.cancel = context.WithCancel(ctx)
	return l
}

// close ends all jobs and waits for them.
func (l *loader) close() {
	l.cancel()
	l.wg.Wait()
}

// teller brings news of a job to the screen. It reports false once the job is
// no longer wanted.
type teller func(take func(*Screen)) bool

// start begins a job, and ends the one of its kind that was at work.
func (l *loader) start(kind jobKind, job func(context.Context, teller)) {
	l.stop(kind)
	j := &l.jobs[kind]
	ctx, cancel := context.WithCancel(l.ctx)
	j.busy, j.cancel = true, cancel
	turn := j.turn
	tell := func(take func(*Screen)) bool {
		select {
		case l.news <- News{kind, turn, take}:
			return true
		case <-ctx.Done():
			return false
		}
	}
	l.wg.Go(func() {
		defer cancel()
		// A panic goes on where the terminal can be restored before it ends
		// the process.
		defer func() {
			if fault := recover(); fault != nil {
				text := fmt.Sprintf("%v\n\n%s", fault, debug.Stack())
				tell(func(*Screen) { panic(text) })
			}
		}()
		job(ctx, tell)
	})
}

// stop ends a job. News of it that are on their way are dropped.
func (l *loader) stop(kind jobKind) {
	j := &l.jobs[kind]
	if j.cancel != nil {
		j.cancel()
	}
	j.turn++
	j.busy, j.cancel = false, nil
}

// busy reports whether a job will bring news without being asked again.
func (l *loader) busy(kind jobKind) bool { return l.jobs[kind].busy }

// settled notes that it will not.
func (l *loader) settled(kind jobKind) { l.jobs[kind].busy = false }

// liveEvery is how often a session that goes on is asked for what is new.
const liveEvery = 200 * time.Millisecond

// watch reads the runs, and again whenever the sessions have changed.
func (l *loader) watch(ctx context.Context, tell teller, poke <-chan struct{}) {
	var last []capture.Session
	live := false
	for first := true; ; first = false {
		sessions, err := l.source.Sessions(ctx)
		if err != nil || first || !slices.Equal(sessions, last) {
			var runs []conversation.Run
			if err == nil {
				runs, err = LoadRuns(ctx, l.source)
			}
			last = sessions
			if !tell(func(s *Screen) { s.setRuns(sessions, runs, err) }) {
				return
			}
		}
		var again <-chan time.Time
		switch {
		case err == nil && isLive(sessions):
			live, again = true, time.After(liveEvery)
		case err != nil && live: // the proxy may have ended, or be back soon
			again = time.After(5 * liveEvery)
		}
		select {
		case <-ctx.Done():
			return
		case <-poke:
			last = nil
		case <-again:
		}
	}
}

// isLive reports whether the last session goes on, as far as its tape says.
func isLive(sessions []capture.Session) bool {
	return len(sessions) > 0 && sessions[len(sessions)-1].Live
}

// A batch is what is folded in at a time: a key waits no longer than it takes.
const (
	batchFrames = 256
	batchBytes  = 1 << 20
)

// loadFilm reads the frames of a chain of runs, and goes on with those that
// come: each chain that more brings is the same with what is new.
func (l *loader) loadFilm(ctx context.Context, tell teller, chain []conversation.Run, more <-chan []conversation.Run) {
	m := newMerge(chain)
	fail := func(err error) {
		tell(func(s *Screen) { s.filmFailed(err) })
	}
	for {
		found, err := RunFindings(ctx, l.source, chain)
		if err != nil {
			fail(err)
			return
		}
		current := chain
		if !tell(func(s *Screen) { s.filmLearns(current, found) }) {
			return
		}
		for {
			batch, err := m.batch(ctx, l.source)
			if err != nil {
				fail(err)
				return
			}
			if len(batch) == 0 {
				break
			}
			if !tell(func(s *Screen) { s.filmGrows(batch) }) {
				return
			}
		}
		if !tell((*Screen).filmWhole) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case chain = <-more:
			m.extend(chain)
		}
	}
}

// merge reads the frames of some runs in the order of their positions, each
// once, and can be asked again when there are more.
type merge struct {
	pagers []pager
	last   capture.Position
	opened map[capture.Position]bool
	ahead  *capture.Frame // waits behind the beginning of its connection
}

func newMerge(chain []conversation.Run) *merge {
	m := &merge{opened: map[capture.Position]bool{}}
	m.extend(chain)
	return m
}

// extend adds the runs that are new, and has the others asked again.
func (m *merge) extend(chain []conversation.Run) {
	for _, r := range chain {
		key := conversation.RunKey{Session: r.Session, Run: r.ID}
		i := slices.IndexFunc(m.pagers, func(p pager) bool { return p.run == key })
		if i < 0 {
			m.pagers = append(m.pagers, pager{run: key})
		} else {
			m.pagers[i].done = false
		}
	}
}

// next returns the next frame, nil if there is none yet.
func (m *merge) next(ctx context.Context, src Source) (*capture.Frame, error) {
	if f := m.ahead; f != nil {
		m.ahead = nil
		return f, nil
	}
	var next *capture.Frame
	for i := range m.pagers {
		p := &m.pagers[i]
		f, err := p.peek(ctx, src)
		for err == nil && f != nil && f.Position <= m.last {
			p.page = p.page[1:]
			f, err = p.peek(ctx, src)
		}
		if err != nil {
			return nil, err
		}
		if f != nil && (next == nil || f.Position < next.Position) {
			next = f
		}
	}
	if next == nil {
		return nil, nil
	}
	m.last = next.Position
	if next.Kind == capture.Open {
		m.opened[next.Position] = true
	} else if c := next.Connection; c != 0 && !m.opened[c] {
		// A window that joined a run that is being followed: its beginning
		// was posted behind our back.
		m.opened[c] = true
		open, err := src.Frames(ctx, c, 1)
		if err != nil {
			return nil, fmt.Errorf("read frame %d: %w", c, err)
		}
		if len(open) == 1 && open[0].Position == c {
			m.ahead = next
			return &open[0], nil
		}
	}
	return next, nil
}

func (m *merge) batch(ctx context.Context, src Source) ([]capture.Frame, error) {
	var batch []capture.Frame
	for size := 0; len(batch) < batchFrames && size < batchBytes; {
		f, err := m.next(ctx, src)
		if err != nil || f == nil {
			return batch, err
		}
		batch = append(batch, *f)
		size += len(f.Data)
	}
	return batch, nil
}

// loadMoment reads what stands at an address. Before, the beginnings of its
// connection and of its row are read: an answer is known by what it answers.
func (l *loader) loadMoment(ctx context.Context, at, before capture.Address) (*Moment, error) {
	frames, err := l.source.Frames(ctx, at.Position, 1)
	if err != nil {
		return nil, fmt.Errorf("read frame %d: %w", at.Position, err)
	}
	if len(frames) == 0 || frames[0].Position != at.Position {
		return nil, nothingf("there is no frame #%d", at.Position)
	}
	feed := NewFeed([]protocol.Finding{})
	for _, p := range []capture.Position{frames[0].Connection, frames[0].Exchange, before.Position} {
		if p == 0 || p >= at.Position {
			continue
		}
		if f, err := l.source.Frames(ctx, p, 1); err == nil && len(f) == 1 {
			feed.Frame(&f[0])
		}
	}
	for read := 0; read < maxAhead; {
		for i := range frames {
			if frames[i].Position != at.Position && frames[i].Connection != frames[0].Connection {
				continue
			}
			for _, m := range feed.Frame(&frames[i]) {
				if samePlace(m.Address(), at) {
					kept := keep(&m)
					return &kept, nil
				}
			}
		}
		// Its attachments are in the frames behind it.
		read += len(frames)
		next := frames[len(frames)-1].Position + 1
		more, err := l.source.Frames(ctx, next, maxAhead)
		if err != nil {
			return nil, fmt.Errorf("read frame %d: %w", next, err)
		}
		if len(more) == 0 {
			break
		}
		frames = append(frames[:1:1], more...)
	}
	return &Moment{Frame: &frames[0]}, nil
}
