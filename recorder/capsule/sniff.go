package capsule

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// sniff says whether a text is a HAR or the JSONL form, by its beginning.
func sniff(in io.Reader) (Format, io.Reader, error) {
	const look = 4 << 10
	b := bufio.NewReaderSize(in, 64<<10)
	start, err := b.Peek(look)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", nil, err
	}
	if bytes.HasPrefix(start, []byte("\xef\xbb\xbf")) { // a byte order mark, as some editors write
		if _, err := b.Discard(3); err != nil {
			return "", nil, err
		}
		start = start[3:]
	}
	start = bytes.TrimLeft(start, " \t\r\n")
	switch {
	case len(start) == 0:
		return "", nil, errors.New("it is empty")
	case start[0] != '{':
		return JSONL, b, nil // its lines are named as broken, one by one
	}
	rest := bytes.TrimLeft(start[1:], " \t\r\n")
	if bytes.HasPrefix(rest, []byte(`"log"`)) {
		return HAR, b, nil
	}
	return JSONL, b, nil
}

// IsTape reports whether a file that begins with these bytes is a tape.
func IsTape(start []byte) bool {
	const at, magic = 16, "\xed\xda\x0c\xed" // where bbolt has it, in the first page
	return len(start) >= at+len(magic) && (string(start[at:at+4]) == magic || string(start[at:at+4]) == "\xed\x0c\xda\xed")
}
