package player

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"tapedeck/player/engine"
	"tapedeck/player/scenario"
)

// Config configures a Gateway. The zero value of a field means its default.
type Config struct {
	// Scenario names the scenario that answers where nothing else is chosen:
	// one of Scenarios or a built-in one, "hello" by default.
	Scenario string
	// Scenarios are further scenarios by their names, before the built-in ones.
	Scenarios []*scenario.Scenario
	// Source answers the commands in place of scenarios.
	Source Source

	// Seed changes every id and the jitter of every pace. The same seed gives
	// the same bytes.
	Seed uint64
	// Speed is how fast runs are played: 1 by default, 2 is twice as fast, and
	// +Inf leaves out all pauses.
	Speed float64
	// MaxGap bounds the time between two envelopes, as it is waited; 0 does not.
	MaxGap time.Duration
	// Step holds every envelope until Gateway.Step lets it go.
	Step bool

	// ReplayBuffer is how many envelopes of a run a replay holds, 0 for all.
	ReplayBuffer int
	// KnownThreads, if it is not nil, are the only threads there are, besides
	// those made by POST /conversations. The others are not found.
	KnownThreads []string
	// StrictRooms lets thread:messages alone join a thread's room, not run:start.
	StrictRooms bool

	// Token, if it is not "", is asked for: as a bearer token or the query's
	// token over HTTP, or as auth.token by sockets.
	Token string
	// Engine configures the sockets. Its callbacks are the gateway's.
	Engine engine.Config
	// Control configures the control API.
	Control Control
	// Now is the wall clock that messages are dated by, time.Now by default.
	Now func() time.Time
	// Logger is told about sockets and refused commands; nil discards.
	Logger *slog.Logger
}

// Validate returns what is wrong with c, naming the field.
func (c Config) Validate() error {
	var errs []error
	if !(c.Speed >= 0) {
		errs = append(errs, fmt.Errorf("speed %g is below 0", c.Speed))
	}
	if c.MaxGap < 0 {
		errs = append(errs, fmt.Errorf("max gap %v is below 0", c.MaxGap))
	}
	if c.ReplayBuffer < 0 {
		errs = append(errs, fmt.Errorf("replay buffer %d is below 0", c.ReplayBuffer))
	}
	if c.Source != nil && c.Scenario != "" {
		errs = append(errs, errors.New("scenario and source exclude each other"))
	}
	if err := c.Engine.Validate(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	if c.Speed == 0 {
		c.Speed = 1
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// defaultHello is what the gateway announces.
func defaultHello() json.RawMessage {
	return json.RawMessage(`{"protocol":{"major":1,"minor":17},"minClientMajor":1}`)
}
