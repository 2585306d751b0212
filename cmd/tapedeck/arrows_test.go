package main

import (
	"os/exec"
	"strings"
	"testing"
)

// TestArrows holds the house's arrows: the four rooms do not know each other,
// what is pure knows none of them, and each foreign library has one home.
func TestArrows(t *testing.T) {
	const module = "tapedeck/"
	rooms := []string{"proxy", "recorder", "player", "inspector"}
	homes := map[string][]string{
		"go.etcd.io/bbolt":             {"recorder"},
		"github.com/gdamore/tcell/v2":  {"inspector/tui"},
		"github.com/urfave/cli/v2":     {"cmd"},
		"github.com/gorilla/websocket": {"player", "cmd"},
	}
	for pkg, imports := range goList(t) {
		pkg, ours := strings.CutPrefix(pkg, module)
		if !ours {
			continue
		}
		room, _, _ := strings.Cut(pkg, "/")
		for _, imported := range imports {
			for library, allowed := range homes {
				if imported == library && !withinAny(pkg, allowed) {
					t.Errorf("%s imports %s, whose home is %s", pkg, library, strings.Join(allowed, " and "))
				}
			}
			other, ours := strings.CutPrefix(imported, module)
			if !ours {
				continue
			}
			otherRoom, _, _ := strings.Cut(other, "/")
			switch {
			case room == "protocol" && otherRoom != "protocol":
				t.Errorf("%s imports %s: package protocol and what is below it are pure", pkg, other)
			case room != otherRoom && room != "cmd" && withinAny(other, rooms):
				t.Errorf("%s imports %s: the rooms meet in protocol/capture, and cmd alone wires them", pkg, other)
			case other == "cmd" || strings.HasPrefix(other, "cmd/"):
				t.Errorf("%s imports %s", pkg, other)
			case pkg == "protocol/capture":
				t.Errorf("%s imports %s: it is on the standard library alone", pkg, other)
			}
		}
	}
}

// goList returns the imports of each package of the module, tests aside.
func goList(t *testing.T) map[string][]string {
	t.Helper()
	cmd := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	imports := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		imports[fields[0]] = fields[1:]
	}
	if len(imports) < 8 {
		t.Fatalf("go list found %d packages only", len(imports))
	}
	return imports
}

func withinAny(pkg string, roots []string) bool {
	for _, root := range roots {
		if pkg == root || strings.HasPrefix(pkg, root+"/") {
			return true
		}
	}
	return false
}
