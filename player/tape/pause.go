package tape

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"tapedeck/player"
	"tapedeck/player/script"
	"tapedeck/protocol"
)

// segments plays a recorded run, over its pauses. It began with a segment, and
// by a run:start unless nobody here asked for it.
func (s *Source) segments(b *binding, opened *start, first *segment, threadID string) player.Segments {
	return func(t player.Turn) (script.Script, error) {
		g := first
		for i, answers := range t.Pauses {
			var err error
			if g, err = s.behind(b, opened, g, i, answers); err != nil {
				s.missed()
				return script.Script{}, err
			}
		}
		b.set(g.thread.id, threadID)
		if !g.sameRun {
			b.set(g.run, t.Run)
		}
		return s.script(b, g), nil
	}
}

// behind returns the segment behind the n-th pause of a run: the recorded one,
// if the answers are the recorded ones, else that of another recording of the
// same question that was answered so, else, unless answers have to match, the
// recorded one all the same.
func (s *Source) behind(b *binding, opened *start, g *segment, n int, answers map[string]json.RawMessage) (*segment, error) {
	var differs error
	if g.next != nil {
		if differs = b.sameAnswers(g, g, answers); differs == nil {
			return g.next, nil
		}
	}
	for _, t := range s.roots() {
		for _, x := range t.starts {
			if opened == nil || x == opened || x.first == nil || x.differs(&opened.command) != "" {
				continue
			}
			other := x.first
			for range n {
				if other != nil {
					other = other.next
				}
			}
			if other != nil && other.next != nil && len(other.asked) == len(g.asked) && b.sameAnswers(g, other, answers) == nil {
				b.align(g, other)
				return other.next, nil
			}
		}
	}
	switch {
	case g.next == nil:
		return nil, &player.Refusal{Code: protocol.InvalidCommand, Message: "the recording ends in this pause: no answer to it is on the tape"}
	case differs != nil && s.options.Match == MatchInput:
		return nil, differs
	}
	return g.next, nil
}

// sameAnswers compares the answers to the decisions of a segment with those
// that another segment, or the same, got in the recording.
func (b *binding) sameAnswers(g, other *segment, answers map[string]json.RawMessage) error {
	for i, recorded := range g.asked {
		if i >= len(other.asked) {
			break
		}
		got, want := answers[b.of(recorded)], other.next.answers[other.asked[i]]
		if !bytes.Equal(compact(got), compact(want)) {
			return &player.Refusal{Code: protocol.InvalidCommand, Message: fmt.Sprintf(
				"no recorded run goes on so: answer is %s, and the tape has %s (--match auto takes any answer)", short(string(got)), short(string(want)))}
		}
	}
	return nil
}

// align lets the ids of another recording of a segment stand for those that the
// client was told: what comes behind the pause speaks of them.
func (b *binding) align(g, other *segment) {
	ids := func(of *segment) (list []string) {
		for _, i := range of.items {
			if e, ok := i.act.(*envelope); ok && !e.stray && !e.repeat && !slices.Contains(list, e.id) {
				list = append(list, e.id)
			}
		}
		return list
	}
	told, others := ids(g), ids(other)
	for i := range min(len(told), len(others)) {
		b.set(others[i], b.of(told[i]))
	}
}

func compact(v []byte) []byte {
	var out bytes.Buffer
	if json.Compact(&out, v) != nil {
		return v
	}
	return out.Bytes()
}
