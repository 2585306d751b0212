package scenario

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"tapedeck/protocol"
)

// maxDepth bounds how deep the steps and values of a file may nest.
const maxDepth = 100

// mistake is what is wrong with a file, and where.
type mistake struct {
	line int
	text string
}

func (m *mistake) Error() string { return fmt.Sprintf("line %d: %s", m.line, m.text) }

func wrongf(n ast.Node, format string, args ...any) error {
	line := 0
	if n != nil && n.GetToken() != nil && n.GetToken().Position != nil {
		line = n.GetToken().Position.Line
	}
	return &mistake{line, fmt.Sprintf(format, args...)}
}

// shorthand is a type for which a plain text may stand.
type shorthand interface{ short(text string) }

func (t *Text) short(s string)      { t.Content = s }
func (i *Interrupt) short(s string) { i.ID = s }
func (p *Problem) short(s string)   { p.Message = s }
func (e *Expect) short(s string)    { e.Command = s }
func (s *Start) short(text string)  { s.Input = text }
func (f *Found) short(s string)     { f.Rule = s }
func (c *Cancel) short(s string)    { c.Mode = s }

var (
	valueType    = reflect.TypeFor[Value]()
	durationType = reflect.TypeFor[time.Duration]()
	cancelType   = reflect.TypeFor[Cancel]()
	stepType     = reflect.TypeFor[Step]()
)

// decode fills v from n. Every key that v's type does not have is refused.
func decode(n ast.Node, v reflect.Value, depth int) error {
	if depth > maxDepth {
		return wrongf(n, "nested deeper than %d", maxDepth)
	}
	n = bare(n)
	switch {
	case v.Type() == valueType:
		raw, err := appendJSON(nil, n, depth)
		v.SetBytes(raw)
		return err
	case v.Type() == durationType:
		return decodeDuration(n, v)
	case v.Type() == cancelType && isSequence(n):
		return decode(n, v.FieldByName("Steps"), depth)
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return decode(n, v.Elem(), depth)
	}
	if s, ok := v.Addr().Interface().(shorthand); ok {
		if text, plain := scalar(n); plain {
			s.short(text)
			return nil
		}
	}
	switch v.Kind() {
	case reflect.Struct:
		return decodeStruct(n, v, depth)
	case reflect.Slice:
		return decodeSlice(n, v, depth)
	}
	return decodeScalar(n, v)
}

func decodeStruct(n ast.Node, v reflect.Value, depth int) error {
	pairs, ok := mapping(n)
	if !ok {
		return wrongf(n, "here stands %s where keys are expected: %s", n.GetToken().Value, strings.Join(keys(v.Type()), ", "))
	}
	seen := map[string]bool{}
	for _, pair := range pairs {
		key := pair.Key.GetToken().Value
		if seen[key] {
			return wrongf(pair.Key, "key %q stands here twice", key)
		}
		seen[key] = true
		field := fieldOf(v, key)
		if !field.IsValid() {
			return unknownKey(pair.Key, key, keys(v.Type()))
		}
		if err := decode(pair.Value, field, depth+1); err != nil {
			return err
		}
	}
	if v.Type() == stepType {
		v.Addr().Interface().(*Step).line = n.GetToken().Position.Line
		if len(pairs) != 1 {
			return wrongf(n, "a step does one thing, this one has %d keys: begin each step with a dash", len(pairs))
		}
	}
	return nil
}

func unknownKey(n ast.Node, key string, known []string) error {
	if near := protocol.Nearest(key, known); near != "" {
		return wrongf(n, "key %q is unknown: did you mean %q?", key, near)
	}
	return wrongf(n, "key %q is unknown here: there are %s", key, strings.Join(known, ", "))
}

func decodeSlice(n ast.Node, v reflect.Value, depth int) error {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		return wrongf(n, "a list is expected here, one dash an item")
	}
	for _, item := range seq.Values {
		element := reflect.New(v.Type().Elem()).Elem()
		if err := decode(item, element, depth+1); err != nil {
			return err
		}
		v.Set(reflect.Append(v, element))
	}
	return nil
}

