package protocol

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Schemas are a user's own schemas, in place of the built-in shapes: those of
// the gateway's package, exported to JSON Schema.
type Schemas struct {
	byName  map[string]*Schema
	remarks []string
}

const maxSchemas = 16 << 20 // bytes of the document

// LoadSchemas reads one JSON document whose $defs describe, under their names,
// the payloads of messages ("run:start", "thread:messages:answer" for the answer
// to thread:messages) and the event objects of event types
// ("TEXT_MESSAGE_CONTENT"). Other definitions may stand there for these to refer
// to. What cannot be compiled is left to the built-in shapes, and Remarks says
// so; an error says that the document has no definitions at all.
func LoadSchemas(raw []byte) (*Schemas, error) {
	doc, err := readSchema(raw, maxSchemas)
	if err != nil {
		return nil, err
	}
	root, _ := doc.(map[string]any)
	defs, ok := root["$defs"].(map[string]any)
	if !ok {
		return nil, errors.New(`read schemas: the document has no "$defs" object: put one schema for each message or event type there`)
	}
	s := &Schemas{byName: map[string]*Schema{}}
	known := append(append(messageNames(), historyAnswer), typeNames...)
	for _, name := range slices.Sorted(maps.Keys(defs)) {
		if meant := Nearest(name, known); meant != "" && meant != name && defs[meant] == nil {
			s.remark("%s is no message or event type: did you mean %q?", quote(name), meant)
		}
	}
	for _, name := range known {
		for defs[name] != nil {
			compiled, err := compile(doc, "/$defs"+pointerTo(name))
			if err == nil {
				s.byName[name] = compiled
				break
			}
			// One definition that is no schema makes the whole document none: it is
			// taken out, and what is left is tried again.
			if bad := s.drop(defs, err); bad == "" {
				s.remark("%s is left to the built-in shape: %v", quote(name), err)
				break
			}
		}
	}
	if len(s.byName) == 0 {
		s.remark("no definition is used: name them as messages (%q) or event types (%q)", RunStart, RunStarted)
	}
	return s, nil
}

// drop takes the definition out that err says is no schema, and returns its name.
func (s *Schemas) drop(defs map[string]any, err error) string {
	var invalid *InvalidSchemaError
	if !errors.As(err, &invalid) {
		return ""
	}
	rest, ok := strings.CutPrefix(invalid.Pointer, "/$defs/")
	if !ok {
		return ""
	}
	step, _, _ := strings.Cut(rest, "/")
	name := strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
	if _, there := defs[name]; !there {
		return ""
	}
	delete(defs, name)
	s.remark("%s is left out: %v", quote(name), err)
	return name
}

func (s *Schemas) remark(format string, args ...any) {
	s.remarks = append(s.remarks, oneLine(fmt.Sprintf(format, args...)))
}

// Names returns what s describes, sorted.
func (s *Schemas) Names() []string { return slices.Sorted(maps.Keys(s.byName)) }

// Remarks returns what a user should know: what was skipped, and why.
func (s *Schemas) Remarks() []string { return s.remarks }

// has reports whether s describes name. A nil Schemas describes nothing.
func (s *Schemas) has(name string) bool {
	return s != nil && s.byName[name] != nil
}

// bySchema judges a value by the user's schema of that name. Its findings are
// stated, whatever the rule is by default.
func (j *judge) bySchema(rule, name string, value []byte, at string) {
	if len(value) == 0 {
		j.reportAs(Error, rule, at, "%s carries no payload", name)
		return
	}
	for _, misfit := range j.schemas.byName[name].Check(value) {
		j.reportAs(Error, rule, at+misfit.Pointer, "%s, by your schema: %s", name, misfit.Text)
	}
}
