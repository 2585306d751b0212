package protocol

// Options say how a Validator judges. The zero value judges by the page alone.
type Options struct{}

// Validator judges messages one by one: what a single message can break. What
// takes more than one message to see is package conversation's. A Validator is
// not safe for concurrent use.
type Validator struct {
	keep  keeper
	parts parts
}

// NewValidator returns a Validator.
func NewValidator(o Options) *Validator { return &Validator{} }

// Validate reads m and appends what it breaks to out.
//
// It sets m.Envelope if m is a run:event whose payload is an object. An Envelope
// that m has already is written over, so a caller that keeps one for each message of a
// frame saves the allocation; otherwise a new one is made. The Validator keeps
// neither m nor its bytes. Envelopes inside a replay are not judged here: give
// each of them as a run:event of its own.
func (v *Validator) Validate(m *Message, out []Finding) []Finding {
	envelope := m.Envelope
	m.Envelope = nil
	if m.Name != RunEvent || m.Answer {
		return out
	}
	if v.parts.read(trim(m.Payload)) {
		if envelope == nil {
			envelope = new(Envelope)
		}
		v.keep.fill(envelope, &v.parts)
		m.Envelope = envelope
	}
	return out
}
