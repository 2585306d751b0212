package scenario

import (
	"cmp"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"tapedeck/player/script"
	"tapedeck/protocol"
)

// Input is what a segment depends on.
type Input struct {
	Seed    uint64
	Thread  string
	Run     string          // the id of the run to play
	Message string          // the id of the message that opened the run
	Opening json.RawMessage // that message, for RUN_STARTED; nil for none
	Text    string          // what the user wrote
	Opened  int             // runs that the thread has opened before, forks counted
	Ordinal int             // which of the scenario's runs, from 0
	Tools   [][]string      // the client tools that were declared for each segment
	// Pauses holds the answers to the pauses that lie behind, one map a pause,
	// from the interrupt's id to the answer.
	Pauses []map[string]json.RawMessage
}

// Segment compiles what answers a run:start, or, after pauses, the run:resume
// that gave the last answer. The scenario must have passed Load.
func (s *Scenario) Segment(in Input) (script.Script, *Problem) {
	run := s.run(in.Ordinal)
	if run.Refuse != nil {
		return script.Script{}, run.Refuse
	}
	c := &compiler{in: &in, scenario: s, pace: s.Pace.over(outermost).under(run.Pace), left: len(in.Pauses)}
	c.random = rand.New(rand.NewPCG(in.Seed, uint64(in.Opened)<<8|uint64(len(in.Pauses))))
	if run.Start == "never" {
		return script.Script{}, nil
	}
	// What is no duration has none.
	c.at, _ = time.ParseDuration(run.Start)
	c.open(run.Start != "none", in.Opening)
	c.steps(run.Steps)
	if !c.ended && !c.paused {
		c.add(newEvent(protocol.RunFinished).act())
	}
	out := script.Script{Cues: c.cues, SameRun: s.Resume == "same-run" && len(in.Pauses) > 0}
	out.OnCancel.Ignore = run.Cancel.Mode == "ignore"
	if run.Cancel.Steps != nil {
		c.cues, c.at, c.ended, c.paused = []script.Cue{}, 0, false, false
		c.steps(run.Cancel.Steps)
		out.OnCancel.Instead = c.cues
	}
	return out, nil
}

func (s *Scenario) run(ordinal int) Run {
	return s.Runs[min(ordinal, len(s.Runs)-1)]
}

// compiler walks the steps of a run up to the segment that is asked for: what
// lies before it is compiled too, and thrown away at each pause.
type compiler struct {
	in       *Input
	scenario *Scenario
	pace     Pace
	random   *rand.Rand

	left    int // pauses to walk over
	answer  json.RawMessage
	at      time.Duration
	cues    []script.Cue
	lane    string
	unnamed int
	paused  bool // the segment that was asked for ends here
	ended   bool // the run ended by a step
	waited  bool // for the first token
}

func (c *compiler) add(act script.Act) {
	c.cues = append(c.cues, script.Cue{At: c.at, Act: act, Lane: c.lane})
}

// open begins a segment. The first tells the message that opened the run.
func (c *compiler) open(announce bool, opening json.RawMessage) {
	c.waited = false
	if announce {
		c.add(newEvent(protocol.RunStarted).raw("message", opening).act())
	}
}

// tools are the client tools declared for the segment that is being compiled.
func (c *compiler) tools() []string {
	if at := len(c.in.Pauses) - c.left; at < len(c.in.Tools) {
		return c.in.Tools[at]
	}
	return nil
}

// name returns the name of something that the file left unnamed.
func (c *compiler) name(given string) string {
	if given == "" {
		c.unnamed++
		return "unnamed " + strconv.Itoa(c.unnamed)
	}
	return given
}

func (c *compiler) steps(steps []Step) {
	for i := 0; i < len(steps) && !c.paused; i++ {
		if steps[i].pauses(c.tools()) {
			group := 1
			for i+group < len(steps) && steps[i+group].pauses(c.tools()) {
				group++
			}
			c.pause(steps[i : i+group])
			i += group - 1
			continue
		}
		c.step(&steps[i])
	}
}

func (c *compiler) step(s *Step) {
	c.firstToken(s)
	switch {
	case s.Text != nil:
		c.text(s.Text, textEvents)
	case s.Reasoning != nil:
		c.text(s.Reasoning, reasoningEvents)
	case s.Tool != nil:
		c.tool(s.Tool)
	case s.Result != nil:
		c.result(c.in.ident("call", s.Result.Of), c.fillJSON(s.Result.Content))
	case s.ClientTool != nil:
		c.clientTool(s.ClientTool)
	case s.Answer != nil:
		c.branch(s.Answer)
	case s.Todos != nil:
		c.add(newEvent(protocol.TodosSnapshot).raw("todos", c.fillJSON(*s.Todos)).act())
		c.gap()
	case s.Subagent != nil:
		c.subagent(s.Subagent)
	case s.Parallel != nil:
		c.parallel(s.Parallel)
	case s.Wait != nil:
		c.at += *s.Wait
	default:
		c.special(s)
	}
}

