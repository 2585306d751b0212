package protocol

import "tapedeck/protocol/wire"

// Options say how a Validator judges. The zero value judges by the page alone.
type Options struct {
	// Schemas describe messages and events in place of the built-in shapes.
	Schemas *Schemas
}

// Validator judges messages one by one: what a single message can break. What
// takes more than one message to see is package conversation's. A Validator is
// not safe for concurrent use.
type Validator struct {
	schemas *Schemas
	tools   toolSchemas
	keep    keeper
	scanner scanner
	repeats repeats
	parts   parts
}

// NewValidator returns a Validator.
func NewValidator(o Options) *Validator { return &Validator{schemas: o.Schemas} }

// Validate reads m and appends what it breaks to out.
//
// It sets m.Envelope if m is a run:event whose payload is an object. An Envelope
// that m has already is written over, so a caller that keeps one for each
// message of a frame saves the allocation; otherwise a new one is made. The
// Validator keeps neither m nor its bytes. Envelopes inside a replay are not
// judged here: give each of them as a run:event of its own.
func (v *Validator) Validate(m *Message, out []Finding) []Finding {
	return v.ValidateLike(m, wire.Like{}, out)
}

// ValidateLike is Validate for a message whose payload is known to be like one
// before it, so that what is the same need not be read again: like is what
// wire.Decoder says of its packet.
func (v *Validator) ValidateLike(m *Message, like wire.Like, out []Finding) []Finding {
	j := judge{Validator: v, m: m, out: out, first: len(out)}
	envelope := m.Envelope
	m.Envelope = nil
	if !j.names() {
		return j.finish("", "", 0)
	}
	j.extra()
	payload := trim(m.Payload)
	if m.Name == RunEvent && !m.Answer {
		if len(payload) != len(m.Payload) {
			like = wire.Like{}
		}
		return j.runEvent(payload, envelope, like)
	}
	if m.Answer && len(payload) == 0 && m.Name != ThreadMessages {
		return j.finish("", "", 0)
	}
	if len(payload) > 0 && !v.scanner.clean(payload) && j.syntax(payload) != readable {
		return j.finish("", "", 0)
	}
	o, _ := readObject(payload)
	switch {
	case m.Answer && m.Name == ThreadMessages:
		j.history(payload, o)
	case m.Answer:
		// the page knows no such answer, and responses are permissive
	case m.Name == Hello:
		j.hello(payload, o)
	case m.Name == ProtocolError:
		j.protocolError(payload, o)
	case m.Name == TaskStatus:
		j.taskStatus(payload, o)
	default:
		j.command(payload, o)
	}
	return j.finish(o.text("threadId"), o.text("runId"), 0)
}

// runEvent reads and judges an envelope.
func (j *judge) runEvent(payload []byte, e *Envelope, like wire.Like) []Finding {
	if e == nil {
		e = new(Envelope)
	}
	p := &j.parts
	n := j.noteOf(&like)
	if n == nil && (!like.Holds() || len(like.Changes) > 0) {
		like = j.repeats.like(payload)
		n = j.noteOf(&like)
	}
	learn := false
	switch {
	case n != nil && j.again(n, &like, payload, e):
		j.m.Envelope = e
		return j.finish(e.ThreadID, e.RunID, e.Sequence)
	case n != nil:
		n.read(payload, &like, p)
	case j.scanner.envelope(payload, p):
		learn = true
	default:
		state := readable
		if len(payload) > 0 {
			state = j.syntax(payload)
		}
		if state == notJSON {
			return j.finish("", "", 0)
		}
		p.read(payload)
		if state == tooDeep {
			return j.conclude(payload, e)
		}
	}
	j.envelope(payload, p)
	out := j.conclude(payload, e)
	if learn && j.m.Envelope != nil {
		if !like.Holds() {
			like = j.repeats.learn(payload)
		}
		if like.Holds() {
			j.remember(&like, e, len(out) == j.first)
		}
	}
	return out
}

// conclude gives the message its envelope.
func (j *judge) conclude(payload []byte, e *Envelope) []Finding {
	if kindOf(payload) != isObject {
		return j.finish("", "", 0)
	}
	j.keep.fill(e, &j.parts)
	j.m.Envelope = e
	return j.finish(e.ThreadID, e.RunID, e.Sequence)
}
