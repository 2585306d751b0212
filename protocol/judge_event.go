package protocol

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// envelope judges a run:event ("Envelopes").
func (j *judge) envelope(payload []byte, p *parts) {
	switch k := kindOf(payload); {
	case k == 0:
		j.report("envelope-shape", "", "run:event carries no payload: send an envelope")
		return
	case k != isObject:
		j.report("envelope-shape", "", "the payload is %v: send an envelope, {v, threadId, runId, sequence, event}", k)
		return
	}
	shape := p.shape
	if j.schemas.has(string(RunEvent)) {
		j.envelopeBySchema(payload, p, shape)
	} else {
		j.routing(p)
	}
	sequence, counted := integerOf(p.sequence)
	if kindOf(p.event) != isObject {
		return
	}
	var typ EventType
	if shape != nil {
		typ = shape.typ
		j.event(shape, p)
	} else if kindOf(p.typ) == isString {
		typ = EventType(textOf(p.typ))
		j.report("event-unknown", "/event/type", "no event is called %s%s Clients ignore it.", quote(typ), orStop(didYouMean(string(typ), typeNames)))
	}
	switch {
	case !counted || sequence < 1 || kindOf(p.typ) != isString:
	case typ == RunStarted && sequence != 1:
		j.report("run-start-not-first", "/sequence", "RUN_STARTED at sequence %d: it is a run's sequence 1", sequence)
	case typ != RunStarted && sequence == 1 && Nearest(string(typ), typeNames) != string(RunStarted):
		j.report("run-start-not-first", "/event/type", "sequence 1 is %s: a run begins with RUN_STARTED", quote(typ))
	}
}

// envelopeBySchema judges an envelope by the user's schema. An event whose type
// has a schema of its own is left to that one, and an unknown one is admitted.
func (j *judge) envelopeBySchema(payload []byte, p *parts, shape *eventShape) {
	from := len(j.out)
	j.bySchema("envelope-shape", string(RunEvent), payload, "")
	if shape == nil && kindOf(p.typ) == isString || shape != nil && j.schemas.has(string(shape.typ)) {
		found := slices.DeleteFunc(j.out[from:], func(f Finding) bool { return strings.HasPrefix(f.Pointer, "/event") })
		j.out = j.out[:from+len(found)]
	}
}

var (
	fieldVersion  = must("v", isNumber, Stated)
	fieldThread   = must("threadId", isString, Stated)
	fieldRun      = must("runId", isString, Stated)
	fieldSequence = must("sequence", isNumber, Stated)
	fieldEvent    = must("event", isObject, Stated)
	fieldType     = must("type", isString, Stated)
)

// routing judges what is on every envelope.
func (j *judge) routing(p *parts) {
	j.shaped(&fieldVersion, p.v, "/v")
	if _, ok := integerOf(p.v); !ok && kindOf(p.v) == isNumber {
		j.report("envelope-shape", "/v", "v is %s: send the major of PROTOCOL_VERSION", brief(p.v))
	}
	j.shaped(&fieldThread, p.thread, "/threadId")
	j.shaped(&fieldRun, p.run, "/runId")
	j.shaped(&fieldSequence, p.sequence, "/sequence")
	if n, ok := integerOf(p.sequence); kindOf(p.sequence) == isNumber && (!ok || n < 1) {
		j.report("sequence-not-positive", "/sequence", "sequence is %s: count a run's envelopes from 1, in integers", brief(p.sequence))
	}
	if j.shaped(&fieldEvent, p.event, "/event") {
		j.shaped(&fieldType, p.typ, "/event/type")
	}
}

// shaped reports a misfit of an envelope's field, and whether there is none.
func (j *judge) shaped(f *field, value []byte, pointer string) bool {
	if f.fits(value) {
		return true
	}
	j.report("envelope-shape", pointer, "%s", f.misfit(value))
	return false
}

// orStop ends a sentence that a hint would have ended.
func orStop(hint string) string {
	if hint == "" {
		return "."
	}
	return hint
}

var typeNames = func() []string {
	var names []string
	for _, t := range eventTypes {
		names = append(names, string(t))
	}
	return names
}()

// event judges an event of a known type.
func (j *judge) event(shape *eventShape, p *parts) {
	if j.schemas.has(string(shape.typ)) {
		j.bySchema("event-field-stated", string(shape.typ), p.event, "/event")
	} else if !j.schemas.has(string(RunEvent)) {
		j.fields(shape, p)
	}
	j.ids(shape.typ, p)
}

