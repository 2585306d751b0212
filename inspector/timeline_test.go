package inspector

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// told folds messages made by hand: no frames, no packets.
type told struct {
	timeline  *Timeline
	feed      *Feed
	validator *protocol.Validator
	position  capture.Position
	at        time.Duration
	sequence  int64
}

func tell(o TimelineOptions) *told {
	return &told{timeline: NewTimeline(o), feed: NewFeed(nil), validator: protocol.NewValidator(protocol.Options{})}
}

// message folds a message in and returns the rows that it changed.
func (s *told) message(m protocol.Message, found ...protocol.Finding) []*Row {
	s.position++
	m.Address, m.Last, m.At, m.Namespace = capture.Address{Position: s.position, Packet: 1}, s.position, s.at, "/"
	if m.Connection == 0 {
		m.Connection = 1
	}
	s.validator.Validate(&m, nil)
	for i := range found {
		found[i].At = m.Address
	}
	step := conversation.Step{Messages: []protocol.Message{m}, Findings: found}
	return s.timeline.Add(&s.feed.Step(&step)[0])
}

// event folds the next envelope of run r in.
func (s *told) event(typ, fields string) []*Row {
	s.sequence++
	return s.envelope("r", s.sequence, typ, fields)
}

func (s *told) envelope(run string, sequence int64, typ, fields string) []*Row {
	if fields != "" {
		fields = "," + fields
	}
	return s.message(protocol.Message{Direction: capture.FromGateway, Name: protocol.RunEvent, Payload: fmt.Appendf(nil,
		`{"v":1,"threadId":"t","runId":%q,"sequence":%d,"event":{"type":%q%s}}`, run, sequence, typ, fields)})
}

func (s *told) command(name protocol.Name, payload string) *Row {
	return s.message(protocol.Message{Direction: capture.FromClient, Name: name, Payload: []byte(payload)})[0]
}

// TestClockB09: a session that was imported may run backwards. Rows stay in the
// order of their numbers, and no time is shown as negative.
func TestClockB09(t *testing.T) {
	s := tell(TimelineOptions{})
	for i, at := range []time.Duration{0, time.Second, -time.Minute, 24 * time.Hour} {
		s.at = at
		s.event("TEXT_MESSAGE_START", fmt.Sprintf(`"messageId":"m%d"`, i))
		s.at = at - 500*time.Millisecond
		s.event("TEXT_MESSAGE_CONTENT", fmt.Sprintf(`"messageId":"m%d","delta":"x"`, i))
		s.event("TEXT_MESSAGE_END", fmt.Sprintf(`"messageId":"m%d"`, i))
	}
	var b strings.Builder
	if err := WriteTimeline(&b, s.timeline, &Look{Width: 120}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "+-") || strings.Contains(b.String(), " -") {
		t.Errorf("a negative time is shown:\n%s", b.String())
	}
	for i, r := range s.timeline.Rows {
		if want := fmt.Sprintf("m%d", i); r.ID != want || r.Took() < 0 {
			t.Errorf("row %d is %s and took %v, want %s", i, r.ID, r.Took(), want)
		}
	}
}