// special compiles the steps that are about the run as a whole, its envelopes
// or its sockets.
func (c *compiler) special(s *Step) {
	switch {
	case s.Error != nil:
		c.end(newEvent(protocol.RunError).text("code", s.Error.code("AGENT_FAILED")).raw("message", appendString(nil, c.fill(s.Error.Message))))
	case s.Cancel != nil:
		c.end(newEvent(protocol.RunCancelled))
	case s.Finish != nil:
		c.ended = true
		if *s.Finish {
			c.end(newEvent(protocol.RunFinished))
		}
	case s.Raw != nil:
		c.raw(s.Raw)
	case s.Send != nil:
		c.add(script.Send{Name: s.Send.Message, Payload: c.fillJSON(s.Send.Payload), Attachments: s.Send.attachments()})
	case s.Drop != nil:
		c.add(script.Cut{})
	case s.Close != nil:
		c.add(script.Cut{Politely: true})
	case s.Forget != nil:
		c.add(script.Forget{})
		c.ended = true
	case s.Expect != nil:
		c.add(script.Await{Command: protocol.Name(s.Expect.Command), Within: s.Expect.Within})
	case s.Open != nil:
		c.other(s.Open)
	}
}

func (c *compiler) end(e event) {
	c.add(e.act())
	c.ended = true
}

func (p *Problem) code(otherwise string) string {
	if p.Code == "" {
		return otherwise
	}
	return p.Code
}

// pause asks what a group of steps asks, and ends the segment. The steps after
// it belong to the next one.
func (c *compiler) pause(group []Step) {
	for i := range group {
		c.firstToken(&group[i])
		switch s := &group[i]; {
		case s.Interrupt != nil:
			c.interrupt(c.stable(s.Interrupt.ID, s.line), c.fillJSON(s.Interrupt.Payload))
		case s.ClientTool != nil:
			c.blockingCall(s.ClientTool, s.line)
		}
	}
	c.add(newEvent(protocol.RunPaused).act())
	c.add(newEvent(protocol.RunFinished).act())
	if c.left == 0 {
		c.paused = true
		return
	}
	answers := c.in.Pauses[len(c.in.Pauses)-c.left]
	c.left--
	c.cues, c.at = nil, 0
	c.open(c.scenario.Resume != "same-run", nil)
	for i := range group {
		switch s := &group[i]; {
		case s.Interrupt != nil:
			c.answer = answers[c.in.ident("ask", c.stable(s.Interrupt.ID, s.line))]
		case s.ClientTool != nil:
			name := c.stable(s.ClientTool.ID, s.line)
			c.answer = answers[c.in.ident("ask", name)]
			c.result(c.in.ident("call", name), appendString(nil, plain(c.answer)))
		}
	}
}

// branch takes the first branch that the last answer fits.
func (c *compiler) branch(branches []Branch) {
	for _, b := range branches {
		if b.If == nil || holds(c.answer, json.RawMessage(*b.If)) {
			c.steps(b.Steps)
			return
		}
	}
}

// parallel plays lanes at once: their cues are merged by time, and where they
// stand at the same time, in turn.
func (c *compiler) parallel(lanes [][]Step) {
	before, start, last := c.cues, c.at, c.at
	var merged []script.Cue
	for _, lane := range lanes {
		c.cues, c.at = nil, start
		c.steps(lane)
		merged = append(merged, c.cues...)
		last = max(last, c.at)
	}
	slices.SortStableFunc(merged, func(a, b script.Cue) int { return cmp.Compare(a.At, b.At) })
	c.cues, c.at = append(before, merged...), last
}

// other starts a run that no client asked for, in this thread or another.
func (c *compiler) other(o *Open) {
	in := Input{Seed: c.in.Seed, Thread: c.in.Thread, Opened: c.in.Opened, Text: o.Input}
	open := script.Open{}
	if o.Thread != "" {
		in.Thread = c.in.Thread + o.Thread
		open.Thread = in.Thread
	}
	in.Run = in.ident("run", "opened by "+c.in.Run)
	in.Message = in.ident("msg", "opened by "+c.in.Run)
	in.Opening = message(in.Message, o.Input)
	inner := &compiler{in: &in, scenario: c.scenario, pace: c.pace, random: c.random}
	inner.open(true, in.Opening)
	inner.steps(o.Steps)
	if !inner.ended {
		inner.add(newEvent(protocol.RunFinished).act())
	}
	open.Run, open.Message, open.Script.Cues = in.Run, in.Opening, inner.cues
	c.add(open)
}

func message(id, text string) json.RawMessage {
	dst := appendString([]byte(`{"id":`), id)
	dst = appendString(append(dst, `,"role":"user","content":`...), text)
	return append(dst, '}')
}
