package tape

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"tapedeck/protocol"
)

// choose returns the recorded run:start that a live one is taken for, and why,
// or nil and which one would be nearest.
func (s *Source) choose(l *live, c *protocol.Command) (found *start, reason string) {
	if s.options.Match != MatchOrder {
		if found, reason = s.byInput(l, c); found != nil {
			return found, reason
		}
	}
	if s.options.Match != MatchInput {
		if found = s.inOrder(l); found != nil {
			return found, "the next in order"
		}
	}
	if s.options.OnMiss == MissNext {
		if found = s.around(l); found != nil {
			s.missed()
			return found, "the next in order, for want of one that fits"
		}
	}
	return nil, s.explain(l, c)
}

// byInput looks for the same input: at the same place of the thread, then in the
// thread, then anywhere, and each time first among those not played yet.
func (s *Source) byInput(l *live, c *protocol.Command) (*start, string) {
	if l.thread != nil && l.opened < len(l.thread.starts) {
		if here := l.thread.starts[l.opened]; here.differs(c) == "" && l.played[here] == 0 {
			return here, "the same input at the same place"
		}
	}
	var best *start
	rank := func(x *start) int {
		r := 0
		if l.played[x] > 0 {
			r += 4
		}
		if x.thread != l.thread {
			r += 2
		}
		if x.thread != l.thread && x.index != l.opened {
			r++
		}
		return r
	}
	for _, t := range s.roots() {
		for _, x := range t.starts {
			if x.differs(c) == "" && (best == nil || rank(x) < rank(best)) {
				best = x
			}
		}
	}
	return best, "the same input"
}

// inOrder returns the next run of the thread, or of the same thread in a later
// session. A thread that was only looked at gives way to the first that was not.
func (s *Source) inOrder(l *live) *start {
	if l.thread == nil {
		return nil
	}
	if len(l.thread.starts) == 0 && !l.pinned {
		for _, t := range s.roots() {
			if len(t.starts) > 0 {
				return t.starts[0]
			}
		}
	}
	if l.next < len(l.thread.starts) {
		return l.thread.starts[l.next]
	}
	for _, t := range s.roots() {
		if t.id != l.thread.id {
			continue
		}
		for _, x := range t.starts {
			if l.played[x] == 0 && x.at > l.thread.at {
				return x
			}
		}
	}
	return nil
}

// around returns the run that was played least, the first in order.
func (s *Source) around(l *live) *start {
	if next := s.inOrder(l); next != nil {
		return next
	}
	var best *start
	for _, t := range s.roots() {
		for _, x := range t.starts {
			if best == nil || l.played[x] < l.played[best] {
				best = x
			}
		}
	}
	return best
}

// roots are the threads in which clients start runs.
func (s *Source) roots() []*thread {
	var roots []*thread
	for _, t := range s.tape.threads {
		if !t.child {
			roots = append(roots, t)
		}
	}
	return roots
}

// differs names the first field in which a live run:start is another one, ""
// if it is the same.
func (x *start) differs(c *protocol.Command) string {
	switch {
	case x.command.Input != c.Input:
		return "input"
	case c.Input == "" && !bytes.Equal(compact(x.command.Attachments), compact(c.Attachments)):
		return "attachments"
	case (len(x.command.Attachments) > 2) != (len(c.Attachments) > 2):
		return "attachments"
	case (x.command.ForkFromMessageID == "") != (c.ForkFromMessageID == ""):
		return "forkFromMessageId"
	case !slices.Equal(toolNames(&x.command), toolNames(c)):
		return "clientTools"
	}
	return ""
}

func toolNames(c *protocol.Command) []string {
	var names []string
	for _, tool := range c.ClientTools {
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	return names
}

// explain says why nothing fits: which run would be nearest, and in what it
// differs.
func (s *Source) explain(l *live, c *protocol.Command) string {
	var all []*start
	for _, t := range s.roots() {
		all = append(all, t.starts...)
	}
	if len(all) == 0 {
		return "no run on the tape was opened by a run:start: there is nothing to answer with"
	}
	near := nearest(all, c)
	field := near.differs(c)
	if field == "" {
		return fmt.Sprintf("all %d runs of this thread have been played: the nearest is the run:start at #%d, for another time", l.opened, near.at)
	}
	return fmt.Sprintf("no recorded run fits: the nearest is the run:start at #%d of thread %q, whose %s is %s and here is %s (--on-miss next takes any)",
		near.at, near.thread.id, field, near.show(field), (&start{command: *c}).show(field))
}

// nearest returns the run whose input is most alike.
func nearest(all []*start, c *protocol.Command) *start {
	var inputs []string
	for _, x := range all {
		inputs = append(inputs, x.command.Input)
	}
	meant := protocol.Nearest(c.Input, inputs)
	for _, x := range all {
		if meant != "" && x.command.Input == meant || x.command.Input == c.Input {
			return x
		}
	}
	return slices.MaxFunc(all, func(a, b *start) int {
		return cmp.Compare(alike(a.command.Input, c.Input), alike(b.command.Input, c.Input))
	})
}

// alike counts the words that two inputs share.
func alike(a, b string) int {
	n := 0
	words := strings.Fields(strings.ToLower(b))
	for _, word := range strings.Fields(strings.ToLower(a)) {
		if slices.Contains(words, word) {
			n++
		}
	}
	return n
}

// show is a field of a run:start for a person.
func (x *start) show(field string) string {
	switch field {
	case "attachments":
		return short(string(cmp.Or(string(x.command.Attachments), "none")))
	case "forkFromMessageId":
		return short(cmp.Or(x.command.ForkFromMessageID, "none"))
	case "clientTools":
		return short(cmp.Or(strings.Join(toolNames(&x.command), " "), "none"))
	}
	return fmt.Sprintf("%q", short(x.command.Input))
}

// short cuts a text to a line.
func short(text string) string {
	const most = 80
	if len(text) <= most {
		return text
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