// stream folds a run of n deltas, and returns the bytes that were allocated.
func stream(n int) (rows int, allocated uint64) {
	s := tell(TimelineOptions{})
	payloads := make([][]byte, n)
	for i := range payloads {
		payloads[i] = fmt.Appendf(nil, `{"v":1,"threadId":"t","runId":"r","sequence":%d,"event":{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":%q}}`,
			i+1, strings.Repeat("word ", 40))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i, p := range payloads {
		s.at = time.Duration(i) * time.Millisecond
		s.message(protocol.Message{Direction: capture.FromGateway, Name: protocol.RunEvent, Payload: p})
	}
	runtime.ReadMemStats(&after)
	return len(s.timeline.Rows), after.TotalAlloc - before.TotalAlloc
}

// TestLinearS10: twice as many deltas cost twice as much, not four times. Bytes
// allocated are measured, since times lie.
func TestLinearS10(t *testing.T) {
	_, first := stream(20_000)
	rows, second := stream(40_000)
	if rows != 1 {
		t.Errorf("40,000 deltas of one text make %d rows, want 1", rows)
	}
	if ratio := float64(second) / float64(first); ratio > 2.5 {
		t.Errorf("40,000 deltas take %.1f times the memory of 20,000, want at most 2.5 (%d and %d bytes)", ratio, second, first)
	}
}

// TestToolAcrossSegments: a blocking call's result comes in the run that
// continues, and the person's time is not the tool's.
func TestToolAcrossSegments(t *testing.T) {
	s := tell(TimelineOptions{})
	s.event("TOOL_CALL_START", `"toolCallId":"k","toolCallName":"pick"`)
	s.event("TOOL_CALL_ARGS", `"toolCallId":"k","delta":"{}"`)
	s.event("TOOL_CALL_END", `"toolCallId":"k"`)
	s.event("INTERRUPT", `"interruptId":"i","payload":{"clientTool":"pick","arguments":{}}`)
	s.event("RUN_PAUSED", "")
	s.event("RUN_FINISHED", "")
	s.at += 30 * time.Second
	resume := s.command(protocol.RunResume, `{"threadId":"t","interruptId":"i","answer":7}`)
	s.at += time.Second
	s.envelope("r2", 1, "RUN_STARTED", "")
	s.envelope("r2", 2, "TOOL_CALL_RESULT", `"toolCallId":"k","content":"7"`)

	call := s.timeline.Rows[0].Detail.(*Call)
	if !call.Valid || call.Result == nil || call.Result.Run != "r2" || call.Result.After != time.Second || call.Result.Human != 30*time.Second {
		t.Errorf("the call came to %+v, result %+v; want one of run r2, after 1s and 30s of a person", call, call.Result)
	}
	decision := s.timeline.Rows[1].Detail.(*Decision)
	if decision.Tool != "pick" || decision.Reply == nil || decision.Reply.After != 30*time.Second || decision.Reply.Value != "7" {
		t.Errorf("the decision came to %+v, want it answered with 7 after 30s", decision)
	}
	if reply := resume.Detail.(*Talk).Reply; reply == nil || reply.By != "RUN_STARTED" || reply.After != time.Second {
		t.Errorf("the run:resume was answered by %+v, want RUN_STARTED after 1s", reply)
	}
	if len(s.timeline.Pending()) != 0 {
		t.Errorf("%d commands wait for an answer, want none", len(s.timeline.Pending()))
	}
}

// TestDecisionsS08: of several answers to one decision the first counts, and an
// unknown one counts for none.
func TestDecisionsS08(t *testing.T) {
	s := tell(TimelineOptions{})
	s.event("INTERRUPT", `"interruptId":"i1","payload":{}`)
	s.event("INTERRUPT", `"interruptId":"i2","payload":{}`)
	s.event("RUN_PAUSED", "")
	s.event("RUN_FINISHED", "")
	for _, answer := range []string{`"i1","answer":1`, `"i1","answer":2`, `"nope","answer":3`} {
		s.at += time.Second
		s.command(protocol.RunResume, `{"threadId":"t","interruptId":`+answer+`}`)
	}
	if got := s.timeline.Rows[0].Detail.(*Decision).Reply; got == nil || got.Value != "1" {
		t.Errorf("i1 was answered with %+v, want 1", got)
	}
	if r := s.timeline.Rows[1]; r.Detail.(*Decision).Reply != nil || r.State != Open {
		t.Errorf("i2 was answered with %+v, want it open", r.Detail.(*Decision).Reply)
	}
}

// TestRefusal: a protocol:error names no command. It is folded into the one
// command that it can be about, else it stands alone.
func TestRefusal(t *testing.T) {
	refuse := func(s *told, code string) []*Row {
		return s.message(protocol.Message{Direction: capture.FromGateway, Name: protocol.ProtocolError, Payload: []byte(`{"code":"` + code + `","message":"no"}`)})
	}
	s := tell(TimelineOptions{})
	start := s.command(protocol.RunStart, `{"threadId":"t","messageId":"u","input":"x"}`)
	cancel := s.command(protocol.RunCancel, `{"runId":"r"}`)
	if rows := refuse(s, "UNKNOWN_RUN"); rows[0] != cancel || cancel.State != Failed {
		t.Errorf("UNKNOWN_RUN is of %s, want the run:cancel refused", rows[0].Name)
	}
	if rows := refuse(s, "DUPLICATE_MESSAGE"); rows[0] != start || start.Detail.(*Talk).Reply.Code != "DUPLICATE_MESSAGE" {
		t.Errorf("DUPLICATE_MESSAGE is of %s, want the run:start refused", rows[0].Name)
	}
	s.command(protocol.RunStart, `{"threadId":"t","messageId":"v","input":"x"}`)
	s.command(protocol.RunStart, `{"threadId":"t","messageId":"w","input":"x"}`)
	if rows := refuse(s, "INVALID_COMMAND"); rows[0].Kind != KindRefusal {
		t.Errorf("INVALID_COMMAND with two commands open is folded into a %s, want a row of its own", rows[0].Kind)
	}
}

// TestOtherSocket: what a second window gets is shown only where it differs,
// however it was printed.
func TestOtherSocket(t *testing.T) {
	s := tell(TimelineOptions{})
	send := func(conn capture.Position, payload string) []*Row {
		return s.message(protocol.Message{Direction: capture.FromGateway, Name: protocol.RunEvent, Payload: []byte(payload), Connection: conn})
	}
	send(1, `{"v":1,"threadId":"t","runId":"r","sequence":1,"event":{"type":"RUN_STARTED","a":"x y"}}`)
	send(9, `{"v":1, "threadId":"t", "runId":"r", "sequence":1, "event": {"type": "RUN_STARTED", "a": "x y"}}`)
	if n := len(s.timeline.Rows); n != 1 || s.timeline.Rows[0].Copies != 1 || s.timeline.Rows[0].Envelopes != 1 {
		t.Fatalf("the same on a second socket makes %d rows, copies %d, want 1 and 1", n, s.timeline.Rows[0].Copies)
	}
	send(9, `{"v":1,"threadId":"t","runId":"r","sequence":1,"event":{"type":"RUN_STARTED","a":"xy"}}`)
	if n := len(s.timeline.Rows); n != 2 || s.timeline.Rows[1].Kind != KindCopy {
		t.Fatalf("other bytes on a second socket make %d rows, want a second one that says so", n)
	}
	send(1, `{"v":1,"threadId":"t","runId":"r","sequence":1,"event":{"type":"RUN_STARTED","a":"x y"}}`)
	if s.timeline.Rows[0].Repeats != 1 {
		t.Errorf("the same again on one socket counts %d repeats, want 1", s.timeline.Rows[0].Repeats)
	}
}

// TestFindings: a finding stands at the row of its place, also if it comes
// later; one about a frame as a whole stands at its first packet.
func TestFindings(t *testing.T) {
	s := tell(TimelineOptions{})
	s.event("RUN_STARTED", "")
	for range 5 {
		s.event("TEXT_MESSAGE_CONTENT", `"messageId":"m","delta":"x"`)
	}
	for _, at := range []capture.Address{{Position: 4}, {Position: 4, Packet: 1}, {Position: 2, Packet: 1}} {
		if r := s.timeline.AddFinding(protocol.Finding{Rule: "stall", At: at}); r == nil || r.Kind != KindText {
			t.Errorf("a finding at %s is given to %+v, want the text", at, r)
		}
	}
	if r := s.timeline.AddFinding(protocol.Finding{Rule: "stall", At: capture.Address{Position: 4, Packet: 2}}); r != nil || len(s.timeline.Loose) != 1 {
		t.Errorf("a finding about a packet that is not there is given to %+v, want it loose", r)
	}
}

// TestEndsCut: what a run left open is cut off, save a call that only waits for
// its result.
func TestEndsCut(t *testing.T) {
	s := tell(TimelineOptions{})
	s.event("TEXT_MESSAGE_START", `"messageId":"m"`)
	s.event("TOOL_CALL_START", `"toolCallId":"a"`)
	s.event("TOOL_CALL_START", `"toolCallId":"b"`)
	s.event("TOOL_CALL_END", `"toolCallId":"b"`)
	s.event("SUBAGENT_STARTED", `"taskId":"x"`)
	s.event("RUN_FINISHED", "")
	var got []string
	for _, r := range s.timeline.Rows {
		got = append(got, r.State.String())
	}
	if want := "cut cut done cut done"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// TestOwnersInACircle: threads that own each other are hostile, and no reason
// to go round for ever.
func TestOwnersInACircle(t *testing.T) {
	s := tell(TimelineOptions{})
	send := func(thread, run, child string) {
		s.message(protocol.Message{Direction: capture.FromGateway, Name: protocol.RunEvent, Payload: fmt.Appendf(nil,
			`{"v":1,"threadId":%q,"runId":%q,"sequence":1,"event":{"type":"SUBAGENT_STARTED","taskId":"x","childThreadId":%q}}`, thread, run, child)})
	}
	send("a", "ra", "b")
	send("b", "rb", "a")
	for i := range 100 { // more lanes than a row has bits for
		s.sequence = int64(i)
		s.envelope("ra", int64(i+2), "SUBAGENT_STARTED", fmt.Sprintf(`"taskId":"t%d"`, i))
	}
	if err := WriteTimeline(&strings.Builder{}, s.timeline, &Look{}); err != nil {
		t.Fatal(err)
	}
}

// TestTrim: a session that is followed for days is not held in memory.
func TestTrim(t *testing.T) {
	var out strings.Builder
	live := NewLive(&out, &Look{}, LiveOptions{})
	s := tell(TimelineOptions{})
	s.timeline = live.t
	feed := func(run string, sequence int64, typ, fields string) {
		s.position++
		m := protocol.Message{Address: capture.Address{Position: s.position, Packet: 1}, Connection: 1, Direction: capture.FromGateway, Name: protocol.RunEvent,
			Payload: fmt.Appendf(nil, `{"v":1,"threadId":"t","runId":%q,"sequence":%d,"event":{"type":%q%s}}`, run, sequence, typ, fields)}
		s.validator.Validate(&m, nil)
		if err := live.Add(&s.feed.Step(&conversation.Step{Messages: []protocol.Message{m}})[0]); err != nil {
			t.Fatal(err)
		}
	}
	feed("open", 1, "TEXT_MESSAGE_START", `,"messageId":"kept"`)
	const runs = 10_000
	for i := range runs {
		id := fmt.Sprintf("r%d", i)
		feed(id, 1, "RUN_STARTED", "")
		feed(id, 2, "RUN_FINISHED", "")
	}
	if n := len(live.t.Rows); n > 2*trimEvery+keepRows || n < keepRows {
		t.Errorf("%d rows are held after %d runs", n, runs)
	}
	if n := len(live.t.runs); n > 2*trimEvery {
		t.Errorf("%d runs are held", n)
	}
	if live.t.Rows[0].ID != "kept" {
		t.Error("a text that is still open was forgotten")
	}
	if last := live.t.Rows[len(live.t.Rows)-1]; last.Index != 2*runs {
		t.Errorf("the last row has number %d, want %d", last.Index, 2*runs)
	}
	if n := strings.Count(out.String(), "RUN_FINISHED"); n != runs {
		t.Errorf("%d ends were printed, want %d", n, runs)
	}
}

// TestRowCopies: rows outlive the bytes that they were made from.
func TestRowCopies(t *testing.T) {
	s := tell(TimelineOptions{})
	payload := []byte(`{"v":1,"threadId":"t","runId":"r","sequence":1,"event":{"type":"INTERRUPT","interruptId":"i","payload":{"clientTool":"pick"}}}`)
	s.message(protocol.Message{Direction: capture.FromGateway, Name: protocol.RunEvent, Payload: payload})
	for i := range payload {
		payload[i] = 'X'
	}
	if got := s.timeline.Rows[0].Detail.(*Decision).Payload; got != `{"clientTool":"pick"}` {
		t.Errorf("the row says %q after its message was written over", got)
	}
}

// FuzzTimeline: whatever the messages say, rows are made and drawn.
func FuzzTimeline(f *testing.F) {
	for _, seed := range []string{
		`{"v":1,"threadId":"t","runId":"r","sequence":1,"event":{"type":"TOOL_CALL_RESULT","toolCallId":"k","content":"\u001b"}}`,
		`{"v":1,"threadId":"t","runId":"r","sequence":-4,"event":{"type":"TODOS_SNAPSHOT","todos":[1,{"content":2},"x"]}}`,
		`{"event":{}}`, `[]`, `{"threadId":5,"answer":{}}`, `{"ok":true,"replay":{"envelopes":[{"sequence":1,"event":{"type":"RUN_STARTED"}},7]}}`, "\xff",
	} {
		f.Add(seed, uint8(0))
	}
	names := []protocol.Name{protocol.RunEvent, protocol.RunStart, protocol.RunResume, protocol.RunCancel, protocol.ThreadMessages, protocol.TaskStatus, protocol.ProtocolError, protocol.Hello, "x"}
	f.Fuzz(func(t *testing.T, payload string, pick uint8) {
		s := tell(TimelineOptions{Wire: true})
		s.command(protocol.ThreadMessages, `{"threadId":"t"}`)
		asked := capture.Address{Position: s.position, Packet: 1}
		for i := range 3 {
			m := protocol.Message{Direction: capture.FromGateway, Name: names[int(pick)%len(names)], Payload: []byte(payload), Connection: capture.Position(1 + i%2)}
			if pick >= 128 {
				m.Answer, m.Answers, m.Name = true, asked, protocol.ThreadMessages
			}
			s.message(m)
		}
		s.timeline.Finish()
		var b strings.Builder
		if err := WriteTimeline(&b, s.timeline, &Look{Width: 100}); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if w := Width(strings.TrimSuffix(line, "\n")); w > 100 {
				t.Errorf("a line takes %d columns of 100: %q", w, line)
			}
		}
		for _, r := range s.timeline.Rows {
			if err := writeJSON(&b, rowToJSON(r), false); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func BenchmarkFold(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		stream(40_000)
	}
}
