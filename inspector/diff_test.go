package inspector

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"strings"
	"testing"

	"tapedeck/inspector/junit"
	"tapedeck/protocol/capture"
)

func bookings(t *testing.T) (a, b *Normal) {
	t.Helper()
	tp := readTape(t, "thread")
	s, err := Select(tp.runs, "7f3a")
	if err != nil {
		t.Fatal(err)
	}
	tp.runs = Chain(tp.runs, s.Run)
	return normalOf(t, tp, "run 7f3a9c21 of thread.tape"), normalOf(t, readTape(t, "again"), "run a0 of again.tape")
}

func TestDiffViews(t *testing.T) {
	a, b := bookings(t)
	for _, tt := range []struct {
		golden  string
		look    Look
		options DiffOptions
	}{
		{"diff.160.txt", Look{Width: 160}, DiffOptions{Timing: true, Ignore: []string{"colour"}}},
		{"diff.110.txt", Look{Width: 110}, DiffOptions{Strict: true}},
		{"diff.80.txt", Look{Width: 80}, DiffOptions{Timing: true}},
		{"diff.60.ascii.txt", Look{Width: 60, ASCII: true}, DiffOptions{}},
	} {
		var out bytes.Buffer
		if err := Compare(a, b, tt.options).Write(&out, &tt.look); err != nil {
			t.Fatal(err)
		}
		text := out.String()
		if tt.look.ASCII { // a baseline's references and what was said are theirs
			text = strings.NewReplacer("‹", "", "›", "").Replace(text)
		}
		checkLines(t, text, tt.look.Width, tt.look.ASCII, false)
		golden(t, tt.golden, out.Bytes())
	}
}

func TestDiffReports(t *testing.T) {
	a, b := bookings(t)
	d := Compare(a, b, DiffOptions{Timing: true, Ignore: []string{"colour"}})
	var out bytes.Buffer
	if err := d.WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	golden(t, "diff.json", out.Bytes())
	if !json.Valid(out.Bytes()) {
		t.Error("the JSON is none")
	}
	out.Reset()
	if err := d.WriteJUnit(&out); err != nil {
		t.Fatal(err)
	}
	golden(t, "diff.junit.xml", out.Bytes())
	var got junit.Suites
	if err := xml.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	_, changed, moved, onlyA, onlyB := d.Counts()
	if want := changed + moved + onlyA + onlyB; got.Suites[0].Failures != want {
		t.Errorf("JUnit says %d failures, want one for each of the %d that differ", got.Suites[0].Failures, want)
	}
}

// one wraps a message of the gateway in the least that is needed around it.
func one(eventType, body string) string {
	return "0.0 a connect\n0.1 a> run:start {\"threadId\":\"t\",\"messageId\":\"u\",\"input\":\"Hi\"}\n" +
		"0.2 a< t/r/1 RUN_STARTED {}\n0.3 a< t/r/2 " + eventType + " " + body + "\n0.4 a< t/r/3 RUN_FINISHED {}"
}

