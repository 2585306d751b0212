package inspector

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// Normal is the normal form of some runs: what a reader sees, one construct
// after the other, with nothing in it that is another each time. Ids stand by
// their order of appearance, deltas are joined, times are left out, the members
// of objects are sorted. Numbers keep all their digits. Two runs that do the
// same have the same normal form.
type Normal struct {
	// Label says whose form it is, such as "run 7f3a9c21". It may be changed.
	Label      string
	Constructs []*Construct
	strict     bool // it holds what only a strict comparison asks for
}

// Construct is a construct in normal form.
type Construct struct {
	Kind   Kind // 0 is the head of a run
	Name   string
	ID     Ref
	Fields []Field

	// Where and when it was. That is no part of the normal form.
	At, Last    capture.Address
	Start, Took time.Duration
}

// Field is a part of a construct that is compared.
type Field struct {
	Name string
	// value is what encoding/json makes of JSON, numbers as they were written,
	// or a Ref.
	value any
	// strict is set on what only a strict comparison looks at.
	strict bool
}

// Ref stands for an id: the N-th of its kind, counted from 1. The zero Ref is
// no id.
type Ref struct {
	Kind string // "run", "thread", "message", "call", "decision" or "task"
	N    int
}

// String writes a Ref as it stands in a normal form, "‹call-2›".
func (r Ref) String() string {
	if r.N == 0 {
		return ""
	}
	return fmt.Sprintf("‹%s-%d›", r.Kind, r.N)
}

// LoadNormal makes the normal form of runs, chain after chain.
func LoadNormal(ctx context.Context, src Source, runs []conversation.Run) (*Normal, error) {
	normal, names := &Normal{strict: true}, newNames()
	runs = slices.Clone(runs)
	sortRuns(runs)
	if normal.Label = FormatCount(len(runs), "run"); len(runs) > 0 && len(chains(runs)) == 1 {
		normal.Label = "run " + Clean(runs[0].ID)
	}
	for _, chain := range chains(runs) {
		n := newNormalizer(names)
		head := names.ref("run", chain[0].ID)
		for m, err := range RunMoments(ctx, src, chain, []protocol.Finding{}) {
			if err != nil {
				return nil, err
			}
			n.add(m)
		}
		n.timeline.Finish()
		last := &chain[len(chain)-1]
		normal.Constructs = append(normal.Constructs, &Construct{
			ID: head, Fields: []Field{{Name: "status", value: string(last.Status)}},
			At: capture.Address{Position: chain[0].First}, Last: capture.Address{Position: last.Last},
			Start: chain[0].Started, Took: max(last.Ended-chain[0].Started, 0),
		})
		normal.Constructs = append(normal.Constructs, n.finish()...)
	}
	return normal, nil
}

// normalizer makes the constructs of one chain. A timeline says which event
// belongs to which construct; what the events hold is gathered beside it, since
// a timeline keeps the beginnings of long values only.
type normalizer struct {
	timeline *Timeline
	names    *names
	made     map[*Row]*gathered
}

// gathered is what the events of one construct hold.
type gathered struct {
	fields    []Field
	events    []any // of an unknown type
	deltas    []any // their lengths
	envelopes int   // that were taken
	ended     int   // the rows that had begun when its latest event came
}

func newNormalizer(n *names) *normalizer {
	return &normalizer{timeline: NewTimeline(TimelineOptions{}), names: n, made: map[*Row]*gathered{}}
}

// isCompared leaves out what is about windows and connections, and not about
// the run.
func isCompared(r *Row) bool {
	switch r.Kind {
	case KindHello, KindReplay, KindPacket, KindFrame, KindExchange, KindConnection, KindMark:
		return false
	}
	return r.Kind != KindCommand || r.Name != string(protocol.ThreadMessages)
}

func (n *normalizer) add(m *Moment) {
	touched := n.timeline.Add(m)
	n.names.ref("run", m.Run)
	if len(touched) == 0 || m.Message == nil || !isCompared(touched[0]) {
		return
	}
	row := touched[0]
	g := n.made[row]
	if g == nil {
		g = &gathered{}
		n.made[row] = g
	}
	e := m.event()
	switch {
	case e != nil:
		if row.Kind == KindCopy || row.Envelopes == g.envelopes {
			return // it came before
		}
		g.envelopes, g.ended = row.Envelopes, len(n.timeline.Rows)
		n.addEvent(g, row, e)
	case m.Command != nil:
		n.addMembers(g, m.Message.Payload, "")
		for _, r := range touched[1:] {
			if d := n.made[r]; d != nil && r.Kind == KindDecision && m.Command.Name == protocol.RunResume {
				d.set("answer", n.names.content(decodeValue(m.Command.Answer)))
			}
		}
	case !m.Message.Answer && row.Kind != KindCommand:
		n.addMembers(g, m.Message.Payload, "")
	}
}

