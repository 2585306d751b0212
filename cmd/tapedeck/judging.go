package main

import (
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"tapedeck/protocol"
	"tapedeck/protocol/conversation"
)

// judgeFlags are those of the commands that judge.
func judgeFlags() []cli.Flag {
	return []cli.Flag{
		ruleFlag(),
		&cli.StringFlag{Name: "schemas", TakesFile: true, Usage: "judge messages by the JSON Schemas in `FILE`"},
		&cli.DurationFlag{Name: "first-token-slow", Usage: "note a run whose first delta takes longer than `TIME` (5s)"},
		&cli.DurationFlag{Name: "stall", Usage: "note a live run without an event for `TIME` (10s)"},
		&cli.IntFlag{Name: "chatty", Usage: "note a run with more than `N` events within a second (200)"},
		&cli.StringFlag{Name: "envelope-large", Usage: "note an envelope over `SIZE` (256KiB)"},
	}
}

func ruleFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "rule", Usage: "give a rule another severity: `ID=error|warning|note|off`; may be repeated"}
}

// settings reads --rule.
func settings(c *cli.Context) (protocol.Settings, error) {
	s, err := protocol.ParseSettings(c.StringSlice("rule"))
	if err != nil {
		return s, usageError("%s: --rule: %v", c.Command.Name, err)
	}
	return s, nil
}

// judgeOptions reads how to judge, and the schemas that messages are judged by,
// nil for the page's own shapes.
func judgeOptions(c *cli.Context) (o conversation.Options, schemas *protocol.Schemas, err error) {
	o.Pace = conversation.Pace{FirstToken: c.Duration("first-token-slow"), Stall: c.Duration("stall"), Rate: c.Int("chatty")}
	if size := c.String("envelope-large"); size != "" {
		if o.Pace.Envelope, err = parseSize(size); err != nil {
			return o, nil, usageError("%s: --envelope-large: %v", c.Command.Name, err)
		}
	}
	if file := c.String("schemas"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return o, nil, fmt.Errorf("read schemas: %w", err)
		}
		if schemas, err = protocol.LoadSchemas(text); err != nil {
			return o, nil, fmt.Errorf("read schemas %q: %w", file, err)
		}
	}
	o.Validator = protocol.NewValidator(protocol.Options{Schemas: schemas})
	return o, schemas, nil
}

// sayRemarks tells what of the schemas could not be used.
func (w *world) sayRemarks(schemas *protocol.Schemas) {
	if schemas == nil {
		return
	}
	for _, remark := range schemas.Remarks() {
		w.talk("schemas: %s", remark)
	}
}
