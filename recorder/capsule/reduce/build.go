package reduce

import (
	"slices"
	"strconv"

	"tapedeck/protocol/capture"
)

// build returns the frames that are left where only some units are kept, and
// whether sequences were counted anew. The frames share their data with the
// material where that was not changed.
func (m *material) build(kept []bool) (frames []capture.Frame, renumbered bool) {
	kept, connections, exchanges := m.withContext(kept)
	shifts := m.shifts(kept)
	for i := range m.frames {
		f := m.frames[i]
		switch units := m.bodies[i]; {
		case units != nil:
			if f.Data = m.body(i, units, kept, shifts); f.Data == nil {
				continue
			}
			f.Size = int64(len(f.Data))
		case m.owner[i] >= 0:
			u := &m.units[m.owner[i]]
			if !kept[m.owner[i]] {
				continue
			}
			if u.frame == i && shifts.of(u) > 0 {
				f.Data = m.renumber(slices.Clone(f.Data), u, u.digits, shifts)
				f.Size = int64(len(f.Data))
			}
		case !m.belongs(&f, connections, exchanges):
			continue
		}
		frames = append(frames, f)
	}
	return frames, shifts.any
}

// withContext adds to what is kept what it needs to be played: the commands that
// opened its runs, and what its connections began with.
func (m *material) withContext(wanted []bool) (kept []bool, connections, exchanges map[capture.Position]bool) {
	kept = slices.Clone(wanted)
	runs := map[string]bool{}
	for id, u := range m.units {
		runs[u.run] = runs[u.run] || kept[id]
	}
	connections, exchanges = map[capture.Position]bool{}, map[capture.Position]bool{}
	for id := range m.units {
		u := &m.units[id]
		kept[id] = kept[id] && !u.greets || u.opens != "" && runs[u.opens]
		if kept[id] {
			connections[u.connection] = true
		}
	}
	for id := range m.units {
		u := &m.units[id]
		if u.greets {
			kept[id] = connections[u.connection]
		}
		exchanges[u.exchange] = exchanges[u.exchange] || kept[id]
	}
	return kept, connections, exchanges
}

// belongs reports whether a frame that is no unit's goes with what is kept.
func (m *material) belongs(f *capture.Frame, connections, exchanges map[capture.Position]bool) bool {
	connection := f.Connection
	if connection == 0 {
		connection = m.of[f.Exchange]
	}
	if !connections[connection] {
		return false
	}
	ofConnection := f.Kind == capture.Open || f.Kind == capture.End || !m.polls[f.Exchange]
	return ofConnection || m.greets[f.Exchange] || exchanges[f.Exchange]
}

// body returns what is left of a polling body, nil if nothing is.
func (m *material) body(i int, units []int, kept []bool, shifts *shifts) (data []byte) {
	whole := true
	for _, id := range units {
		whole = whole && kept[id] && shifts.of(&m.units[id]) == 0
	}
	f := &m.frames[i]
	if whole {
		return f.Data
	}
	for _, id := range units {
		u := &m.units[id]
		if !kept[id] {
			continue
		}
		packet := slices.Clone(f.Data[u.from:u.to])
		if shifts.of(u) > 0 {
			packet = m.renumber(packet, u, [2]int{u.digits[0] - u.from, u.digits[1] - u.from}, shifts)
		}
		if data != nil {
			data = append(data, 0x1e)
		}
		data = append(data, packet...)
	}
	return data
}

// renumber writes another sequence in the place of the digits.
func (m *material) renumber(data []byte, u *unit, digits [2]int, shifts *shifts) []byte {
	number := strconv.AppendInt(nil, u.sequence-shifts.of(u), 10)
	return slices.Replace(data, digits[0], digits[1], number...)
}

// shifts say by how much less the sequences of runs are to be.
type shifts struct {
	gone map[string][]int64 // the sequences of a run that are gone, in order
	any  bool
}

// shifts finds the sequences that are gone: those of which no envelope is kept.
func (m *material) shifts(kept []bool) *shifts {
	type place struct {
		run      string
		sequence int64
	}
	left, gone := map[place]bool{}, map[place]bool{}
	for id := range m.units {
		u := &m.units[id]
		if u.sequence <= 0 || u.digits[1] == 0 {
			continue
		}
		if at := (place{u.run, u.sequence}); kept[id] {
			left[at] = true
		} else {
			gone[at] = true
		}
	}
	s := &shifts{gone: map[string][]int64{}}
	for at := range gone {
		if !left[at] {
			s.gone[at.run] = append(s.gone[at.run], at.sequence)
		}
	}
	for at := range left {
		if list := s.gone[at.run]; len(list) > 0 && slices.Min(list) < at.sequence {
			s.any = true
			break
		}
	}
	for _, list := range s.gone {
		slices.Sort(list)
	}
	return s
}

// of returns by how much less the sequence of a unit is to be.
func (s *shifts) of(u *unit) int64 {
	if u.digits[1] == 0 {
		return 0
	}
	list := s.gone[u.run]
	n, _ := slices.BinarySearch(list, u.sequence)
	return int64(n)
}
