package engine

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"tapedeck/protocol/wire"
)

// maxAttachments is how many attachments socket.io-parser 4.2.7 accepts.
const maxAttachments = 10

// received is a Socket.IO packet that came from a client.
type received struct {
	kind        wire.Type // BinaryEvent and BinaryAck only while attachments are missing
	namespace   string
	id          string // the digits as sent
	name        string
	args        []json.RawMessage
	auth        json.RawMessage
	missing     int // attachments that have yet to come
	attachments [][]byte
	body        json.RawMessage // of a binary packet, for its placeholders
}

// reserved are the names that no peer may emit.
func reserved(name string) bool {
	switch name {
	case "connect", "connect_error", "disconnect", "disconnecting", "newListener", "removeListener":
		return true
	}
	return false
}

// parsePacket reads the text of a Socket.IO packet, that is what follows the
// Engine.IO 4. It accepts what socket.io-parser 4.2.7 accepts, except numbers in
// other forms than digits. Its result shares the bytes of text.
func parsePacket(text []byte) (received, error) {
	p := received{namespace: "/"}
	if len(text) == 0 {
		return p, errors.New("parse packet: it is empty")
	}
	if text[0] < '0' || text[0] > '6' {
		return p, fmt.Errorf("parse packet: unknown packet type %q", text[0])
	}
	p.kind = wire.Type(text[0] - '0')
	rest := text[1:]
	if p.kind == wire.BinaryEvent || p.kind == wire.BinaryAck {
		digits, after, ok := bytes.Cut(rest, []byte("-"))
		n, err := strconv.Atoi(string(digits))
		if !ok || err != nil || n < 1 || digits[0] == '+' {
			return p, fmt.Errorf("parse packet: illegal number of attachments %.20q", digits)
		}
		if n > maxAttachments {
			return p, fmt.Errorf("parse packet: %d attachments, at most %d may be sent", n, maxAttachments)
		}
		p.missing, rest = n, after
	}
	if len(rest) > 0 && rest[0] == '/' {
		namespace, after, _ := bytes.Cut(rest, []byte(","))
		p.namespace, rest = string(namespace), after
	}
	digits := 0
	for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
		digits++
	}
	p.id, rest = string(rest[:digits]), rest[digits:]
	return p, p.parsePayload(rest)
}

// parsePayload reads the JSON of a packet, which may be absent.
func (p *received) parsePayload(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	switch p.kind {
	case wire.Connect:
		if !json.Valid(text) || !startsWith(text, '{') {
			return fmt.Errorf("parse packet: the auth of a CONNECT is no JSON object: %.40q", text)
		}
		p.auth = bytes.Clone(text)
	case wire.Disconnect:
		return fmt.Errorf("parse packet: a DISCONNECT has no payload, got %.40q", text)
	case wire.ConnectError:
		if !json.Valid(text) || !startsWith(text, '{') && !startsWith(text, '"') {
			return fmt.Errorf("parse packet: a CONNECT_ERROR holds an object or a string, got %.40q", text)
		}
	default:
		return p.parseArray(text)
	}
	return nil
}

// parseArray reads the arguments of an event or of an acknowledgement.
func (p *received) parseArray(text []byte) error {
	if !startsWith(text, '[') {
		return fmt.Errorf("parse packet: the payload is no JSON array: %.40q", text)
	}
	if err := json.Unmarshal(text, &p.args); err != nil {
		return fmt.Errorf("parse packet: %v in %.40q", err, text)
	}
	if p.missing > 0 {
		p.body = bytes.Clone(text)
	}
	if p.kind == wire.Ack || p.kind == wire.BinaryAck {
		return nil
	}
	if len(p.args) == 0 {
		return errors.New("parse packet: an event without a name")
	}
	name := p.args[0]
	p.args = p.args[1:]
	switch {
	case name[0] == '"':
		if err := json.Unmarshal(name, &p.name); err != nil {
			return fmt.Errorf("parse packet: read event name %q: %v", name, err)
		}
		if reserved(p.name) {
			return fmt.Errorf("parse packet: the event name %q is reserved", p.name)
		}
	case name[0] == '-' || name[0] >= '0' && name[0] <= '9':
		p.name = string(name)
	default:
		return fmt.Errorf("parse packet: an event name is a string or a number, got %.40q", name)
	}
	return nil
}

// attach adds an attachment; done is true when it was the last one.
func (p *received) attach(data []byte) (done bool, err error) {
	p.attachments = append(p.attachments, bytes.Clone(data))
	p.missing--
	if p.missing > 0 {
		return false, nil
	}
	if len(p.body) == 0 {
		return true, nil
	}
	var value any
	d := json.NewDecoder(bytes.NewReader(p.body))
	d.UseNumber() // numbers are not looked at, and may be larger than a float
	if err := d.Decode(&value); err != nil {
		return true, fmt.Errorf("parse packet: %v", err)
	}
	p.body = nil
	return true, checkPlaceholders(value, len(p.attachments))
}

// checkPlaceholders refuses placeholders that name no attachment.
func checkPlaceholders(value any, n int) error {
	switch v := value.(type) {
	case []any:
		for _, e := range v {
			if err := checkPlaceholders(e, n); err != nil {
				return err
			}
		}
	case map[string]any:
		if v["_placeholder"] == true {
			digits, _ := v["num"].(json.Number)
			if num, err := strconv.Atoi(digits.String()); err != nil || num < 0 || num >= n {
				return fmt.Errorf("parse packet: the placeholder of attachment %v, of %d that came", v["num"], n)
			}
			return nil
		}
		for _, e := range v {
			if err := checkPlaceholders(e, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// startsWith reports whether b is JSON whose first byte is c. A space before it
// is JSON too.
func startsWith(b []byte, c byte) bool {
	b = bytes.TrimLeft(b, " \t\r\n")
	return len(b) > 0 && b[0] == c
}

// decodeBase64 reads an attachment of a text transport. Like Node it does not
// ask for padding, and takes both alphabets.
func decodeBase64(text []byte) ([]byte, error) {
	s := strings.TrimRight(string(text), "=")
	if strings.ContainsAny(s, "-_") {
		return base64.RawURLEncoding.DecodeString(s)
	}
	return base64.RawStdEncoding.DecodeString(s)
}

// validEnd reports whether s does not end inside a character.
func validEnd(s string) bool {
	r, n := utf8.DecodeLastRuneInString(s)
	return r != utf8.RuneError || n != 1
}
