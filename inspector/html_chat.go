package inspector

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/conversation"
)

// htmlTalk is the transcript of one thread.
type htmlTalk struct {
	Thread string
	First  bool
	Items  []htmlItem
	Todos  []htmlTodo // as they stand at the end
}

// htmlItem is one thing in a transcript. Kind says which of the fields are set.
type htmlItem struct {
	Kind                   string // that of a block, or "todos", "line" or "wait"
	Anchor, At, Offset     string
	Row                    int // -1 if there is none
	Glyph, Label, Text     string
	Meta                   []string // in a few words each
	Flag, FlagClass        string   // what a reader must not miss, such as "cut off"
	Args, Result           string
	Question, Answer, Role string
	Todos                  []htmlTodo
	Found                  []htmlFound
}

type htmlTodo struct{ Glyph, Status, Text string }

type htmlFound struct{ Severity, Glyph, Rule, Text string }

// maxShown is how much of one text stands in a transcript, and maxValue how
// much of a value. The rest is in the envelopes.
const (
	maxShown = 100_000
	maxValue = 8_000
)

// A transcript of more items than a person reads, or a browser opens at once,
// shows its beginning and its end.
const (
	maxItems  = 4_000
	tailItems = 1_000
)

// talk puts what a reader saw, and what else happened, in order.
func (r *htmlReport) talk(t *conversation.Transcript, n int) htmlTalk {
	talk := htmlTalk{Thread: Clean(t.Thread), First: n == 0}
	rest := r.lines(t)
	waits := mergeWaits(r.waitsOf(t.Thread))
	add := func(item htmlItem, at time.Duration) {
		for len(waits) > 0 && at >= waits[0].End {
			talk.Items = append(talk.Items, htmlItem{Kind: "wait", Row: -1, Label: FormatDuration(waits[0].End - waits[0].Start)})
			waits = waits[1:]
		}
		if item.Anchor = fmt.Sprintf("c%d-%d", n, len(talk.Items)); item.Row >= 0 && r.placed[item.Row] == "" {
			r.placed[item.Row] = item.Anchor
		}
		talk.Items = append(talk.Items, item)
	}
	for i := range t.Blocks {
		b := &t.Blocks[i]
		for len(rest) > 0 && rest[0].First.Compare(b.From) < 0 {
			add(r.line(rest[0]), rest[0].Start)
			rest = rest[1:]
		}
		add(r.block(b), b.At)
	}
	for _, row := range rest {
		add(r.line(row), row.Start)
	}
	talk.Todos = todoList(t.Todos)
	r.shorten(&talk)
	return talk
}

// shorten leaves out the middle of a very long transcript, and says so.
func (r *htmlReport) shorten(talk *htmlTalk) {
	extra := len(talk.Items) - maxItems
	if extra <= 0 {
		return
	}
	from := maxItems - tailItems
	for _, item := range talk.Items[from : from+extra] {
		if r.placed[item.Row] == item.Anchor {
			delete(r.placed, item.Row)
		}
	}
	left := htmlItem{Kind: "left", Row: -1, Label: FormatCount(extra, "construct")}
	talk.Items = slices.Concat(talk.Items[:from], []htmlItem{left}, talk.Items[from+extra:])
}

func (r *htmlReport) waitsOf(thread string) (waits []Wait) {
	for _, w := range r.timeline.Waits {
		if w.Thread == thread {
			waits = append(waits, w)
		}
	}
	return waits
}

func todoList[T Todo | conversation.Todo](todos []T) (list []htmlTodo) {
	for _, item := range todos {
		todo := Todo(item)
		glyph := "○"
		switch todo.Status {
		case "completed", "done", "finished":
			glyph = "●"
		case "in_progress", "active", "running":
			glyph = "◐"
		}
		list = append(list, htmlTodo{glyph, Clean(todo.Status), Clean(todo.Content)})
	}
	return list
}

