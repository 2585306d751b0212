package protocol

import (
	"strings"
	"unicode/utf16"
)

// command judges what a client asks ("Commands"). Commands are strict.
func (j *judge) command(payload []byte, o object) {
	name := j.m.Name
	if j.schemas.has(string(name)) {
		j.bySchema("command-key-type", string(name), payload, "")
		return
	}
	switch k := kindOf(payload); {
	case k == 0:
		j.reportAs(Error, "command-key-type", "", "%s carries no payload: send an object with its keys", name)
		return
	case k != isObject:
		j.reportAs(Error, "command-key-type", "", "%s with %v: send an object with its keys", name, k)
		return
	}
	shape := commandShapes[name]
	misspelt := j.unknownKeys(shape, o)
	for i := range shape {
		f := &shape[i]
		value := o.get(f.name)
		switch {
		case !f.fits(value):
			j.badKey(f, value, misspelt)
		case strings.HasSuffix(f.name, "Id") && len(value) == len(`""`):
			j.report("command-id-empty", pointerTo(f.name), "%s is empty: send the id, or wait until there is one", f.name)
		}
	}
	if name == RunStart {
		j.input(o)
		j.attachments(o.get("attachments"))
	}
	j.clientTools(o.get("clientTools"))
}

// unknownKeys reports the keys of o that shape does not have. It returns the
// required keys that they most likely stand for.
func (j *judge) unknownKeys(shape []field, o object) (misspelt map[string]bool) {
	var known, absent []string
	for _, f := range shape {
		known = append(known, f.name)
		if o.get(f.name) == nil {
			absent = append(absent, f.name)
		}
	}
	severity := Error
	if j.m.GatewayMinor > Minor {
		severity = Warning
	}
	misspelt = map[string]bool{}
	for _, m := range o {
		if hasField(shape, m.name) {
			continue
		}
		if j.full() {
			j.more = true
			break
		}
		hint := ": remove it"
		if meant := nearestKey(m.name, absent); meant != "" {
			hint = ", did you mean \"" + meant + "\", which is not there?"
			misspelt[meant] = severity == Error
		} else if meant := nearestKey(m.name, known); meant != "" {
			hint = ", did you mean \"" + meant + "\"?"
		}
		if severity == Warning {
			hint += " (the gateway is newer than this tool, and may know it)"
		}
		j.reportAs(severity, "command-key-unknown", pointerTo(m.name), "%s has no key %s%s", j.m.Name, quote(m.name), hint)
	}
	return misspelt
}

// nearestKey is Nearest for keys that may be written with _ or - instead.
func nearestKey(given string, known []string) string {
	return Nearest(strings.NewReplacer("_", "", "-", "").Replace(given), known)
}

func hasField(shape []field, name string) bool {
	for i := range shape {
		if shape[i].name == name {
			return true
		}
	}
	return false
}

// badKey reports a key of a command that is missing or of the wrong type. A key
// that was found misspelt is not missed once more.
func (j *judge) badKey(f *field, value []byte, misspelt map[string]bool) {
	at := pointerTo(f.name)
	switch {
	case value == nil && misspelt[f.name]:
	case value == nil && f.name == "answer":
		j.report("resume-answer-missing", at, "answer is missing: send it, null if there is nothing to say (an undefined one is left out)")
	case value == nil:
		j.report("command-key-missing", at, "%s: %s", j.m.Name, f.misfit(value))
	case f.from == Derived, kindOf(value) == isNull && !f.optional:
		j.reportAs(Error, "command-key-type", at, "%s: %s", j.m.Name, f.misfit(value))
	default:
		j.report("command-key-type", at, "%s: %s", j.m.Name, f.misfit(value))
	}
}

// input judges run:start's text and whether there is anything at all.
func (j *judge) input(o object) {
	input := o.get("input")
	if kindOf(input) != isString {
		return
	}
	if attachments := o.get("attachments"); len(input) == len(`""`) {
		items, isList := readArray(attachments)
		if attachments == nil || isList && len(items) == 0 {
			j.report("input-empty", "/input", "neither text nor an attachment: send at least one of them")
		}
		return
	}
	if len(input)-len(`""`) <= MaxInput { // a character takes a byte at least
		return
	}
	points, units := 0, 0
	for _, r := range textOf(input) {
		points++
		units += utf16.RuneLen(r)
	}
	switch {
	case points > MaxInput:
		j.report("input-too-long", "/input", "input has %d characters (code points; %d UTF-16 units): send at most %d", points, units, MaxInput)
	case units > MaxInput:
		j.reportAs(Warning, "input-too-long", "/input",
			"input has %d UTF-16 units and %d code points: send at most %d characters, which some versions of Zod count in units", units, points, MaxInput)
	}
}
