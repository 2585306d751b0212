package engine

import (
	"encoding/json"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// BenchmarkBroadcast emits to a room of a hundred WebSockets on loopback, 200
// bytes at a time; the readers share the machine.
func BenchmarkBroadcast(b *testing.B) {
	const clients = 100
	h := serveTCP(b, Config{MaxQueue: 1 << 30})
	var read atomic.Int64
	arrived := make(chan struct{}, 1)
	var want atomic.Int64
	var readers sync.WaitGroup
	for range clients {
		conn := h.join().NetConn()
		readers.Go(func() {
			buf := make([]byte, 64<<10)
			for {
				n, err := conn.Read(buf)
				if total := read.Add(int64(n)); total >= want.Load() && want.Load() > 0 {
					select {
					case arrived <- struct{}{}:
					default:
					}
				}
				if err != nil {
					if err != io.EOF && !strings.Contains(err.Error(), "closed") {
						b.Error(err)
					}
					return
				}
			}
		})
	}
	payload := json.RawMessage(`{"delta":"` + strings.Repeat("x", 170) + `"}`)
	frame := len(encodeEvent("/", "", "run:event", nil, []json.RawMessage{payload}, "")[0].frame)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		h.engine.Emit("/", "", "run:event", payload)
	}
	want.Store(int64(b.N) * clients * int64(frame))
	for read.Load() < want.Load() {
		<-arrived
	}
	b.ReportMetric(float64(b.N*clients)/b.Elapsed().Seconds(), "deliveries/s")
	b.StopTimer()
	for _, s := range h.engine.Sockets() {
		s.Cut()
	}
	readers.Wait()
}

// BenchmarkEmit emits to one WebSocket on loopback.
func BenchmarkEmit(b *testing.B) {
	h := serveTCP(b, Config{MaxQueue: 1 << 30})
	conn := h.join().NetConn()
	done := make(chan struct{})
	go func() {
		defer close(done)
		io.Copy(io.Discard, conn)
	}()
	s := h.engine.Sockets()[0]
	payload := json.RawMessage(`{"delta":"` + strings.Repeat("x", 170) + `"}`)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		s.Emit("run:event", payload)
	}
	b.StopTimer()
	s.Cut()
	<-done
}

func BenchmarkParsePacket(b *testing.B) {
	text := []byte(`2["run:start",{"threadId":"t-1","messageId":"m-1","input":"` + strings.Repeat("hello ", 30) + `"}]`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := parsePacket(text); err != nil {
			b.Fatal(err)
		}
	}
}
