package player

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestQueue takes entries out of a queue, while others are put in, by when they
// are due, and among equals in the order in which they came.
func TestQueue(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var q queue
	var want []entry
	first := func() {
		slices.SortFunc(want, func(a, b entry) int { return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.order, b.order)) })
		if got := q.pop(); got != want[0] {
			t.Fatalf("got %+v of %d, want %+v", got, len(want), want[0])
		}
		want = want[1:]
	}
	for order := range uint64(2000) {
		e := entry{due: time.Duration(random.IntN(50)), order: order}
		q.push(e)
		want = append(want, e)
		if random.IntN(3) == 0 {
			first()
		}
	}
	for len(want) > 0 {
		first()
	}
	if len(q) > 0 {
		t.Errorf("%d entries are left over", len(q))
	}
}
