package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/goccy/go-yaml"
	"github.com/urfave/cli/v2"

	"tapedeck/protocol"
)

// settingsFile may hold the settings of a working folder: a member a flag, by
// the flag's long name. A flag and the environment win over it.
const settingsFile = "tapedeck.yaml"

// useSettings sets the flags of a command that neither the command line nor the
// environment set.
func useSettings(c *cli.Context) error {
	text, err := os.ReadFile(settingsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read settings: %w", err)
	}
	settings := map[string]any{}
	if err := yaml.Unmarshal(text, &settings); err != nil {
		return usageError("read %s: %v", settingsFile, err)
	}
	known := flagNames(c.App.Commands)
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		if !slices.Contains(known, key) {
			return unknownSetting(key, known)
		}
		if c.IsSet(key) || !hasFlag(c.Command, key) {
			continue
		}
		for _, value := range settingValues(settings[key]) {
			if err := c.Set(key, value); err != nil {
				return usageError("read %s: %s: %v", settingsFile, key, err)
			}
		}
	}
	return nil
}

func unknownSetting(key string, known []string) error {
	if near := protocol.Nearest(key, known); near != "" {
		return usageError("read %s: no setting %q; did you mean %q?", settingsFile, key, near)
	}
	return usageError("read %s: no setting %q; a setting is the long name of a flag, such as upstream", settingsFile, key)
}

// settingValues writes a setting as one would on the command line: a list as
// several flags, and a map, as that of rules, as several NAME=VALUE.
func settingValues(v any) []string {
	switch v := v.(type) {
	case []any:
		var values []string
		for _, item := range v {
			values = append(values, fmt.Sprint(item))
		}
		return values
	case map[string]any:
		var values []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			value := v[name]
			if value == false { // YAML 1.1 habits: off
				value = "off"
			}
			values = append(values, fmt.Sprintf("%s=%v", name, value))
		}
		return values
	}
	return []string{fmt.Sprint(v)}
}

// flagNames returns the long names of all commands' flags.
func flagNames(commands []*cli.Command) []string {
	var names []string
	for _, c := range commands {
		for _, f := range c.Flags {
			names = append(names, f.Names()[0])
		}
		names = append(names, flagNames(c.Subcommands)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func hasFlag(c *cli.Command, name string) bool {
	return slices.ContainsFunc(c.Flags, func(f cli.Flag) bool { return f.Names()[0] == name })
}
