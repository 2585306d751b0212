package recorder

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// What was looked at of a tape does not stay in the process, and can be read
// again.
func TestUnmap(t *testing.T) {
	path := tapePath(t)
	w, _ := newTape(t, path, WriterOptions{})
	all := chat(50_000, time.Millisecond)
	write(w, all)
	w.Drain()
	read := func() {
		t.Helper()
		got, err := w.Reader().Frames(t.Context(), 1, len(all))
		if err != nil || len(got) == 0 {
			t.Fatalf("%d frames, %v", len(got), err)
		}
	}
	read()
	before := resident(t, path)
	w.tape.unmap()
	if after := resident(t, path); before < 1000 || after > before/4 {
		t.Errorf("%d KiB of the tape are in the process, %d before", after, before)
	}
	read()
	closeWriter(t, w, 0)
}

// resident returns how many KiB of a mapped file are in the process.
func resident(t *testing.T, path string) (kib int) {
	t.Helper()
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	defer maps.Close()
	lines := bufio.NewScanner(maps)
	for ours := false; lines.Scan(); {
		var n int
		switch line := lines.Text(); {
		case strings.Contains(line, " r--") || strings.Contains(line, " rw-") || strings.Contains(line, " r-x") || strings.Contains(line, " ---"):
			ours = strings.HasSuffix(line, path)
		case ours && strings.HasPrefix(line, "Rss:"):
			if _, err := fmt.Sscanf(line, "Rss: %d kB", &n); err != nil {
				t.Fatal(err)
			}
			kib += n
		}
	}
	return kib
}
