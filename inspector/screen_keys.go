package inspector

import (
	"strings"

	"tapedeck/protocol"
)

// Stroke is a key as a terminal gives it: a character, such as "j" or "é", or a
// name, such as "Enter", "Esc", "PgDn" or "Shift+Left".
type Stroke string

// show writes a key for the eye.
func (k Stroke) show(look *Look) string {
	if look.ASCII {
		return string(k)
	}
	switch k {
	case "Left":
		return "←"
	case "Right":
		return "→"
	case "Up":
		return "↑"
	case "Down":
		return "↓"
	case "Enter":
		return "⏎"
	case " ":
		return "space"
	}
	return strings.Replace(strings.Replace(string(k), "Left", "←", 1), "Right", "→", 1)
}

// binding is a row of the key table: keys, the views they work in, the name by
// which ":" calls what they do, and what the help says of it.
type binding struct {
	keys  []Stroke
	in    view
	name  string
	help  string
	hint  string // in the footer, "" if it is not shown there
	do    func(*Screen)
	takes string // the argument that ":" may give it, "" if none
	with  func(*Screen, string)
}

// keyTable is the whole of what can be done. The help is made from it.
func keyTable() []binding {
	const lists = inRuns | inTimeline | inFindings | inCompare
	return []binding{
		{keys: []Stroke{"Enter"}, in: lists, name: "open", help: "look closer", hint: "open", do: (*Screen).enter},
		{keys: []Stroke{"Esc"}, in: everywhere, name: "back", help: "go back; or stop what is loading or searching", do: (*Screen).back},
		{keys: []Stroke{"j", "Down"}, in: everywhere, name: "down", help: "down", do: func(s *Screen) { s.move(1) }},
		{keys: []Stroke{"k", "Up"}, in: everywhere, name: "up", help: "up", do: func(s *Screen) { s.move(-1) }},
		{keys: []Stroke{"PgDn", "Ctrl+D"}, in: everywhere, name: "page-down", help: "a page down", do: func(s *Screen) { s.page(1) }},
		{keys: []Stroke{"PgUp", "Ctrl+U"}, in: everywhere, name: "page-up", help: "a page up", do: func(s *Screen) { s.page(-1) }},
		{keys: []Stroke{"g", "Home"}, in: everywhere, name: "first", help: "to the beginning", do: func(s *Screen) { s.edge(false) }},
		{keys: []Stroke{"G", "End"}, in: everywhere, name: "last", help: "to the end", do: func(s *Screen) { s.edge(true) }},

		{keys: []Stroke{"Right", "l"}, in: inDetail, name: "next", help: "the next message", do: func(s *Screen) { s.scrub(1) }},
		{keys: []Stroke{"Left", "h"}, in: inDetail, name: "previous", help: "the message before", hint: "→ scrub", do: func(s *Screen) { s.scrub(-1) }},
		{keys: []Stroke{"Shift+Right", "L"}, in: inDetail, name: "next-construct", help: "the next construct", do: func(s *Screen) { s.scrubRow(1) }},
		{keys: []Stroke{"Shift+Left", "H"}, in: inDetail, name: "previous-construct", help: "the construct before", do: func(s *Screen) { s.scrubRow(-1) }},
		{keys: []Stroke{"Tab"}, in: inDetail, name: "next-tab", help: "the next tab; 1 to 6 choose one", hint: "tabs", do: func(s *Screen) { s.turnTab(1) }},
		{keys: []Stroke{"Shift+Tab"}, in: inDetail, name: "previous-tab", help: "the tab before", do: func(s *Screen) { s.turnTab(-1) }},
		{keys: []Stroke{"x"}, in: inTimeline | inDetail | inFindings, name: "partner", help: "to what belongs to it: command and answer, start and end, interrupt and resume", do: (*Screen).toPartner},
		{keys: []Stroke{"b"}, in: inTimeline | inDetail, name: "first-broken", help: "back to the message that first broke a rule", do: (*Screen).toFirstBroken},

		{keys: []Stroke{"n"}, in: inTimeline | inDetail, name: "next-finding", help: "the next finding", do: func(s *Screen) { s.toFinding(1) }},
		{keys: []Stroke{"N"}, in: inTimeline | inDetail, name: "previous-finding", help: "the finding before", do: func(s *Screen) { s.toFinding(-1) }},
		{keys: []Stroke{"c"}, in: inRuns | inTimeline, name: "compare", help: "compare two runs: press it on one, and then on the other", do: (*Screen).compare, takes: "RUN", with: (*Screen).compareNamed},
		{keys: []Stroke{"n"}, in: inCompare, name: "next-difference", help: "the next difference", hint: "difference", do: func(s *Screen) { s.toDifference(1) }},
		{keys: []Stroke{"N"}, in: inCompare, name: "previous-difference", help: "the difference before", do: func(s *Screen) { s.toDifference(-1) }},
		{keys: []Stroke{"!"}, in: inTimeline | inDetail, name: "findings", help: "all findings, and why they matter", hint: "findings", do: (*Screen).openFindings},
		{keys: []Stroke{"/"}, in: inTimeline, name: "filter", help: "show only what matches a filter", hint: "filter", do: func(s *Screen) { s.ask('/') }, takes: "FILTER", with: (*Screen).setFilter},
		{keys: []Stroke{"s"}, in: inRuns | inTimeline, name: "search", help: "find words", do: func(s *Screen) { s.ask('s') }, takes: "WORDS", with: (*Screen).find},
		{keys: []Stroke{"]"}, in: inRuns | inTimeline, name: "next-match", help: "find them again, further down", do: func(s *Screen) { s.findAgain(1) }},
		{keys: []Stroke{"["}, in: inRuns | inTimeline, name: "previous-match", help: "find them again, further up", do: func(s *Screen) { s.findAgain(-1) }},

		{keys: []Stroke{" ", "+"}, in: inCompare, name: "unfold", help: "show what is the same, or fold it", do: (*Screen).unfoldSame},
		{keys: []Stroke{" ", "+"}, in: inTimeline, name: "fold", help: "unfold a construct into its messages, or fold it; a subagent hides its own", do: (*Screen).fold},
		{keys: []Stroke{"r"}, in: inTimeline, name: "raw", help: "message by message, or by construct", do: (*Screen).toggleRaw},
		{keys: []Stroke{"t"}, in: inTimeline, name: "time", help: "times since the run began, since the row before, or of day", do: (*Screen).turnTime},
		{keys: []Stroke{"f"}, in: inRuns | inTimeline, name: "follow", help: "stay with the newest", hint: "follow", do: (*Screen).follow},
		{keys: []Stroke{"p"}, in: inTimeline, name: "freeze", help: "freeze what is shown, or go on; the recording never stops", do: (*Screen).freeze},
		{keys: []Stroke{"o"}, in: inRuns, name: "sort", help: "order by time, problems or duration", hint: "order", do: (*Screen).turnOrder, takes: "ORDER", with: (*Screen).setOrder},

		{keys: []Stroke{"y"}, in: lists | inDetail, name: "copy", help: "copy it as JSON", do: (*Screen).copyJSON},
		{keys: []Stroke{"Y"}, in: lists | inDetail, name: "copy-command", help: "copy the command that shows it", do: (*Screen).copyCommand},
		{keys: []Stroke{"e"}, in: inRuns | inTimeline | inDetail, name: "export", help: "export the run as a tape of its own, or as what the file's ending says", do: func(s *Screen) { s.export("") }, takes: "FILE", with: (*Screen).export},
		{keys: []Stroke{"R"}, in: inRuns | inTimeline | inDetail, name: "serve", help: "serve the run as a mock gateway, or stop", do: (*Screen).serve},
		{keys: []Stroke{"m"}, in: inTimeline | inDetail, name: "mark", help: "mark it, with a comment", do: func(s *Screen) { s.ask('m') }, takes: "COMMENT", with: (*Screen).setMark},

		{in: inRuns | inTimeline | inDetail, name: "goto", help: "to a position, such as :goto 1042", takes: "POSITION", with: (*Screen).goTo},
		{in: everywhere, name: "run", help: "open a run, such as :run 7f3a or :run last", takes: "RUN", with: (*Screen).openNamed},
		{keys: []Stroke{"Ctrl+L"}, in: everywhere, name: "reload", help: "read it again", do: (*Screen).reload},
		{keys: []Stroke{":"}, in: everywhere, name: "command", help: "give a command by its name", do: func(s *Screen) { s.ask(':') }},
		{keys: []Stroke{"?"}, in: everywhere, name: "help", help: "this help", hint: "help", do: (*Screen).openHelp},
		{keys: []Stroke{"q"}, in: everywhere, name: "close", help: "go back, and leave from the list of runs", do: (*Screen).leave},
		{keys: []Stroke{"Q", "Ctrl+C"}, in: everywhere, name: "quit", help: "leave", do: (*Screen).quit},
	}
}

