package inspector

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"tapedeck/protocol/capture"
)

// DiffOptions say what counts as a difference.
type DiffOptions struct {
	// Strict also compares where deltas were cut, and before what each
	// construct ended.
	Strict bool
	// Timing shows how long each construct took on both sides. Times alone never
	// make a difference.
	Timing bool
	// Ignore leaves fields out: a name such as "price", at any depth, or a path
	// such as "/arguments/items/*/price" with all below it.
	Ignore []string
}

// Diff is how two normal forms differ.
type Diff struct {
	A, B  *Normal
	Pairs []Pair
	// First is where they part, nil if they are equal.
	First *Divergence
	// Unused are those of the fields to be ignored that neither side has.
	Unused []string

	options DiffOptions
}

// Pair is a construct on both sides, or on one.
type Pair struct {
	A, B *Construct // nil where the other side has more
	// Moved is set if both sides have it, in another order.
	Moved   bool
	Changes []Change
}

// Differs reports whether the two sides of a pair are not the same.
func (p *Pair) Differs() bool { return p.A == nil || p.B == nil || p.Moved || len(p.Changes) > 0 }

// Change is a value that differs.
type Change struct {
	// Field is its path, such as "/arguments/max".
	Field string
	// A and B are canonical JSON, "" where there is no such member.
	A, B string
}

// Divergence is the first place in which two runs differ.
type Divergence struct {
	// A and B are the addresses on both sides. Where a construct is on one side
	// only, the other is the place at which it is missing; an address is zero at
	// a side's end, and in a kept normal form.
	A, B capture.Address
	Text string // what differs, in one clean line
}

// Equal reports whether nothing differs.
func (d *Diff) Equal() bool { return d.First == nil }

// Counts returns how many constructs are the same, changed, moved, and on one
// side only.
func (d *Diff) Counts() (same, changed, moved, onlyA, onlyB int) {
	for i := range d.Pairs {
		switch p := &d.Pairs[i]; {
		case p.B == nil:
			onlyA++
		case p.A == nil:
			onlyB++
		case p.Moved:
			moved++
		case len(p.Changes) > 0:
			changed++
		default:
			same++
		}
	}
	return same, changed, moved, onlyA, onlyB
}

// Compare aligns two normal forms, construct by construct, and says what
// differs. Ids are the same if they stand for the same constructs, or always
// for each other.
func Compare(a, b *Normal, o DiffOptions) *Diff {
	c := &comparison{options: o, seed: maphash.MakeSeed(), used: make([]bool, len(o.Ignore)), forth: map[Ref]Ref{}, back: map[Ref]Ref{}}
	d := &Diff{A: a, B: b, Pairs: c.align(a.Constructs, b.Constructs), options: o}
	for i := range d.Pairs {
		if p := &d.Pairs[i]; p.A != nil && p.B != nil {
			c.bind(p.A.ID, p.B.ID)
		}
	}
	for i := range d.Pairs {
		if p := &d.Pairs[i]; p.A != nil && p.B != nil {
			p.Changes = c.changes(p.A, p.B)
		}
	}
	d.First = d.firstDivergence()
	for i, name := range o.Ignore {
		if !c.used[i] {
			d.Unused = append(d.Unused, name)
		}
	}
	return d
}

// comparison is the state of a Compare.
type comparison struct {
	options DiffOptions
	seed    maphash.Seed
	used    []bool // of options.Ignore
	forth   map[Ref]Ref
	back    map[Ref]Ref
}

// bind makes two ids stand for each other, and reports whether they do.
func (c *comparison) bind(a, b Ref) bool {
	if a.N == 0 || b.N == 0 || a.Kind != b.Kind {
		return a == b
	}
	toB, hasB := c.forth[a]
	toA, hasA := c.back[b]
	if !hasA && !hasB {
		c.forth[a], c.back[b] = b, a
		return true
	}
	return hasA && hasB && toB == b && toA == a
}

// wanted reports whether a field of a construct is compared.
func (c *comparison) wanted(f *Field) bool {
	return (c.options.Strict || !f.strict) && !c.ignored("/"+f.Name)
}

// ignored reports whether a path is left out.
func (c *comparison) ignored(path string) bool {
	for i, name := range c.options.Ignore {
		if ignores(name, path) {
			c.used[i] = true
			return true
		}
	}
	return false
}

// ignores matches one path with what is to be ignored. Paths are looked at from
// the top, so what is below an ignored one is never asked for.
func ignores(name, path string) bool {
	if !strings.Contains(name, "/") {
		return path[strings.LastIndexByte(path, '/')+1:] == name
	}
	want, got := strings.Split(strings.Trim(name, "/"), "/"), strings.Split(strings.Trim(path, "/"), "/")
	return slices.EqualFunc(want, got, func(w, g string) bool { return w == "*" || w == g })
}

