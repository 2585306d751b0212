package protocol

// hello judges the gateway's announcement ("Versioning").
func (j *judge) hello(payload []byte, o object) {
	if j.schemas.has(string(Hello)) {
		j.bySchema("hello-unreadable", string(Hello), payload, "")
	} else if kindOf(payload) != isObject {
		j.report("hello-unreadable", "", "%s: send {protocol: {major, minor}, minClientMajor}", orNothing(payload))
	} else if version := o.get("protocol"); kindOf(version) != isObject {
		f := must("protocol", isObject, Stated)
		j.report("hello-unreadable", "/protocol", "%s", f.misfit(version))
		j.version("minClientMajor", o, "")
	} else {
		inner, _ := readObject(version)
		j.version("major", inner, "/protocol")
		j.version("minor", inner, "/protocol")
		j.version("minClientMajor", o, "")
	}
	if a, ok := ReadHello(payload); ok && a.Major == Major && a.Minor > Minor {
		j.report("version-newer", "/protocol/minor", "the gateway speaks %d.%d and this tool knows %d.%d: what is new is noted, not judged", a.Major, a.Minor, Major, Minor)
	}
}

// version judges one number of an announcement.
func (j *judge) version(name string, o object, at string) {
	value := o.get(name)
	if n, ok := integerOf(value); !ok || n < 0 || n > maxVersion {
		j.report("hello-unreadable", at+pointerTo(name), "%s is %s: send an integer", name, orNothing(value))
	}
}

var (
	errorShape = []field{must("code", isString, Stated), must("message", isString, Stated)}
	taskShape  = []field{must("threadId", isString, Stated), must("task", anything, Stated)}
)

// protocolError judges a protocol:error ("Errors").
func (j *judge) protocolError(payload []byte, o object) {
	const rule = "protocol-error-shape"
	if j.schemas.has(string(ProtocolError)) {
		j.bySchema(rule, string(ProtocolError), payload, "")
		return
	}
	if j.object(rule, payload, "{code, message}") {
		j.shape(rule, errorShape, o, "")
		j.errorCode(o, "")
	}
}

// taskStatus judges a task:status.
func (j *judge) taskStatus(payload []byte, o object) {
	const rule = "task-status-shape"
	if j.schemas.has(string(TaskStatus)) {
		j.bySchema(rule, string(TaskStatus), payload, "")
		return
	}
	if j.object(rule, payload, "{threadId, task}") {
		j.shape(rule, taskShape, o, "")
	}
}

// object reports a payload that is no object, and whether it is one.
func (j *judge) object(rule string, payload []byte, want string) bool {
	k := kindOf(payload)
	switch k {
	case isObject:
		return true
	case 0:
		j.report(rule, "", "there is no payload: send %s", want)
	default:
		j.report(rule, "", "the payload is %v: send %s", k, want)
	}
	return false
}

// shape reports the fields of o that do not fit.
func (j *judge) shape(rule string, shape []field, o object, at string) {
	for i := range shape {
		if value := o.get(shape[i].name); !shape[i].fits(value) {
			j.report(rule, at+pointerTo(shape[i].name), "%s", shape[i].misfit(value))
		}
	}
}

// errorCode notes a code outside the five.
func (j *judge) errorCode(o object, at string) {
	code := o.get("code")
	if kindOf(code) != isString {
		return
	}
	var known []string
	for _, c := range errorCodes {
		if string(c) == textOf(code) {
			return
		}
		known = append(known, string(c))
	}
	j.report("error-code-unknown", at+"/code", "the page has no error code %s%s", quote(textOf(code)), didYouMean(textOf(code), known))
}

var (
	historyShape        = []field{must("messages", isArray, Stated), may("replay", isObject|isNull, Stated), may("todos", anything, Stated)}
	historyMessageShape = []field{
		must("id", notNull, Stated),
		must("role", notNull, Stated),
		must("content", anything, Stated), // null beside tool calls
		must("createdAt", notNull, Stated),
	}
	truncatedShape = []field{may("truncated", isBool|isNull, Stated)}
)

// history judges an answer to thread:messages ("Thread history and replay").
// Answers are permissive: a null in an optional field is its absence.
func (j *judge) history(payload []byte, o object) {
	const rule = "history-shape"
	if j.schemas.has(historyAnswer) {
		j.bySchema(rule, historyAnswer, payload, "")
		return
	}
	if !j.object(rule, payload, "{ok: true, messages} or {ok: false, error: {code, message}}") {
		return
	}
	switch ok := o.get("ok"); {
	case kindOf(ok) != isBool:
		f := must("ok", isBool, Stated)
		j.report(rule, "/ok", "%s", f.misfit(ok))
	case string(ok) == "false":
		j.refusal(o)
	default:
		j.shape(rule, historyShape, o, "")
		messages, _ := readArray(o.get("messages"))
		for i, raw := range messages {
			if j.full() {
				break
			}
			at := "/messages" + pointerAt(i)
			if m, is := readObject(raw); is {
				j.shape(rule, historyMessageShape, m, at)
			} else {
				j.report(rule, at, "message %d is %v: send {id, role, content, createdAt}", i+1, kindOf(raw))
			}
		}
		j.replay(o)
		j.todos(o.get("todos"), "/todos")
	}
}

// refusal judges an answer that is not ok, whichever way it nests.
func (j *judge) refusal(o object) {
	at := ""
	if nested, is := readObject(o.get("error")); is {
		o, at = nested, "/error"
	} else if o.get("code") == nil && o.get("message") == nil {
		j.report("history-shape", "/error", "error is missing: send {code, message} with ok: false")
		return
	}
	j.shape("history-shape", errorShape, o, at)
	j.errorCode(o, at)
}

// replay judges the frame of a replay; its envelopes are messages of their own.
func (j *judge) replay(o object) {
	replay, is := readObject(o.get("replay"))
	if !is {
		return
	}
	if _, at := readReplay(replay); at == "" {
		j.report("history-shape", "/replay/envelopes", "the replay has no array of envelopes: send {envelopes, truncated}")
	}
	j.shape("history-shape", truncatedShape, replay, "/replay")
}

// historyAnswer is the name under which a schema may describe the answer to
// thread:messages, whose own name is its command's.
const historyAnswer = "thread:messages:answer"
