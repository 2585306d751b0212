package main

import (
	"bytes"
	"flag"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"tapedeck/inspector"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
	"tapedeck/protocol/conversation/corpus"
	"tapedeck/recorder"
)

var update = flag.Bool("update", false, "write the picture of the README")

const picture = "testdata/picture.svg"

// TestPicture holds the README's picture to what the tool prints: it is the
// tool's own output, recorded onto a tape and shown from it, colours included.
func TestPicture(t *testing.T) {
	story, err := os.ReadFile("../../inspector/testdata/thread.txtar")
	if err != nil {
		t.Fatal(err)
	}
	talk, err := corpus.Read(story)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "tapedeck.tape")
	recordFrames(t, path, talk.Frames)
	tape, err := recorder.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer tape.Close()
	var out bytes.Buffer
	v := &inspector.View{Source: tape, Out: &out, Look: inspector.Look{Palette: inspector.NewPalette(), Width: 118}}
	for _, c := range []struct {
		command string
		show    func() error
	}{
		{"tapedeck runs", func() error { return v.Runs(t.Context()) }},
		{"tapedeck show 7f3a", func() error { return v.Show(t.Context(), "7f3a", false) }},
		{"tapedeck show last", func() error { return v.Show(t.Context(), "last", false) }},
	} {
		fmt.Fprintf(&out, "\x1b[1m$ %s\x1b[0m\n", c.command)
		if err := c.show(); err != nil {
			t.Fatal(err)
		}
		out.WriteByte('\n')
	}
	svg := drawTerminal(strings.TrimRight(out.String(), "\n"), 118)
	if *update {
		if err := os.WriteFile(picture, svg, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(picture)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(kept, svg) {
		t.Errorf("%s is not what the tool prints; go test ./cmd/tapedeck -run TestPicture -update draws it again", picture)
	}
}

// recordFrames writes frames onto a tape, judged, at a time that never changes.
func recordFrames(t *testing.T, path string, frames []capture.Frame) {
	t.Helper()
	s := capture.Session{Started: time.Date(2026, 1, 2, 9, 30, 0, 0, time.UTC), Source: "proxy", Tool: "test"}
	w, err := recorder.OpenWriter(path, &s, recorder.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range frames {
		w.Frame(&frames[i])
	}
	w.Drain()
	j := newJudge(conversation.New(conversation.Options{Session: s.ID}), w.Index, nil)
	j.observe(frames)
	j.close()
	if err := w.Close(frames[len(frames)-1].At); err != nil {
		t.Fatal(err)
	}
}

var sgr = regexp.MustCompile("\x1b\\[([0-9;]*)m")

// colours of a dark terminal, by their SGR numbers.
var terminalColours = map[string]string{
	"1": "font-weight:bold", "2": "opacity:.6", "31": "fill:#e06c75", "32": "fill:#98c379", "33": "fill:#e5c07b", "34": "fill:#61afef",
	"35": "fill:#c678dd", "36": "fill:#56b6c2", "37": "fill:#dcdfe4", "90": "fill:#8b93a1", "91": "fill:#ff7b86", "92": "fill:#b5e08c",
	"94": "fill:#7cc0ff", "95": "fill:#dd9cf0", "96": "fill:#7fd6e0",
}

// drawTerminal draws lines with SGR sequences as a picture of a terminal.
func drawTerminal(text string, columns int) []byte {
	const wide, high, margin = 8.4, 18, 14
	lines := strings.Split(text, "\n")
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="14">`+"\n",
		float64(columns)*wide+2*margin, len(lines)*high+2*margin)
	b.WriteString(`<rect width="100%" height="100%" rx="8" fill="#1e222a"/>` + "\n")
	for i, line := range lines {
		fmt.Fprintf(&b, `<text y="%d" fill="#c8ccd4" xml:space="preserve">`, margin+high*i+high-5)
		column, style := 0, ""
		for line != "" {
			at := sgr.FindStringSubmatchIndex(line)
			piece := line
			if at != nil {
				piece = line[:at[0]]
			}
			if piece != "" {
				// Every piece has a place of its own: fonts differ in their glyphs.
				fmt.Fprintf(&b, `<tspan x="%.1f"%s>%s</tspan>`, margin+float64(column)*wide, style, html.EscapeString(piece))
				column += utf8.RuneCountInString(piece)
			}
			if at == nil {
				break
			}
			style = styleOf(line[at[2]:at[3]])
			line = line[at[1]:]
		}
		b.WriteString("</text>\n")
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// styleOf returns the style attribute of a sequence; a reset has none.
func styleOf(codes string) string {
	var styles []string
	for code := range strings.SplitSeq(codes, ";") {
		if s := terminalColours[code]; s != "" {
			styles = append(styles, s)
		}
	}
	if len(styles) == 0 {
		return ""
	}
	return ` style="` + strings.Join(styles, ";") + `"`
}
