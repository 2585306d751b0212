package scrub

// scanner finds values in JSON that stands somewhere in a frame. It takes JSON
// as it comes: what it cannot follow it gives up.
type scanner struct{ b []byte }

const maxDepth = 512

func (s scanner) space(i int) int {
	for i < len(s.b) && (s.b[i] == ' ' || s.b[i] == '\t' || s.b[i] == '\n' || s.b[i] == '\r') {
		i++
	}
	return i
}

// text returns where the string ends that begins at i, behind its quote.
func (s scanner) text(i int) (end int, ok bool) {
	for i++; i < len(s.b); i++ {
		switch s.b[i] {
		case '\\':
			i++
		case '"':
			return i + 1, true
		}
	}
	return len(s.b), false
}

// value returns where the value ends that begins at i.
func (s scanner) value(i, depth int) (end int, ok bool) {
	if i >= len(s.b) || depth > maxDepth {
		return i, false
	}
	switch s.b[i] {
	case '"':
		return s.text(i)
	case '{':
		return s.members(i, depth, func([]byte, int, int) bool { return true })
	case '[':
		return s.items(i, depth, func(int, int) bool { return true })
	}
	for end = i; end < len(s.b); end++ {
		switch s.b[end] {
		case ',', ']', '}', ' ', '\t', '\n', '\r', ':', '"', '{', '[':
			return end, end > i
		}
	}
	return end, end > i
}

// members calls visit with the raw name of each member of the object at i, and
// where its value stands.
func (s scanner) members(i, depth int, visit func(name []byte, from, to int) bool) (end int, ok bool) {
	if i = s.space(i + 1); i < len(s.b) && s.b[i] == '}' {
		return i + 1, true
	}
	for {
		if i >= len(s.b) || s.b[i] != '"' {
			return i, false
		}
		nameEnd, ok := s.text(i)
		if !ok {
			return nameEnd, false
		}
		name := s.b[i+1 : nameEnd-1]
		if i = s.space(nameEnd); i >= len(s.b) || s.b[i] != ':' {
			return i, false
		}
		from := s.space(i + 1)
		to, ok := s.value(from, depth+1)
		if !ok || !visit(name, from, to) {
			return to, false
		}
		if i = s.space(to); i >= len(s.b) {
			return i, false
		}
		switch s.b[i] {
		case '}':
			return i + 1, true
		case ',':
			i = s.space(i + 1)
		default:
			return i, false
		}
	}
}

// items calls visit with where each item of the array at i stands.
func (s scanner) items(i, depth int, visit func(from, to int) bool) (end int, ok bool) {
	if i = s.space(i + 1); i < len(s.b) && s.b[i] == ']' {
		return i + 1, true
	}
	for {
		to, ok := s.value(i, depth+1)
		if !ok || !visit(i, to) {
			return to, false
		}
		if i = s.space(to); i >= len(s.b) {
			return i, false
		}
		switch s.b[i] {
		case ']':
			return i + 1, true
		case ',':
			i = s.space(i + 1)
		default:
			return i, false
		}
	}
}

// get returns a member's raw value of the object at i, nil if it has none.
func (s scanner) get(i int, name string) (value []byte) {
	if i >= len(s.b) || s.b[i] != '{' {
		return nil
	}
	s.members(i, 0, func(n []byte, from, to int) bool {
		if string(n) == name {
			value = s.b[from:to]
		}
		return true
	})
	return value
}

// getText returns what a member says that is a string.
func (s scanner) getText(i int, name string) string {
	v := s.get(i, name)
	if len(v) < 2 || v[0] != '"' {
		return ""
	}
	return string(appendUnits(nil, units(v[1:len(v)-1])))
}
