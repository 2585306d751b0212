package inspector

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// The parts of a report that are the same in each.
var (
	//go:embed html/page.tmpl
	htmlTemplate string
	//go:embed html/page.css
	htmlStyle string
	//go:embed html/page.js
	htmlScript string
)

// HTMLOptions say what stands in an HTML report besides the runs.
type HTMLOptions struct {
	Title   string // the first run's input if it is empty
	Comment string // of whoever hands the report on, at the top
	Tool    string // tapedeck's version
	// Zone is that of wall times, UTC if nil.
	Zone *time.Location
	// MaxPayload is how many bytes of one payload are kept, 64 KiB if 0. What is
	// cut is said.
	MaxPayload int
}

// WriteHTML writes some runs of one session as a page that stands alone: the
// transcript, a waterfall, the findings and the envelopes. It opens without a
// network, runs no script but its own, and obeys nothing that came off the
// wire. The same runs make the same bytes. Envelopes are written as they are
// read: only what a reader sees is held.
func WriteHTML(ctx context.Context, w io.Writer, src Source, runs []conversation.Run, o HTMLOptions) error {
	if len(runs) == 0 {
		return nothingf("no run to report")
	}
	if o.MaxPayload <= 0 {
		o.MaxPayload = 64 << 10
	}
	r, err := loadReport(ctx, src, runs, o)
	if err != nil {
		return err
	}
	page, err := template.New("page").Parse(htmlTemplate)
	if err != nil {
		return fmt.Errorf("read the template of the report: %w", err)
	}
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, htmlHead, sourceHash(htmlStyle), sourceHash(htmlScript), template.HTMLEscapeString(r.Title), htmlStyle)
	if err := page.ExecuteTemplate(out, "body", r.page()); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	if err := r.writeEnvelopes(ctx, out); err != nil {
		return err
	}
	out.WriteString("<script>" + htmlScript + "</script>\n</body>\n</html>\n")
	return out.Flush()
}

