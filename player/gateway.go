package player

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"tapedeck/player/engine"
	"tapedeck/player/scenario"
	"tapedeck/protocol"
)

// Gateway is a stand-in for a whole gateway: sockets, threads, runs and the
// HTTP surface. Use New.
type Gateway struct {
	config  Config
	source  Source
	house   *scenario.Scenario // of the gateway as a whole, nil with a Source
	engine  *engine.Server
	rooms   rooms
	stage   *stage
	mux     *http.ServeMux
	shelves *shelves
	journal *journal
	chosen  *choices
	// validators are lent to a command each: one for each socket would take
	// kilobytes of it.
	validators sync.Pool

	mu      sync.Mutex // protects following; taken last, under a thread's lock
	threads map[string]*thread
	runs    map[string]*run   // in flight, by id
	ran     map[string]string // every run's thread
	guests  map[socket]*guest
	refused int // CONNECTs refused so far, as the scenario asks
}

// rooms is what the gateway needs of the engine to reach a thread's room. It
// keeps nothing of the arguments.
type rooms interface {
	Emit(namespace, room, name string, args ...json.RawMessage)
}

// socket is what the gateway needs of a client's socket.
type socket interface {
	ID() string
	Namespace() string
	Emit(name string, args ...json.RawMessage)
	EmitBinary(name string, attachments [][]byte, args ...json.RawMessage)
	Rooms() []string
	Behind() bool
	Join(room string)
	Leave(room string)
	Disconnect(engine bool)
	Cut()
}

// New returns a gateway that is ready to serve.
func New(c Config) (*Gateway, error) {
	g, err := assemble(c, nap)
	if err != nil {
		return nil, err
	}
	sockets := c.Engine
	sockets.Connect = func(s *engine.Socket) *engine.Refusal { return g.admit(s.Handshake()) }
	sockets.Joined = func(s *engine.Socket) { g.joined(s) }
	sockets.Event = func(s *engine.Socket, e engine.Event) { g.event(s, e) }
	sockets.Left = func(s *engine.Socket, reason string) { g.left(s, reason) }
	if sockets.Logger == nil {
		sockets.Logger = g.config.Logger
	}
	g.engine = engine.New(sockets)
	g.rooms = g.engine
	return g, nil
}

// assemble makes a gateway without sockets, whose stage naps by nap.
func assemble(c Config, nap func(time.Duration)) (*Gateway, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("configure player: %w", err)
	}
	c = c.withDefaults()
	g := &Gateway{config: c, source: c.Source, shelves: newShelves(), journal: &journal{}, chosen: &choices{},
		threads: map[string]*thread{}, runs: map[string]*run{}, ran: map[string]string{}, guests: map[socket]*guest{}}
	g.validators.New = func() any { return protocol.NewValidator(protocol.Options{}) }
	if c.Source == nil {
		s := &scenarios{own: map[string]*scenario.Scenario{}, seed: c.Seed, choices: g.chosen}
		for _, own := range c.Scenarios {
			s.own[own.Name] = own
		}
		found, err := s.find(cmp.Or(c.Scenario, "hello"))
		if err != nil {
			return nil, fmt.Errorf("configure player: %w", err)
		}
		s.otherwise, g.house, g.source = found, found, s
	}
	g.stage = newStage(c.Speed, c.MaxGap, c.Step, nap)
	g.mux = g.routes()
	return g, nil
}

// Close ends all sockets and runs, and waits for the gateway's goroutines, or
// for ctx.
func (g *Gateway) Close(ctx context.Context) error {
	err := g.engine.Close(ctx)
	g.stage.close()
	return err
}

// Replace puts a scenario in place of the one of its name, from the next run:start
// on. Runs on their way go on as they began.
func (g *Gateway) Replace(changed *scenario.Scenario) error {
	synthetic, ok := g.source.(*scenarios)
	if !ok {
		return errors.New("this player serves no scenarios")
	}
	synthetic.replace(changed)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.house.Name == changed.Name {
		g.house = changed
	}
	return nil
}

// Pause stops the clock of all runs, or lets it run on.
func (g *Gateway) Pause(on bool) { g.stage.hold(on) }

// Step lets n acts of the scripts go while the clock is stopped.
func (g *Gateway) Step(n int) { g.stage.step(n) }

// SetSpeed changes the speed of all runs, those on their way too. +Inf leaves
// out all pauses.
func (g *Gateway) SetSpeed(speed float64) error {
	if !(speed > 0) {
		return fmt.Errorf("speed %g is not above 0", speed)
	}
	g.stage.setSpeed(speed)
	return nil
}

// Reset forgets all threads, runs, choices and what was put in over HTTP. The
// sockets stay, and are in no room.
func (g *Gateway) Reset() {
	g.mu.Lock()
	threads := g.threads
	g.threads, g.runs, g.ran, g.refused = map[string]*thread{}, map[string]*run{}, map[string]string{}, 0
	for _, guest := range g.guests {
		clear(guest.threads)
	}
	g.mu.Unlock()
	for _, t := range threads {
		t.lock()
		t.strike()
		for member := range t.sockets {
			member.Leave(t.id)
		}
		clear(t.sockets)
		t.unlock()
	}
	g.chosen.clear()
	g.journal.clear()
	g.shelves.clear()
}

// ident makes an id: the same for the same seed, another for another.
func (g *Gateway) ident(kind string, parts ...any) string {
	sum := sha256.Sum256(fmt.Appendf(fmt.Appendf(nil, "%d\x00%s", g.config.Seed, kind), "\x00%v", parts))
	return fmt.Sprintf("%s_%x", kind, sum[:6])
}
