package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"tapedeck/protocol"
)

const appUsage = "a record-and-replay debugging proxy for chat gateways"

const appDescription = `Debug a live run:       tapedeck proxy -u https://gateway.example    and point the app at it
See what was recorded:  tapedeck runs, tapedeck show last
Work without a gateway: tapedeck play --scenario approval
See it all at once:     tapedeck demo
In a folder with one tape, tapedeck alone opens it, as tapedeck inspect does.

Every flag can also be set in the environment: --listen is TAPEDECK_LISTEN.
Flags may stand before or after arguments.`

// newApp returns the command line.
func newApp(w *world) *cli.App {
	app := &cli.App{
		Name:                 "tapedeck",
		Usage:                appUsage,
		Description:          appDescription,
		Version:              version(),
		HideVersion:          true,
		HideHelpCommand:      true,
		EnableBashCompletion: true,
		Reader:               w.stdin,
		Writer:               w.stdout,
		ErrWriter:            w.stderr,
		ExitErrHandler:       func(*cli.Context, error) {}, // main decides
		OnUsageError:         onUsageError,
		Commands: []*cli.Command{
			w.demoCommand(), w.proxyCommand(), w.playCommand(), w.scenariosCommand(), w.inspectCommand(),
			w.runsCommand(), w.threadsCommand(), w.showCommand(), w.tailCommand(),
			w.findingsCommand(), w.checkCommand(), w.diffCommand(), w.statsCommand(), w.driveCommand(), w.exportCommand(), w.importCommand(), w.openCommand(), w.reduceCommand(), w.rulesCommand(),
			w.repairCommand(), w.pruneCommand(),
			w.versionCommand(), w.completionCommand(),
		},
		Action: w.noCommand,
	}
	for _, c := range app.Commands {
		prepare(c)
	}
	return app
}

// prepare gives a command what all commands have.
func prepare(c *cli.Command) {
	c.OnUsageError = onUsageError
	c.HideHelpCommand = true
	c.CustomHelpTemplate = helpTemplate(c)
	for _, f := range c.Flags {
		addEnvironment(f)
	}
	for _, sub := range c.Subcommands {
		prepare(sub)
	}
}

// addEnvironment lets a flag be set by TAPEDECK_ and its name.
func addEnvironment(f cli.Flag) {
	name := "TAPEDECK_" + strings.ToUpper(strings.ReplaceAll(f.Names()[0], "-", "_"))
	switch f := f.(type) {
	case *cli.StringFlag:
		f.EnvVars = append(f.EnvVars, name)
	case *cli.BoolFlag:
		f.EnvVars = append(f.EnvVars, name)
	case *cli.IntFlag:
		f.EnvVars = append(f.EnvVars, name)
	case *cli.Int64Flag:
		f.EnvVars = append(f.EnvVars, name)
	case *cli.Float64Flag:
		f.EnvVars = append(f.EnvVars, name)
	case *cli.DurationFlag:
		f.EnvVars = append(f.EnvVars, name)
	case *cli.StringSliceFlag:
		f.EnvVars = append(f.EnvVars, name)
	}
}

func onUsageError(c *cli.Context, err error, _ bool) error {
	name := "tapedeck"
	if c.Command != nil && c.Command.Name != "" {
		name = c.Command.Name
	}
	return usageError("%s: %v", name, err)
}

// noCommand is what happens without a command, or with one that does not exist.
func (w *world) noCommand(c *cli.Context) error {
	given := c.Args().First()
	if given == "" {
		if path := onlyTape(); path != "" && w.canShow() {
			return w.inspect(c, path)
		}
		return cli.ShowAppHelp(c)
	}
	var names []string
	for _, command := range c.App.Commands {
		names = append(names, command.Names()...)
	}
	slices.Sort(names)
	if near := protocol.Nearest(given, names); near != "" {
		return usageError("no command %q; did you mean %q?", given, near)
	}
	return usageError("no command %q; the commands are %s", given, strings.Join(names, ", "))
}

// arguments checks how many arguments a command was given.
func arguments(c *cli.Context, least, most int, form string) ([]string, error) {
	args := c.Args().Slice()
	switch {
	case len(args) < least:
		return nil, usageError("%s: %s is missing; try: tapedeck %s --help", c.Command.Name, form, c.Command.Name)
	case len(args) > most:
		return nil, usageError("%s: %q is one argument too many; it takes %s", c.Command.Name, args[most], orNone(form))
	}
	return args, nil
}

func orNone(form string) string {
	if form == "" {
		return "none"
	}
	return form
}

// versionLine is what --version says of the build and of the formats.
func versionLine() string {
	return fmt.Sprintf("tapedeck %s (protocol %d.%d, rules %d)", version(), protocol.Major, protocol.Minor, protocol.CatalogueVersion)
}
