package scenario

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"tapedeck/player/script"
)

// types lists the events of a segment, with the text of their deltas joined.
func types(t *testing.T, s *Scenario, in Input) string {
	t.Helper()
	segment, problem := s.Segment(in)
	if problem != nil {
		return "refused: " + problem.Message
	}
	var out []string
	for _, cue := range segment.Cues {
		e, ok := script.EventOf(cue.Act)
		switch n := len(out); {
		case !ok:
			out = append(out, strings.TrimPrefix(fmt.Sprintf("%T", cue.Act), "script."))
		case e.Delta != nil:
			out[n-1] += plain(e.Delta)
		default:
			out = append(out, string(e.Type)+" ")
		}
	}
	short := strings.NewReplacer("TEXT_MESSAGE_START ", "T:", "TEXT_MESSAGE_END ", "", "TOOL_CALL_START ", "K:", "TOOL_CALL_END ", "",
		"TOOL_CALL_RESULT ", "R", "RUN_STARTED ", "RS", "RUN_FINISHED ", "RF", "RUN_PAUSED ", "RP", "INTERRUPT ", "INT", "RUN_ERROR ", "RE")
	var parts []string
	for _, part := range out {
		if part = short.Replace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, " | ")
}

// TestSegments walks over pauses: each segment begins where the last one asked,
// and takes the branch of its answer.
func TestSegments(t *testing.T) {
	s, err := Parse("test", []byte(`
steps:
  - text: "You said {{input}}."
  - interrupt: {id: a}
  - answer:
      - if: {ok: true}
        steps:
          - text: Yes.
          - clientTool: {name: pick, id: p, arguments: {x: 1}}
          - text: "Picked {{answer}}."
      - steps: [{text: "No: {{answer}}"}, {error: gone}]
`))
	if err != nil {
		t.Fatal(err)
	}
	in := Input{Thread: "t", Run: "r", Text: "hi", Tools: [][]string{{"pick"}, {"pick"}, nil}}
	answers := func(pairs ...string) (pauses []map[string]json.RawMessage) {
		for i := 0; i < len(pairs); i += 2 {
			pauses = append(pauses, map[string]json.RawMessage{in.ident("ask", pairs[i]): json.RawMessage(pairs[i+1])})
		}
		return pauses
	}
	tests := []struct {
		name   string
		pauses []map[string]json.RawMessage
		tools  [][]string
		want   string
	}{
		{"the first", nil, nil, "RS | T:You said hi. | INT | RP | RF"},
		{"after no", answers("a", `{"ok":false}`), nil, `RS | T:No: {"ok":false} | RE`},
		{"after yes", answers("a", `{"ok":true,"more":1}`), [][]string{nil, {"pick"}}, `RS | T:Yes. | K:{"x":1} | INT | RP | RF`},
		{"after yes, without the tool", answers("a", `{"ok":true}`), [][]string{nil, nil},
			`RS | T:Yes. | T:This client declared no tool called pick, so the run goes on without it. | T:Picked {"ok":true}. | RF`},
		{"after the tool", answers("a", `{"ok":true}`, "p", `"blue"`), [][]string{nil, {"pick"}, nil}, `RS | R | T:Picked blue. | RF`},
	}
	for _, test := range tests {
		in.Pauses, in.Tools = test.pauses, test.tools
		if got := types(t, s, in); got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.name, got, test.want)
		}
	}
}

// TestPlaceholders fills in what the client sent, escaped where it stands in
// JSON, and leaves alone what it does not know.
func TestPlaceholders(t *testing.T) {
	c := &compiler{in: &Input{Thread: "t\"1", Run: "r", Message: "m", Text: "a\"b"}, answer: json.RawMessage(`{"n":1}`)}
	tests := []struct{ in, want string }{
		{`"{{input}}"`, `"a\"b"`},
		{`{"x":"{{answer}}","y":"is {{answer}}"}`, `{"x":{"n":1},"y":"is {\"n\":1}"}`},
		{`"{{thread}} {{run}} {{messageId}}"`, `"t\"1 r m"`},
		{`"{{unknown}} {{open"`, `"{{unknown}} {{open"`},
		{`"{{fill:3}}{{fill:x}}"`, `"The{{fill:x}}"`},
	}
	for _, test := range tests {
		if got := string(c.fillJSON(Value(test.in))); got != test.want {
			t.Errorf("%s: got %s, want %s", test.in, got, test.want)
		}
	}
}
