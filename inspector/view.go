package inspector

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// Format is how a view comes out.
type Format string

// The formats of a view.
const (
	FormatText  Format = "text"
	FormatJSON  Format = "json"  // one document
	FormatJSONL Format = "jsonl" // one object a line
)

// ParseFormat reads a format; "" is text.
func ParseFormat(name string) (Format, error) {
	switch f := Format(name); f {
	case "":
		return FormatText, nil
	case FormatText, FormatJSON, FormatJSONL:
		return f, nil
	}
	return "", fmt.Errorf("format %q is none of text, json and jsonl", name)
}

// View shows what a source holds. Data goes to Out; what is said about it, such
// as a warning or the next step, goes to Talk.
type View struct {
	Source Source
	Out    io.Writer
	Talk   io.Writer // nil is silent
	Format Format
	Look   Look
	Filter *Filter
	// Flags are what a command must be given to find the same tape, such as
	// "-r bug.tape": hints repeat them.
	Flags string
	// Rules are the severities that the user chose, and Judge is how Tail judges.
	Rules protocol.Settings
	Judge conversation.Options
}

func (v *View) talk(format string, args ...any) {
	if v.Talk != nil {
		fmt.Fprintf(v.Talk, format+"\n", args...)
	}
}

// hint is a command of ours to try next.
func (v *View) hint(command string) string {
	if v.Flags == "" {
		return "tapedeck " + command
	}
	return "tapedeck " + command + " " + v.Flags
}

// Runs lists the runs, the latest last.
func (v *View) Runs(ctx context.Context) error {
	sessions, err := v.Source.Sessions(ctx)
	if err != nil {
		return fmt.Errorf("list sessions: %w", err)
	}
	runs, err := v.runs(ctx)
	if err != nil {
		return err
	}
	switch v.Format {
	case FormatJSON, FormatJSONL:
		err = writeAll(v.Out, v.Format, runs, func(r *conversation.Run) any { return runToJSON(r, sessions) })
	default:
		if len(runs) > 0 {
			err = WriteRuns(v.Out, runs, sessions, &v.Look)
		}
	}
	if err != nil {
		return err
	}
	v.sayIncomplete(sessions)
	if len(runs) == 0 {
		v.talk("%s", NoRuns(sessions))
		return nil
	}
	v.talk("See one: %s", v.hint("show "+shortest(runs, len(runs)-1)))
	return nil
}

// Threads lists the threads.
func (v *View) Threads(ctx context.Context) error {
	sessions, err := v.Source.Sessions(ctx)
	if err != nil {
		return fmt.Errorf("list sessions: %w", err)
	}
	threads, err := v.Source.Threads(ctx)
	if err != nil {
		return fmt.Errorf("list threads: %w", err)
	}
	switch v.Format {
	case FormatJSON, FormatJSONL:
		err = writeAll(v.Out, v.Format, threads, func(t *conversation.Thread) any { return t })
	default:
		if len(threads) > 0 {
			err = WriteThreads(v.Out, threads, &v.Look)
		}
	}
	if err != nil {
		return err
	}
	v.sayIncomplete(sessions)
	if len(threads) == 0 {
		v.talk("%s", NoRuns(sessions))
	}
	return nil
}

// NoRuns says what to do when there is nothing to show yet.
func NoRuns(sessions []capture.Session) string {
	if len(sessions) == 0 {
		return "Nothing is recorded here yet. Start with: tapedeck proxy -u https://your-gateway"
	}
	s := &sessions[len(sessions)-1]
	switch {
	case !s.Live:
		return fmt.Sprintf("No runs: session %d held no run:event of a chat gateway. What did pass: tapedeck tail", s.ID)
	case s.Last > s.First:
		return fmt.Sprintf("No runs yet, though %s passed at %s. What passed: tapedeck tail", FormatCount(int(s.Last-s.First)+1, "frame"), address(s.Listen))
	}
	return fmt.Sprintf("No runs yet: point the app at %s in place of %s", address(s.Listen), Clean(s.Gateway))
}

