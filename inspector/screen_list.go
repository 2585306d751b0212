package inspector

// list is a cursor and a window in a list of items, each of which takes a line
// or more. Only what is in the window is ever measured, so that a list of a
// million items costs as much as one of a hundred.
type list struct {
	cursor int // the chosen item
	top    int // the first item in the window
	height int // of the window, in lines
}

// move moves the cursor by so many items, of n in all.
func (l *list) move(by, n int) { l.to(l.cursor+by, n) }

// to moves the cursor to an item, of n in all.
func (l *list) to(i, n int) { l.cursor = max(min(i, n-1), 0) }

// place moves the window so that the cursor is in it, and returns its first
// item. The lines of an item are asked for at most twice the window's height.
func (l *list) place(n, height int, linesOf func(int) int) int {
	l.height = max(height, 1)
	l.to(l.cursor, n)
	l.top = max(min(l.top, n-1), 0)
	if l.cursor <= l.top {
		l.top = l.cursor
		return l.top
	}
	if l.cursor-l.top <= l.height {
		used := 0
		for i := l.top; i <= l.cursor; i++ {
			used += linesOf(i)
		}
		if used <= l.height {
			return l.top
		}
	}
	used := linesOf(l.cursor)
	for l.top = l.cursor; l.top > 0; l.top-- {
		if used += linesOf(l.top - 1); used > l.height {
			break
		}
	}
	return l.top
}
