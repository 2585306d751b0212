package inspector

import (
	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

// toPartner goes to what belongs to a message.
func (s *Screen) toPartner() {
	v := &s.line
	if s.top() == inFindings {
		s.findingPartner()
		return
	}
	at, row := capture.Address{}, (*Row)(nil)
	if s.top() == inDetail {
		at, row = s.item.at, s.item.row
	} else if it, ok := s.chosenItem(); ok {
		at, row = v.address(it), it.row
	}
	if row == nil {
		return
	}
	to := v.film.partner(at, row)
	p, ok := v.film.placeAt(to)
	switch {
	case !ok:
		s.Say("nothing belongs to it")
	case s.top() == inDetail:
		s.toPlace(p)
	case v.film.timeline.places[p].row == row && !v.raw: // its other end is in the same row
		s.openDetail()
		s.toPlace(p)
	default:
		s.showPlace(p)
	}
}

// partner is the address of what belongs to a message: the answer to a command,
// the end of a construct, the command that resumes after an interrupt, and the
// other way round. It is zero if there is none.
func (f *film) partner(at capture.Address, r *Row) capture.Address {
	switch d := r.Detail.(type) {
	case *Talk:
		if !samePlace(at, r.First) {
			return r.First
		}
		if thread := f.timeline.threads[r.Thread]; thread != nil && r.Name == string(protocol.RunResume) {
			if asked := thread.decisions[d.About]; asked != nil {
				return asked.First
			}
		}
		if d.Reply != nil {
			return d.Reply.At
		}
		return capture.Address{}
	case *Decision:
		if d.Reply != nil {
			return d.Reply.At
		}
	}
	if r.Kind == KindLifecycle {
		return f.otherEnd(r)
	}
	switch {
	case !samePlace(at, r.First):
		return r.First
	case r.Last != r.First:
		return r.Last
	}
	return capture.Address{}
}

// otherEnd is where a run ends that starts here, or starts that ends here.
func (f *film) otherEnd(r *Row) capture.Address {
	by := -1
	if r.Name == string(protocol.RunStarted) {
		by = 1
	}
	rows := f.timeline.Rows
	for i := r.Index + by; i >= 0 && i < len(rows); i += by {
		if rows[i].Kind == KindLifecycle && rows[i].Run == r.Run {
			return rows[i].First
		}
	}
	return capture.Address{}
}