func address(listen string) string {
	if strings.Contains(listen, "://") {
		return Clean(listen)
	}
	return "http://" + Clean(listen)
}

// sayIncomplete warns of sessions that do not hold all that passed.
func (v *View) sayIncomplete(sessions []capture.Session) {
	for i := range sessions {
		if text := Incomplete(&sessions[i]); text != "" {
			v.talk("%s %s", v.Look.Palette.Paint(Warn, v.Look.glyph("⚠", "!")), text)
		}
	}
}

// Incomplete says in what a session's recording is incomplete, "" if in
// nothing. A session that goes on is not incomplete.
func Incomplete(s *capture.Session) string {
	switch {
	case s.Fault != "":
		return fmt.Sprintf("Session %d is incomplete: %s", s.ID, Clean(s.Fault))
	case !s.Clean && !s.Live:
		return fmt.Sprintf("Session %d was cut off: its last moments may be missing", s.ID)
	case !s.Live && s.Judged < s.Last:
		return fmt.Sprintf("Session %d is judged up to #%d of #%d: the rest has no findings yet", s.ID, s.Judged, s.Last)
	}
	return ""
}

// Show shows what a name stands for (see [Select]): the timeline of a run, with
// those that it continues, or one packet. With raw, one message a line.
func (v *View) Show(ctx context.Context, name string, raw bool) error {
	runs, err := v.runs(ctx)
	if err != nil {
		return err
	}
	s, err := Select(runs, name)
	if err != nil {
		return err
	}
	if !s.At.IsZero() {
		return v.showPacket(ctx, runs, s)
	}
	chain := Chain(runs, s.Run)
	if raw {
		return v.showRaw(ctx, chain)
	}
	t, err := LoadTimeline(ctx, v.ruled(), chain, TimelineOptions{Filter: v.Filter})
	if err != nil {
		return err
	}
	if v.Filter != nil && len(t.Wanted()) == 0 {
		return nothingf("no message of run %s matches %s", Clean(s.Run.ID), v.Filter)
	}
	sessions, err := v.Source.Sessions(ctx)
	if err != nil {
		return fmt.Errorf("list sessions: %w", err)
	}
	switch v.Format {
	case FormatJSON:
		return writeJSON(v.Out, timelineToJSON(t, chain, sessions), true)
	case FormatJSONL:
		return writeAll(v.Out, v.Format, t.Wanted(), func(r **Row) any { return rowToJSON(*r) })
	}
	if err := WriteRun(v.Out, t, chain, sessions, &v.Look); err != nil {
		return err
	}
	for i := range sessions {
		if sessions[i].ID == s.Run.Session {
			v.sayIncomplete(sessions[i : i+1])
		}
	}
	v.talk("%s", strings.Join(v.nextSteps(t, runs, s.Run), "\n"))
	return nil
}

// nextSteps are the commands that a timeline suggests.
func (v *View) nextSteps(t *Timeline, runs []conversation.Run, shown *conversation.Run) []string {
	run, at := shortestID(runs, shown), ""
	for _, r := range t.Rows {
		if r.Kind != KindLifecycle && r.Kind != KindCommand {
			at = r.First.String()
		}
		if len(r.Findings) > 0 {
			at = r.Findings[0].At.String()
			break
		}
	}
	var steps []string
	if at != "" {
		steps = append(steps, "One packet, whole:  "+v.hint("show "+run+"@"+at))
	}
	steps = append(steps, "Every message:      "+v.hint("show "+run+" --raw"))
	for i := range runs {
		r := &runs[i]
		if agent := t.agentOf(r.Thread); agent != nil && r.Session == shown.Session {
			steps = append(steps, "What "+cmp.Or(Clean(agent.Name), "it")+" did itself: "+v.hint("show "+shortestID(runs, r)))
		}
	}
	return steps
}

// agentOf returns the subagent whose own conversation a thread is, nil if it is
// none.
func (t *Timeline) agentOf(thread string) *Row {
	for _, r := range t.Rows {
		if agent, ok := r.Detail.(*Agent); ok && thread != "" && agent.Child == thread && r.Thread != thread {
			return r
		}
	}
	return nil
}
