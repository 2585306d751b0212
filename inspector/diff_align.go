package inspector

import (
	"hash/maphash"
	"slices"
)

// The alignment costs little more than the two sides are long. What is the same
// at both ends and what is on both sides once is found by hash; what is left
// between is small, or so unlike that it is paired in order.

// maxTable bounds the cells of the table that aligns what has nothing to hold
// on to.
const maxTable = 1 << 20

// side is one of the two lists that are aligned.
type side struct {
	list  []*Construct
	print []uint64 // of all that is compared
	key   []uint64 // of kind and name
}

func (s side) from(i, j int) side { return side{s.list[i:j], s.print[i:j], s.key[i:j]} }

func (c *comparison) side(list []*Construct) side {
	s := side{list, make([]uint64, len(list)), make([]uint64, len(list))}
	for i, k := range list {
		var h maphash.Hash
		h.SetSeed(c.seed)
		h.WriteString(k.kind() + "\x00" + k.Name + "\x00")
		s.key[i] = h.Sum64()
		for j := range k.Fields {
			if f := &k.Fields[j]; c.wanted(f) {
				h.WriteString(f.Name)
				c.hash(&h, "/"+f.Name, f.value)
			}
		}
		s.print[i] = h.Sum64()
	}
	return s
}

// hash takes what is compared of a value. Of an id only its kind counts.
func (c *comparison) hash(h *maphash.Hash, path string, value any) {
	switch v := value.(type) {
	case map[string]any:
		h.WriteByte('{')
		for _, name := range sortedKeys(v) {
			if member := path + "/" + pointerToken(name); !c.ignored(member) {
				h.Write(appendString(nil, name))
				c.hash(h, member, v[name])
			}
		}
	case []any:
		h.WriteByte('[')
		for _, item := range v {
			c.hash(h, path+"/*", item)
		}
	case Ref:
		h.WriteString("‹" + v.Kind)
	default:
		h.Write(appendValue(nil, v))
	}
	h.WriteByte(0)
}

// align pairs the constructs of both sides, in an order that keeps that of both.
func (c *comparison) align(a, b []*Construct) []Pair {
	pairs := alignSides(nil, c.side(a), c.side(b))
	return c.findMoved(pairs)
}

func alignSides(pairs []Pair, a, b side) []Pair {
	n := 0
	for n < len(a.list) && n < len(b.list) && a.print[n] == b.print[n] {
		pairs = append(pairs, Pair{A: a.list[n], B: b.list[n]})
		n++
	}
	a, b = a.from(n, len(a.list)), b.from(n, len(b.list))
	n = 0
	for n < len(a.list) && n < len(b.list) && a.print[len(a.list)-1-n] == b.print[len(b.list)-1-n] {
		n++
	}
	tailA, tailB := a.list[len(a.list)-n:], b.list[len(b.list)-n:]
	pairs = alignMiddle(pairs, a.from(0, len(a.list)-n), b.from(0, len(b.list)-n))
	for i := range tailA {
		pairs = append(pairs, Pair{A: tailA[i], B: tailB[i]})
	}
	return pairs
}

// alignMiddle cuts at what is on both sides once, and aligns the pieces.
func alignMiddle(pairs []Pair, a, b side) []Pair {
	anchors := uniqueInBoth(a.print, b.print)
	if len(anchors) == 0 {
		return alignAlike(pairs, a, b)
	}
	i, j := 0, 0
	for _, at := range anchors {
		pairs = alignSides(pairs, a.from(i, at[0]), b.from(j, at[1]))
		pairs = append(pairs, Pair{A: a.list[at[0]], B: b.list[at[1]]})
		i, j = at[0]+1, at[1]+1
	}
	return alignSides(pairs, a.from(i, len(a.list)), b.from(j, len(b.list)))
}

// uniqueInBoth returns the places of what is once on either side, as many as
// keep their order: the longest increasing row of them.
func uniqueInBoth(a, b []uint64) [][2]int {
	count := map[uint64][2]int{}
	for _, h := range a {
		n := count[h]
		count[h] = [2]int{n[0] + 1, n[1]}
	}
	where := map[uint64]int{}
	for j, h := range b {
		n := count[h]
		count[h] = [2]int{n[0], n[1] + 1}
		where[h] = j
	}
	var both [][2]int
	for i, h := range a {
		if count[h] == [2]int{1, 1} {
			both = append(both, [2]int{i, where[h]})
		}
	}
	var ends []int // of the best row of each length, as indexes of both
	before := make([]int, len(both))
	for i, at := range both {
		k, _ := slices.BinarySearchFunc(ends, at[1], func(e, j int) int { return both[e][1] - j })
		before[i] = -1
		if k > 0 {
			before[i] = ends[k-1]
		}
		if k == len(ends) {
			ends = append(ends, i)
		} else {
			ends[k] = i
		}
	}
	if len(ends) == 0 {
		return nil
	}
	var row [][2]int
	for i := ends[len(ends)-1]; i >= 0; i = before[i] {
		row = append(row, both[i])
	}
	slices.Reverse(row)
	return row
}

