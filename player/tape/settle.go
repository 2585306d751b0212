package tape

import "tapedeck/protocol"

// finish closes the books of the session.
func (l *loader) finish() {
	for _, s := range l.sockets {
		if s.joined && !s.greeted && !l.greeted {
			l.greeted = true
		}
	}
	for _, t := range l.own {
		t.child = t.child || l.kids[t.id]
		t.settle()
	}
}

// settle sees which commands were obeyed, now that all is known.
func (t *thread) settle() {
	kept := t.starts[:0]
	for _, s := range t.starts {
		switch {
		case s.refused != nil && (s.busy || s.refused.Code == protocol.DuplicateMessage || s.refused.Code == protocol.ForkPointNotFound):
			continue // the player refuses it by itself
		case s.refused == nil && s.first == nil:
			s.first = &segment{thread: t} // nothing ever came of it
		}
		s.index = len(kept)
		kept = append(kept, s)
	}
	t.starts = kept
	for _, s := range t.starts {
		for g := s.first; g != nil; g = g.next {
			g.settle()
		}
	}
	t.root.settle()
}

// settle marks the cancels and detaches that changed nothing: nobody needs to
// wait for them.
func (g *segment) settle() {
	for i := range g.items {
		switch act := g.items[i].act.(type) {
		case *wait:
			act.void = act.void || !g.heeded(act.command, g.items[i+1:])
		case *opening:
			for inner := act.segment; inner != nil; inner = inner.next {
				inner.settle()
			}
		}
	}
}

// heeded reports whether what follows shows that a command was obeyed.
func (g *segment) heeded(name protocol.Name, after []item) bool {
	for _, i := range after {
		switch act := i.act.(type) {
		case *envelope:
			if name == protocol.ThreadMessages || name == protocol.RunCancel && act.typ == protocol.RunCancelled ||
				name == protocol.RunDetach && act.typ == protocol.SubagentFinished {
				return true
			}
		case *message:
			if name == protocol.RunDetach && act.name == string(protocol.TaskStatus) {
				return true
			}
		}
	}
	return false
}