func TestCompare(t *testing.T) {
	tool := func(args, result string) string {
		return "0.0 a connect\n0.1 a> run:start {\"threadId\":\"t\",\"messageId\":\"u\",\"input\":\"Hi\"}\n0.2 a< t/r/1 RUN_STARTED {}\n" +
			"0.3 a< t/r/2 TOOL_CALL_START {\"toolCallId\":\"k\",\"toolCallName\":\"find\"}\n" +
			fmt.Sprintf("0.4 a< t/r/3 TOOL_CALL_ARGS {\"toolCallId\":\"k\",\"delta\":%q}\n", args) +
			"0.5 a< t/r/4 TOOL_CALL_END {\"toolCallId\":\"k\"}\n0.6 a< t/r/5 TOOL_CALL_RESULT {\"toolCallId\":\"k\",\"content\":" + result + "}\n" +
			"0.7 a< t/r/6 RUN_FINISHED {}"
	}
	for _, tt := range []struct {
		name, a, b string
		options    DiffOptions
		first      string // "" if they are equal
		at         string
	}{
		{"other ids, other cuts, other times", answer("t", "r", "m", "Hello ", "you"), answer("thread-9", "run-9", "msg-9", "Hel", "lo y", "ou"), DiffOptions{}, "", ""},
		{"other cuts, strictly", answer("t", "r", "m", "Hello ", "you"), answer("t", "r", "m", "Hel", "lo you"), DiffOptions{Strict: true},
			"text: /deltas/0 is 6 in A and 3 in B", "8 | 8"},
		{"another word", answer("t", "r", "m", "Hello you"), answer("t", "r", "m", "Hello me"), DiffOptions{},
			`text: /text is "Hello you" in A and "Hello me" in B`, "8 | 8"},
		{"another word far into a long text", answer("t", "r", "m", strings.Repeat("so ", 100)+"you"), answer("t", "r", "m", strings.Repeat("so ", 100)+"me"), DiffOptions{},
			`text: /text is …so so so so you" in A and …so so so so me" in B`, "8 | 8"},
		{"J10: numbers beyond 2^53", tool(`{"id":9007199254740993}`, "1"), tool(`{"id":9007199254740992}`, "1"), DiffOptions{},
			"tool find: /arguments/id is 9007199254740993 in A and 9007199254740992 in B", "8 | 8"},
		{"members in another order, other spaces", tool(`{"a":1,"b":[2]}`, `{"x":1,"y":2}`), tool(`{ "b" : [2], "a" : 1 }`, `{"y":2,"x":1}`), DiffOptions{}, "", ""},
		{"an escaped character is the character", tool(`{"a":"é"}`, `"é"`), tool(`{"a":"\u00e9"}`, `"\u00e9"`), DiffOptions{}, "", ""},
		{"a result that is an object, and one that is text", tool(`{}`, `{"a":1}`), tool(`{}`, `"{\"a\":1}"`), DiffOptions{},
			`tool find: /result is {"a":1} in A and absent in B`, "8 | 8"},
		{"a member more", tool(`{"a":1}`, `1`), tool(`{"a":1,"b/c":2}`, `1`), DiffOptions{}, "tool find: /arguments/b~1c is absent in A and 2 in B", "8 | 8"},
		{"a member to be ignored, by its name", tool(`{"a":{"when":1},"b":2}`, `1`), tool(`{"a":{"when":2},"b":2}`, `1`), DiffOptions{Ignore: []string{"when"}}, "", ""},
		{"by its path", tool(`{"a":[{"when":1}]}`, `1`), tool(`{"a":[{"when":2}]}`, `1`), DiffOptions{Ignore: []string{"/arguments/a/*/when"}}, "", ""},
		{"another path", tool(`{"a":1}`, `1`), tool(`{"a":2}`, `1`), DiffOptions{Ignore: []string{"/result/a"}}, "tool find: /arguments/a is 1 in A and 2 in B", "8 | 8"},
		{"an id in a decision's payload", one("INTERRUPT", `{"interruptId":"i","payload":{"messageId":"u"}}`), strings.ReplaceAll(one("INTERRUPT", `{"interruptId":"j","payload":{"messageId":"v"}}`), `"u"`, `"v"`), DiffOptions{}, "", ""},
		{"an id that stands for something else", one("INTERRUPT", `{"interruptId":"i","payload":{"messageId":"u"}}`), one("INTERRUPT", `{"interruptId":"i","payload":{"messageId":"r"}}`), DiffOptions{},
			`decision INTERRUPT: /payload/messageId is "‹message-1›" in A and "‹run-1›" in B`, "8 | 8"},
		{"an unknown event", one("MOOD", `{"mood":"good"}`), one("MOOD", `{"mood":"bad"}`), DiffOptions{}, `unknown MOOD: /events/0/mood is "good" in A and "bad" in B`, "8 | 8"},
		{"a construct more", one("TODOS_SNAPSHOT", `{"todos":["x"]}`), "0.0 a connect\n0.1 a> run:start {\"threadId\":\"t\",\"messageId\":\"u\",\"input\":\"Hi\"}\n0.2 a< t/r/1 RUN_STARTED {}\n0.4 a< t/r/2 RUN_FINISHED {}", DiffOptions{},
			"todos is only in A", "8 | 8"},
		{"another sentence of an error", one("RUN_ERROR", `{"code":"X","message":"no message message-aaaa1."}`), one("RUN_ERROR", `{"code":"X","message":"no message message-bbbb2."}`), DiffOptions{},
			`lifecycle RUN_ERROR: /message is "no message message-aaaa1." in A and "no message message-bbbb2." in B`, "8 | 8"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := Compare(normalFrom(t, tt.a), normalFrom(t, tt.b), tt.options)
			switch {
			case tt.first == "" && !d.Equal():
				t.Errorf("they differ at %s: %s", d.First.place(), d.First.Text)
			case tt.first != "" && d.Equal():
				t.Error("they are equal")
			case tt.first != "" && d.First.Text != tt.first:
				t.Errorf("first divergence:\n got %s\nwant %s", d.First.Text, tt.first)
			case tt.first != "" && d.First.place() != strings.ReplaceAll("#"+tt.at, "| ", "| #"):
				t.Errorf("got place %s, want %s", d.First.place(), tt.at)
			}
			if len(d.Unused) > 0 && tt.name != "another path" {
				t.Errorf("unused: %q", d.Unused)
			}
		})
	}
}