// Key takes a key.
func (s *Screen) Key(k Stroke) {
	if k == "Ctrl+C" {
		s.quit()
		return
	}
	if s.width < minWidth || s.height < minHeight {
		if k == "q" || k == "Q" {
			s.quit()
		}
		return // what cannot be seen is not done
	}
	s.say, s.bad = "", false
	if s.prompt != nil {
		s.prompt.key(s, k)
		return
	}
	if s.top() == inDetail && len(k) == 1 && '1' <= k[0] && k[0] < '1'+byte(tabs) {
		s.toTab(tab(k[0] - '1'))
		return
	}
	for i := range s.bindings {
		b := &s.bindings[i]
		if b.in&s.top() == 0 || b.do == nil {
			continue
		}
		for _, key := range b.keys {
			if key == k {
				b.do(s)
				return
			}
		}
	}
}

// command does what a line behind ":" says: a name of the key table, or its
// beginning if that is one command's only, with its argument.
func (s *Screen) command(line string) {
	name, argument, _ := strings.Cut(strings.TrimSpace(line), " ")
	argument = strings.TrimSpace(argument)
	if name == "" {
		return
	}
	if name[0] == '#' || '0' <= name[0] && name[0] <= '9' {
		name, argument = "goto", name
	}
	b := s.named(name)
	switch {
	case b == nil:
		if near := protocol.Nearest(name, s.names()); near != "" {
			s.refuse("no command " + Quote(name) + "; did you mean :" + near + "?")
		} else {
			s.refuse("no command " + Quote(name) + "; ? lists them")
		}
	case b.in&s.top() == 0:
		s.refuse(":" + b.name + " does nothing here")
	case b.with != nil && (argument != "" || b.do == nil):
		b.with(s, argument)
	case argument != "":
		s.refuse(":" + b.name + " takes no argument")
	default:
		b.do(s)
	}
}

