package inspector

import (
	"fmt"
	"slices"
	"time"
)

// diffLines compares a list of todos with the one that it replaces.
func (s *Screen) diffLines() []Line {
	after, ok := s.item.row.Detail.(*Todos)
	if !ok {
		return wrapped(Dim, "Only todos replace something that was there before.", 1, s.width)
	}
	lines := []Line{{}}
	var before []Todo
	if plan := s.line.film.plans[s.item.row]; plan != nil {
		before = plan.Detail.(*Todos).Items
		lines[0] = bare(Piece{Dim, " against #" + plan.First.String()})
	} else {
		lines[0] = bare(Piece{Dim, " the first list of this thread"})
	}
	was := map[string]string{}
	for _, t := range before {
		was[t.Content] = t.Status
	}
	for _, t := range after.Items {
		status, known := was[t.Content]
		delete(was, t.Content)
		text := s.look.fit(t.Content, max(s.width-36, 10), 0)
		switch {
		case !known:
			lines = append(lines, bare(Piece{Good, " + " + text}, Piece{Dim, "  " + Clean(t.Status)}))
		case status != t.Status:
			lines = append(lines, bare(Piece{Warn, " ~ " + text}, Piece{Dim, "  " + Clean(status) + s.look.glyph(" → ", " -> ")}, Piece{Strong, Clean(t.Status)}))
		default:
			lines = append(lines, bare(Piece{Dim, "   " + text + "  " + Clean(t.Status)}))
		}
	}
	for _, t := range before {
		if _, gone := was[t.Content]; gone {
			lines = append(lines, bare(Piece{Bad, " - " + s.look.fit(t.Content, max(s.width-36, 10), 0)}, Piece{Dim, "  " + Clean(t.Status)}))
		}
	}
	return lines
}

// timingLines say when things happened.
func (s *Screen) timingLines() []Line {
	d, f := &s.item, s.line.film
	r, g := d.row, &f.glimpses[d.place]
	var lines []Line
	fact := func(name, format string, args ...any) {
		lines = append(lines, bare(Piece{Dim, " " + pad(name, 20) + "  "}, Piece{Plain, fmt.Sprintf(format, args...)}))
	}
	moment := func(at time.Duration) string {
		return pad(FormatOffset(at-max(f.size.start, 0)), 10) + s.ofDay(at) + fmt.Sprintf(".%03d", s.millisecond(at))
	}
	fact("this message", "%s", moment(g.at))
	if d.place > 0 {
		fact("since the one before", "%s", FormatDuration(g.at-f.glimpses[d.place-1].at))
	}
	lines = append(lines, Line{})
	fact("began", "%s", moment(r.Start))
	if !r.instant() {
		fact("last", "%s", moment(r.End))
		fact("took", "%s", FormatDuration(r.Took()))
	}
	fact("envelopes", "%s live, %s replayed, %s to other sockets", groupDigits(r.Envelopes), groupDigits(r.Replayed), groupDigits(r.Copies))
	switch x := r.Detail.(type) {
	case *Stream:
		s.streamFacts(fact, x, r.Start)
	case *Call:
		s.streamFacts(fact, &x.Args, r.Start)
		if x.Result != nil && x.Complete {
			fact("result", "%s after the arguments", FormatDuration(x.Result.After))
			if x.Result.Human > 0 {
				fact("waited for a person", "%s", FormatDuration(x.Result.Human))
			}
		}
	case *Talk:
		if x.Reply != nil {
			fact("answered", "after %s, by %s", FormatDuration(x.Reply.After), Clean(x.Reply.By))
		}
	case *Decision:
		if x.Reply != nil {
			fact("decided", "after %s", FormatDuration(x.Reply.After))
		}
	}
	if places := f.placesOf(r); len(places) > 2 {
		lines = append(lines, Line{}, bare(Piece{Dim, " " + pad("messages over time", 20) + "  "}, Piece{r.style(), sparkline(f.spread(places, min(s.width-30, 60)), &s.look)}))
	}
	return lines
}

func (s *Screen) streamFacts(fact func(string, string, ...any), x *Stream, began time.Duration) {
	if x.Deltas == 0 {
		return
	}
	fact("deltas", "%s, %s", groupDigits(x.Deltas), FormatSize(int64(len(x.joined))))
	fact("first delta", "%s after the start", FormatDuration(x.First-began))
	if rate := x.Rate(); rate > 0 {
		fact("rate", "%s", formatRate(rate))
	}
	fact("longest silence", "%s", FormatDuration(x.Stall))
}

// spread counts messages over equal parts of the time that they took.
func (f *film) spread(places []int, parts int) []int {
	counts := make([]int, max(parts, 1))
	start, end := f.glimpses[places[0]].at, f.glimpses[places[0]].at
	for _, p := range places {
		start, end = min(start, f.glimpses[p].at), max(end, f.glimpses[p].at)
	}
	for _, p := range places {
		i := int(int64(len(counts)) * int64(f.glimpses[p].at-start) / int64(max(end-start+1, 1)))
		counts[slices.Max([]int{0, min(i, len(counts)-1)})]++
	}
	return counts
}

// millisecond is what ofDay leaves out.
func (s *Screen) millisecond(at time.Duration) int64 {
	if session := sessionOf(s.runs.sessions, s.line.film.chain[0].Session); session != nil {
		return session.Started.Add(at).UnixMilli() % 1000
	}
	return at.Milliseconds() % 1000
}

// ofDay is the time of day of a moment of the run.
func (s *Screen) ofDay(at time.Duration) string {
	session := sessionOf(s.runs.sessions, s.line.film.chain[0].Session)
	if session == nil || session.Started.IsZero() {
		return FormatOffset(at)
	}
	return s.look.wall(session.Started.Add(at))
}