// wordsOf is a normal form of texts that say the given words.
func wordsOf(words ...string) *Normal {
	n := &Normal{}
	for i, w := range words {
		n.Constructs = append(n.Constructs, &Construct{
			Kind: KindText, Name: "text", ID: Ref{"message", i + 1}, At: capture.Address{Position: capture.Position(i + 1)},
			Fields: []Field{{Name: "text", value: w}},
		})
	}
	return n
}

func TestAlign(t *testing.T) {
	for _, tt := range []struct{ a, b, want string }{
		{"", "", ""},
		{"a b c", "a b c", "a=a b=b c=c"},
		{"a b c", "a c", "a=a b- c=c"},
		{"a c", "a b c", "a=a +b c=c"},
		{"a b c d", "b c d a", "a~a b=b c=c d=d"},
		{"a x c", "a y c", "a=a x≠y c=c"},
		{"a a a", "a a", "a=a a=a a-"},
		{"a b a b a", "b a b", "a- b=b a=a b=b a-"},
		{"a b", "", "a- b-"},
	} {
		var got []string
		for _, p := range Compare(wordsOf(strings.Fields(tt.a)...), wordsOf(strings.Fields(tt.b)...), DiffOptions{}).Pairs {
			word := func(c *Construct) string {
				if c == nil {
					return ""
				}
				return c.Fields[0].value.(string)
			}
			sign := "="
			switch {
			case p.B == nil:
				sign = "-"
			case p.A == nil:
				sign = "+"
			case p.Moved:
				sign = "~"
			case len(p.Changes) > 0:
				sign = "≠"
			}
			got = append(got, word(p.A)+sign+word(p.B))
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%q and %q: got %q, want %q", tt.a, tt.b, strings.Join(got, " "), tt.want)
		}
	}
}

// TestAlignMany compares what would take days if it cost the square, or room
// for a table of all.
func TestAlignMany(t *testing.T) {
	const n = 100_000
	a, b := make([]string, n), make([]string, 0, n)
	for i := range a {
		a[i] = fmt.Sprint("text ", i%(n/2)) // each twice
		switch i {
		case 777:
		case 5555:
			b = append(b, "another")
		default:
			b = append(b, a[i])
		}
	}
	same, changed, moved, onlyA, onlyB := Compare(wordsOf(a...), wordsOf(b...), DiffOptions{}).Counts()
	if same != n-2 || changed+moved+onlyA+onlyB > 3 {
		t.Errorf("got %d the same, %d changed, %d moved, %d and %d alone, want %d the same", same, changed, moved, onlyA, onlyB, n-2)
	}
}
