package protocol

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/dlclark/regexp2"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Limits of schemas and of what is checked against them. Both are written by
// others.
const (
	maxToolSchema  = 256 << 10              // bytes of a client tool's schema
	maxSchemaDepth = 100                    // levels of a schema
	maxChecked     = 1 << 20                // bytes of a value that is checked
	maxValueDepth  = 200                    // levels of such a value
	maxSteps       = 100_000                // subschemas applied in one check
	maxPattern     = 4 << 10                // bytes of a pattern
	patternTime    = 100 * time.Millisecond // for one match of a pattern
)

// Schema is a JSON Schema, ready to check values. It is not safe for concurrent
// use.
type Schema struct {
	compiled *jsonschema.Schema
	steps    *budget
}

// SchemaError says where a value does not fit a schema.
type SchemaError struct {
	Pointer string // within the value
	Text    string
}

// InvalidSchemaError says that something is no JSON Schema, and where in it.
type InvalidSchemaError struct {
	Pointer string
	Text    string
}

// Error says what is wrong.
func (e *InvalidSchemaError) Error() string {
	return fmt.Sprintf("no JSON Schema at %q: %s", e.Pointer, e.Text)
}

// CompileSchema makes a schema of a client tool ready. The error is an
// [InvalidSchemaError] if raw is no JSON Schema; any other error says why a
// schema is one that is not compiled here: it is larger than 256 KiB or deeper
// than 100 levels, it refers to something outside itself, or its draft or one of
// its patterns is not known.
func CompileSchema(raw []byte) (*Schema, error) {
	doc, err := readSchema(raw, maxToolSchema)
	if err != nil {
		return nil, err
	}
	return compile(doc, "")
}

// Check returns where value does not fit s, nothing if it fits. A value that
// would take too much to check (1 MiB, 200 levels, 100,000 steps, or 100 ms for
// one pattern) counts as fitting: a false alarm is worse than a miss.
func (s *Schema) Check(value []byte) (misfits []SchemaError) {
	doc, err := readValue(value, maxChecked, maxValueDepth)
	if err != nil {
		return nil
	}
	s.steps.left = maxSteps
	defer func() {
		if r := recover(); r != nil {
			if r != errSpent {
				panic(r)
			}
			misfits = nil
		}
	}()
	var invalid *jsonschema.ValidationError
	if errors.As(s.compiled.Validate(doc), &invalid) {
		return explainMisfit(invalid, nil)
	}
	return nil
}

// readSchema decodes a schema, which is an object or a boolean.
func readSchema(raw []byte, limit int) (any, error) {
	doc, err := readValue(raw, limit, maxSchemaDepth)
	if err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	switch doc.(type) {
	case map[string]any, bool:
		return doc, nil
	}
	return nil, &InvalidSchemaError{Text: fmt.Sprintf("it is %v: send an object", kindOf(trim(raw)))}
}

// readValue decodes JSON as the schema library wants it, within bounds.
func readValue(raw []byte, limit, depth int) (any, error) {
	if len(raw) > limit {
		return nil, fmt.Errorf("%d bytes are more than %d", len(raw), limit)
	}
	if nesting(raw) > depth {
		return nil, fmt.Errorf("it is deeper than %d levels", depth)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	return asJavaScript(doc)
}

// nesting returns how deep the brackets of raw go.
func nesting(raw []byte) (deepest int) {
	depth := 0
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			i = skipString(raw, i) - 1
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		}
	}
	return deepest
}

// asJavaScript replaces numbers that are written at length by what JavaScript
// reads: the library computes with all the digits and exponents it is given.
func asJavaScript(doc any) (any, error) {
	var err error
	switch v := doc.(type) {
	case map[string]any:
		for name, value := range v {
			if v[name], err = asJavaScript(value); err != nil {
				return nil, err
			}
		}
	case []any:
		for i, value := range v {
			if v[i], err = asJavaScript(value); err != nil {
				return nil, err
			}
		}
	case json.Number:
		f, err := v.Float64()
		if err != nil {
			return nil, fmt.Errorf("number %s is out of range", brief([]byte(v)))
		}
		if len(v) > 20 || bytes.ContainsAny([]byte(v), "eE") {
			return json.Number(strconv.FormatFloat(f, 'g', -1, 64)), nil
		}
	}
	return doc, nil
}

