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
	case compressed(start):
		return "", nil, errors.New("it is compressed: unpack it first")
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

// ForImport reports whether a file that begins with these bytes is Import's to
// read: text that may be a capsule, or such a text compressed, which it refuses.
func ForImport(start []byte) bool {
	start = bytes.TrimPrefix(start, []byte("\xef\xbb\xbf"))
	start = bytes.TrimLeft(start, " \t\r\n")
	return len(start) > 0 && (start[0] == '{' || compressed(start))
}

// compressed reports whether a file begins as those of gzip, zip and zstd do.
func compressed(start []byte) bool {
	for _, magic := range []string{"\x1f\x8b", "PK\x03\x04", "\x28\xb5\x2f\xfd"} {
		if bytes.HasPrefix(start, []byte(magic)) {
			return true
		}
	}
	return false
}

// IsTape reports whether a file that begins with these bytes is a tape.
func IsTape(start []byte) bool {
	const at, magic = 16, "\xed\xda\x0c\xed" // where bbolt has it, in the first page
	return len(start) >= at+len(magic) && (string(start[at:at+4]) == magic || string(start[at:at+4]) == "\xed\x0c\xda\xed")
}
