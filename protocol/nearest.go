package protocol

import "strings"

// Nearest returns the known name that a mistyped one most likely meant, "" if
// none is near: at most a third of its letters and no more than three may
// differ, case aside, a swap of neighbours counted once.
func Nearest(given string, known []string) string {
	given = strings.ToLower(given)
	best, nearest := min(len(given)/3, 3)+1, ""
	for _, name := range known {
		if d := distance(given, strings.ToLower(name), best); d < best {
			best, nearest = d, name
		}
	}
	return nearest
}

// distance is the number of edits from a to b, or limit+1 if there are more
// than limit.
func distance(a, b string, limit int) int {
	if len(a) > 64 || len(b) > 64 || len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return min(last[len(b)], limit+1)
}
