package inspector

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// ms is a time in milliseconds, to the microsecond.
func ms(d time.Duration) float64 { return math.Round(float64(d.Microseconds())) / 1000 }

// runJSON is a run in JSON. Names are stable: fields may be added.
type runJSON struct {
	Session      capture.SessionID   `json:"session"`
	Run          string              `json:"run"`
	Thread       string              `json:"thread"`
	Status       conversation.Status `json:"status"`
	Input        string              `json:"input,omitempty"`
	Continues    string              `json:"continues,omitempty"`
	Waiting      string              `json:"waiting,omitempty"`
	First        capture.Position    `json:"first"`
	Last         capture.Position    `json:"last"`
	Started      *time.Time          `json:"started,omitempty"`
	StartMS      float64             `json:"startMs"`
	EndMS        float64             `json:"endMs"`
	ModelMS      float64             `json:"modelMs"`
	HumanMS      float64             `json:"humanMs"`
	FirstTokenMS *float64            `json:"firstTokenMs"`
	Envelopes    int                 `json:"envelopes"`
	Bytes        int64               `json:"bytes"`
	Errors       int                 `json:"errors"`
	Warnings     int                 `json:"warnings"`
	Notes        int                 `json:"notes"`
	Pulse        []int               `json:"pulse,omitempty"`
}

func runToJSON(r *conversation.Run, sessions []capture.Session) runJSON {
	out := runJSON{
		Session: r.Session, Run: r.ID, Thread: r.Thread, Status: r.Status, Input: r.Input, Continues: r.Continues, Waiting: r.Waiting,
		First: r.First, Last: r.Last, StartMS: ms(r.Started), EndMS: ms(r.Ended), ModelMS: ms(ModelTime(r)), HumanMS: ms(r.Human),
		Envelopes: r.Envelopes, Bytes: r.Bytes, Errors: r.Errors, Warnings: r.Warnings, Notes: r.Notes, Pulse: r.Pulse,
	}
	if r.FirstToken >= 0 {
		first := ms(r.FirstToken)
		out.FirstTokenMS = &first
	}
	if s := sessionOf(sessions, r.Session); s != nil && !s.Started.IsZero() {
		at := s.Started.Add(r.Started).UTC()
		out.Started = &at
	}
	return out
}

// rowJSON is a row of a timeline in JSON.
type rowJSON struct {
	Kind       Kind               `json:"kind"`
	State      State              `json:"state"`
	At         capture.Address    `json:"at"`
	Last       capture.Address    `json:"last"`
	Connection capture.Position   `json:"connection,omitempty"`
	Direction  capture.Direction  `json:"direction,omitempty"`
	Run        string             `json:"run,omitempty"`
	Thread     string             `json:"thread,omitempty"`
	Name       string             `json:"name,omitempty"`
	ID         string             `json:"id,omitempty"`
	Lane       int                `json:"lane,omitempty"`
	FirstSeq   int64              `json:"firstSeq,omitempty"`
	LastSeq    int64              `json:"lastSeq,omitempty"`
	StartMS    float64            `json:"startMs"`
	EndMS      float64            `json:"endMs"`
	Envelopes  int                `json:"envelopes,omitempty"`
	Replayed   int                `json:"replayed,omitempty"`
	Copies     int                `json:"copies,omitempty"`
	Repeats    int                `json:"repeats,omitempty"`
	Detail     any                `json:"detail,omitempty"`
	Findings   []protocol.Finding `json:"findings,omitempty"`
	Marks      []capture.Mark     `json:"marks,omitempty"`
}

func rowToJSON(r *Row) rowJSON {
	out := rowJSON{
		Kind: r.Kind, State: r.State, At: r.First, Last: r.Last, Connection: r.Connection, Direction: r.Direction, Run: r.Run, Thread: r.Thread,
		Name: r.Name, ID: r.ID, Lane: r.Lane, FirstSeq: r.FirstSeq, LastSeq: r.LastSeq, StartMS: ms(r.Start), EndMS: ms(r.End),
		Envelopes: r.Envelopes, Replayed: r.Replayed, Copies: r.Copies, Repeats: r.Repeats, Findings: r.Findings, Marks: r.Marks,
	}
	if r.Detail != nil {
		out.Detail = detailToJSON(r.Detail)
	}
	return out
}

