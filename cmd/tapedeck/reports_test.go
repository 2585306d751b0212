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

// TestSecurityPage: behind each claim of the page stands a test that is there.
func TestSecurityPage(t *testing.T) {
	page, err := os.ReadFile("../../proxy/SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(?:([a-z]+)\\.((?:Test|Fuzz)[A-Za-z]+)|(testdata/script/[a-z]+\\.txtar))`").FindAllStringSubmatch(string(page), -1)
	if len(named) < 15 {
		t.Fatalf("the page names %d tests only", len(named))
	}
	tests := map[string]bool{}
	err = filepath.WalkDir("../..", func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Za-z]+)\(`).FindAllStringSubmatch(string(text), -1) {
			tests[filepath.Base(filepath.Dir(path))+"."+m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range named {
		if m[3] != "" {
			if _, err := os.Stat(m[3]); err != nil {
				t.Error(err)
			}
		} else if !tests[m[1]+"."+m[2]] {
			t.Errorf("there is no %s.%s", m[1], m[2])
		}
	}
}