// htmlHead is written by hand, since the hashes in it are of the bytes that
// follow. Whatever else tries to run or to load is refused.
const htmlHead = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src '%s'; script-src '%s'; img-src data:; base-uri 'none'; form-action 'none'">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>%s</title>
<style>%s</style>
</head>
`

func sourceHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// htmlReport is a report while it is made.
type htmlReport struct {
	HTMLOptions
	src      Source
	runs     []conversation.Run
	session  *capture.Session
	findings []protocol.Finding
	timeline *Timeline
	start    time.Duration
	talks    []*conversation.Transcript
	windows  map[capture.Position]string
	placed   map[int]string // rows to the anchors at which they stand in the chat
	look     Look
}

func loadReport(ctx context.Context, src Source, runs []conversation.Run, o HTMLOptions) (*htmlReport, error) {
	runs = slices.Clone(runs)
	sortRuns(runs)
	r := &htmlReport{
		HTMLOptions: o, src: src, runs: runs, timeline: NewTimeline(TimelineOptions{}), windows: map[capture.Position]string{},
		placed: map[int]string{}, look: Look{Width: 96, Full: true, Zone: o.Zone},
	}
	for i := range runs {
		if runs[i].Session != runs[0].Session {
			return nil, fmt.Errorf("a report is of one session: run %q is of session %d, and run %q of %d", runs[0].ID, runs[0].Session, runs[i].ID, runs[i].Session)
		}
	}
	sessions, err := src.Sessions(ctx)
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	r.session = sessionOf(sessions, runs[0].Session)
	if r.findings, err = RunFindings(ctx, src, runs); err != nil {
		return nil, err
	}
	if err := r.fold(ctx); err != nil {
		return nil, err
	}
	if s := r.session; s != nil && s.Notes != nil {
		r.Title, r.Comment = cmp.Or(r.Title, Clean(s.Notes.Title)), cmp.Or(r.Comment, s.Notes.Comment)
	}
	if r.Title == "" {
		if r.Title = Clean(runs[0].Input); r.Title == "" {
			r.Title = "Run " + Clean(runs[0].ID)
		}
	}
	return r, nil
}

// fold reads the runs once, into rows and into what a reader saw.
func (r *htmlReport) fold(ctx context.Context) error {
	var folds []*conversation.Fold
	var threads []string
	for i := range r.runs {
		if id := r.runs[i].Thread; !slices.Contains(threads, id) {
			threads = append(threads, id)
			folds = append(folds, conversation.NewFold(id, stallAfter))
		}
	}
	for m, err := range RunMoments(ctx, r.src, r.runs, r.findings) {
		if err != nil {
			return err
		}
		r.timeline.Add(m)
		if c := m.Connection(); c != 0 && r.windows[c] == "" && m.Message != nil {
			r.windows[c] = windowName(len(r.windows))
		}
		if m.Message != nil {
			for _, f := range folds {
				f.Add(m.Message)
			}
		}
	}
	for _, f := range r.findings {
		if r.timeline.RowAt(f.At) == nil {
			r.timeline.Loose = append(r.timeline.Loose, f)
		}
	}
	if !r.live() {
		r.timeline.Finish()
	}
	for _, f := range folds {
		r.talks = append(r.talks, f.Transcript())
	}
	for i, row := range r.timeline.Rows {
		if i == 0 || row.Start < r.start {
			r.start = row.Start
		}
	}
	return nil
}

// live reports whether a run goes on.
func (r *htmlReport) live() bool {
	return slices.ContainsFunc(r.runs, func(run conversation.Run) bool {
		return run.Status == conversation.Running || run.Status == conversation.Paused
	})
}

// windowName calls the connections A, B, C and so on.
func windowName(n int) string {
	if n < 26 {
		return string(rune('A' + n))
	}
	return fmt.Sprintf("A%d", n-25)
}

// htmlPage is what the template shows.
type htmlPage struct {
	Title, Comment        string
	Marks                 []htmlMark
	Status, StatusGlyph   string
	Runs                  []string
	Thread                string
	Started, Session      string
	Gateway, Tool         string
	RecordedBy, Protocol  string
	Figures               []htmlFigure
	Warnings              []string
	Groups                []htmlGroup
	Counts                []htmlFigure
	Waterfall             htmlWaterfall
	Talks                 []htmlTalk
	Envelopes, MaxPayload string
}

// htmlFigure is a number with its name.
type htmlFigure struct{ Name, Value, Class string }

func (r *htmlReport) page() *htmlPage {
	first, last := &r.runs[0], &r.runs[len(r.runs)-1]
	p := &htmlPage{
		Title: r.Title, Comment: visible(r.Comment), Status: statusText(last), StatusGlyph: r.look.glyph(statusGlyph(last.Status)),
		Thread: Clean(first.Thread), Tool: Clean(r.Tool), Protocol: fmt.Sprintf("%d.%d", protocol.Major, protocol.Minor),
		Figures: r.figures(), MaxPayload: FormatSize(int64(r.MaxPayload)),
	}
	for i := range r.runs {
		p.Runs = append(p.Runs, Clean(r.runs[i].ID))
	}
	if s := r.session; s != nil {
		p.Gateway, p.RecordedBy, p.Session = Clean(s.Gateway), Clean(s.Tool), fmt.Sprint(s.ID)
		if !s.Started.IsZero() {
			zone := r.Zone
			if zone == nil {
				zone = time.UTC
			}
			p.Started = s.Started.Add(first.Started).In(zone).Format("2 January 2006, 15:04:05 MST")
		}
		p.Warnings = r.warnings(s)
	}
	for _, m := range marksOf(r.session) {
		if r.timeline.RowAt(m.At) != nil {
			p.Marks = append(p.Marks, htmlMark{m.At.String(), Clean(m.Text)})
		}
	}
	for _, talk := range r.talks {
		p.Talks = append(p.Talks, r.talk(talk, len(p.Talks)))
	}
	p.Waterfall = r.waterfall() // after the talks, which say where the rows stand
	p.Groups, p.Counts = r.groups()
	return p
}

// htmlMark is a place that somebody wants another to look at.
type htmlMark struct{ At, Text string }

// warnings say in what the recording is not what it should be.
func (r *htmlReport) warnings(s *capture.Session) []string {
	var all []string
	if text := Incomplete(s); text != "" {
		all = append(all, text+".")
	}
	if r.live() {
		all = append(all, "The run went on when this report was made: its end is not in it.")
	}
	if s.Secrets {
		all = append(all, "Recorded with --keep-secrets: credentials may be in it.")
	}
	return all
}

func (r *htmlReport) figures() []htmlFigure {
	var model, human time.Duration
	var envelopes int
	var bytes int64
	for i := range r.runs {
		run := &r.runs[i]
		model, human = model+ModelTime(run), human+run.Human
		envelopes, bytes = envelopes+run.Envelopes, bytes+run.Bytes
	}
	figures := []htmlFigure{{"model", FormatDuration(model), ""}}
	if human > 0 {
		figures = append(figures, htmlFigure{"human", FormatDuration(human), "human"})
	}
	if text := firstToken(&r.runs[0]); text != "" {
		figures = append(figures, htmlFigure{"first token", text, ""})
	}
	figures = append(figures, htmlFigure{"envelopes", groupDigits(envelopes), ""}, htmlFigure{"", FormatSize(bytes), ""})
	return figures
}

// htmlGroup is a rule with the places in which it was broken.
type htmlGroup struct {
	Rule, Severity, Glyph, Title, Harm, Fix, Basis string
	Places                                         []htmlPlace
	More                                           string // how many places are left out
}

// maxPlaces is how many places of one rule are listed.
const maxPlaces = 200

type htmlPlace struct {
	At, Anchor, Text, Pointer, Seq, Other, Severity string
	Row                                             int
}

func (r *htmlReport) groups() (groups []htmlGroup, counts []htmlFigure) {
	report := &Report{Findings: r.findings}
	for _, g := range report.groups() {
		group := htmlGroup{
			Rule: Clean(g.rule.ID), Severity: g.severity.String(), Glyph: r.look.glyph(severityGlyph(g.severity)),
			Title: g.rule.Title, Harm: g.rule.Harm, Fix: g.rule.Fix,
		}
		if g.rule.Provenance != "" {
			group.Basis = fmt.Sprintf("%s, %s", g.rule.Provenance, g.rule.Section)
		}
		if extra := len(g.findings) - maxPlaces; extra > 0 {
			group.More = FormatCount(extra, "place")
		}
		for _, f := range g.findings[:min(len(g.findings), maxPlaces)] {
			place := htmlPlace{At: f.At.String(), Text: Clean(f.Text), Pointer: Clean(f.Pointer), Row: -1}
			if row := r.timeline.RowAt(f.At); row != nil {
				place.Row, place.Anchor = row.Index, r.placed[row.Index]
			}
			if f.Sequence != 0 {
				place.Seq = fmt.Sprint(f.Sequence)
			}
			if !f.Other.IsZero() && f.Other != f.At {
				place.Other = f.Other.String()
			}
			if f.Severity != g.severity {
				place.Severity = f.Severity.String()
			}
			group.Places = append(group.Places, place)
		}
		groups = append(groups, group)
	}
	for _, severity := range []protocol.Severity{protocol.Error, protocol.Warning, protocol.Note} {
		if n := report.Count(severity); n > 0 {
			counts = append(counts, htmlFigure{FormatCount(n, severity.String()), r.look.glyph(severityGlyph(severity)), severity.String()})
		}
	}
	return groups, counts
}

// visible is Clean for text of many lines: line ends and tabs stay what they
// are.
func visible(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		text, ends := strings.CutSuffix(line, "\n")
		text = strings.TrimSuffix(text, "\r")
		for i, part := range strings.Split(text, "\t") {
			if i > 0 {
				b.WriteByte('\t')
			}
			b.WriteString(Clean(part))
		}
		if ends {
			b.WriteByte('\n')
		}
	}
	return b.String()
}
