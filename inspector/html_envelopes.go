package inspector

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"

	"tapedeck/protocol"
)

// htmlEnvelope is what the page's script knows of one message. The names are
// short since there are many, and known to page.js alone.
type htmlEnvelope struct {
	At      string      `json:"a"`
	MS      float64     `json:"t"`
	From    string      `json:"d,omitempty"` // "client" or "gateway"
	Window  string      `json:"w,omitempty"`
	Name    string      `json:"n"`
	Type    string      `json:"y,omitempty"`
	Run     string      `json:"r,omitempty"`
	Thread  string      `json:"h,omitempty"`
	Seq     int64       `json:"q,omitempty"`
	Row     *int        `json:"c,omitempty"` // of the timeline
	Tool    string      `json:"l,omitempty"`
	Source  string      `json:"s,omitempty"` // if it is not live
	Size    int64       `json:"z"`
	Said    string      `json:"b,omitempty"`
	Payload string      `json:"p"`
	Found   [][3]string `json:"f,omitempty"` // severity, rule, text
}

// writeEnvelopes writes the messages of the runs into a block of data, one at a
// time. A payload is a string in it, so that no number loses a digit.
func (r *htmlReport) writeEnvelopes(ctx context.Context, out *bufio.Writer) error {
	out.WriteString(`<script type="application/json" id="data">[`)
	n := 0
	for m, err := range RunMoments(ctx, r.src, r.runs, r.findings) {
		if err != nil {
			return err
		}
		if m.Message == nil && len(m.Findings) == 0 {
			continue
		}
		// Marshal escapes <, > and &, so that nothing in it can end the block.
		line, err := json.Marshal(r.envelope(m))
		if err != nil {
			return fmt.Errorf("write envelope #%s: %w", m.Address(), err)
		}
		if n > 0 {
			out.WriteByte(',')
		}
		out.WriteByte('\n')
		if _, err := out.Write(line); err != nil {
			return err
		}
		n++
	}
	out.WriteString("\n]</script>\n")
	return nil
}

func (r *htmlReport) envelope(m *Moment) *htmlEnvelope {
	e := &htmlEnvelope{
		At: m.Address().String(), MS: ms(m.At() - r.start), From: m.Direction().String(), Window: r.windows[m.Connection()], Name: Clean(m.title()),
		Run: Clean(m.Run), Thread: Clean(m.Thread), Seq: m.sequence(), Tool: Clean(m.Tool), Size: m.Size(), Said: r.said(m),
	}
	if event := m.event(); event != nil {
		e.Type = Clean(string(event.Type))
	}
	if source := m.Source(); source != "live" {
		e.Source = source
	}
	if row := r.timeline.RowAt(m.Address()); row != nil {
		e.Row = &row.Index
	}
	e.Payload = r.payload(m.Bytes())
	for _, f := range m.Findings {
		e.Found = append(e.Found, [3]string{f.Severity.String(), Clean(f.Rule), Clean(f.Text)})
	}
	return e
}

// payload is the text of a payload, cut where it is too long. In JSON, what
// would be obeyed or hidden becomes an escape that means the same.
func (r *htmlReport) payload(raw []byte) string {
	isJSON := json.Valid(raw)
	if len(raw) > r.MaxPayload {
		raw = []byte(cutBytes(string(raw[:r.MaxPayload]), r.MaxPayload-4))
	}
	if isJSON {
		return visible(string(escapeJSON(raw)))
	}
	return Clean(string(raw))
}

// saidColumns is how much of what an envelope says stands in the list.
const saidColumns = 60

// said is what a person looks for in a list of envelopes.
func (r *htmlReport) said(m *Moment) string {
	text := ""
	switch e := m.event(); {
	case m.Command != nil && m.Command.Name == protocol.RunResume:
		text = head(m.Command.Answer)
	case m.Command != nil:
		text = m.Command.Input
	case e == nil:
	case e.Delta != "":
		text = e.Delta
	case e.Code != "" || e.Message != "":
		text = joinText(e.Code, e.Message)
	case m.Tool != "":
		text = m.Tool
	case m.Agent != "":
		text = m.Agent
	case e.InterruptID != "":
		text = e.InterruptID
	}
	return Fit(text, saidColumns, 0)
}
