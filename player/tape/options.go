package tape

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"tapedeck/player/scenario"
	"tapedeck/protocol/capture"
)

// Match says which recorded run answers a run:start.
type Match string

// The ways to match.
const (
	// MatchAuto takes the run that the same input opened at the same place of
	// the thread, else the same input anywhere, else the next one in order.
	MatchAuto Match = "auto"
	// MatchInput takes a run that the same input opened, and goes on behind a
	// pause only if the answers are the same, too.
	MatchInput Match = "input"
	// MatchOrder takes the thread's runs in their order, whatever the input.
	MatchOrder Match = "order"
)

// OnMiss says what becomes of a run:start that no recorded run fits.
type OnMiss string

// What a miss leads to.
const (
	// MissFail refuses the command, and says which run would be nearest.
	MissFail OnMiss = "fail"
	// MissNext takes the next run in order, from the first again after the last.
	MissNext OnMiss = "next"
	// MissScenario plays Options.Fallback.
	MissScenario OnMiss = "scenario"
)

// Options say what is played, and how. The zero value is ready to use.
type Options struct {
	Session  capture.SessionID  // the one to play, 0 for all
	Match    Match              // MatchAuto by default
	OnMiss   OnMiss             // MissFail by default
	Fallback *scenario.Scenario // for MissScenario
	// WithDrops ends sockets where the gateway or the network did.
	WithDrops bool
	// Seed changes the live ids. It is to be the player's.
	Seed uint64
	// LongestGap is the longest time within a run that is taken for real,
	// LongestGapDefault if it is 0. Clocks jump in what was imported.
	LongestGap time.Duration
	// Limit is how many bytes of payload may be kept, LimitDefault if it is 0.
	Limit int
	// Logger is told which run answers, and of what cannot be played; nil
	// discards.
	Logger *slog.Logger
}

// The defaults of Options.
const (
	LongestGapDefault = 10 * time.Minute
	LimitDefault      = 1 << 30
)

// Validate returns what is wrong with o, naming the field.
func (o Options) Validate() error {
	var errs []error
	if !slices.Contains([]Match{"", MatchAuto, MatchInput, MatchOrder}, o.Match) {
		errs = append(errs, fmt.Errorf("match %q is none of auto, input and order", o.Match))
	}
	if !slices.Contains([]OnMiss{"", MissFail, MissNext, MissScenario}, o.OnMiss) {
		errs = append(errs, fmt.Errorf("on miss %q is none of fail, next and scenario", o.OnMiss))
	}
	if (o.OnMiss == MissScenario) != (o.Fallback != nil) {
		errs = append(errs, errors.New("on miss scenario and fallback need each other"))
	}
	if o.LongestGap < 0 {
		errs = append(errs, fmt.Errorf("longest gap %v is below 0", o.LongestGap))
	}
	if o.Limit < 0 {
		errs = append(errs, fmt.Errorf("limit %d is below 0", o.Limit))
	}
	return errors.Join(errs...)
}

func (o Options) withDefaults() Options {
	if o.Match == "" {
		o.Match = MatchAuto
	}
	if o.OnMiss == "" {
		o.OnMiss = MissFail
	}
	if o.LongestGap == 0 {
		o.LongestGap = LongestGapDefault
	}
	if o.Limit == 0 {
		o.Limit = LimitDefault
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}
