package inspector

import (
	"encoding/json"
	"strings"
)

// maxIndent is the depth below which JSON is written without breaks: nobody
// reads there, and the spaces would outgrow the value.
const maxIndent = 32

// longString is how much of a string is shown without Full.
const longString = 600

// prettyJSON lays JSON out over lines, each clean. Small containers stay on one
// line, and numbers keep all their digits. What is no JSON comes back as one
// clean line.
func prettyJSON(look *Look, raw []byte, indent int) string {
	if !json.Valid(raw) {
		return Clean(string(raw))
	}
	p := &printer{look: look, raw: raw, ends: containerEnds(raw), base: strings.Repeat(" ", indent)}
	p.value(0, 0)
	return p.out.String()
}

// containerEnds maps the beginning of each object and array to its end.
func containerEnds(raw []byte) map[int]int {
	ends, open := map[int]int{}, []int(nil)
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			i = stringEnd(raw, i) - 1
		case '{', '[':
			open = append(open, i)
		case '}', ']':
			ends[open[len(open)-1]] = i + 1
			open = open[:len(open)-1]
		}
	}
	return ends
}

// stringEnd returns where a string that begins at i ends.
func stringEnd(raw []byte, i int) int {
	for i++; i < len(raw) && raw[i] != '"'; i++ {
		if raw[i] == '\\' {
			i++
		}
	}
	return min(i+1, len(raw))
}

type printer struct {
	look *Look
	raw  []byte
	ends map[int]int
	base string
	out  strings.Builder
}

func (p *printer) skipSpace(i int) int {
	for i < len(p.raw) && isFilterSpace(p.raw[i]) {
		i++
	}
	return i
}

// value writes the value at i and returns where it ends.
func (p *printer) value(i, depth int) int {
	i = p.skipSpace(i)
	switch p.raw[i] {
	case '{', '[':
		end := p.ends[i]
		if depth >= maxIndent || p.fitsLine(i, end, depth) {
			p.inline(i, end)
			return end
		}
		return p.container(i, depth)
	case '"':
		end := stringEnd(p.raw, i)
		p.text(i, end)
		return end
	}
	end := i
	for end < len(p.raw) && !isFilterSpace(p.raw[end]) && p.raw[end] != ',' && p.raw[end] != '}' && p.raw[end] != ']' {
		end++
	}
	p.out.WriteString(p.look.Palette.Paint(Worked, string(p.raw[i:end])))
	return end
}

func (p *printer) container(i, depth int) int {
	closing := byte('}')
	if p.raw[i] == '[' {
		closing = ']'
	}
	p.out.WriteByte(p.raw[i])
	i = p.skipSpace(i + 1)
	for p.raw[i] != closing {
		p.newline(depth + 1)
		if closing == '}' {
			end := stringEnd(p.raw, i)
			p.out.WriteString(p.look.Palette.Paint(Key, Clean(string(p.raw[i:end]))) + ": ")
			i = p.skipSpace(end) + 1 // the colon
		}
		i = p.skipSpace(p.value(i, depth+1))
		if p.raw[i] == ',' {
			p.out.WriteByte(',')
			i = p.skipSpace(i + 1)
		}
	}
	p.newline(depth)
	p.out.WriteByte(closing)
	return i + 1
}

func (p *printer) newline(depth int) {
	p.out.WriteString("\n" + p.base + strings.Repeat("  ", depth))
}

// fitsLine reports whether a container holds no other and is short.
func (p *printer) fitsLine(i, end, depth int) bool {
	if end-i > p.look.width()-len(p.base)-2*depth-20 {
		return false
	}
	for j := i + 1; j < end; j++ {
		switch p.raw[j] {
		case '"':
			j = stringEnd(p.raw, j) - 1
		case '{', '[':
			return false
		}
	}
	return true
}

// inline writes a container on one line, with a space after colons and commas.
func (p *printer) inline(i, end int) {
	for i < end {
		switch c := p.raw[i]; {
		case c == '"':
			next := stringEnd(p.raw, i)
			p.text(i, next)
			i = next
			continue
		case c == ':' || c == ',':
			p.out.WriteByte(c)
			p.out.WriteByte(' ')
		case !isFilterSpace(c):
			p.out.WriteByte(c)
		}
		i++
	}
}

// text writes a string as it was sent, cut if it is long.
func (p *printer) text(i, end int) {
	if s := p.raw[i:end]; p.look.Full || len(s) <= longString {
		p.out.WriteString(Clean(string(s)))
		return
	}
	inner := string(p.raw[i+1 : end-1])
	shown, used := firstColumns(cutBytes(inner, longString), longString)
	p.out.WriteString(`"` + shown + p.look.ellipsis() + "+" + FormatSize(int64(len(inner)-used)) + `"`)
}
