package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
)

const (
	helpWidth  = 100 // columns
	helpColumn = 34  // in which what a flag does begins
)

// helpTemplate is a command's help: the cli package's own tables grow as wide as
// their longest flag, which no terminal is.
func helpTemplate(c *cli.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "{{.HelpName}} - %s\n\nUSAGE:\n   {{.HelpName}}", literal(c.Usage))
	if len(c.Flags) > 0 {
		b.WriteString(" [options]")
	}
	if c.ArgsUsage != "" {
		b.WriteString(" " + literal(c.ArgsUsage))
	}
	b.WriteString("\n")
	if c.Description != "" {
		b.WriteString("\nDESCRIPTION:\n" + literal(indent(c.Description, 3)) + "\n")
	}
	if len(c.Subcommands) > 0 {
		b.WriteString("\nCOMMANDS:\n")
		for _, sub := range c.Subcommands {
			b.WriteString(literal(entry(sub.Name+" "+sub.ArgsUsage, sub.Usage)))
		}
	}
	b.WriteString("\nOPTIONS:\n")
	for _, f := range c.Flags {
		if d, ok := f.(cli.DocGenerationFlag); ok {
			b.WriteString(literal(flagEntry(d)))
		}
	}
	b.WriteString(entry("-h, --help", "show this"))
	return b.String()
}

// literal keeps text from being read as a template.
func literal(text string) string { return strings.ReplaceAll(text, "{{", `{{"{{"}}`) }

// flagEntry is what help says of a flag.
func flagEntry(f cli.DocGenerationFlag) string {
	usage, value := f.GetUsage(), "VALUE"
	if before, rest, ok := strings.Cut(usage, "`"); ok {
		if name, after, ok := strings.Cut(rest, "`"); ok {
			usage, value = before+name+after, name
		}
	}
	names := f.Names()
	head := "    --" + names[0]
	if len(names) > 1 {
		head = "-" + names[1] + ", --" + names[0]
	}
	if f.TakesValue() {
		head += " " + value
	}
	if given := f.GetValue(); f.TakesValue() && given != "" && given != "0" && given != "0s" && given != "-1" {
		usage += fmt.Sprintf(" [%s]", given)
	}
	return entry(head, usage)
}

// entry is a line of help, or several where it is long.
func entry(head, text string) string {
	var b strings.Builder
	line := "   " + head
	if len(line) > helpColumn-2 {
		b.WriteString(line + "\n")
		line = ""
	}
	line += strings.Repeat(" ", helpColumn-len(line))
	for word := range strings.FieldsSeq(text) {
		if len(line)+len(word) > helpWidth {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line = strings.Repeat(" ", helpColumn)
		}
		line += word + " "
	}
	return b.String() + strings.TrimRight(line, " ") + "\n"
}

func indent(text string, by int) string {
	margin := strings.Repeat(" ", by)
	return strings.ReplaceAll(margin+strings.ReplaceAll(text, "\n", "\n"+margin), "\n"+margin+"\n", "\n\n")
}
