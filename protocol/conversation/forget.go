package conversation

import (
	"slices"

	"tapedeck/protocol/capture"
)

// dropOldest takes n entries out of m: those that may go, the one that was
// touched longest ago first. It sorts all of m, so its callers let m grow well
// beyond their limit before they call it.
func dropOldest[K comparable, V any](m map[K]V, n int, touched func(V) (at capture.Position, mayGo bool), dropped func(V)) {
	type entry struct {
		key K
		at  capture.Position
	}
	var entries []entry
	for key, v := range m {
		if at, mayGo := touched(v); mayGo {
			entries = append(entries, entry{key, at})
		}
	}
	slices.SortFunc(entries, func(a, b entry) int {
		return capture.Address{Position: a.at}.Compare(capture.Address{Position: b.at})
	})
	for _, e := range entries[:min(n, len(entries))] {
		if dropped != nil {
			dropped(m[e.key])
		}
		delete(m, e.key)
	}
}