// alignAlike pairs what is of one kind and name, as many as keep their order; of
// those, rather what is the same. Where that would take too long, they are
// paired as they come.
func alignAlike(pairs []Pair, a, b side) []Pair {
	if len(a.list)*len(b.list) > maxTable {
		return alignInOrder(pairs, a, b)
	}
	width := len(b.list) + 1
	best := make([]int32, (len(a.list)+1)*width) // of what is behind i and j
	for i := len(a.list) - 1; i >= 0; i-- {
		for j := len(b.list) - 1; j >= 0; j-- {
			skip := max(best[(i+1)*width+j], best[i*width+j+1])
			best[i*width+j] = max(skip, best[(i+1)*width+j+1]+likeness(a, b, i, j))
		}
	}
	i, j := 0, 0
	for i < len(a.list) && j < len(b.list) {
		here, like := best[i*width+j], likeness(a, b, i, j)
		switch {
		case like > 0 && here == best[(i+1)*width+j+1]+like:
			pairs = append(pairs, Pair{A: a.list[i], B: b.list[j]})
			i, j = i+1, j+1
		case here == best[(i+1)*width+j]:
			pairs = append(pairs, Pair{A: a.list[i]})
			i++
		default:
			pairs = append(pairs, Pair{B: b.list[j]})
			j++
		}
	}
	return alignInOrder(pairs, a.from(i, len(a.list)), b.from(j, len(b.list)))
}

func likeness(a, b side, i, j int) int32 {
	switch {
	case a.print[i] == b.print[j]:
		return 3
	case a.key[i] == b.key[j]:
		return 2
	}
	return 0
}

func alignInOrder(pairs []Pair, a, b side) []Pair {
	i, j := 0, 0
	for i < len(a.list) && j < len(b.list) && a.key[i] == b.key[j] {
		pairs = append(pairs, Pair{A: a.list[i], B: b.list[j]})
		i, j = i+1, j+1
	}
	for ; i < len(a.list); i++ {
		pairs = append(pairs, Pair{A: a.list[i]})
	}
	for ; j < len(b.list); j++ {
		pairs = append(pairs, Pair{B: b.list[j]})
	}
	return pairs
}

// findMoved makes one pair of what is on either side alone and the same, or of
// one kind and name and much alike.
func (c *comparison) findMoved(pairs []Pair) []Pair {
	var onlyA, onlyB []int
	for i := range pairs {
		switch p := &pairs[i]; {
		case p.B == nil:
			onlyA = append(onlyA, i)
		case p.A == nil:
			onlyB = append(onlyB, i)
		}
	}
	if len(onlyA) == 0 || len(onlyB) == 0 {
		return pairs
	}
	b := make([]*Construct, len(onlyB))
	for k, i := range onlyB {
		b[k] = pairs[i].B
	}
	sideB, gone := c.side(b), map[int]bool{}
	for _, i := range onlyA {
		a := c.side([]*Construct{pairs[i].A})
		for k, j := range onlyB[:min(len(onlyB), maxCandidates)] {
			if !gone[j] && (a.print[0] == sideB.print[k] || a.key[0] == sideB.key[k] && resemble(pairs[i].A, b[k])) {
				pairs[i].B, pairs[i].Moved, gone[j] = b[k], true, true
				break
			}
		}
	}
	kept := pairs[:0]
	for i := range pairs {
		if !gone[i] {
			kept = append(kept, pairs[i])
		}
	}
	return kept
}

// maxCandidates bounds those that something may have moved to.
const maxCandidates = 1000

// resemble reports whether two constructs say much the same: half of it, from
// the beginning.
func resemble(a, b *Construct) bool {
	x, y := canonical(a.said()), canonical(b.said())
	return len(x) > 8 && 2*common(string(x), string(y)) >= max(len(x), len(y))
}
