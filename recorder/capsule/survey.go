package capsule

import (
	"context"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// survey is what a session's frames say about where its runs are, and what the
// judge says of it as a whole.
type survey struct {
	wanted
	all   *set // every frame that is there
	spans map[string]*span
	// posted are the frames posted to the wanted runs: among them what their
	// connections need to be read.
	posted map[string]*set
	// commands are the connections of the clients' commands, by position: a
	// command is posted once it is known which run it began.
	commands map[capture.Position]capture.Position
	joins    []join
	// before are the frames of a connection's first exchange that passed before it
	// had a number.
	before   map[capture.Position][]capture.Position
	pending  map[capture.Position][]capture.Position // the same, of exchanges that no connection is known of
	verdict  verdict
	firstGap capture.Position
}

// span is where a run is: from its command to its last frame.
type span struct {
	from, to    capture.Position
	connections map[capture.Position]bool
}

func (s *span) add(at, connection capture.Position) {
	if s.from == 0 || at < s.from {
		s.from = at
	}
	s.to = max(s.to, at)
	if connection != 0 {
		s.connections[connection] = true
	}
}

// join is a thread:messages of a wanted thread, and its answer.
type join struct {
	connection  capture.Position
	thread      string
	asked       [2]capture.Position // the first and the last frame of it
	answered    [2]capture.Position
	askedPacket capture.Address
}

// take reads a whole session.
func take(ctx context.Context, src Source, w wanted, tick func()) (*survey, error) {
	s := &survey{
		wanted: w, all: newSet(), spans: map[string]*span{}, posted: map[string]*set{},
		commands: map[capture.Position]capture.Position{}, before: map[capture.Position][]capture.Position{},
		pending: map[capture.Position][]capture.Position{}, verdict: newVerdict(),
	}
	if w.runs == nil {
		for f, err := range framesOf(ctx, src, &w.session) {
			if err != nil {
				return nil, err
			}
			s.all.add(f.Position)
			tick()
		}
		return s, nil
	}
	state := conversation.New(conversation.Options{Session: w.session.ID})
	for f, err := range framesOf(ctx, src, &w.session) {
		if err != nil {
			return nil, err
		}
		s.frame(f, state.Observe(f))
		s.verdict.runs(state.Changed())
		state.ChangedThreads()
		tick()
	}
	s.step(nil, state.End())
	s.verdict.runs(state.Changed())
	return s, nil
}

func (s *survey) frame(f *capture.Frame, step *conversation.Step) {
	s.all.add(f.Position)
	switch {
	case f.Kind == capture.Gap && s.firstGap == 0:
		s.firstGap = f.Position
	case f.Exchange != 0 && f.Connection == 0:
		s.pending[f.Exchange] = append(s.pending[f.Exchange], f.Position)
		if f.Kind == capture.Done {
			delete(s.pending, f.Exchange)
		}
	case f.Exchange != 0:
		if early := s.pending[f.Exchange]; early != nil {
			s.before[f.Connection] = append(s.before[f.Connection], early...)
			delete(s.pending, f.Exchange)
		}
	}
	for i := range step.Messages {
		s.message(&step.Messages[i])
	}
	s.step(f, step)
}

// message takes note of commands, and of the answers to thread:messages.
func (s *survey) message(m *protocol.Message) {
	switch {
	case m.Answer && m.Name == protocol.ThreadMessages:
		for i := len(s.joins) - 1; i >= 0; i-- {
			if j := &s.joins[i]; j.connection == m.Connection && j.askedPacket == m.Answers {
				j.answered = [2]capture.Position{m.Address.Position, m.Last}
				return
			}
		}
	case !m.Answer && m.Name.IsCommand():
		s.commands[m.Address.Position] = m.Connection
		if c, ok := protocol.ReadCommand(m); ok && m.Name == protocol.ThreadMessages && s.threads[c.ThreadID] {
			s.joins = append(s.joins, join{
				connection: m.Connection, thread: c.ThreadID, askedPacket: m.Address,
				asked: [2]capture.Position{m.Address.Position, m.Last},
			})
		}
	}
}

// step takes what the judge made of a frame, of none at the end.
func (s *survey) step(f *capture.Frame, step *conversation.Step) {
	s.verdict.findings(step.Findings)
	for _, p := range step.Posts {
		run := p.Run.Run
		where := s.spans[run]
		if where == nil {
			where = &span{connections: map[capture.Position]bool{}}
			s.spans[run] = where
		}
		if c, is := s.commands[p.Position]; is {
			where.add(p.Position, c)
		} else if f != nil && p.Position == f.Position && f.Kind != capture.Open {
			where.add(p.Position, f.Connection)
		}
		if s.runs[run] {
			if s.posted[run] == nil {
				s.posted[run] = newSet()
			}
			s.posted[run].add(p.Position)
		}
	}
}