func (s *Screen) refuse(text string) { s.say, s.bad = text, true }

func (s *Screen) named(name string) *binding {
	var found *binding
	for i := range s.bindings {
		b := &s.bindings[i]
		if b.name == name {
			return b
		}
		if strings.HasPrefix(b.name, name) {
			if found != nil {
				return nil
			}
			found = b
		}
	}
	return found
}

func (s *Screen) names() []string {
	var names []string
	for _, b := range s.bindings {
		names = append(names, b.name)
	}
	return names
}

// helpView is the help.
type helpView struct{ scroll int }

func (s *Screen) openHelp() {
	if s.top() == inHelp {
		s.back()
		return
	}
	s.help.scroll = 0
	s.views = append(s.views, inHelp)
}

// helpLines are the key table as the view below the help sees it, first what
// works there.
func (s *Screen) helpLines() []Line {
	below := s.views[max(len(s.views)-2, 0)]
	lines := []Line{{}}
	section := func(title string, wanted func(binding) bool) {
		lines = append(lines, bare(Piece{Strong, "  " + title}))
		for _, b := range s.bindings {
			if !wanted(b) {
				continue
			}
			var keys []string
			for _, k := range b.keys {
				keys = append(keys, k.show(&s.look))
			}
			name := ":" + b.name
			if b.takes != "" {
				name += " " + b.takes
			}
			head := []Piece{{Key, "  " + pad(strings.Join(keys, " "), 16)}}
			if s.width >= 70 {
				head = append(head, Piece{Dim, pad(name, 24)})
			}
			indent := columns(head)
			for i, part := range wrap(b.help, s.width-indent-1) {
				if i > 0 {
					head = []Piece{{Plain, strings.Repeat(" ", indent)}}
				}
				lines = append(lines, bare(append(head, Piece{Plain, part})...))
			}
		}
		lines = append(lines, Line{})
	}
	section("Here", func(b binding) bool { return b.in != everywhere && b.in&below != 0 })
	section("Everywhere", func(b binding) bool { return b.in == everywhere })
	section("Elsewhere", func(b binding) bool { return b.in&below == 0 })
	lines = append(lines, bare(Piece{Strong, "  Filters"}, Piece{Dim, "  TERM TERM, TERM OR TERM, -TERM, (…); a word alone is looked for in the text"}))
	for line := range strings.Lines(FilterHelp()) {
		if line = strings.TrimRight(line, "\n"); line != "" {
			lines = append(lines, bare(Piece{Plain, "  " + Clean(line)}))
		}
	}
	return lines
}

func (s *Screen) helpBody(height int) []Line {
	lines := s.helpLines()
	s.help.scroll = max(min(s.help.scroll, len(lines)-height), 0)
	return lines[s.help.scroll:]
}