// base is the address that schemas are compiled under. Nothing is ever read
// from an address.
const base = "schema:///document"

// compile compiles what stands at pointer in doc.
func compile(doc any, pointer string) (*Schema, error) {
	s := &Schema{steps: &budget{}}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(s.steps.pattern)
	c.RegisterVocabulary(&jsonschema.Vocabulary{URL: base + "/steps", Compile: s.steps.count})
	c.AssertVocabs()
	if err := c.AddResource(base, doc); err != nil {
		return nil, fmt.Errorf("compile schema: %w", err)
	}
	var err error
	s.steps.left = maxSteps
	if s.compiled, err = compileAt(c, base+"#"+pointer); err != nil {
		return nil, err
	}
	return s, nil
}

func compileAt(c *jsonschema.Compiler, url string) (_ *jsonschema.Schema, err error) {
	defer func() {
		if r := recover(); r != nil {
			if r != errSpent {
				panic(r)
			}
			err = errSpent
		}
	}()
	compiled, err := c.Compile(url)
	var invalid *jsonschema.SchemaValidationError
	var at *jsonschema.ValidationError
	switch {
	case errors.As(err, &invalid) && errors.As(invalid.Err, &at):
		if misfits := explainMisfit(at, nil); len(misfits) > 0 && !badPattern(at) {
			return nil, &InvalidSchemaError{Pointer: misfits[0].Pointer, Text: misfits[0].Text}
		}
		return nil, fmt.Errorf("compile schema: %s", oneLine(at.Error()))
	case err != nil:
		return nil, fmt.Errorf("compile schema: %w", err)
	}
	return compiled, nil
}

// noLoader refuses every address.
type noLoader struct{}

var errOutside = errors.New("a reference leaves the document")

// Load refuses.
func (noLoader) Load(string) (any, error) { return nil, errOutside }

// budget bounds what one check may cost. The library has no such bound of its
// own, so each subschema and each pattern counts its use here and ends the check
// by a panic that Check recovers.
type budget struct{ left int }

var errSpent = errors.New("it takes too long to check")

func (b *budget) spend(n int) {
	if b.left -= n; b.left < 0 {
		panic(errSpent)
	}
}

// count gives each subschema a step.
func (b *budget) count(_ *jsonschema.CompilerContext, schema map[string]any) (jsonschema.SchemaExt, error) {
	choices, _ := schema["enum"].([]any)
	return step{b, 1 + len(choices)/8}, nil
}

type step struct {
	budget *budget
	cost   int
}

// Validate spends the step.
func (s step) Validate(*jsonschema.ValidatorContext, any) { s.budget.spend(s.cost) }

// pattern compiles a pattern as JavaScript reads it.
func (b *budget) pattern(text string) (jsonschema.Regexp, error) {
	if len(text) > maxPattern {
		return nil, fmt.Errorf("pattern of %d bytes is longer than %d", len(text), maxPattern)
	}
	re, err := regexp2.Compile(text, regexp2.ECMAScript|regexp2.Unicode)
	if err != nil {
		return nil, err
	}
	re.MatchTimeout = patternTime
	return pattern{re, b}, nil
}

type pattern struct {
	re     *regexp2.Regexp
	budget *budget
}

// MatchString reports whether p matches s. Running out of time ends the check.
func (p pattern) MatchString(s string) bool {
	ok, err := p.re.MatchString(s)
	if err != nil {
		p.budget.spend(maxSteps + 1)
	}
	return ok
}

// String returns the pattern.
func (p pattern) String() string { return p.re.String() }

// toolSchemas remembers which client tools' schemas are valid: an application
// declares the same ones with every command.
type toolSchemas struct {
	verdicts map[[sha256.Size]byte]error
}

const keptSchemas = 512

// compile returns what CompileSchema says of raw.
func (t *toolSchemas) compile(raw []byte) error {
	sum := sha256.Sum256(raw)
	if err, known := t.verdicts[sum]; known {
		return err
	}
	if t.verdicts == nil || len(t.verdicts) >= keptSchemas {
		t.verdicts = make(map[[sha256.Size]byte]error)
	}
	_, err := CompileSchema(raw)
	t.verdicts[sum] = err
	return err
}
