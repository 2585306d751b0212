package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"tapedeck/inspector"
	"tapedeck/protocol"
)

func (w *world) rulesCommand() *cli.Command {
	return &cli.Command{
		Name:      "rules",
		Usage:     "print the catalogue of rules, or explain some of them",
		ArgsUsage: "[RULE…]",
		Description: `tapedeck rules                    all of them, a line each
tapedeck rules replay-seam        what it means, what a person would see, what to do
tapedeck rules --format markdown  the whole page`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "format", Value: "text", Usage: "write `text|json|markdown`"},
		},
		Action: func(c *cli.Context) error {
			rules, err := chosenRules(c.Args().Slice())
			if err != nil {
				return err
			}
			switch format := c.String("format"); {
			case format == "json":
				enc := json.NewEncoder(w.stdout)
				enc.SetEscapeHTML(false)
				enc.SetIndent("", "  ")
				return enc.Encode(rules)
			case format == "markdown" && c.NArg() == 0:
				_, err := w.stdout.Write(protocol.RulesPage())
				return err
			case format == "markdown":
				return usageError("rules: --format markdown writes the whole page; leave the rules out")
			case format != "text":
				return usageError("rules: format %q is none of text, json and markdown", format)
			case c.NArg() > 0:
				return explainRules(w.stdout, rules)
			}
			return listRules(w.stdout, rules, w.look(c))
		},
	}
}

// chosenRules returns the rules of the given ids, all if there are none.
func chosenRules(ids []string) ([]protocol.Rule, error) {
	all := protocol.Rules()
	if len(ids) == 0 {
		return all, nil
	}
	var names []string
	for _, r := range all {
		names = append(names, r.ID)
	}
	var rules []protocol.Rule
	for _, id := range ids {
		r, ok := protocol.RuleByID(id)
		if !ok {
			err := fmt.Errorf("no rule %q; tapedeck rules lists them", id)
			if near := protocol.Nearest(id, names); near != "" {
				err = fmt.Errorf("no rule %q; did you mean %q?", id, near)
			}
			return nil, withCode(exitNothing, err)
		}
		rules = append(rules, r)
	}
	return rules, nil
}

func listRules(out io.Writer, rules []protocol.Rule, look inspector.Look) error {
	styles := map[protocol.Severity]inspector.Style{protocol.Error: inspector.Bad, protocol.Warning: inspector.Warn, protocol.Note: inspector.Notice}
	width := 0
	for _, r := range rules {
		width = max(width, len(r.ID))
	}
	for _, r := range rules {
		severity := look.Palette.Paint(styles[r.Severity], fmt.Sprintf("%-7s", r.Severity))
		if _, err := fmt.Fprintf(out, "%-*s  %s  %-8s  %s\n", width, r.ID, severity, r.Provenance, r.Title); err != nil {
			return err
		}
	}
	return nil
}

func explainRules(out io.Writer, rules []protocol.Rule) error {
	var text strings.Builder
	for i, r := range rules {
		if i > 0 {
			text.WriteByte('\n')
		}
		fmt.Fprintf(&text, "%s (%s, %s, section %q)\n", r.ID, r.Severity, r.Provenance, r.Section)
		for _, part := range []struct{ label, text string }{
			{"what", r.Title}, {"unless", r.Unless}, {"follows from", r.Follows}, {"a person sees", r.Harm}, {"what to do", r.Fix},
		} {
			if part.text != "" {
				fmt.Fprintf(&text, "  %-14s %s\n", part.label+":", part.text)
			}
		}
	}
	_, err := io.WriteString(out, text.String())
	return err
}
