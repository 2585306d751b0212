package main

import (
	"fmt"
	"runtime/debug"

	"github.com/urfave/cli/v2"
)

// version returns the module's version, or the commit that it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	revision, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			revision = s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+"
		}
	}
	if revision == "" {
		return "devel"
	}
	return "devel-" + revision + dirty
}

func (w *world) versionCommand() *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "print the version of the tool, the protocol and the rules",
		Action: func(c *cli.Context) error {
			if _, err := arguments(c, 0, 0, ""); err != nil {
				return err
			}
			_, err := fmt.Fprintln(w.stdout, versionLine())
			return err
		},
	}
}
