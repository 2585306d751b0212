package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestReports holds the list of faults to the tests that it names: all eighty are
// in it, each has a test, and the test names the fault.
func TestReports(t *testing.T) {
	text, err := os.ReadFile("testdata/reports.txt")
	if err != nil {
		t.Fatal(err)
	}
	tested, id := map[string]bool{}, ""
	heading := regexp.MustCompile(`^[A-Z]\d\d  \S`)
	for line := range strings.Lines(string(text)) {
		switch line = strings.TrimRight(line, "\n"); {
		case line == "" || line[0] == '#':
		case heading.MatchString(line):
			id = line[:3]
		default:
			file := strings.TrimSpace(line)
			test, err := os.ReadFile(filepath.Join("..", "..", file))
			if err != nil {
				t.Error(err)
			} else if !strings.Contains(string(test), id) {
				t.Errorf("%s does not name %s", file, id)
			}
			tested[id] = true
		}
	}
	for letter, n := range map[rune]int{'W': 14, 'E': 13, 'R': 7, 'J': 12, 'S': 10, 'B': 12, 'P': 7, 'T': 5} {
		for i := range n {
			if id := fmt.Sprintf("%c%02d", letter, i+1); !tested[id] {
				t.Errorf("%s has no test", id)
			}
		}
	}
}
