package inspector

import (
	"fmt"
	"strings"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

// findingsView is the list of a run's findings, and why each matters.
type findingsView struct{ list list }

func (s *Screen) findings() []foundAt {
	if s.line.film == nil {
		return nil
	}
	return s.line.film.found
}

// openFindings opens the panel at the finding nearest to where one is.
func (s *Screen) openFindings() {
	here := capture.Address{}
	if s.top() == inDetail {
		here, _ = s.item.address()
	} else if it, ok := s.chosenItem(); ok {
		here = s.line.address(it)
	}
	s.panel.list = list{}
	for i, f := range s.findings() {
		if f.At.Compare(here) <= 0 {
			s.panel.list.cursor = i
		}
	}
	s.views = append(s.views, inFindings)
}

func (s *Screen) chosenFinding() (foundAt, bool) {
	found := s.findings()
	if s.panel.list.cursor >= len(found) {
		return foundAt{}, false
	}
	return found[s.panel.list.cursor], true
}

// enterFinding goes to where a rule was broken.
func (s *Screen) enterFinding() {
	f, ok := s.chosenFinding()
	if !ok {
		return
	}
	s.jump(f.At)
}

// findingPartner goes to the place that a finding rests on.
func (s *Screen) findingPartner() {
	f, ok := s.chosenFinding()
	if ok && !f.Other.IsZero() {
		s.jump(f.Other)
		return
	}
	s.Say("it rests on nothing else")
}

// jump leaves the panel for a message of the run.
func (s *Screen) jump(a capture.Address) {
	p, ok := s.line.film.placeAt(a)
	if !ok {
		s.refuse(fmt.Sprintf("#%s is in no row of this run; try: tapedeck show @%s", a, a))
		return
	}
	s.views = s.views[:len(s.views)-1]
	if s.top() == inDetail {
		s.toPlace(p)
		return
	}
	s.showPlace(p)
}

// findingsBody draws the list, and below it why the chosen one matters.
func (s *Screen) findingsBody(height int) []Line {
	found := s.findings()
	if len(found) == 0 {
		text := "No rule was broken in this run."
		if !s.line.whole {
			text = "No rule was broken in what is loaded so far."
		}
		return append(make([]Line, max(height/3, 1)), bare(Piece{Good, "    " + s.look.glyph("✔ ", "v ")}, Piece{Plain, text}))
	}
	why := s.why(&found[min(s.panel.list.cursor, len(found)-1)].Finding)
	room := max(min(len(found), height-len(why)-1), min(height/3, len(found)), 1)
	first := s.panel.list.place(len(found), room, func(int) int { return 1 })
	var lines []Line
	for i := first; i < len(found) && i < first+room; i++ {
		lines = append(lines, s.findingLine(&found[i].Finding, i == s.panel.list.cursor))
	}
	lines = append(lines, bare(Piece{Dim, " " + strings.Repeat(s.look.glyph("─", "-"), s.width-2)}))
	return append(lines, why[:min(len(why), max(height-len(lines), 0))]...)
}

func (s *Screen) findingLine(f *protocol.Finding, chosen bool) Line {
	look := &s.look
	mark := " "
	if chosen {
		mark = look.glyph("▸", ">")
	}
	pieces := []Piece{
		{Strong, mark}, {severityStyle(f.Severity), look.glyph(severityGlyph(f.Severity)) + " "}, {Dim, padLeft("#"+f.At.String(), s.line.film.size.position+1) + "  "},
		{Strong, pad(cutColumns(Clean(f.Rule), 28, look.ellipsis()), min(28, s.width/3)) + "  "},
	}
	pieces = append(pieces, Piece{Plain, look.fit(f.Text, max(s.width-columns(pieces)-1, 8), 0)})
	line := bare(pieces...)
	if chosen {
		line.Ground = Chosen
	}
	return line
}

// why says what a finding means: the rule, the harm, and what to do.
func (s *Screen) why(f *protocol.Finding) []Line {
	look := &s.look
	rule, known := protocol.RuleByID(f.Rule)
	head := []Piece{{severityStyle(f.Severity), " " + look.glyph(severityGlyph(f.Severity)) + " " + f.Severity.String()}, {Strong, "  " + Clean(f.Rule)}}
	if rule.Title != "" {
		head = append(head, Piece{Plain, "  " + rule.Title})
	}
	lines := []Line{bare(head...)}
	say := func(name, text string) {
		if text == "" {
			return
		}
		for i, part := range wrap(Clean(text), max(s.width-13, 10)) {
			label := ""
			if i == 0 {
				label = name
			}
			lines = append(lines, bare(Piece{Dim, " " + pad(label, 9) + "  "}, Piece{Plain, part}))
		}
	}
	say("here", f.Text)
	if f.Pointer != "" {
		say("at", f.Pointer)
	}
	if !f.Other.IsZero() && f.Other != f.At {
		text := "#" + f.Other.String()
		if r := s.line.film.timeline.RowAt(f.Other); r != nil {
			text += ", " + r.word()
		}
		say("rests on", text+"; x goes there")
	}
	say("harm", rule.Harm)
	say("fix", rule.Fix)
	if known {
		page := fmt.Sprintf("%s, under %q", rule.Provenance, rule.Section)
		if rule.Follows != "" {
			page += "; it follows from: " + rule.Follows
		}
		say("rule", page)
	}
	return lines
}