func (n *normalizer) addEvent(g *gathered, row *Row, e *protocol.Event) {
	switch {
	case row.Kind == KindUnknown:
		g.events = append(g.events, n.names.own(decodeValue(e.Raw), ""))
	case e.Delta != "" && row.Streams():
		g.deltas = append(g.deltas, json.Number(fmt.Sprint(len(e.Delta))))
	default:
		n.addMembers(g, e.Raw, string(e.Type))
	}
}

// contents are the members that the protocol carries and does not look into.
var contents = map[string]bool{"content": true, "payload": true, "todos": true, "answer": true, "input": true, "clientTools": true}

// addMembers takes the members of an event, or of a message if there is no
// type.
func (n *normalizer) addMembers(g *gathered, raw []byte, eventType string) {
	object, ok := decodeValue(raw).(map[string]any)
	if !ok {
		g.set("payload", n.names.content(decodeValue(raw)))
		return
	}
	for _, name := range sortedKeys(object) {
		value := object[name]
		switch {
		case name == "type" || name == "delta" || name == "toolCallName" || isTime(name):
			continue
		case contents[name]:
			value = n.names.content(value)
		default:
			value = n.names.own(map[string]any{name: value}, "").(map[string]any)[name]
		}
		if name == "content" && eventType == string(protocol.ToolCallResult) {
			name, value = n.result(value)
		}
		if old, known := g.get(name); known && string(canonical(old)) != string(canonical(value)) {
			name += " of " + eventType
		}
		g.set(name, value)
	}
}

func (g *gathered) get(name string) (any, bool) {
	for _, f := range g.fields {
		if f.Name == name {
			return f.value, true
		}
	}
	return nil, false
}

func (g *gathered) set(name string, value any) {
	for i := range g.fields {
		if g.fields[i].Name == name {
			g.fields[i].value = value
			return
		}
	}
	g.fields = append(g.fields, Field{Name: name, value: value})
}

// finish returns the constructs, in the order in which they began.
func (n *normalizer) finish() []*Construct {
	var all []*Construct
	for _, row := range n.timeline.Rows {
		if !isCompared(row) {
			continue
		}
		g := n.made[row]
		if g == nil {
			g = &gathered{} // it is known from a replay only
		}
		c := &Construct{Kind: row.Kind, Name: row.Name, ID: n.names.ofRow(row), At: row.First, Last: row.Last, Start: row.Start, Took: row.Took()}
		n.addDetail(g, row)
		for _, f := range g.fields {
			if f.value != any(c.ID) && (f.Name != "name" || f.value != any(c.Name)) {
				c.Fields = append(c.Fields, f)
			}
		}
		all = append(all, c)
	}
	return all
}

// addDetail takes what a timeline knows of a construct.
func (n *normalizer) addDetail(g *gathered, row *Row) {
	if row.State != Done {
		g.set("state", row.State.String())
	}
	switch d := row.Detail.(type) {
	case *Stream:
		g.set("text", d.Text())
	case *Call:
		g.fields = append([]Field{{Name: "arguments", value: n.arguments(d)}}, g.fields...)
		if g.envelopes == 0 && d.Result != nil {
			g.set(n.result(d.Result.Head))
		}
	case *Decision:
		if _, known := g.get("payload"); !known {
			g.set("payload", n.names.content(decodeValue([]byte(d.Payload))))
		}
	case *Talk:
		if d.Reply == nil {
			break
		}
		g.set("reply", d.Reply.By)
		if !d.Reply.OK {
			g.set("code", string(d.Reply.Code))
			g.set("message", n.names.text(d.Reply.Message))
		}
	}
	if g.events != nil {
		g.set("events", g.events)
	}
	if g.deltas != nil {
		g.fields = append(g.fields, Field{Name: "deltas", value: g.deltas, strict: true})
	}
	if g.ended > row.Index+1 { // others had begun
		g.fields = append(g.fields, Field{Name: "ended", value: n.before(g.ended), strict: true})
	}
}

// before names the construct before which something ended.
func (n *normalizer) before(index int) any {
	for _, r := range n.timeline.Rows[min(index, len(n.timeline.Rows)):] {
		if isCompared(r) {
			return "before " + (&Construct{Kind: r.Kind, Name: r.Name}).title()
		}
	}
	return "at the end"
}

// result names what a tool returned. Text that is JSON is compared as JSON, and
// is yet no JSON: the name tells them apart.
func (n *normalizer) result(value any) (string, any) {
	if text, is := value.(string); is {
		switch decoded := decodeValue([]byte(text)).(type) {
		case map[string]any, []any:
			return "result as text", n.names.content(decoded)
		}
	}
	return "result", value
}

// arguments are what the deltas join to: JSON if they do.
func (n *normalizer) arguments(c *Call) any {
	text := c.Args.Text()
	if !json.Valid([]byte(text)) {
		return text
	}
	return n.names.content(decodeValue([]byte(text)))
}
