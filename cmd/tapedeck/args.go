package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"tapedeck/protocol"
)

// sortArgs puts a command's flags before its arguments, since flags may stand
// after arguments here and the cli package would take them for arguments. What
// it cannot place is an error that names the nearest flag.
func sortArgs(commands []*cli.Command, args []string) ([]string, error) {
	if len(args) < 2 {
		return args, nil
	}
	path, rest := args[:1:1], args[1:]
	var command *cli.Command
	for len(rest) > 0 {
		i := slices.IndexFunc(commands, func(c *cli.Command) bool { return c.HasName(rest[0]) })
		if i < 0 {
			break
		}
		command, commands = commands[i], commands[i].Subcommands
		path, rest = append(path, rest[0]), rest[1:]
	}
	if command == nil {
		return args, nil // help, version, or a command that does not exist
	}
	takesValue := flagTable(command)
	var flags, others []string
	for len(rest) > 0 {
		arg := rest[0]
		rest = rest[1:]
		switch {
		case arg == "--":
			others, rest = append(others, rest...), nil
		case len(arg) < 2 || arg[0] != '-':
			others = append(others, arg)
		default:
			name, _, hasValue := strings.Cut(strings.TrimLeft(arg, "-"), "=")
			takes, known := takesValue[name]
			if !known {
				return nil, unknownFlag(command, takesValue, arg)
			}
			flags = append(flags, arg)
			if takes && !hasValue {
				if len(rest) == 0 {
					return nil, usageError("%s: flag %s needs a value", command.Name, arg)
				}
				flags, rest = append(flags, rest[0]), rest[1:]
			}
		}
	}
	sorted := append(path, flags...)
	if len(others) > 0 {
		sorted = append(append(sorted, "--"), others...)
	}
	return sorted, nil
}

// flagTable says of each flag's name whether a value follows it.
func flagTable(c *cli.Command) map[string]bool {
	table := map[string]bool{"help": false, "h": false, "generate-bash-completion": false}
	for _, f := range c.Flags {
		takes := true
		if d, ok := f.(cli.DocGenerationFlag); ok {
			takes = d.TakesValue()
		}
		for _, name := range f.Names() {
			table[name] = takes
		}
	}
	return table
}

func unknownFlag(c *cli.Command, table map[string]bool, arg string) error {
	var names []string
	for name := range table {
		if len(name) > 1 && name != "generate-bash-completion" {
			names = append(names, name)
		}
	}
	given := strings.TrimLeft(strings.SplitN(arg, "=", 2)[0], "-")
	hint := fmt.Sprintf("try: tapedeck %s --help", c.Name)
	if near := protocol.Nearest(given, names); near != "" {
		hint = fmt.Sprintf("did you mean --%s? (an argument that begins with - goes behind --)", near)
	}
	return usageError("%s: no flag %q; %s", c.Name, arg, hint)
}