type object = map[string]any

// detailToJSON gives the details of a row names that last.
func detailToJSON(detail Detail) any {
	switch d := detail.(type) {
	case *Stream:
		return object{"role": d.Role, "deltas": d.Deltas, "perSecond": math.Round(d.Rate()*10) / 10, "stallMs": ms(d.Stall), "text": d.Text()}
	case *Call:
		out := object{"arguments": d.Args.Text(), "deltas": d.Args.Deltas, "complete": d.Complete, "valid": d.Valid}
		if d.Result != nil {
			out["result"] = object{"at": d.Result.At, "bytes": d.Result.Bytes, "head": d.Result.Head, "afterMs": ms(d.Result.After),
				"humanMs": ms(d.Result.Human), "run": d.Result.Run}
		}
		return out
	case *Decision:
		out := object{"clientTool": d.Tool, "payload": d.Payload, "bytes": d.Bytes}
		if d.Reply != nil {
			out["answer"] = object{"at": d.Reply.At, "connection": d.Reply.Connection, "value": d.Reply.Value, "afterMs": ms(d.Reply.After)}
		}
		return out
	case *Talk:
		out := object{"input": d.Input, "inputBytes": d.InputBytes, "about": d.About, "answer": d.Answer, "attachments": d.Attachments,
			"clientTools": append([]string{}, d.Tools...), "waitedMs": ms(d.Waited), "forkFrom": d.Fork, "ackId": d.AckID}
		if a := d.Reply; a != nil {
			out["reply"] = object{"at": a.At, "by": a.By, "ok": a.OK, "code": a.Code, "message": a.Message, "afterMs": ms(a.After), "history": a.History}
		}
		return out
	case *Todos:
		return object{"items": d.Items, "changed": d.Changed}
	case *Agent:
		return object{"task": d.Task, "childThread": d.Child, "toolCall": d.Call, "status": d.Status, "detached": d.Detached, "envelopes": d.Envelopes}
	case *Replay:
		return object{"envelopes": d.Envelopes, "new": d.New, "different": d.Different, "truncated": d.Truncated}
	case *Note:
		return object{"count": max(d.Count, 1), "bytes": d.Bytes, "text": d.Text, "said": d.Said}
	case *Exchange:
		return object{"method": d.Method, "target": d.Target, "status": d.Status, "requestBytes": d.RequestBytes,
			"responseBytes": d.ResponseBytes, "made": d.Made, "error": d.Error}
	}
	return nil
}

func timelineToJSON(t *Timeline, chain []conversation.Run, sessions []capture.Session) any {
	runs := make([]runJSON, len(chain))
	for i := range chain {
		runs[i] = runToJSON(&chain[i], sessions)
	}
	rows := []rowJSON{}
	for _, r := range t.Wanted() {
		rows = append(rows, rowToJSON(r))
	}
	waits := []object{}
	for _, w := range mergeWaits(t.Waits) {
		waits = append(waits, object{"startMs": ms(w.Start), "endMs": ms(w.End)})
	}
	loose := t.Loose
	if loose == nil {
		loose = []protocol.Finding{}
	}
	return object{"runs": runs, "rows": rows, "waits": waits, "findings": loose}
}