// fields judges the fields of a known event by its built-in shape.
func (j *judge) fields(shape *eventShape, p *parts) {
	for i := range shape.fields {
		f := &shape.fields[i]
		if value := p.fields[f.slot]; !f.fits(value) {
			rule := "event-field-inferred"
			if f.from == Stated {
				rule = "event-field-stated"
			}
			j.report(rule, "/event"+pointerTo(f.name), "%s: %s%s", shape.typ, f.misfit(value), instead(p.event, f.name, value))
		} else if value != nil {
			j.content(shape.typ, f.slot, value)
		}
	}
	if kindOf(p.fields[slotTimestamp]) == isNull {
		j.report("event-field-inferred", "/event/timestamp", "%s: timestamp is null, may be absent: leave it out", shape.typ)
	}
}

// instead names a member of the event that a missing field was most likely
// written as: message_id for messageId.
func instead(event []byte, name string, value []byte) string {
	if value != nil {
		return ""
	}
	members, _ := readObject(event)
	for _, m := range members {
		if m.name != name && nearestKey(m.name, []string{name}) != "" {
			return fmt.Sprintf(" as %s, not as %s", name, quote(m.name))
		}
	}
	return ""
}

// content judges what a field of the right type says.
func (j *judge) content(typ EventType, s slot, value []byte) {
	switch s {
	case slotDelta:
		if len(value) == len(`""`) {
			j.report("delta-empty", "/event/delta", "%s with an empty delta: leave it out", typ)
		} else if j.cutAtBorder(value) {
			j.report("json-lone-surrogate", "/event/delta",
				"U+FFFD at the border of a delta, where a character was cut: keep its bytes for the next delta")
		}
	case slotStatus:
		if status := textOf(value); status != "finished" && status != "error" {
			j.report("subagent-status", "/event/status", `status %s: send "finished" or "error"`, quote(status))
		}
	case slotTodos:
		j.todos(value, "/event/todos")
	case slotPayload:
		j.blockingCall(value)
	}
}

// cutAtBorder reports whether a delta begins or ends with U+FFFD, as it does
// when bytes of a character were decoded apart.
func (v *Validator) cutAtBorder(value []byte) bool {
	const replacement = string(utf8.RuneError)
	text := inside(value)
	if last := text[max(0, len(text)-len(`\uFFFD`)):]; bytes.HasPrefix(text, []byte(`\u`)) || bytes.HasPrefix(last, []byte(`\u`)) {
		text = v.keep.unescape(value)
	}
	return bytes.HasPrefix(text, []byte(replacement)) || bytes.HasSuffix(text, []byte(replacement))
}

// todos judges a todo list, which stands in events and in histories.
func (j *judge) todos(list []byte, pointer string) {
	items, _ := readArray(list)
	for i, item := range items {
		if j.full() {
			break
		}
		at := pointer + pointerAt(i)
		switch kindOf(item) {
		case isString:
		case isObject:
			todo, _ := readObject(item)
			for _, f := range todoShape {
				if value := todo.get(f.name); !f.fits(value) {
					j.report("todos-shape", at+pointerTo(f.name), "todo %d: %s", i+1, f.misfit(value))
				}
			}
		default:
			j.report("todos-shape", at, "todo %d is %v: send a string or {content, status}", i+1, kindOf(item))
		}
	}
}

var todoShape = []field{must("content", isString, Inferred), must("status", isString, Inferred)}

// blockingCall judges an INTERRUPT's payload that calls a client tool.
func (j *judge) blockingCall(payload []byte) {
	call, _ := readObject(payload)
	if call.get("clientTool") == nil {
		return
	}
	for _, f := range callShape {
		if value := call.get(f.name); !f.fits(value) {
			j.report("event-field-inferred", "/event/payload"+pointerTo(f.name), "a blocking call's %s", f.misfit(value))
		}
	}
}

var callShape = []field{must("clientTool", isString, Inferred), must("arguments", anything, Inferred)}

// ids compares the ids that an event has of its own with its envelope's. A
// subagent's event may name another run.
func (j *judge) ids(typ EventType, p *parts) {
	if typ == SubagentStarted || typ == SubagentFinished {
		return
	}
	j.sameID("threadId", p.fields[slotThreadID], p.thread)
	j.sameID("runId", p.fields[slotRunID], p.run)
}

func (j *judge) sameID(name string, inner, outer []byte) {
	if kindOf(inner) != isString || kindOf(outer) != isString || bytes.Equal(inner, outer) {
		return
	}
	if in, out := textOf(inner), textOf(outer); in != out {
		j.report("ids-disagree", "/event"+pointerTo(name), "the event's %s %s is not the envelope's %s", name, quote(in), quote(out))
	}
}
