package protocol

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tapedeck/protocol/capture"
)

// schemaCases are schemas of client tools, values, and where these do not fit.
var schemaCases = []struct {
	name, schema, value string
	want                []string // "pointer: text"
}{
	{"fits", `{"type":"object","properties":{"day":{"type":"string"}}}`, `{"day":"Monday"}`, nil},
	{"true fits all", `true`, `{"any":["thing"]}`, nil},
	{"false fits nothing", `false`, `1`, []string{": false schema"}},
	{"each place has its own line", `{"type":"object","required":["a","b"],"properties":{"a":{"type":"string"}},"additionalProperties":false}`, `{"a":1,"c/d":2}`,
		[]string{"/b: b is missing", "/a: got number, want string", `/c~1d: no key is called "c/d"`}},
	{"the alternative that was meant", `{"anyOf":[
		{"properties":{"type":{"const":"text"},"value":{"type":"string"}},"required":["type","value"]},
		{"properties":{"type":{"const":"number"},"value":{"type":"number"}},"required":["type","value"]}]}`, `{"type":"number","value":"1"}`,
		[]string{"/value: got string, want number"}},
	{"no alternative was meant", `{"anyOf":[{"type":"string"},{"type":"null"}]}`, `1`,
		[]string{": it fits none of 2 alternatives: got number, want string or got number, want null"}},
	{"JavaScript's patterns", `{"pattern":"^(?!0)\\d+(?<=5)$"}`, `"12"`, []string{": '12' does not match pattern '^(?!0)\\\\d+(?<=5)$'"}},
	{"an integer as JavaScript reads it", `{"type":"integer"}`, `1.0`, nil},
	{"recursion", `{"$defs":{"t":{"type":"array","items":{"$ref":"#/$defs/t"}}},"$ref":"#/$defs/t"}`, `[[],[[1]]]`, []string{"/1/0/0: got number, want array"}},
	{"a schema that calls itself", `{"$ref":"#"}`, `1`, nil},
	{"draft 7", `{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"n":{"type":"number"}},"items":[{"$ref":"#/definitions/n"}]}`, `["x"]`, []string{"/0: got string, want number"}},

	{"too long a value is let pass", `{"maxLength":1}`, `"` + strings.Repeat("x", maxChecked) + `"`, nil},
	{"too deep a value is let pass", `{"type":"string"}`, strings.Repeat("[", 300) + strings.Repeat("]", 300), nil},
	{"too large a number is let pass", `{"type":"string"}`, `1e400`, nil},
	{"a long exponent is JavaScript's business", `{"multipleOf":1e-300}`, `1e-308`, []string{": multipleOf: got 1×10⁻³⁰⁸, want 1×10⁻³⁰⁰"}},
	{"a pattern without an end is let pass", `{"pattern":"^(a+)+$"}`, `"` + strings.Repeat("a", 60) + `!"`, nil},
	{"doubling without an end is let pass", doubling(60), `5`, nil},
	{"no JSON is let pass", `{"type":"string"}`, `{`, nil},
}

