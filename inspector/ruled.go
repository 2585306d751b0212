package inspector

import (
	"context"
	"slices"

	"tapedeck/protocol"
	"tapedeck/protocol/conversation"
)

// ruled is a source whose findings have the severities that the user chose.
type ruled struct {
	Source
	rules protocol.Settings
}

func (v *View) ruled() Source { return ruled{v.Source, v.Rules} }

// Findings returns the source's findings, less those that are off.
func (r ruled) Findings(ctx context.Context, run *conversation.RunKey) ([]protocol.Finding, error) {
	found, err := r.Source.Findings(ctx, run)
	return r.rules.Apply(slices.Clone(found)), err
}
