package protocol

import (
	"fmt"
	"strings"

	"tapedeck/protocol/capture"
)

const (
	// maxFindings a message: a hostile one must not fill the tape.
	maxFindings = 100
	// maxPointer bytes; a longer one names the nearest thing around its place.
	maxPointer = 4096
)

// judge is the judging of one message.
type judge struct {
	*Validator
	m     *Message
	out   []Finding
	first int  // of out, which holds others' findings before
	more  bool // a finding found no room
}

// full reports whether no further finding will be kept. Whoever goes through a
// list asks, since what is written to be thrown away takes time too.
func (j *judge) full() bool { return len(j.out)-j.first >= maxFindings }

// report adds a finding of a rule's default severity.
func (j *judge) report(rule, pointer, format string, args ...any) {
	j.reportAs(defaultSeverity(rule), rule, pointer, format, args...)
}

// reportAs adds a finding. A rule says a thing about a place once.
func (j *judge) reportAs(severity Severity, rule, pointer, format string, args ...any) {
	if len(pointer) > maxPointer {
		pointer = pointer[:strings.LastIndexByte(pointer[:maxPointer], '/')]
	}
	for i := range j.out[j.first:] {
		if f := &j.out[j.first+i]; f.Rule == rule && f.Pointer == pointer {
			return
		}
	}
	if j.full() {
		j.more = true
		return
	}
	j.out = append(j.out, Finding{Rule: rule, Severity: severity, Pointer: pointer, Text: clip(fmt.Sprintf(format, args...))})
}

// finish says of each finding where it passed.
func (j *judge) finish(thread, run string, sequence int64) []Finding {
	found := j.out[j.first:]
	for i := range found {
		f := &found[i]
		f.At, f.Connection = j.m.Address, j.m.Connection
		f.Thread, f.Run, f.Sequence = thread, run, sequence
	}
	if j.more {
		last := &found[len(found)-1]
		last.Text = clip(fmt.Sprintf("more than %d findings here, the last listed: %s", maxFindings, last.Text))
	}
	return j.out
}

// fits reports whether a value may stand in the field; nil is its absence.
func (f *field) fits(value []byte) bool {
	if value == nil {
		return f.optional
	}
	return kindOf(value)&f.kinds != 0
}

// misfit says how a value that does not fit differs from what would.
func (f *field) misfit(value []byte) string {
	k := kindOf(value)
	switch {
	case value == nil:
		return fmt.Sprintf("%s is missing: send %v", f.name, f.kinds)
	case k == isNull && f.optional:
		return fmt.Sprintf("%s is null, may be absent: leave it out", f.name)
	case k == isNull:
		return fmt.Sprintf("%s is null: send %v", f.name, f.kinds)
	}
	return fmt.Sprintf("%s is %v: send %v", f.name, k, f.kinds)
}

// names reports what is wrong with a message's name or the way it went, and
// whether there is nothing.
func (j *judge) names() bool {
	m := j.m
	switch {
	case m.Name == RunEvent && m.Direction == capture.FromGateway:
		return true // as most are
	case !m.Name.Known():
		if !m.Answer {
			j.report("message-unknown", "", "the protocol has no message %s%s", quote(m.Name), didYouMean(string(m.Name), messageNames()))
		}
		return false
	case m.Answer:
		return true
	case m.Name.IsCommand() && m.Direction == capture.FromGateway:
		j.report("message-wrong-way", "", "%s is a command, and the gateway sent it: only a client does", m.Name)
		return false
	case !m.Name.IsCommand() && m.Direction == capture.FromClient:
		j.report("message-wrong-way", "", "%s came from the client: only a gateway sends it", m.Name)
		return false
	}
	return true
}

// extra reports arguments behind the payload, once for all of them.
func (j *judge) extra() {
	if len(j.m.Extra) == 0 {
		return
	}
	switch k := kindOf(trim(j.m.Extra[0])); {
	case k == isNull:
		j.report("argument-unexpected", "", "unexpected null argument behind the payload (a trailing undefined): leave it out")
	case k == isString && j.m.Direction == capture.FromGateway && len(j.m.Extra) == 1:
		// The offset that connection state recovery adds, of a session whose
		// beginning was not seen.
	default:
		j.report("argument-unexpected", "", "unexpected argument behind the payload, %v: send one payload", k)
	}
}

func messageNames() []string {
	var names []string
	for _, n := range append(append([]Name(nil), commands...), gatewayMessages...) {
		names = append(names, string(n))
	}
	return names
}
