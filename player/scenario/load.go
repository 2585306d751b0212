package scenario

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/parser"

	"tapedeck/protocol"
)

//go:embed builtin/*.yaml
var builtin embed.FS

// maxFile bounds a scenario file, in bytes.
const maxFile = 4 << 20

// Names returns the names of the built-in scenarios, in the order of the
// catalogue: the alphabet.
func Names() []string {
	entries, err := fs.ReadDir(builtin, "builtin")
	if err != nil {
		panic("scenario: the embedded files cannot be listed: " + err.Error())
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	return names
}

// Source returns the YAML of a built-in scenario, to start one's own from.
func Source(name string) ([]byte, error) {
	data, err := builtin.ReadFile("builtin/" + name + ".yaml")
	if err == nil {
		return data, nil
	}
	if near := protocol.Nearest(name, Names()); near != "" {
		return nil, fmt.Errorf("no scenario is called %q: did you mean %q?", name, near)
	}
	return nil, fmt.Errorf("no scenario is called %q: there are %s", name, strings.Join(Names(), ", "))
}

// Builtin returns a built-in scenario. The error of an unknown name says which
// is the nearest.
func Builtin(name string) (*Scenario, error) {
	data, err := Source(name)
	if err != nil {
		return nil, err
	}
	return Parse(name, data)
}

// Load reads a scenario from a file. Its name is the file's, without folder and
// extension.
func Load(file string) (*Scenario, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, fmt.Errorf("open scenario: %w", err)
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("read scenario %q: it has %d bytes, over the limit of %d", file, info.Size(), maxFile)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read scenario: %w", err)
	}
	name := filepath.Base(file)
	return Parse(strings.TrimSuffix(name, path.Ext(name)), data)
}

// Parse reads a scenario. An error names the line; that of an unknown key also
// the nearest one.
func Parse(name string, data []byte) (*Scenario, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("read scenario %q: it has %d bytes, over the limit of %d", name, len(data), maxFile)
	}
	s := &Scenario{Name: name}
	if err := s.parse(data); err != nil {
		return nil, fmt.Errorf("read scenario %q: %w", name, err)
	}
	return s, nil
}

func (s *Scenario) parse(data []byte) error {
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		return errors.New(strings.TrimSpace(first))
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return errors.New("it is empty: a scenario has at least steps")
	}
	if len(file.Docs) != 1 {
		return fmt.Errorf("it holds %d documents, a scenario is one", len(file.Docs))
	}
	if err := decode(file.Docs[0].Body, reflect.ValueOf(s).Elem(), 0); err != nil {
		return err
	}
	if s.Steps != nil {
		if s.Runs != nil {
			return errors.New("steps and runs exclude each other: put the steps into a run")
		}
		s.Runs, s.Steps = []Run{{Steps: s.Steps}}, nil
	}
	return s.check()
}

// check looks for what the keys alone do not rule out.
func (s *Scenario) check() error {
	if len(s.Runs) == 0 {
		return errors.New("it has no runs: write steps, or runs with steps in each")
	}
	for i := range s.Findings {
		s.Findings[i].Times = max(s.Findings[i].Times, 1)
	}
	err := errors.Join(
		oneOf("resume", s.Resume, "", "new-run", "same-run"),
		oneOf("gateway.seam", s.Gateway.Seam, "", "overlap", "hole"),
		within("gateway.replay", s.Gateway.Replay, 1<<20), within("gateway.history", s.Gateway.History, 100_000),
		s.Pace.check(0))
	for _, r := range s.Runs {
		err = errors.Join(err, r.Pace.check(0),
			checkStart(r.Start),
			oneOf("cancel", r.Cancel.Mode, "", "stop", "ignore"),
			checkSteps(r.Steps, true), checkSteps(r.Cancel.Steps, false))
	}
	for i, m := range s.Client {
		if e := m.check(); e != nil {
			err = errors.Join(err, fmt.Errorf("client move %d: %w", i+1, e))
		}
	}
	return err
}

func checkStart(start string) error {
	if _, err := time.ParseDuration(start); err == nil {
		return nil
	}
	if err := oneOf("start", start, "", "none", "never"); err != nil {
		return fmt.Errorf("%w, and no duration such as 5s", err)
	}
	return nil
}