// messageJSON is one message, packet or frame in JSON. What passed is in
// Payload as JSON with all its digits; what is no JSON, no UTF-8, or deeper than
// 500 is in Base64.
type messageJSON struct {
	At          capture.Address    `json:"at"`
	AtMS        float64            `json:"atMs"`
	Connection  capture.Position   `json:"connection,omitempty"`
	Direction   capture.Direction  `json:"direction,omitempty"`
	Namespace   string             `json:"namespace,omitempty"`
	Kind        string             `json:"kind,omitempty"` // of a frame, if it is no message
	Name        string             `json:"name,omitempty"`
	Answers     *capture.Address   `json:"answers,omitempty"`
	AckID       string             `json:"ackId,omitempty"`
	Run         string             `json:"run,omitempty"`
	Thread      string             `json:"thread,omitempty"`
	Seq         int64              `json:"seq,omitempty"`
	Source      string             `json:"source"`
	Payload     json.RawMessage    `json:"payload,omitempty"`
	Extra       []json.RawMessage  `json:"extra,omitempty"`
	Base64      []byte             `json:"base64,omitempty"`
	Attachments [][]byte           `json:"attachments,omitempty"` // base64
	Reason      string             `json:"reason,omitempty"`
	Findings    []protocol.Finding `json:"findings,omitempty"`
}

func momentToJSON(m *Moment) messageJSON {
	out := messageJSON{
		At: m.Address(), AtMS: ms(m.At()), Connection: m.Connection(), Direction: m.Direction(), Namespace: m.namespace(), Name: m.messageName(),
		Run: m.Run, Thread: m.Thread, Seq: m.sequence(), Source: m.Source(), Findings: m.Findings,
	}
	out.Payload, out.Base64 = embed(m.Bytes())
	if m.Message != nil {
		out.AckID = m.Message.AckID
		if m.Message.Answer && !m.Message.Answers.IsZero() {
			out.Answers = &m.Message.Answers
		}
		for _, extra := range m.Message.Extra {
			if payload, _ := embed(extra); payload != nil {
				out.Extra = append(out.Extra, payload)
			}
		}
	}
	if m.Packet != nil {
		out.Attachments, out.Reason = m.Packet.Attachments, m.Packet.Reason
	}
	if m.Message == nil && m.Packet == nil && m.Frame != nil {
		out.Kind = m.Frame.Kind.String()
	}
	return out
}

// embed returns raw as JSON if it is JSON that can stand in a document, else
// for base64. What is too deep cannot: indented, it would grow by the square of
// its depth.
func embed(raw []byte) (payload json.RawMessage, other []byte) {
	if json.Valid(raw) && utf8.Valid(raw) && depth(raw) <= maxEmbedded {
		return raw, nil
	}
	return nil, raw
}

const maxEmbedded = 500

// depth is how deep the containers of valid JSON are nested.
func depth(raw []byte) int {
	now, deepest := 0, 0
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			i = stringEnd(raw, i) - 1
		case '{', '[':
			now++
			deepest = max(deepest, now)
		case '}', ']':
			now--
		}
	}
	return deepest
}

// writeAll writes items as one array, or one a line.
func writeAll[T any](w io.Writer, f Format, items []T, convert func(*T) any) error {
	if f == FormatJSONL {
		for i := range items {
			if err := writeJSON(w, convert(&items[i]), false); err != nil {
				return err
			}
		}
		return nil
	}
	all := make([]any, len(items))
	for i := range items {
		all[i] = convert(&items[i])
	}
	return writeJSON(w, all, true)
}

// writeJSON writes a value and the end of a line. Characters that a terminal
// would obey are written as escapes, which mean the same.
func writeJSON(w io.Writer, value any, indent bool) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if indent {
		encoder.SetIndent("", "  ")
	}
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	_, err := w.Write(escapeJSON(b.Bytes()))
	return err
}

// escapeJSON escapes in JSON what Clean would, save what only shapes letters.
// Such characters can stand in strings only, so the value stays the same.
func escapeJSON(doc []byte) []byte {
	out := make([]byte, 0, len(doc))
	for i := 0; i < len(doc); {
		r, size := utf8.DecodeRune(doc[i:])
		if r < utf8.RuneSelf && r != 0x7f || r >= utf8.RuneSelf && unicode.IsGraphic(r) && !isHidden(r) {
			out = append(out, doc[i:i+size]...)
		} else if r > 0xffff {
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		} else {
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		i += size
	}
	return out
}
