package protocol

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// keeper makes strings of bytes that will not stay, almost without allocating:
// an id that comes again is the string it was before, and texts are cut from
// blocks. What it returns may be kept for good.
type keeper struct {
	ids   map[string]string
	last  [allSlots]string // the id that each slot had last, without escapes
	block strings.Builder
	plain []byte // what an escaped text unescapes to
}

const (
	keptIDs    = 4096      // ids remembered before all are forgotten
	longestID  = 128       // bytes; longer ones are not worth remembering
	textBlock  = 16 << 10  // bytes of a block of texts
	longText   = 2 << 10   // bytes of a text that is allocated by itself
	longBuffer = 256 << 10 // bytes of a buffer that is not kept for the next text
)

// id returns the string that the JSON of a string in a slot says, remembered.
// Most of a stream have the ids of the one before.
func (k *keeper) id(s slot, value []byte) string {
	if last := k.last[s]; last != "" && len(value) == len(last)+2 && value[0] == '"' && string(inside(value)) == last {
		return last
	}
	id := k.intern(value)
	k.last[s] = ""
	if len(id) <= longestID && !hasEscape(value) {
		k.last[s] = id
	}
	return id
}

func (k *keeper) intern(value []byte) string {
	raw := k.unescape(value)
	if s, ok := k.ids[string(raw)]; ok {
		return s
	}
	s := string(raw)
	if len(s) > longestID {
		return s
	}
	if k.ids == nil || len(k.ids) >= keptIDs {
		k.ids = make(map[string]string)
	}
	k.ids[s] = s
	return s
}

// text returns the string that the JSON of a string says.
func (k *keeper) text(value []byte) string {
	raw := k.unescape(value)
	if len(raw) > longText {
		return string(raw)
	}
	if k.block.Cap()-k.block.Len() < len(raw) {
		k.block = strings.Builder{} // the old block lives on in what was cut from it
		k.block.Grow(textBlock)
	}
	start := k.block.Len()
	k.block.Write(raw)
	return k.block.String()[start:]
}

// unescape returns the bytes of a string, valid until the next call.
func (k *keeper) unescape(value []byte) []byte {
	if kindOf(value) != isString {
		return nil
	}
	if !hasEscape(value) {
		return inside(value)
	}
	if cap(k.plain) > longBuffer {
		k.plain = nil
	}
	k.plain, _ = jsontext.AppendUnquote(k.plain[:0], value)
	return k.plain
}

func hasEscape(b []byte) bool { return bytes.IndexByte(b, '\\') >= 0 }

// inside returns what stands between the quotes of a string.
func inside(value []byte) []byte { return value[1:max(1, len(value)-1)] }
