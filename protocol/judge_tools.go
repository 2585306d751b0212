package protocol

import "errors"

// toolShape is a declaration of "Client tools", name and kind aside, which have
// rules of their own.
var toolShape = []field{
	must("name", anything, Stated),
	must("description", isString, Stated),
	must("arguments", anything, Stated),
	must("kind", anything, Stated),
	may("result", anything, Stated),
}

// clientTools judges the tools that a command declares.
func (j *judge) clientTools(list []byte) {
	items, _ := readArray(list)
	if len(items) > MaxClientTools {
		j.report("client-tools-too-many", "/clientTools", "%d client tools: send at most %d a command", len(items), MaxClientTools)
	}
	seen := map[string]int{}
	for i, item := range items[:min(len(items), MaxClientTools)] { // compiling schemas takes time
		at := "/clientTools" + pointerAt(i)
		tool, ok := readObject(item)
		if !ok {
			j.report("command-key-type", at, "client tool %d is %v: send {name, description, arguments, kind}", i+1, kindOf(item))
			continue
		}
		j.clientTool(tool, i+1, at)
		if name := tool.text("name"); name != "" {
			if before, again := seen[name]; again {
				j.report("client-tool-duplicate", at+"/name", "client tools %d and %d are both called %s and one hides the other: rename one", before, i+1, quote(name))
			} else {
				seen[name] = i + 1
			}
		}
	}
}

func (j *judge) clientTool(tool object, n int, at string) {
	j.toolName(tool.get("name"), n, at+"/name")
	kind := tool.get("kind")
	if text := textOf(kind); text != Blocking && text != OneWay {
		j.report("client-tool-kind", at+"/kind", `client tool %d: kind %s: send "blocking" or "one-way"`, n, orNothing(kind))
	}
	for _, f := range toolShape[1:3] {
		value := tool.get(f.name)
		switch {
		case value == nil:
			j.report("command-key-missing", at+pointerTo(f.name), "client tool %d: %s", n, f.misfit(value))
		case !f.fits(value):
			j.report("command-key-type", at+pointerTo(f.name), "client tool %d: %s", n, f.misfit(value))
		}
	}
	j.toolSchema(tool.get("arguments"), n, at+"/arguments")
	j.toolSchema(tool.get("result"), n, at+"/result")
	if tool.get("result") != nil && textOf(kind) == OneWay {
		j.report("client-tool-result-one-way", at+"/result", "client tool %d is one-way and declares a result, which nobody waits for: remove it", n)
	}
	for _, m := range tool {
		if !hasField(toolShape, m.name) {
			j.reportAs(Warning, "command-key-unknown", at+pointerTo(m.name), "client tool %d has no key %s%s", n, quote(m.name), orRemove(nearestKey(m.name, toolKeys)))
		}
	}
}

var toolKeys = func() []string {
	var keys []string
	for _, f := range toolShape {
		keys = append(keys, f.name)
	}
	return keys
}()

func orRemove(meant string) string {
	if meant == "" {
		return ": remove it"
	}
	return ", did you mean \"" + meant + "\"?"
}

// orNothing shows a value that may be missing.
func orNothing(value []byte) string {
	if value == nil {
		return "missing"
	}
	return brief(value)
}

func (j *judge) toolName(value []byte, n int, at string) {
	const rule, allowed = "client-tool-name", "letters, digits, _ and -, at most 64"
	name := textOf(value)
	switch {
	case kindOf(value) != isString:
		j.report(rule, at, "client tool %d: name %s: send %s", n, orNothing(value), allowed)
	case name == "":
		j.reportAs(Warning, rule, at, "client tool %d has an empty name: send %s", n, allowed)
	case len(name) > MaxClientToolName:
		j.report(rule, at, "client tool %d has a name of %d characters: send %s", n, len([]rune(name)), allowed)
	case !allowedName(name):
		j.report(rule, at, "client tool %d is called %s: send %s", n, quote(name), allowed)
	}
}

func allowedName(name string) bool {
	for _, c := range name {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// toolSchema judges a tool's schema; nil is none. A schema that is one and that
// this tool does not compile is let pass.
func (j *judge) toolSchema(schema []byte, n int, at string) {
	switch kindOf(schema) {
	case 0:
	case isObject:
		var invalid *InvalidSchemaError
		if err := j.tools.compile(schema); errors.As(err, &invalid) {
			j.report("client-tool-schema", at+invalid.Pointer, "client tool %d: %s", n, invalid.Text)
		}
	case isBool:
	default:
		j.report("client-tool-schema", at, "client tool %d: %v is no JSON Schema: send an object", n, kindOf(schema))
	}
}
