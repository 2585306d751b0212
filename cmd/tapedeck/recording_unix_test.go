//go:build unix

package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
	"tapedeck/recorder"
)

// streams are the frames of connections that stream a run each, in turn.
type streams struct {
	heads []string // of each connection's envelopes
	next  int
	text  []byte
	frame capture.Frame
}

func newStreams(conns int) *streams {
	s := &streams{}
	for c := range conns {
		s.heads = append(s.heads, fmt.Sprintf(`42["run:event",{"v":1,"threadId":"thr-%04d","runId":"r-msg-%04d","sequence":`, c, c))
	}
	return s
}

// words are what deltas say, of which some need escapes and some are not ASCII.
var words = []string{" wira", " lenitira", " ciwupo\\n", " fude", " kuda\\\"", " sopesivé", " viwitela mubu", " cofapimu"}

// opening is how many frames open a connection and its run.
const opening = 4

// following returns the next frame, valid until the next call.
func (s *streams) following() *capture.Frame {
	n, kind, dir := s.next, capture.Text, capture.FromGateway
	s.next++
	c, step := n%len(s.heads), n/len(s.heads)
	text := s.text[:0]
	switch step {
	case 0:
		kind, dir = capture.Open, 0
		text = append(text, `{"transport":"socket.io","eio":"4","target":"/socket.io/?EIO=4&transport=websocket"}`...)
	case 1:
		text = append(text, `40{"sid":"s"}`...)
	case 2:
		text = append(append(text, s.heads[c]...), `1,"event":{"type":"RUN_STARTED"}}]`...)
	case 3:
		text = append(append(text, s.heads[c]...), `2,"event":{"type":"TEXT_MESSAGE_START","messageId":"m-01"}}]`...)
	default:
		text = append(text, s.heads[c]...)
		text = strconv.AppendInt(text, int64(step-1), 10)
		text = append(text, `,"event":{"type":"TEXT_MESSAGE_CONTENT","messageId":"m-01","delta":"@0000000000000000000,000000000`...)
		for _, word := range [...]string{words[n*7%8], words[n*5/3%8], words[n/11%8]} {
			text = append(text, word...)
		}
		text = append(text, `"}}]`...)
	}
	s.text = text
	s.frame = capture.Frame{
		Position: capture.Position(n + 1), At: time.Duration(n) * 5 * time.Microsecond, Connection: capture.Position(c + 1),
		Kind: kind, Direction: dir, Size: int64(len(text)), Data: text,
	}
	return &s.frame
}

// cpu is the time that the process has computed.
func cpu(b *testing.B) time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		b.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// BenchmarkJudge is what a batch of 1,000 frames costs the judge, by the frame.
func BenchmarkJudge(b *testing.B) {
	j := newJudge(conversation.New(conversation.Options{Session: 1}), func(*recorder.Index) {}, nil)
	s := newStreams(8)
	frames := make([]capture.Frame, 1000)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		for i := range frames {
			data := frames[i].Data[:0]
			frames[i] = *s.following()
			frames[i].Data = append(data, frames[i].Data...)
		}
		b.StartTimer()
		j.observe(frames)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(frames)), "ns/frame")
}

// BenchmarkRecording is what the sink of a proxy costs, writing and judging
// beside the path included: cpu-ns/op counts the time of all its goroutines.
func BenchmarkRecording(b *testing.B) {
	rec, err := startRecording(recordingOptions{path: filepath.Join(b.TempDir(), "a.tape"), session: capture.Session{Source: "proxy"}})
	if err != nil {
		b.Fatal(err)
	}
	s := newStreams(8)
	for range opening * len(s.heads) {
		rec.Frame(s.following())
	}
	b.ReportAllocs()
	began := cpu(b)
	for b.Loop() {
		rec.Frame(s.following())
	}
	if err := rec.close(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(cpu(b)-began)/float64(b.N), "cpu-ns/op")
}
