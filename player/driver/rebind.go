package driver

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// fresh makes ids that the gateway has not seen out of those that the client
// chose. The zero value leaves them as they are.
type fresh struct {
	suffix string
	key    [sha256.Size]byte
}

func newFresh(o Options) fresh {
	if o.KeepIDs {
		return fresh{}
	}
	return fresh{o.Suffix, sha256.Sum256([]byte(o.Suffix))}
}

// id returns another id for a recorded one. What ends like a UUID goes on to do
// so, anything else gets the suffix. Two ids never become one.
func (f fresh) id(recorded string) string {
	const digits = 12
	if f.suffix == "" || recorded == "" {
		return recorded
	}
	if cut := len(recorded) - digits; cut > 0 && recorded[cut-1] == '-' {
		if node, err := hex.DecodeString(recorded[cut:]); err == nil {
			for i := range node {
				node[i] ^= f.key[i]
			}
			tail := hex.EncodeToString(node)
			if strings.ContainsAny(recorded[cut:], "ABCDEF") {
				tail = strings.ToUpper(tail)
			}
			return recorded[:cut] + tail
		}
	}
	return recorded + "-" + f.suffix
}

// thread returns the live id of a thread that the client chose.
func (d *drive) thread(recorded string) string {
	if id := d.Options.Threads[recorded]; id != "" {
		return id
	}
	return d.fresh.id(recorded)
}

// rebound returns the arguments of a message with the live ids. The mutex is
// held.
func (p *player) rebound(m *move) []json.RawMessage {
	args := make([]json.RawMessage, len(m.args))
	for i, arg := range m.args {
		args[i] = arg
	}
	if len(args) == 0 {
		return args
	}
	bound := map[string]string{}
	for i := range m.refs {
		if id, lack := p.live(&m.refs[i]); lack == nil {
			bound[m.refs[i].field] = id
		}
	}
	args[0] = replaceIDs(args[0], func(field, id string) string {
		live, isBound := bound[field]
		switch {
		case isBound:
			return live
		case field == "threadId":
			return p.thread(id)
		case field == "messageId" && opens(m), field == "forkFromMessageId" && p.chosen[id]:
			return p.fresh.id(id)
		}
		return id
	})
	return args
}

// replaceIDs gives the string members of an object to live, and writes what it
// returns in their place. All other bytes stay as they are, and so does what is
// no object.
func replaceIDs(payload []byte, live func(field, id string) string) []byte {
	d := jsontext.NewDecoder(bytes.NewReader(payload), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if open, err := d.ReadToken(); err != nil || open.Kind() != '{' {
		return payload
	}
	var out []byte
	copied := 0
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return payload
		}
		field := name.String() // before the next token takes its place
		value, err := d.ReadValue()
		if err != nil {
			return payload
		}
		if value.Kind() != '"' {
			continue
		}
		id, err := jsontext.AppendUnquote(nil, value)
		if err != nil {
			continue
		}
		if other := live(field, string(id)); other != string(id) {
			end := int(d.InputOffset())
			out = append(out, payload[copied:end-len(value)]...)
			if out, err = jsontext.AppendQuote(out, other); err != nil {
				return payload
			}
			copied = end
		}
	}
	return append(out, payload[copied:]...)
}
