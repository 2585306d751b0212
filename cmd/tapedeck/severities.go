package main

import (
	"context"

	"tapedeck/protocol"
	"tapedeck/protocol/conversation"
	"tapedeck/recorder/live"
)

// withSettings is a tape whose findings have the severities that the user chose.
// The tape itself keeps those of the catalogue.
type withSettings struct {
	live.Tape
	settings protocol.Settings
}

// Findings returns the findings with their severities.
func (t *withSettings) Findings(ctx context.Context, run *conversation.RunKey) ([]protocol.Finding, error) {
	found, err := t.Tape.Findings(ctx, run)
	return t.settings.Apply(found), err
}

// Runs returns the runs with their findings counted anew.
func (t *withSettings) Runs(ctx context.Context) ([]conversation.Run, error) {
	runs, err := t.Tape.Runs(ctx)
	if err != nil {
		return nil, err
	}
	for i := range runs {
		r := &runs[i]
		if r.Errors+r.Warnings+r.Notes == 0 {
			continue
		}
		found, err := t.Findings(ctx, &conversation.RunKey{Session: r.Session, Run: r.ID})
		if err != nil {
			return nil, err
		}
		r.Errors, r.Warnings, r.Notes = 0, 0, 0
		for _, f := range found {
			switch f.Severity {
			case protocol.Error:
				r.Errors++
			case protocol.Warning:
				r.Warnings++
			case protocol.Note:
				r.Notes++
			}
		}
	}
	return runs, nil
}
