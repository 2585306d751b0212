package inspector

import (
	"bytes"
	"context"
	"fmt"

	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// setMarks takes the marks as they are kept.
func (s *Screen) setMarks(marks []capture.Mark, err error) {
	s.loader.settled(markJob)
	if err != nil {
		s.complain(err)
		return
	}
	s.marks = map[capture.Address]string{}
	for _, m := range marks {
		s.marks[atPacket(m.At)] = m.Text
	}
}

// atPacket is the address of a packet: marks may name a frame.
func atPacket(a capture.Address) capture.Address {
	a.Packet = max(a.Packet, 1)
	return a
}

// address is the address under the cursor.
func (s *Screen) address() (capture.Address, bool) {
	if s.top() == inDetail {
		return s.item.address()
	}
	if it, ok := s.chosenItem(); ok && s.top() == inTimeline {
		return s.line.address(it), true
	}
	return capture.Address{}, false
}

// setMark marks what is under the cursor.
func (s *Screen) setMark(text string) {
	at, ok := s.address()
	if !ok || s.o.SetMark == nil {
		s.refuse("this tape keeps no marks")
		return
	}
	keep, mark := s.o.SetMark, capture.Mark{At: atPacket(at), Text: text}
	s.loader.start(markJob, func(ctx context.Context, tell teller) {
		err := keep(ctx, mark)
		tell(func(s *Screen) {
			s.loader.settled(markJob)
			switch {
			case err != nil:
				s.complain(fmt.Errorf("mark #%s: %w", at, err))
				return
			case text == "":
				delete(s.marks, mark.At)
			default:
				s.marks[mark.At] = text
			}
			s.Say("#" + at.String() + map[bool]string{true: " is marked no longer", false: " marked"}[text == ""])
		})
	})
}

// chosenChain is the run that is open, or under the cursor.
func (s *Screen) chosenChain() []conversation.Run {
	if s.line.film != nil && s.top() != inRuns {
		return s.line.film.chain
	}
	if v := &s.runs; v.list.cursor < len(v.rows) {
		return v.rows[v.list.cursor].chain
	}
	return nil
}

func (s *Screen) copy(text string) {
	s.copied = &text
	s.Say("copied " + FormatSize(int64(len(text))))
}

// copyJSON copies what is chosen, as the commands write it.
func (s *Screen) copyJSON() {
	var value any
	switch s.top() {
	case inCompare:
		text, err := s.comparisonJSON()
		if err != nil {
			s.complain(err)
			return
		}
		s.copy(text)
		return
	case inRuns:
		chain := s.chosenChain()
		if len(chain) == 0 {
			return
		}
		runs := make([]runJSON, len(chain))
		for i := range chain {
			runs[i] = runToJSON(&chain[i], s.runs.sessions)
		}
		value = runs
	case inTimeline:
		it, ok := s.chosenItem()
		if !ok {
			return
		}
		value = rowToJSON(it.row)
	case inDetail:
		if s.item.moment == nil {
			s.refuse("the message is not read yet")
			return
		}
		value = momentToJSON(s.item.moment)
	case inFindings:
		f, ok := s.chosenFinding()
		if !ok {
			return
		}
		value = f.Finding
	}
	var b bytes.Buffer
	if err := writeJSON(&b, value, true); err != nil {
		s.complain(err)
		return
	}
	s.copy(b.String())
}

// copyCommand copies the command line that shows the same.
func (s *Screen) copyCommand() {
	if s.top() == inCompare {
		s.copy(s.comparisonCommand())
		return
	}
	chain := s.chosenChain()
	if len(chain) == 0 {
		return
	}
	name := fmt.Sprintf("%d/%s", chain[0].Session, chain[0].ID)
	if s.top() == inFindings {
		if f, ok := s.chosenFinding(); ok {
			name += "@" + f.At.String()
		}
	} else if a, ok := s.address(); ok {
		name += "@" + a.String()
	}
	s.copy(s.commandLine("show " + shellWord(name)))
}

// commandLine is a command of ours that finds the same tape.
func (s *Screen) commandLine(words string) string {
	if s.o.Flags == "" {
		return "tapedeck " + words
	}
	return "tapedeck " + words + " " + s.o.Flags
}

// shellWord quotes what comes off the wire, so that a shell takes it for one
// word.
func shellWord(word string) string {
	plain := word != ""
	for i := range len(word) {
		c := word[i]
		if !('a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || bytes.IndexByte([]byte("_-./@:=+,~"), c) >= 0) {
			plain = false
		}
	}
	if plain && word[0] != '~' && word[0] != '-' {
		return word
	}
	return "'" + string(bytes.ReplaceAll([]byte(Clean(word)), []byte("'"), []byte(`'\''`))) + "'"
}

// export writes the run to a file, "" for a tape of its own.
func (s *Screen) export(to string) {
	chain := s.chosenChain()
	if len(chain) == 0 {
		return
	}
	if s.o.Export == nil {
		s.Say("export it with: " + s.commandLine("export "+shellWord(chain[0].ID)+" -o bug.tape"))
		return
	}
	s.say = "exporting" + s.look.ellipsis()
	s.loader.start(exportJob, func(ctx context.Context, tell teller) {
		file, err := s.o.Export(ctx, chain, to)
		tell(func(s *Screen) {
			s.loader.settled(exportJob)
			if err != nil {
				s.complain(fmt.Errorf("export run %q: %w", chain[0].ID, err))
				return
			}
			s.Say("exported to " + file + "; next: tapedeck open " + shellWord(file))
		})
	})
}

// serve stands in as the gateway with what the run recorded, or stops.
func (s *Screen) serve() {
	if s.serves != "" {
		s.loader.stop(serveJob)
		s.Say("stopped serving " + shortID(s.serves))
		s.serves = ""
		return
	}
	chain := s.chosenChain()
	if len(chain) == 0 {
		return
	}
	run := chain[0]
	if s.o.Serve == nil {
		s.Say("export it with e, and serve what comes of it with: tapedeck play FILE")
		return
	}
	s.serves = run.ID
	s.say = "starting a gateway" + s.look.ellipsis()
	s.loader.start(serveJob, func(ctx context.Context, tell teller) {
		err := s.o.Serve(ctx, run, func(text string) { tell(func(s *Screen) { s.Say(text) }) })
		tell(func(s *Screen) {
			s.serves = ""
			if err != nil {
				s.complain(fmt.Errorf("serve run %q: %w", run.ID, err))
			} else {
				s.Say("stopped serving " + shortID(run.ID))
			}
		})
	})
}