// doubling is a schema that applies its last definition 2^n times.
func doubling(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"a%d":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]},`, i, i+1, i+1)
	}
	return fmt.Sprintf(`{"$defs":{%s"a%d":{"type":"string"}},"$ref":"#/$defs/a0"}`, b.String(), n)
}

func TestSchemaCheck(t *testing.T) {
	for _, c := range schemaCases {
		t.Run(c.name, func(t *testing.T) {
			s, err := CompileSchema([]byte(c.schema))
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second time with a fresh budget
				var got []string
				for _, misfit := range s.Check([]byte(c.value)) {
					got = append(got, misfit.Pointer+": "+misfit.Text)
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			}
		})
	}
}

func TestCompileSchemaRefuses(t *testing.T) {
	for _, c := range []struct {
		name, schema string
		invalid      string // pointer, if it is no schema
		text         string // part of the error
	}{
		{"a file", `{"$ref":"file:///etc/hostname"}`, "-", "a reference leaves the document"},
		{"a page", `{"properties":{"a":{"$ref":"https://example.com/schema"}}}`, "-", "a reference leaves the document"},
		{"a draft of its own", `{"$schema":"https://example.com/draft"}`, "-", "a reference leaves the document"},
		{"a neighbour", `{"$ref":"other.json"}`, "-", "a reference leaves the document"},
		{"a definition that is not there", `{"$ref":"#/$defs/none"}`, "-", "not found"},
		{"a pattern that is none", `{"pattern":"("}`, "-", "is not valid regex"},
		{"a pattern too long", `{"pattern":"` + strings.Repeat("a", maxPattern+1) + `"}`, "-", "longer than 4096"},
		{"a type that is none", `{"properties":{"a":{"type":"date"}}}`, "/properties/a/type", "value must be one of"},
		{"a text", `"{}"`, "", "it is a string"},
		{"no JSON", `{"type":`, "-", "unexpected EOF"},
		{"too long", `{"description":"` + strings.Repeat("x", maxToolSchema) + `"}`, "-", "more than 262144"},
		{"too deep", strings.Repeat(`{"items":`, 101) + "{}" + strings.Repeat("}", 101), "-", "deeper than 100"},
		{"a number out of range", `{"minimum":1e999}`, "-", "out of range"},
	} {
		_, err := CompileSchema([]byte(c.schema))
		if err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want %q in it", c.name, err, c.text)
			continue
		}
		var invalid *InvalidSchemaError
		pointer := "-"
		if errors.As(err, &invalid) {
			pointer = invalid.Pointer
		}
		if pointer != c.invalid {
			t.Errorf("%s: invalid at %q, want %q (- is a schema that is not compiled): %v", c.name, pointer, c.invalid, err)
		}
	}
}

const userSchemas = `{
	"$defs": {
		"id": {"type": "string", "minLength": 3},
		"run:cancel": {"type": "object", "required": ["runId"], "properties": {"runId": {"$ref": "#/$defs/id"}}, "additionalProperties": false},
		"TEXT_MESSAGE_CONTENT": {"type": "object", "required": ["type", "text"], "properties": {"text": {"type": "string"}}},
		"TEXT_MESAGE_START": {"type": "object"},
		"RUN_ERROR": {"type": "objekt"},
		"INTERRUPT": {"$ref": "https://example.com/interrupt"},
		"TODOS_SNAPSHOT": {"properties": {"todos": {"$ref": "#/$defs/RUN_ERROR"}}}
	}
}`

func TestLoadSchemas(t *testing.T) {
	s, err := LoadSchemas([]byte(userSchemas))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"TEXT_MESSAGE_CONTENT", "run:cancel"}, s.Names()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	remarks := strings.Join(s.Remarks(), "\n")
	for _, want := range []string{
		`"TEXT_MESAGE_START" is no message or event type: did you mean "TEXT_MESSAGE_START"?`,
		`"RUN_ERROR" is left out: no JSON Schema at "/$defs/RUN_ERROR/type"`,
		`"INTERRUPT" is left to the built-in shape: compile schema: failing loading "https://example.com/interrupt": a reference leaves the document`,
		`"TODOS_SNAPSHOT" is left to the built-in shape`,
	} {
		if !strings.Contains(remarks, want) {
			t.Errorf("no remark says %s; got\n%s", want, remarks)
		}
	}

	v := NewValidator(Options{Schemas: s})
	for _, c := range []struct {
		name    Name
		payload string
		want    string
	}{
		{RunCancel, `{"runId":"r1"}`, "error command-key-type /runId\n\trun:cancel, by your schema: minLength: got 2, want 3\n"},
		{RunCancel, `{"runId":"run-1"}`, ""},
		{RunCancel, ``, "error command-key-type (the payload)\n\trun:cancel carries no payload\n"},
		{RunEvent, `{"v":1,"threadId":"t","runId":"r","sequence":2,"event":{"type":"TEXT_MESSAGE_CONTENT","text":"no messageId, no delta"}}`, ""},
		{RunEvent, `{"v":1,"threadId":"t","runId":"r","sequence":2,"event":{"type":"TEXT_MESSAGE_CONTENT"}}`,
			"error event-field-stated /event/text\n\tTEXT_MESSAGE_CONTENT, by your schema: text is missing\n"},
		{RunEvent, `{"v":1,"threadId":"t","runId":"r","sequence":2,"event":{"type":"RUN_ERROR","code":"x"}}`,
			"error event-field-stated /event/message\n\tRUN_ERROR: message is missing: send a string\n"},
	} {
		m := Message{Name: c.name, Direction: capture.FromGateway, Payload: []byte(c.payload)}
		if c.name.IsCommand() {
			m.Direction = capture.FromClient
		}
		if diff := cmp.Diff(c.want, listing(v.Validate(&m, nil))); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", c.name, c.payload, diff)
		}
	}

	for _, bad := range []string{``, `[]`, `{}`, `{"$defs":[]}`} {
		if _, err := LoadSchemas([]byte(bad)); err == nil {
			t.Errorf("LoadSchemas(%q) found schemas", bad)
		}
	}
	if s, err := LoadSchemas([]byte(`{"$defs":{"mine":{}}}`)); err != nil || len(s.Remarks()) != 1 {
		t.Errorf("a document without a known name: %v, remarks %q", err, s.Remarks())
	}
}

// TestSchemaOfEnvelopes is report J07: of a union of all events one line is
// said, at the place that is wrong, and a type with a schema of its own is judged
// by that one.
func TestSchemaOfEnvelopes(t *testing.T) {
	const document = `{"$defs": {
		"run:event": {"type": "object", "required": ["runId"], "properties": {"event": {"oneOf": [
			{"type": "object", "required": ["type", "message"], "properties": {"type": {"const": "RUN_ERROR"}, "message": {"type": "string"}}},
			{"type": "object", "required": ["type", "messageId"], "properties": {"type": {"const": "TEXT_MESSAGE_END"}, "messageId": {"type": "string"}}},
			{"type": "object", "required": ["type"], "properties": {"type": {"enum": ["RUN_STARTED", "RUN_FINISHED", "RUN_PAUSED", "RUN_CANCELLED"]}}}
		]}}},
		"TEXT_MESSAGE_END": {"required": ["id"]}
	}}`
	s, err := LoadSchemas([]byte(document))
	if err != nil || len(s.Remarks()) > 0 {
		t.Fatal(err, s.Remarks())
	}
	v := NewValidator(Options{Schemas: s})
	for _, c := range []struct{ payload, want string }{
		{`{"runId":"r","event":{"type":"RUN_FINISHED"}}`, ""},
		{`{"runId":"r","event":{"type":"RUN_ERROR"}}`, "error envelope-shape /event/message\n\trun:event, by your schema: message is missing\n"},
		{`{"event":{"type":"TEXT_MESSAGE_END"}}`, "error envelope-shape /runId\n\trun:event, by your schema: runId is missing\n" +
			"error event-field-stated /event/id\n\tTEXT_MESSAGE_END, by your schema: id is missing\n"},
		{`{"runId":"r","event":{"type":7}}`, "error envelope-shape /event\n\trun:event, by your schema: it fits none of 3 alternatives: " +
			"message is missing or messageId is missing or value must be one of 'RUN_STARTED', 'RUN_FINISHED', 'RUN_PAUSED', 'RUN_CANCELLED'\n"},
		{`{"runId":"r","sequence":2,"event":{"type":"NEWER"}}`, "note event-unknown /event/type\n\tno event is called \"NEWER\". Clients ignore it.\n"},
	} {
		m := Message{Name: RunEvent, Direction: capture.FromGateway, Payload: []byte(c.payload)}
		if diff := cmp.Diff(c.want, listing(v.Validate(&m, nil))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.payload, diff)
		}
	}
}