func oneOf(key, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return fmt.Errorf("%s %q is none of %s", key, value, strings.Join(slices.DeleteFunc(allowed, func(s string) bool { return s == "" }), ", "))
}

func within(key string, value, limit int) error {
	if value < 0 || value > limit {
		return fmt.Errorf("%s %d is not from 0 to %d", key, value, limit)
	}
	return nil
}

func (p Pace) check(line int) error {
	if p.Rate < 0 {
		return &mistake{line, fmt.Sprintf("rate %g is below 0", p.Rate)}
	}
	if p.Jitter != nil && !(*p.Jitter >= 0 && *p.Jitter <= 1) {
		return &mistake{line, fmt.Sprintf("jitter %g is not from 0 to 1", *p.Jitter)}
	}
	if p.Chunk != "" {
		if _, err := chunkerNamed(p.Chunk); err != nil {
			return &mistake{line, err.Error()}
		}
	}
	return nil
}

// checkSteps checks steps. Only those of a run itself may pause: a subagent or
// a lane that waits for a human would have to wait for all of them.
func checkSteps(steps []Step, mayPause bool) error {
	for i := range steps {
		s := &steps[i]
		if !mayPause && (s.Interrupt != nil || s.ClientTool != nil && s.ClientTool.Kind != "one-way") {
			return &mistake{s.line, "only the steps of a run and of an answer may pause: not those of a subagent, a parallel lane, a text, a cancel or an opened run"}
		}
		if err := s.check(mayPause); err != nil {
			var m *mistake
			if errors.As(err, &m) && m.line > 0 {
				return err
			}
			return &mistake{s.line, err.Error()}
		}
	}
	return nil
}

func (s *Step) check(mayPause bool) error {
	switch {
	case s.Text != nil:
		return s.Text.check(s.line)
	case s.Reasoning != nil:
		return s.Reasoning.check(s.line)
	case s.Tool != nil:
		if s.Tool.Name == "" {
			return errors.New("a tool needs a name")
		}
		return errors.Join(s.Tool.Pace.check(s.line), within("fill", s.Tool.Fill, 64<<20))
	case s.Result != nil && s.Result.Of == "":
		return errors.New("a result needs the id of its call in of")
	case s.ClientTool != nil:
		if s.ClientTool.Name == "" {
			return errors.New("a clientTool needs a name")
		}
		return errors.Join(oneOf("kind", s.ClientTool.Kind, "", "blocking", "one-way"), checkSteps(s.ClientTool.Otherwise, mayPause))
	case s.Subagent != nil:
		return errors.Join(oneOf("status", s.Subagent.Status, "", "finished", "error"), checkSteps(s.Subagent.Steps, false))
	case s.Raw != nil && s.Raw.Event.IsZero() && s.Raw.JSON == "" && !s.Raw.Repeat:
		return errors.New("a raw needs an event, json or repeat")
	case s.Send != nil:
		if s.Send.Message == "" {
			return errors.New("a send needs a message")
		}
		return within("binary", s.Send.Binary, 64<<20)
	case s.Expect != nil && !protocol.Name(s.Expect.Command).IsCommand():
		return fmt.Errorf("expect %q is no command of the protocol", s.Expect.Command)
	case s.Open != nil:
		return checkSteps(s.Open.Steps, false)
	}
	for _, branch := range s.Answer {
		if err := checkSteps(branch.Steps, mayPause); err != nil {
			return err
		}
	}
	for _, lane := range s.Parallel {
		if err := checkSteps(lane, false); err != nil {
			return err
		}
	}
	return nil
}

func (t *Text) check(line int) error {
	return errors.Join(t.Pace.check(line), within("fill", t.Fill, 64<<20), within("repeat", t.Repeat, 1_000_000), checkSteps(t.Steps, false))
}

func (m Move) check() error {
	n := 0
	for _, set := range []bool{m.Start != nil, m.Resume != nil, m.Cancel != nil, m.Detach != nil, m.Join, m.Leave, m.Await} {
		if set {
			n++
		}
	}
	if n != 1 {
		return errors.New("a move does one of start, resume, cancel, detach, join, leave and await")
	}
	_, _, err := m.Trigger()
	return err
}
