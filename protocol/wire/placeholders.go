package wire

import "iter"

// placeholders yields the num of each {"_placeholder":true,"num":…} in a JSON
// value that was checked, as its JSON, in the order in which they stand. One
// without a num yields nil.
func placeholders(value []byte) iter.Seq[[]byte] {
	type object struct {
		marked bool
		num    []byte
		list   bool
	}
	return func(yield func([]byte) bool) {
		var open []object
		s := splitter{b: value}
		for !s.atEnd() {
			switch s.peek() {
			case '{', '[':
				open = append(open, object{list: s.peek() == '['})
				s.i++
			case '}', ']':
				o := open[len(open)-1]
				open = open[:len(open)-1]
				s.i++
				if o.marked && !yield(o.num) {
					return
				}
			case '"':
				start := s.i
				s.text()
				if len(open) == 0 || open[len(open)-1].list || !s.take(':') {
					continue
				}
				o := &open[len(open)-1]
				switch string(value[start : s.i-1]) {
				case `"_placeholder"`:
					s.space()
					o.marked = s.peek() == 't'
				case `"num"`:
					s.space()
					from := s.i
					s.value()
					o.num = value[from:s.i]
				}
			case ',':
				s.i++
			default: // a number or a word
				s.value()
			}
		}
	}
}