func decodeScalar(n ast.Node, v reflect.Value) error {
	text, ok := scalar(n)
	if !ok {
		return wrongf(n, "a plain value is expected here")
	}
	var err error
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		b, e := strconv.ParseBool(text)
		v.SetBool(b)
		err = e
	case reflect.Int, reflect.Int64:
		i, e := strconv.ParseInt(text, 0, 64)
		v.SetInt(i)
		err = e
	case reflect.Uint64:
		u, e := strconv.ParseUint(text, 0, 64)
		v.SetUint(u)
		err = e
	case reflect.Float64:
		v.SetFloat(math.Inf(1))
		if text != "max" {
			f, e := strconv.ParseFloat(text, 64)
			v.SetFloat(f)
			err = e
		}
	}
	if err != nil {
		return wrongf(n, "%q is no %s", text, kindNames[v.Kind()])
	}
	return nil
}

var kindNames = map[reflect.Kind]string{
	reflect.Bool: "true or false", reflect.Int: "whole number", reflect.Int64: "whole number",
	reflect.Uint64: "positive whole number", reflect.Float64: "number",
}

func decodeDuration(n ast.Node, v reflect.Value) error {
	text, _ := scalar(n)
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return wrongf(n, "%q is no duration such as 300ms or 2s", text)
	}
	v.SetInt(int64(d))
	return nil
}

// keys lists the keys of a struct, those of inlined structs too.
func keys(t reflect.Type) []string {
	var names []string
	for field := range t.Fields() {
		switch name, options, _ := strings.Cut(field.Tag.Get("yaml"), ","); {
		case options == "inline":
			names = append(names, keys(field.Type)...)
		case name != "" && name != "-":
			names = append(names, name)
		}
	}
	return names
}

func fieldOf(v reflect.Value, key string) reflect.Value {
	for field, value := range v.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		if options == "inline" {
			if inner := fieldOf(value, key); inner.IsValid() {
				return inner
			}
		}
		if name == key && name != "-" && name != "" {
			return value
		}
	}
	return reflect.Value{}
}

// bare takes tags, anchors and the like off a node.
func bare(n ast.Node) ast.Node {
	if tag, ok := n.(*ast.TagNode); ok {
		return bare(tag.Value)
	}
	return n
}

func isSequence(n ast.Node) bool { _, ok := n.(*ast.SequenceNode); return ok }

func mapping(n ast.Node) ([]*ast.MappingValueNode, bool) {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, true
	}
	return nil, false
}

// scalar returns the text of a plain value.
func scalar(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	}
	return "", false
}

// appendJSON writes a node as JSON, with the keys in their order.
func appendJSON(dst []byte, n ast.Node, depth int) ([]byte, error) {
	if depth > maxDepth {
		return nil, wrongf(n, "nested deeper than %d", maxDepth)
	}
	n = bare(n)
	if pairs, ok := mapping(n); ok {
		return appendObject(dst, pairs, depth)
	}
	switch n := n.(type) {
	case *ast.SequenceNode:
		dst = append(dst, '[')
		for i, item := range n.Values {
			if i > 0 {
				dst = append(dst, ',')
			}
			var err error
			if dst, err = appendJSON(dst, item, depth+1); err != nil {
				return nil, err
			}
		}
		return append(dst, ']'), nil
	case *ast.NullNode:
		return append(dst, "null"...), nil
	case *ast.BoolNode:
		return strconv.AppendBool(dst, n.Value), nil
	case *ast.IntegerNode:
		return fmt.Append(dst, n.Value), nil
	case *ast.FloatNode:
		if text := n.GetToken().Value; json.Valid([]byte(text)) {
			return append(dst, text...), nil
		}
		return strconv.AppendFloat(dst, n.Value, 'g', -1, 64), nil
	case *ast.StringNode, *ast.LiteralNode:
		text, _ := scalar(n)
		return appendString(dst, text), nil
	}
	return nil, wrongf(n, "%q has no form in JSON", n.GetToken().Value)
}

func appendObject(dst []byte, pairs []*ast.MappingValueNode, depth int) ([]byte, error) {
	dst = append(dst, '{')
	var seen []string
	for i, pair := range pairs {
		if i > 0 {
			dst = append(dst, ',')
		}
		key := pair.Key.GetToken().Value
		if slices.Contains(seen, key) {
			return nil, wrongf(pair.Key, "key %q stands here twice", key)
		}
		seen = append(seen, key)
		dst = append(appendString(dst, key), ':')
		var err error
		if dst, err = appendJSON(dst, pair.Value, depth+1); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}
