package capture

import (
	"fmt"
	"strconv"
	"strings"
)

// Position is a frame's number on its tape. The first frame has position 1; 0
// means none.
type Position uint64

// Address names one packet of a frame: 1042 is the frame, 1042.3 its third
// packet. Packet counts from 1; 0 means the frame as a whole.
type Address struct {
	Position Position
	Packet   int
}

// IsZero reports whether a names nothing.
func (a Address) IsZero() bool { return a.Position == 0 }

// Compare orders addresses as their packets passed: -1, 0 or 1.
func (a Address) Compare(b Address) int {
	switch {
	case a.Position != b.Position:
		if a.Position < b.Position {
			return -1
		}
		return 1
	case a.Packet < b.Packet:
		return -1
	case a.Packet > b.Packet:
		return 1
	}
	return 0
}

// String writes the address for people: "1042", or "1042.3". The first packet of
// a frame is written without its number, since most frames hold one.
func (a Address) String() string {
	s := strconv.FormatUint(uint64(a.Position), 10)
	if a.Packet > 1 {
		s += "." + strconv.Itoa(a.Packet)
	}
	return s
}

// MarshalText writes the address in full, so that the same one is read back:
// "1042" is a frame, "1042.1" its first packet.
func (a Address) MarshalText() ([]byte, error) {
	text := strconv.AppendUint(nil, uint64(a.Position), 10)
	if a.Packet > 0 {
		text = strconv.AppendInt(append(text, '.'), int64(a.Packet), 10)
	}
	return text, nil
}

// UnmarshalText reads what MarshalText or String writes.
func (a *Address) UnmarshalText(text []byte) (err error) {
	*a, err = ParseAddress(string(text))
	return err
}

// ParseAddress reads "1042", "1042.3" or either behind a "#".
func ParseAddress(s string) (Address, error) {
	frame, packet, cut := strings.Cut(strings.TrimPrefix(s, "#"), ".")
	p, err := strconv.ParseUint(frame, 10, 64)
	if err != nil {
		return Address{}, fmt.Errorf("position %q is not a number such as 1042 or 1042.3", s)
	}
	a := Address{Position: Position(p)}
	if cut {
		if a.Packet, err = strconv.Atoi(packet); err != nil || a.Packet < 1 {
			return Address{}, fmt.Errorf("position %q: a frame's packets are counted from 1", s)
		}
	}
	return a, nil
}
