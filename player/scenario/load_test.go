package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMistakes reads files that are wrong: each error names the line and what to
// write instead.
func TestMistakes(t *testing.T) {
	tests := []struct{ name, yaml, want string }{
		{"empty", "", "it is empty"},
		{"two documents", "steps: []\n---\nsteps: []", "it holds 2 documents"},
		{"no YAML", "title: [", "[1:"},
		{"no mapping", "- text: hi", "line 1: here stands - where keys are expected: title, about"},
		{"no runs", "title: x", "write steps, or runs"},
		{"misspelt key", "titel: x\nsteps: []", `line 1: key "titel" is unknown: did you mean "title"?`},
		{"misspelt step", "title: x\nsteps:\n  - txt: hi", `line 3: key "txt" is unknown: did you mean "text"?`},
		{"misspelt key in a step", "steps:\n  - text:\n      content: hi\n      chnk: word", `line 4: key "chnk" is unknown: did you mean "chunk"?`},
		{"key of nowhere", "steps:\n  - text: {zzzzzz: 1}", `line 2: key "zzzzzz" is unknown here: there are ttft,`},
		{"key twice", "title: x\ntitle: y\nsteps: []", `title`},
		{"two things in a step", "steps:\n  - text: hi\n    wait: 1s", "line 2: a step does one thing, this one has 2 keys"},
		{"both forms", "steps: [{text: hi}]\nruns: [{steps: []}]", "exclude each other"},
		{"no duration", "steps:\n  - wait: soon", `line 2: "soon" is no duration such as 300ms`},
		{"negative duration", "steps:\n  - wait: -1s", `no duration`},
		{"no number", "seed: one\nsteps: []", `line 1: "one" is no positive whole number`},
		{"no list", "steps: {text: hi}", "line 1: a list is expected here"},
		{"no plain value", "title: [a]\nsteps: []", "line 1: a plain value is expected"},
		{"bad chunk", "steps:\n  - text: {content: hi, chunk: letters}", `line 2: chunk "letters" is none of whole, word`},
		{"bad jitter", "pace: {jitter: 2}\nsteps: [{text: a}]", "jitter 2 is not from 0 to 1"},
		{"bad rate", "pace: {rate: -1}\nsteps: [{text: a}]", "rate -1 is below 0"},
		{"bad mode", "resume: later\nsteps: [{text: a}]", `resume "later" is none of new-run, same-run`},
		{"bad start", "runs: [{start: soon}]", `start "soon" is none of none, never, and no duration`},
		{"bad cancel", "runs: [{cancel: maybe}]", `cancel "maybe" is none of stop, ignore`},
		{"bad status", "steps:\n  - subagent: {status: lost}", `status "lost" is none of finished, error`},
		{"bad expectation", "steps:\n  - expect: run:begin", `line 2: expect "run:begin" is no command`},
		{"nameless tool", "steps:\n  - tool: {result: 1}", "line 2: a tool needs a name"},
		{"pause in a lane", "steps:\n  - parallel:\n    - - interrupt: x", "line 3: only the steps of a run"},
		{"pause in a subagent", "steps:\n  - subagent:\n      steps:\n        - clientTool: {name: a}", "line 4: only the steps of a run"},
		{"fill too large", "steps:\n  - text: {fill: 99999999999}", "fill 99999999999 is not from 0 to 67108864"},
		{"a move of two", "steps: [{text: a}]\nclient: [{join: true, leave: true}]", "client move 1: a move does one of"},
		{"bad trigger", "steps: [{text: a}]\nclient: [{join: true, when: RUN_STARTED*x}]", "behind the * stands how many"},
		{"not a number", "steps:\n  - todos: [.nan]", "line 2"},
		{"an alias", "steps:\n  - todos: &a [x]\n  - todos: *a", "line 2"},
		{"too deep", "steps:\n  - todos: " + strings.Repeat("[", 200) + strings.Repeat("]", 200), "nested deeper than 100"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Parse("test", []byte(test.yaml))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// TestLoad reads a file by its path, and names it after it.
func TestLoad(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mine.yaml")
	if err := os.WriteFile(file, []byte("title: Mine\nsteps: [{text: hi}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Load(file)
	if err != nil || s.Name != "mine" || s.Title != "Mine" {
		t.Errorf("got %+v, %v", s, err)
	}
	if _, err := Load(file + "x"); err == nil || !strings.Contains(err.Error(), "mine.yamlx") {
		t.Errorf("a file that is not there: %v", err)
	}
}

// TestValuesKeepTheirForm reads JSON that is written as YAML: the keys keep
// their order, numbers their digits, and strings that look like numbers stay.
func TestValuesKeepTheirForm(t *testing.T) {
	s, err := Parse("test", []byte(`steps: [{todos: {z: 1.50, a: "1", n: null, t: yes, big: 12345678901234567890, list: [true, -0.5, "a\nb"]}}]`))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"z":1.50,"a":"1","n":null,"t":"yes","big":12345678901234567890,"list":[true,-0.5,"a\nb"]}`
	if got := string(*s.Runs[0].Steps[0].Todos); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// FuzzParse reads whatever there is; it must not panic, and what it accepts must
// compile.
func FuzzParse(f *testing.F) {
	for _, name := range Names() {
		data, err := Source(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse("fuzz", data)
		if err != nil {
			return
		}
		if strings.Contains(string(data), "fill") || strings.Contains(string(data), "repeat") {
			return // it may ask for megabytes
		}
		for i := range min(len(s.Runs), 4) {
			s.Segment(Input{Thread: "t", Run: "r", Ordinal: i, Tools: [][]string{{"pick_date"}}})
		}
	})
}
