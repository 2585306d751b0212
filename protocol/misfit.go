package protocol

import (
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	why "github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// explainMisfit turns the library's tree of errors into a short list, one for each place.
func explainMisfit(e *jsonschema.ValidationError, out []SchemaError) []SchemaError {
	at := ""
	for _, step := range e.InstanceLocation {
		at += pointerTo(step)
	}
	switch k := e.ErrorKind.(type) {
	case *why.RefCycle: // a schema that calls itself says nothing
		return out
	case *why.Required:
		for _, name := range k.Missing {
			out = append(out, SchemaError{at + pointerTo(name), name + " is missing"})
		}
		return out
	case *why.AdditionalProperties:
		for _, name := range k.Properties {
			out = append(out, SchemaError{at + pointerTo(name), fmt.Sprintf("no key is called %s", quote(name))})
		}
		return out
	case *why.AnyOf, *why.OneOf:
		if len(e.Causes) > 0 {
			if branch := nearestBranch(e); branch != nil {
				return explainMisfit(branch, out)
			}
			return append(out, SchemaError{at, alternatives(e.Causes)})
		}
	}
	if len(e.Causes) == 0 {
		text := e.ErrorKind.LocalizedString(message.NewPrinter(language.English))
		return append(out, SchemaError{at, clip(text)})
	}
	for _, cause := range e.Causes {
		out = explainMisfit(cause, out)
	}
	return out
}

// alternatives says that a value fits none of them; why, if they are few.
func alternatives(branches []*jsonschema.ValidationError) string {
	text := fmt.Sprintf("it fits none of %d alternatives", len(branches))
	if len(branches) > 3 {
		return text
	}
	for i, branch := range branches {
		separator := " or "
		if i == 0 {
			separator = ": "
		}
		reasons := explainMisfit(branch, nil)
		if len(reasons) == 0 {
			return text
		}
		text += separator + reasons[0].Text
	}
	return clip(text)
}

// badPattern reports whether e is about nothing but patterns: one that is not
// compiled here may be one that JavaScript reads.
func badPattern(e *jsonschema.ValidationError) bool {
	if len(e.Causes) == 0 {
		format, is := e.ErrorKind.(*why.Format)
		return is && format.Want == "regex"
	}
	for _, cause := range e.Causes {
		if !badPattern(cause) {
			return false
		}
	}
	return true
}

// nearestBranch returns the alternative that a value was meant to fit: the only
// one whose type, constants and enumerations it meets. Nil if there is no one such.
func nearestBranch(e *jsonschema.ValidationError) *jsonschema.ValidationError {
	var nearest *jsonschema.ValidationError
	for _, branch := range e.Causes {
		if mismatched(branch, len(e.InstanceLocation)+1) {
			continue
		}
		if nearest != nil {
			return nil
		}
		nearest = branch
	}
	return nearest
}

// mismatched reports whether e rests on a type, a constant or an enumeration no
// deeper in the value than depth.
func mismatched(e *jsonschema.ValidationError, depth int) bool {
	if len(e.InstanceLocation) > depth {
		return false
	}
	switch e.ErrorKind.(type) {
	case *why.Const, *why.Enum:
		return true
	case *why.Type:
		return len(e.InstanceLocation) < depth
	}
	for _, cause := range e.Causes {
		if mismatched(cause, depth) {
			return true
		}
	}
	return false
}

// oneLine is text in one line.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