// lines are the rows of a thread that are no blocks of its transcript.
func (r *htmlReport) lines(t *conversation.Transcript) (lines []*Row) {
	shown := map[string]bool{}
	for i := range t.Blocks {
		shown[t.Blocks[i].From.String()] = true
	}
	for _, row := range r.timeline.Rows {
		if row.Thread != t.Thread && (row.Thread != "" || t != r.talks[0]) {
			continue
		}
		switch row.Kind {
		case KindText, KindReasoning, KindTool, KindDecision, KindSubagent:
			continue
		case KindCommand:
			if row.Name == string(protocol.RunStart) {
				continue
			}
		case KindLifecycle:
			if row.Name == string(protocol.RunError) && shown[row.First.String()] {
				continue
			}
		}
		lines = append(lines, row)
	}
	return lines
}

// line is a row that a reader would not see as a block.
func (r *htmlReport) line(row *Row) htmlItem {
	item := r.item("line", row)
	item.At, item.Offset = row.First.String(), FormatOffset(row.Start-r.start)
	item.Glyph, item.Label = row.Glyph(&r.look), Clean(row.word())
	switch d := row.Detail.(type) {
	case *Todos:
		item.Kind, item.Todos = "todos", todoList(d.Items)
		return item
	case nil:
		if row.Kind == KindLifecycle {
			item.Text = Clean(row.Run)
		}
		return item
	}
	var text strings.Builder
	for _, p := range row.Summary(&r.look, 120) {
		text.WriteString(p.Text)
	}
	item.Text = text.String()
	if row.Kind == KindCommand {
		item.Meta = append(item.Meta, "window "+r.windows[row.Connection])
	}
	return item
}

// item begins an item with what its row says.
func (r *htmlReport) item(kind string, row *Row) htmlItem {
	item := htmlItem{Kind: kind, Row: -1}
	if row == nil {
		return item
	}
	item.Row = row.Index
	for _, f := range alike(row.Findings) {
		item.Found = append(item.Found, htmlFound{f.Severity.String(), r.look.glyph(severityGlyph(f.Severity)), Clean(f.Rule), Clean(f.Text)})
	}
	switch {
	case row.State == Cut && (row.Streams() || row.Kind == KindSubagent):
		item.Flag, item.FlagClass = "cut off", "bad"
	case row.Replayed > 0 && row.Kind != KindReplay:
		item.Flag, item.FlagClass = "replayed", "dim"
		if row.Envelopes > 0 {
			item.Flag = fmt.Sprintf("%d of %d replayed", row.Replayed, row.Replayed+row.Envelopes)
		}
	}
	return item
}

// block is what a reader sees.
func (r *htmlReport) block(b *conversation.Block) htmlItem {
	row := r.timeline.RowAt(b.From)
	if b.Stored {
		row = nil // its place is that of the whole history
	}
	item := r.item(string(b.Kind), row)
	item.At, item.Offset, item.Role = b.From.String(), FormatOffset(b.At-r.start), Clean(b.Role)
	item.Text = shownText(b.Text)
	if b.Stored {
		item.Flag, item.FlagClass = "from the history", "dim"
	} else if b.Open && item.Flag == "" {
		item.Flag, item.FlagClass = "open", "warn"
	}
	switch b.Kind {
	case conversation.UserBlock:
		r.userBlock(&item, row)
		if b.Refused != "" {
			item.Flag, item.FlagClass = "refused: "+Clean(string(b.Refused)), "bad"
		}
	case conversation.TextBlock, conversation.ReasoningBlock:
		r.streamBlock(&item, row, b)
	case conversation.ToolBlock:
		r.toolBlock(&item, row, b)
	case conversation.DecisionBlock:
		r.decisionBlock(&item, row, b)
	case conversation.SubagentBlock:
		r.subagentBlock(&item, b)
	case conversation.ErrorBlock:
		item.Label = Clean(b.ID)
	}
	return item
}

func (r *htmlReport) userBlock(item *htmlItem, row *Row) {
	if row == nil {
		return
	}
	if w := r.windows[row.Connection]; w != "" && len(r.windows) > 1 {
		item.Meta = append(item.Meta, "window "+w)
	}
	if talk, is := row.Detail.(*Talk); is {
		if talk.Attachments > 0 {
			item.Meta = append(item.Meta, FormatCount(talk.Attachments, "attachment"))
		}
		if len(talk.Tools) > 0 {
			item.Meta = append(item.Meta, FormatCount(len(talk.Tools), "client tool")+": "+Fit(strings.Join(talk.Tools, ", "), 60, 0))
		}
		if talk.Fork != "" {
			item.Meta = append(item.Meta, "forks from "+shortID(talk.Fork))
		}
	}
}

