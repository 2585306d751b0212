package inspector

import (
	"slices"
	"time"

	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// runRow is a row of the list.
type runRow struct {
	chain []conversation.Run
	name  string // the least of its id that names it
	sum   runSum
}

// runSum is what a chain of runs comes to.
type runSum struct {
	model, human            time.Duration
	envelopes               int
	errors, warnings, notes int
	status                  conversation.Status
	started                 time.Duration
	session                 capture.SessionID
	waiting, input, thread  string
	firstToken              time.Duration
	pulse                   []int
	live                    bool
}

func (r *runRow) key() conversation.RunKey {
	return conversation.RunKey{Session: r.chain[0].Session, Run: r.chain[0].ID}
}

// chains puts runs and those that they continue together, in the order in which
// the first of each began.
func chains(runs []conversation.Run) [][]conversation.Run {
	at := make(map[conversation.RunKey]int, len(runs)) // the chain that a run is in
	var all [][]conversation.Run
	for _, r := range runs {
		i, continued := at[conversation.RunKey{Session: r.Session, Run: r.Continues}]
		if r.Continues == "" || !continued {
			i = len(all)
			all = append(all, nil)
		}
		at[conversation.RunKey{Session: r.Session, Run: r.ID}] = i
		all[i] = append(all[i], r)
	}
	return all
}

func sumOf(chain []conversation.Run, live capture.SessionID) runSum {
	first, last := &chain[0], &chain[len(chain)-1]
	sum := runSum{
		status: last.Status, started: first.Started, session: first.Session, waiting: last.Waiting, input: first.Input,
		thread: first.Thread, firstToken: first.FirstToken, pulse: first.Pulse,
	}
	for i := range chain {
		r := &chain[i]
		sum.model, sum.human = sum.model+ModelTime(r), sum.human+r.Human
		sum.envelopes += r.Envelopes
		sum.errors, sum.warnings, sum.notes = sum.errors+r.Errors, sum.warnings+r.Warnings, sum.notes+r.Notes
		if i > 0 { // pulses beside each other, in pairs, so that the width stays
			sum.pulse = halved(append(slices.Clone(sum.pulse), r.Pulse...))
		}
	}
	sum.live = first.Session == live && (sum.status == conversation.Running || sum.status == conversation.Paused)
	return sum
}

func halved(counts []int) []int {
	half := make([]int, 0, (len(counts)+1)/2)
	for i := 0; i < len(counts); i += 2 {
		n := counts[i]
		if i+1 < len(counts) {
			n += counts[i+1]
		}
		half = append(half, n)
	}
	return half
}

// shortNames returns the least of each run's id that names it, at least eight
// letters of it.
func shortNames(runs []conversation.Run) map[string]string {
	ids := make([]string, 0, len(runs))
	for _, r := range runs {
		ids = append(ids, r.ID)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	names := make(map[string]string, len(ids))
	for i, id := range ids {
		n := 8
		for _, j := range []int{i - 1, i + 1} {
			if j >= 0 && j < len(ids) {
				n = max(n, common(id, ids[j])+1)
			}
		}
		names[id] = Clean(cutBytes(id, min(n, 16)))
	}
	return names
}

// common is the number of bytes that two strings begin with alike.
func common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
