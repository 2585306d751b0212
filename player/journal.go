package player

import (
	"encoding/json"
	"fmt"
	"sync"

	"tapedeck/protocol"
)

// maxJournal is how many commands the journal keeps; the oldest go first.
const maxJournal = 10_000

// maxKept is how long a payload may be that the journal keeps, in bytes.
const maxKept = 64 << 10

// journal is what clients sent, and how it was answered.
type journal struct {
	mu      sync.Mutex // protects following
	entries []journalEntry
	count   int
}

// journalEntry is one command.
type journalEntry struct {
	Number  int             `json:"number"`
	Socket  string          `json:"socket"`
	Name    protocol.Name   `json:"name"`
	Thread  string          `json:"thread,omitempty"`
	Payload json.RawMessage `json:"payload,omitempty"`
	Refused *Refusal        `json:"refused,omitempty"`
}

func (j *journal) add(e journalEntry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.count++
	e.Number = j.count
	if len(e.Payload) > maxKept {
		e.Payload = quote(fmt.Sprintf("%d bytes, too long to keep", len(e.Payload)))
	}
	if len(j.entries) >= maxJournal {
		j.entries = append(j.entries[:0], j.entries[maxJournal/10:]...)
	}
	j.entries = append(j.entries, e)
}

func (j *journal) clear() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries, j.count = nil, 0
}

// read returns the commands that keep holds of.
func (j *journal) read(keep func(journalEntry) bool) []journalEntry {
	j.mu.Lock()
	defer j.mu.Unlock()
	found := []journalEntry{}
	for _, e := range j.entries {
		if keep(e) {
			found = append(found, e)
		}
	}
	return found
}

// choices are the scenarios that the control API chose.
type choices struct {
	mu      sync.Mutex // protects following
	threads map[string]choice
	next    string
}

// choice is the scenario of a thread, and how many runs it had before.
type choice struct {
	name  string
	since int
}

func (c *choices) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.threads, c.next = nil, ""
}

// choose sets the scenario of a thread.
func (c *choices) choose(thread string, made choice) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.threads == nil {
		c.threads = map[string]choice{}
	}
	c.threads[thread] = made
}

// chooseNext sets the scenario of the next run, whichever thread it is in.
func (c *choices) chooseNext(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next = name
}

func (c *choices) of(thread string) choice {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.threads[thread]
}

// take returns the scenario of the next run, once.
func (c *choices) take() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := c.next
	c.next = ""
	return name
}
