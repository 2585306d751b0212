package driver

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write the golden files")

// TestDrives holds what is in testdata: a tape, a gateway to drive its client
// against, and what that gateway gets, when, and what is said of it. A minute
// takes no time here.
func TestDrives(t *testing.T) {
	if *update && os.Getenv("CI") == "true" {
		t.Fatal("golden files are not written in CI")
	}
	files, err := filepath.Glob("testdata/*.txtar")
	must(t, err)
	if len(files) == 0 {
		t.Fatal("nothing in testdata")
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			must(t, err)
			parts := map[string]string{}
			for _, f := range archive.Files {
				parts[f.Name] = string(f.Data)
			}
			var got string
			synctest.Test(t, func(t *testing.T) {
				tape, err := write(parts["tape"])
				must(t, err)
				o := Options{Patience: 30 * time.Second, Auth: []byte(`{"token":"live"}`), Threads: map[string]string{}}
				for line := range strings.Lines(parts["threads"]) {
					recorded, live, _ := strings.Cut(strings.TrimSpace(line), " ")
					o.Threads[recorded] = live
				}
				lines, err := driveAgainst(t.Context(), tape, newGateway(parts["gateway"]), o)
				must(t, err)
				got = strings.Join(lines, "\n") + "\n"
			})
			if *update {
				for i := range archive.Files {
					if archive.Files[i].Name == "want" {
						archive.Files[i].Data = []byte(got)
					}
				}
				must(t, os.WriteFile(file, txtar.Format(archive), 0o644))
				return
			}
			if diff := cmp.Diff(parts["want"], got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