func (r *htmlReport) streamBlock(item *htmlItem, row *Row, b *conversation.Block) {
	if b.Until > b.At {
		item.Meta = append(item.Meta, FormatDuration(b.Until-b.At))
	}
	if b.Deltas > 0 {
		item.Meta = append(item.Meta, FormatCount(b.Deltas, "delta"))
	}
	if row == nil {
		return
	}
	if s, is := row.Detail.(*Stream); is {
		if rate := s.Rate(); rate > 0 {
			item.Meta = append(item.Meta, formatRate(rate))
		}
		if s.Stall > stallAfter {
			item.Meta = append(item.Meta, FormatDuration(s.Stall)+" silent")
		}
	}
}

func (r *htmlReport) toolBlock(item *htmlItem, row *Row, b *conversation.Block) {
	item.Label, item.Text = Clean(b.Tool.Name), ""
	item.Args = r.value([]byte(b.Text))
	switch {
	case len(b.Tool.Result) > 0:
		item.Result = r.value(unquoted(b.Tool.Result))
	case item.Flag == "":
		item.Flag, item.FlagClass = "no result", "warn"
	}
	if !b.Tool.Parsed && !b.Open {
		item.Meta = append(item.Meta, "its arguments are no JSON")
	}
	if row == nil {
		return
	}
	if c, is := row.Detail.(*Call); is && c.Result != nil && c.Complete {
		item.Meta = append(item.Meta, FormatDuration(c.Result.After))
		if c.Result.Human > 0 {
			item.Meta = append(item.Meta, FormatDuration(c.Result.Human)+" human")
		}
		if c.Result.Run != "" {
			item.Meta = append(item.Meta, "result in run "+shortID(c.Result.Run))
		}
	}
}

func (r *htmlReport) decisionBlock(item *htmlItem, row *Row, b *conversation.Block) {
	item.Label, item.Question, item.Flag = Clean(b.ID), r.value(b.Decision.Payload), ""
	switch b.Decision.State {
	case "answered":
		item.Answer = r.value(b.Decision.Answer)
		item.Meta = append(item.Meta, "answered after "+FormatDuration(b.Decision.Waited))
		if row != nil {
			if d, is := row.Detail.(*Decision); is && d.Reply != nil && r.windows[d.Reply.Connection] != "" {
				item.Meta = append(item.Meta, fmt.Sprintf("in window %s, #%s", r.windows[d.Reply.Connection], d.Reply.At))
			}
		}
	case "closed":
		item.Flag, item.FlagClass = "never answered: its run ended", "warn"
	default:
		item.Flag, item.FlagClass = "still open after "+FormatDuration(b.Decision.Waited), "human"
	}
}

func (r *htmlReport) subagentBlock(item *htmlItem, b *conversation.Block) {
	item.Label = Clean(b.Subagent.Name)
	if b.Subagent.Status != "" {
		item.Meta = append(item.Meta, Clean(b.Subagent.Status))
	}
	if b.Subagent.Detached {
		item.Meta = append(item.Meta, "detached: it goes on in the background")
	}
	if b.Until > b.At {
		item.Meta = append(item.Meta, FormatDuration(b.Until-b.At))
	}
	if b.Subagent.Thread != "" {
		item.Meta = append(item.Meta, "thread "+Clean(b.Subagent.Thread))
	}
}

// shownText is a text for a transcript, as long as a person reads.
func shownText(s string) string {
	if len(s) <= maxShown {
		return visible(s)
	}
	return visible(cutBytes(s, maxShown)) + "\n…+" + FormatSize(int64(len(s)-maxShown)) + ", which are in the envelopes"
}

// unquoted returns the text of a JSON string, and other JSON as it is.
func unquoted(raw []byte) []byte {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return []byte(s)
	}
	return raw
}

// value lays out a value: JSON over lines, text as it is.
func (r *htmlReport) value(raw []byte) string {
	if len(raw) > maxValue {
		return visible(cutBytes(string(raw[:maxValue]), maxValue-4)) + "\n…+" + FormatSize(int64(len(raw)-maxValue)) + ", which are in the envelopes"
	}
	if json.Valid(raw) {
		return prettyJSON(&r.look, raw, 0)
	}
	return visible(string(raw))
}
