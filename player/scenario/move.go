package scenario

import (
	"fmt"
	"strconv"
	"strings"
)

// Trigger returns the event that a move waits for, and how many of them. The
// type is "" if it waits for nothing.
func (m Move) Trigger() (eventType string, count int, err error) {
	name, times, many := strings.Cut(m.When, "*")
	if !many {
		return name, 1, nil
	}
	count, err = strconv.Atoi(times)
	if err != nil || count < 1 {
		return "", 0, fmt.Errorf("when %q: behind the * stands how many, such as TEXT_MESSAGE_CONTENT*5", m.When)
	}
	return name, count, nil
}
