package tape

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
)

// binding is the map from recorded ids to those of a live thread. An id that it
// does not know gets a new one, which depends on the seed, the live thread and
// the id alone.
type binding struct {
	key [sha256.Size]byte
	// bound, if it is not nil, is told each pair once, under mu.
	bound func(recorded, live string)

	mu   sync.Mutex // protects following
	live map[string]string
	back map[string]string // live to recorded
}

func newBinding(seed uint64, thread string, generation int) *binding {
	return &binding{
		key:  sha256.Sum256(fmt.Appendf(nil, "%d\x00%d\x00%s", seed, generation, thread)),
		live: map[string]string{}, back: map[string]string{},
	}
}

// set maps a recorded id to one that a caller or the gateway chose.
func (b *binding) set(recorded, live string) {
	if recorded == "" || live == "" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pair(recorded, live)
}

func (b *binding) pair(recorded, live string) {
	b.live[recorded], b.back[live] = live, recorded
	if b.bound != nil {
		b.bound(recorded, live)
	}
}

// of returns the live id of a recorded one.
func (b *binding) of(recorded string) string {
	if recorded == "" {
		return ""
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bind(recorded)
}

// recorded returns the recorded id of a live one.
func (b *binding) recorded(live string) (string, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	id, ok := b.back[live]
	return id, ok
}

// bind is of, with mu held.
func (b *binding) bind(recorded string) string {
	live, ok := b.live[recorded]
	if !ok {
		live = b.derive(recorded)
		b.pair(recorded, live)
	}
	return live
}

// derive makes a live id. A UUID stays one; of anything else the recorded id
// stays legible. Two recorded ids never become one.
func (b *binding) derive(recorded string) string {
	if !isUUID(recorded) {
		return recorded + "-" + hex.EncodeToString(b.key[:4])
	}
	node, err := hex.DecodeString(recorded[24:])
	if err != nil {
		return recorded + "-" + hex.EncodeToString(b.key[:4])
	}
	for i := range node {
		node[i] ^= b.key[i]
	}
	digits := hex.EncodeToString(node)
	if strings.ContainsAny(recorded, "ABCDEF") {
		digits = strings.ToUpper(digits)
	}
	return recorded[:24] + digits
}

func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if c != '-' {
				return false
			}
		case c >= '0' && c <= '9', c >= 'a' && c <= 'f', c >= 'A' && c <= 'F':
		default:
			return false
		}
	}
	return true
}