// changes returns what differs between two constructs.
func (c *comparison) changes(a, b *Construct) []Change {
	v := &visit{comparison: c}
	if a.Kind != b.Kind || a.Name != b.Name {
		v.note("/name", a.kind()+" "+a.Name, b.kind()+" "+b.Name)
	}
	seen := map[string]bool{}
	for i := range a.Fields {
		f := &a.Fields[i]
		seen[f.Name] = true
		if !c.wanted(f) {
			continue
		}
		if other := b.field(f.Name); other != nil {
			v.compare("/"+f.Name, f.value, other.value)
		} else {
			v.changes = append(v.changes, Change{Field: "/" + f.Name, A: string(canonical(f.value))})
		}
	}
	for i := range b.Fields {
		if f := &b.Fields[i]; !seen[f.Name] && c.wanted(f) {
			v.changes = append(v.changes, Change{Field: "/" + f.Name, B: string(canonical(f.value))})
		}
	}
	return v.changes
}

func (c *Construct) field(name string) *Field {
	for i := range c.Fields {
		if c.Fields[i].Name == name {
			return &c.Fields[i]
		}
	}
	return nil
}

// visit walks two values side by side.
type visit struct {
	*comparison
	changes []Change
}

func (v *visit) note(path string, a, b any) {
	v.changes = append(v.changes, Change{Field: path, A: string(canonical(a)), B: string(canonical(b))})
}

func (v *visit) compare(path string, a, b any) {
	switch x := a.(type) {
	case map[string]any:
		if y, is := b.(map[string]any); is {
			v.compareObjects(path, x, y)
			return
		}
	case []any:
		if y, is := b.([]any); is && len(x) == len(y) {
			for i := range x {
				if item := fmt.Sprintf("%s/%d", path, i); !v.ignored(item) {
					v.compare(item, x[i], y[i])
				}
			}
			return
		}
	case Ref:
		if y, is := b.(Ref); is {
			if !v.bind(x, y) {
				v.note(path, x, y)
			}
			return
		}
	}
	if string(canonical(a)) != string(canonical(b)) {
		v.note(path, a, b)
	}
}

func (v *visit) compareObjects(path string, a, b map[string]any) {
	for _, name := range sortedKeys(a) {
		member := path + "/" + pointerToken(name)
		other, both := b[name]
		switch {
		case v.ignored(member):
		case both:
			v.compare(member, a[name], other)
		default:
			v.changes = append(v.changes, Change{Field: member, A: string(canonical(a[name]))})
		}
	}
	for _, name := range sortedKeys(b) {
		member := path + "/" + pointerToken(name)
		if _, both := a[name]; !both && !v.ignored(member) {
			v.changes = append(v.changes, Change{Field: member, B: string(canonical(b[name]))})
		}
	}
}

// pointerToken escapes a member's name for a JSON pointer.
func pointerToken(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// firstDivergence finds where the two sides part.
func (d *Diff) firstDivergence() *Divergence {
	for i := range d.Pairs {
		p := &d.Pairs[i]
		if !p.Differs() {
			continue
		}
		at := &Divergence{}
		if p.A != nil {
			at.A = p.A.At
		} else {
			at.A = nextAt(d.Pairs[i:], func(p *Pair) *Construct { return p.A })
		}
		if p.B != nil {
			at.B = p.B.At
		} else {
			at.B = nextAt(d.Pairs[i:], func(p *Pair) *Construct { return p.B })
		}
		at.Text = p.say()
		return at
	}
	return nil
}

func nextAt(pairs []Pair, side func(*Pair) *Construct) capture.Address {
	for i := range pairs {
		if c := side(&pairs[i]); c != nil && !pairs[i].Moved {
			return c.At
		}
	}
	return capture.Address{}
}

// say tells in one line how a pair differs.
func (p *Pair) say() string {
	switch {
	case p.B == nil:
		return p.A.title() + " is only in A"
	case p.A == nil:
		return p.B.title() + " is only in B"
	case len(p.Changes) > 0:
		c := &p.Changes[0]
		a, b := excerpts(c.A, c.B, 40, "…")
		return fmt.Sprintf("%s: %s is %s in A and %s in B", p.A.title(), Clean(c.Field), orNothing(a), orNothing(b))
	}
	return p.A.title() + " comes elsewhere"
}

// title names a construct in a sentence.
func (c *Construct) title() string {
	title := c.kind()
	if c.Name != "" && c.Name != title {
		title += " " + Clean(c.Name)
	}
	return title
}

func orNothing(value string) string {
	if value == "" {
		return "absent"
	}
	return value
}

// excerpts shortens two values to where they differ, in at most width columns
// each. Both are clean.
func excerpts(a, b string, width int, ellipsis string) (string, string) {
	from := common(a, b)
	for from > 0 && from < len(a) && a[from]&0xc0 == 0x80 || from > 0 && from < len(b) && b[from]&0xc0 == 0x80 {
		from--
	}
	return excerpt(a, from, width, ellipsis), excerpt(b, from, width, ellipsis)
}

func excerpt(s string, from, width int, ellipsis string) string {
	if Width(Clean(s)) <= width {
		return Clean(s)
	}
	before := lastColumns(s[:min(from, len(s))], width/3, ellipsis)
	rest := s[min(from, len(s)):]
	return before + fit(rest, max(width-Width(before), 4), 0, ellipsis)
}
