package conversation_test

import (
	"fmt"
	"testing"
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
	"tapedeck/protocol/wire"
)

// stream is a run of deltas, of which delta gives the n-th.
type stream struct {
	frames []capture.Frame
	text   []byte
}

func newStream(t testing.TB) *stream {
	t.Helper()
	s := &stream{}
	for _, text := range []string{
		`0{"sid":"e","upgrades":[],"pingInterval":25000,"pingTimeout":20000,"maxPayload":1000000}`,
		`40{"sid":"s"}`,
		`42["protocol:hello",{"protocol":{"major":1,"minor":17},"minClientMajor":1}]`,
		`42["run:event",{"v":1,"threadId":"t","runId":"r","sequence":1,"event":{"type":"RUN_STARTED"}}]`,
		`42["run:event",{"v":1,"threadId":"t","runId":"r","sequence":2,"event":{"type":"TEXT_MESSAGE_START","messageId":"m"}}]`,
	} {
		s.frames = append(s.frames, capture.Frame{Data: []byte(text)})
	}
	open := capture.Frame{Kind: capture.Open, Data: []byte(`{"transport":"socket.io","eio":"4"}`)}
	s.frames = append([]capture.Frame{open}, s.frames...)
	for i := range s.frames {
		f := &s.frames[i]
		f.Position, f.Connection, f.Direction = capture.Position(i+1), 1, capture.FromGateway
		if f.Kind == 0 {
			f.Kind = capture.Text
		}
		f.Size = int64(len(f.Data))
	}
	return s
}

// delta returns the n-th delta, from 0. It is valid until the next call.
func (s *stream) delta(n int) capture.Frame {
	s.text = fmt.Appendf(s.text[:0],
		`42["run:event",{"v":1,"threadId":"t","runId":"r","sequence":%d,"event":{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":" some words"}}]`, n+3)
	return capture.Frame{
		Position: capture.Position(n + 7), At: time.Duration(n) * 20 * time.Millisecond, Connection: 1,
		Direction: capture.FromGateway, Kind: capture.Text, Size: int64(len(s.text)), Data: s.text,
	}
}

// BenchmarkDelta is the steady state: a delta of a run that streams.
func BenchmarkDelta(b *testing.B) {
	state := conversation.New(conversation.Options{})
	s := newStream(b)
	for i := range s.frames {
		state.Observe(&s.frames[i])
	}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		f := s.delta(n)
		state.Observe(&f)
	}
}

// BenchmarkDecode is what BenchmarkDelta takes without the conversation.
func BenchmarkDecode(b *testing.B) {
	var d wire.Decoder
	v := protocol.NewValidator(protocol.Options{})
	s := newStream(b)
	for i := range s.frames {
		d.Decode(&s.frames[i])
	}
	var e protocol.Envelope
	var m protocol.Message
	var out []protocol.Finding
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		f := s.delta(n)
		p := &d.Decode(&f)[0]
		m = protocol.Message{Name: protocol.Name(p.Name), Direction: f.Direction, Payload: p.Args[0], Envelope: &e}
		out = v.ValidateLike(&m, d.Like(0), out[:0])
	}
}
