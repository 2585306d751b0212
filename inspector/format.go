package inspector

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"tapedeck/protocol/conversation"
)

// FormatDuration writes a length of time in a few characters: "0.8ms",
// "310ms", "1.8s", "42s", "2m04s", "1h02m". A negative one, which only a clock
// that jumped can give, is "0ms".
func FormatDuration(d time.Duration) string {
	switch {
	case d <= 0:
		return "0ms"
	case d < 950*time.Microsecond:
		return "0." + strconv.FormatInt(max(d.Round(100*time.Microsecond).Microseconds()/100, 1), 10) + "ms"
	case d < 999500*time.Microsecond:
		return strconv.FormatInt(d.Round(time.Millisecond).Milliseconds(), 10) + "ms"
	case d < 9950*time.Millisecond:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + "s"
	case d < 59500*time.Millisecond:
		return strconv.FormatFloat(d.Seconds(), 'f', 0, 64) + "s"
	case d < time.Hour-500*time.Millisecond:
		d = d.Round(time.Second)
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	d = d.Round(time.Minute)
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

// FormatOffset writes the time since a beginning: "+1.840s". It has three
// decimals where they can be read, so that rows can be told apart.
func FormatOffset(d time.Duration) string {
	switch d = max(d, 0).Round(time.Millisecond); {
	case d < time.Second:
		return "+" + strconv.FormatInt(d.Milliseconds(), 10) + "ms"
	case d < 100*time.Second:
		return "+" + strconv.FormatFloat(d.Seconds(), 'f', 3, 64) + "s"
	}
	return "+" + FormatDuration(d)
}

// FormatSize writes a number of bytes with decimal units: "412 B", "2.1 kB",
// "38 kB", "1.3 MB".
func FormatSize(n int64) string {
	if n < 1000 {
		return strconv.FormatInt(max(n, 0), 10) + " B"
	}
	value := float64(n)
	for _, unit := range []string{"kB", "MB", "GB", "TB"} {
		value /= 1000
		switch {
		case value < 9.95:
			return strconv.FormatFloat(value, 'f', 1, 64) + " " + unit
		case value < 999.5:
			return strconv.FormatFloat(value, 'f', 0, 64) + " " + unit
		}
	}
	return strconv.FormatFloat(value, 'f', 0, 64) + " TB"
}

// FormatCount writes a number with its noun: "1 error", "12,000 deltas".
func FormatCount(n int, noun string) string {
	if n == 1 || n == -1 {
		return strconv.Itoa(n) + " " + noun
	}
	return groupDigits(n) + " " + plural(noun)
}

func plural(noun string) string {
	switch {
	case strings.HasSuffix(noun, "y") && !strings.HasSuffix(noun, "ay"):
		return strings.TrimSuffix(noun, "y") + "ies"
	case strings.HasSuffix(noun, "s"), strings.HasSuffix(noun, "h"):
		return noun + "es"
	}
	return noun + "s"
}

func groupDigits(n int) string {
	s := strconv.Itoa(n)
	first := 0
	if n < 0 {
		first = 1
	}
	for i := len(s) - 3; i > first; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// ModelTime is a run's time without that in which a person was waited for. A
// wait after its last envelope, before a run that continues it, is no part of it.
func ModelTime(r *conversation.Run) time.Duration {
	took := max(r.Ended-r.Started, 0)
	if r.Human > took {
		return took
	}
	return took - r.Human
}
