package capsule

import (
	"iter"
	"maps"
	"math/bits"
	"slices"

	"tapedeck/protocol/capture"
)

// chunkWords is how many words of a set lie together.
const chunkWords = 64

// set is a set of positions, a bit each, that knows how many of its members come
// before one. It takes room where it has members and nowhere else, since the
// positions of a hostile tape may be far apart.
type set struct {
	chunks map[uint64]*chunk
	size   uint64
	sealed bool // before is counted
}

type chunk struct {
	words  [chunkWords]uint64
	before uint64 // members in the chunks before it
}

func newSet() *set { return &set{chunks: map[uint64]*chunk{}} }

func place(p capture.Position) (chunk uint64, word int, bit uint64) {
	return uint64(p) / (64 * chunkWords), int(uint64(p) / 64 % chunkWords), 1 << (p % 64)
}

func (s *set) add(p capture.Position) {
	at, word, bit := place(p)
	c := s.chunks[at]
	if c == nil {
		c = &chunk{}
		s.chunks[at] = c
	}
	if c.words[word]&bit == 0 {
		c.words[word] |= bit
		s.size++
		s.sealed = false
	}
}

func (s *set) has(p capture.Position) bool {
	at, word, bit := place(p)
	c := s.chunks[at]
	return c != nil && c.words[word]&bit != 0
}

// rank returns p's place among the members, counted from 1; 0 if it is none.
func (s *set) rank(p capture.Position) uint64 {
	if !s.has(p) {
		return 0
	}
	if !s.sealed {
		before := uint64(0)
		for _, at := range slices.Sorted(maps.Keys(s.chunks)) {
			c := s.chunks[at]
			c.before = before
			for _, w := range c.words {
				before += uint64(bits.OnesCount64(w))
			}
		}
		s.sealed = true
	}
	at, word, bit := place(p)
	c := s.chunks[at]
	rank := c.before
	for _, w := range c.words[:word] {
		rank += uint64(bits.OnesCount64(w))
	}
	return rank + uint64(bits.OnesCount64(c.words[word]&(bit-1))) + 1
}

// positions yields the members in order.
func (s *set) positions() iter.Seq[capture.Position] {
	return func(yield func(capture.Position) bool) {
		for _, at := range slices.Sorted(maps.Keys(s.chunks)) {
			for i, w := range s.chunks[at].words {
				for ; w != 0; w &= w - 1 {
					p := at*64*chunkWords + uint64(i)*64 + uint64(bits.TrailingZeros64(w))
					if !yield(capture.Position(p)) {
						return
					}
				}
			}
		}
	}
}
