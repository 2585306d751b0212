package conversation_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// TestCostIsLinear (S10) counts what a run of twice the deltas allocates, which
// unlike time is the same on every machine: state that grew with each delta
// would show, and so would text that is joined again and again.
func TestCostIsLinear(t *testing.T) {
	allocated := func(deltas int) float64 {
		s := newStream(t)
		state := conversation.New(conversation.Options{})
		for i := range s.frames {
			state.Observe(&s.frames[i])
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for n := range deltas {
			f := s.delta(n)
			state.Observe(&f)
		}
		runtime.ReadMemStats(&after)
		return float64(after.TotalAlloc - before.TotalAlloc)
	}
	once, twice := allocated(20_000), allocated(40_000)
	if ratio := twice / once; ratio > 2.5 {
		t.Errorf("40,000 deltas allocate %.1f times what 20,000 do: %.0f and %.0f bytes", ratio, twice, once)
	}
}

// growth returns how many bytes stay in use after a State has seen what feed
// gives it.
func growth(t *testing.T, feed func(observe func(text string))) int64 {
	t.Helper()
	state := conversation.New(conversation.Options{})
	s := newStream(t)
	for i := range s.frames {
		state.Observe(&s.frames[i])
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	position := capture.Position(100)
	feed(func(text string) {
		position++
		data := []byte(text)
		state.Observe(&capture.Frame{
			Position: position, At: time.Duration(position) * time.Millisecond, Connection: 1,
			Direction: capture.FromGateway, Kind: capture.Text, Size: int64(len(data)), Data: data,
		})
		if position%100 == 0 {
			state.Changed()
			state.ChangedThreads()
		}
	})
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(state)
	return int64(after.HeapAlloc) - int64(before.HeapAlloc)
}

// TestMemoryIsBounded opens ever more of everything and closes nothing.
func TestMemoryIsBounded(t *testing.T) {
	event := func(thread, run string, seq int, event string) string {
		return fmt.Sprintf(`42["run:event",{"v":1,"threadId":%q,"runId":%q,"sequence":%d,"event":%s}]`, thread, run, seq, event)
	}
	cases := map[string]func(n int, observe func(string)){
		"open tool calls": func(n int, observe func(string)) {
			observe(event("t", "r", n+3, fmt.Sprintf(`{"type":"TOOL_CALL_START","toolCallId":"call-%d","toolCallName":"x"}`, n)))
		},
		"runs that never end": func(n int, observe func(string)) {
			observe(event(fmt.Sprint("thread-", n%1000), fmt.Sprint("run-", n), 1, `{"type":"RUN_STARTED"}`))
		},
		"threads": func(n int, observe func(string)) {
			observe(event(fmt.Sprint("thread-", n), fmt.Sprint("run-", n), 1, `{"type":"RUN_STARTED"}`))
			observe(event(fmt.Sprint("thread-", n), fmt.Sprint("run-", n), 2, `{"type":"RUN_FINISHED"}`))
		},
		"decisions": func(n int, observe func(string)) {
			observe(event("t", "r", n+3, fmt.Sprintf(`{"type":"INTERRUPT","interruptId":"i-%d","payload":{}}`, n)))
		},
		"sequences that jump": func(n int, observe func(string)) {
			observe(event("t", "r", n*7919+3, `{"type":"TODOS_SNAPSHOT","todos":[]}`))
		},
		"arguments without an end": func(n int, observe func(string)) {
			if n == 0 {
				observe(event("t", "r", 3, `{"type":"TOOL_CALL_START","toolCallId":"k","toolCallName":"x"}`))
			}
			observe(event("t", "r", n+4, `{"type":"TOOL_CALL_ARGS","toolCallId":"k","delta":"`+strings.Repeat("x", 1000)+`"}`))
		},
		"namespaces": func(n int, observe func(string)) {
			observe(fmt.Sprintf(`42/n%d,["run:event",{}]`, n))
		},
	}
	for name, feed := range cases {
		t.Run(name, func(t *testing.T) {
			const limit = 48 << 20
			grown := growth(t, func(observe func(string)) {
				for n := range 20_000 {
					feed(n, observe)
				}
			})
			if grown > limit {
				t.Errorf("20,000 of them keep %d bytes, over %d", grown, limit)
			}
			t.Logf("%d KiB", grown>>10)
		})
	}
}
