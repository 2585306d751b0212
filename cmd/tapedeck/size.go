package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// parseSize reads a number of bytes: 1000, 64KiB, 10MB, 1GiB, or a bare k, m
// or g for the binary units.
func parseSize(s string) (int, error) {
	text := strings.ToLower(strings.TrimSpace(s))
	digits := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyz ")
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("size %q is not a number of bytes such as 64MiB", s)
	}
	unit, ok := map[string]float64{
		"": 1, "b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9,
		"k": 1 << 10, "kib": 1 << 10, "m": 1 << 20, "mib": 1 << 20, "g": 1 << 30, "gib": 1 << 30,
	}[strings.TrimSpace(text[len(digits):])]
	if !ok {
		return 0, fmt.Errorf("size %q: the unit is none of B, KiB, MiB, GiB, kB, MB, GB", s)
	}
	if n *= unit; n > math.MaxInt32 {
		return 0, fmt.Errorf("size %q is over 2 GiB", s)
	}
	return int(n), nil
}
