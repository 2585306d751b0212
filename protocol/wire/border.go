package wire

// Border reports whether what was fed ends between two messages, so that a
// frame of one's own may follow it. It is to be called when Next has returned
// nil.
func (s *Scanner) Border() bool {
	return s.lost == "" && !s.inFrame && s.headLen == 0 && !s.data.open
}
