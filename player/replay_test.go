package player_test

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tapedeck/player"
	"tapedeck/player/scenario"
	"tapedeck/player/tape"
	"tapedeck/protocol/capture"
)

// frames is a tape in memory.
type frames []capture.Frame

func (f frames) Sessions(context.Context) ([]capture.Session, error) {
	return []capture.Session{{ID: 1, First: 1, Last: capture.Position(len(f))}}, nil
}

func (f frames) Frames(_ context.Context, from capture.Position, n int) ([]capture.Frame, error) {
	rest := f[min(int(from)-1, len(f)):]
	return rest[:min(n, len(rest))], nil
}

// TestHonest is the proof that a player off a tape plays what was recorded: each
// built-in scenario is recorded, the recording is played to a client that makes
// the same moves in a thread of another name, and what passes is the same, byte
// for byte and to the millisecond, up to one map of ids. What was wrong the first
// time is wrong the second time: the same findings are raised.
func TestHonest(t *testing.T) {
	for _, name := range scenario.Names() {
		t.Run(name, func(t *testing.T) {
			s, err := scenario.Builtin(name)
			if err != nil {
				t.Fatal(err)
			}
			first := player.Rehearse(t, player.Config{Scenario: name}, s, "thread-1")
			source, err := tape.New(t.Context(), frames(first), tape.Options{WithDrops: true, Seed: 7})
			if err != nil {
				t.Fatal(err)
			}
			second := player.Rehearse(t, player.Config{Source: source, Seed: 7}, s, "another-thread")
			player.Judge(t, s, second)
			same(t, first, second)
		})
	}
}

// same compares two recordings up to a map of ids.
func same(t *testing.T, first, second []capture.Frame) {
	t.Helper()
	first, second = byThread(first), byThread(second)
	ids := bijection{there: map[string]string{}, back: map[string]string{}}
	for i := range max(len(first), len(second)) {
		var a, b capture.Frame
		if i < len(first) {
			a = first[i]
		}
		if i < len(second) {
			b = second[i]
		}
		err := ids.same(a.Data, b.Data)
		if a.Kind != b.Kind || a.Direction != b.Direction || a.Connection != b.Connection {
			err = fmt.Errorf("another kind of frame")
		} else if late := b.At - a.At; late < -time.Millisecond || late > time.Millisecond {
			err = fmt.Errorf("it passed at %v, and was recorded at %v", b.At, a.At)
		}
		if err != nil {
			t.Fatalf("frame %d differs: %v\n-recorded %s\n+played   %s\n%s", i+1, err, a.Data, b.Data, context2(first, second, i))
		}
	}
}

// byThread brings what different threads did in the same millisecond into one
// order: the thread that was heard of first comes first.
func byThread(frames []capture.Frame) []capture.Frame {
	rank := map[string]int{"": -1}
	of := func(f capture.Frame) int {
		name := threadID.FindString(string(f.Data))
		if _, ok := rank[name]; !ok {
			rank[name] = len(rank)
		}
		return rank[name]
	}
	frames = slices.Clone(frames)
	for i := range frames {
		for k := i; k > 0 && of(frames[k]) >= 0 && of(frames[k-1]) > of(frames[k]) && frames[k].Direction == frames[k-1].Direction &&
			frames[k].Connection == frames[k-1].Connection && frames[k].At/time.Millisecond == frames[k-1].At/time.Millisecond; k-- {
			frames[k], frames[k-1] = frames[k-1], frames[k]
		}
	}
	return frames
}

// made is an id that the gateway made.
var made = regexp.MustCompile(`_[0-9a-f]{12}$`)

var threadID = regexp.MustCompile(`"threadId":"[^"]*"`)

// context2 is what passed before a difference.
func context2(first, second []capture.Frame, at int) string {
	var b strings.Builder
	for i := max(0, at-4); i < at+6; i++ {
		if i < len(first) {
			fmt.Fprintf(&b, "%d - %8.3f %v %.200s\n", i+1, first[i].At.Seconds(), first[i].Direction, first[i].Data)
		}
		if i < len(second) {
			fmt.Fprintf(&b, "%d + %8.3f %v %.200s\n", i+1, second[i].At.Seconds(), second[i].Direction, second[i].Data)
		}
	}
	return b.String()
}

// bijection is a map of ids, one to one.
type bijection struct{ there, back map[string]string }

// same compares two payloads: everything between the strings is the same, and so
// are the strings, but that one id may stand for another.
func (m *bijection) same(a, b []byte) error {
	as, bs := pieces(a), pieces(b)
	if len(as) != len(bs) {
		return fmt.Errorf("it has another shape")
	}
	for i := range as {
		if i%2 == 0 {
			if !bytes.Equal(as[i], bs[i]) {
				return fmt.Errorf("%q became %q", as[i], bs[i])
			}
			continue
		}
		before := ""
		if i > 1 && bytes.Equal(bytes.TrimSpace(as[i-1]), []byte(":")) {
			before = string(as[i-2])
		}
		if err := m.pair(before, string(as[i]), string(bs[i])); err != nil {
			return err
		}
	}
	return nil
}

// pair takes two strings for the same id, or, of a member that holds none, for
// texts that name ids.
func (m *bijection) pair(name, a, b string) error {
	if name != "id" && !strings.HasSuffix(name, "Id") {
		for from, to := range m.there {
			if from != to && len(from) > 4 {
				a = strings.ReplaceAll(a, from, "\x00"+to)
			}
		}
		if a = strings.ReplaceAll(a, "\x00", ""); a != b {
			return fmt.Errorf("the text %q became %q", a, b)
		}
		return nil
	}
	if a == b && made.MatchString(a) {
		return fmt.Errorf("%s %q is the recorded one", name, a)
	}
	there, ok := m.there[a]
	if back, known := m.back[b]; ok != known || ok && (there != b || back != a) {
		return fmt.Errorf("%q became %q, and was %q before; that was %q", a, b, there, back)
	}
	m.there[a], m.back[b] = b, a
	return nil
}

// pieces cuts JSON at its strings: what stands outside them and in them in turn.
func pieces(text []byte) [][]byte {
	var out [][]byte
	from, in := 0, false
	for i := 0; i < len(text); i++ {
		switch {
		case in && text[i] == '\\':
			i++
		case text[i] == '"':
			out = append(out, text[from:i])
			from, in = i+1, !in
		}
	}
	return append(out, text[from:])
}
