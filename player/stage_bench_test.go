package player

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"tapedeck/player/engine"
	"tapedeck/protocol"
)

// nowhere is a room without sockets.
type nowhere struct{}

func (nowhere) Emit(string, string, string, ...json.RawMessage) {}

// BenchmarkStage plays 100 runs at once with no sockets: what pacing, sequence,
// envelope and checkpoint cost an envelope.
func BenchmarkStage(b *testing.B) {
	s, err := (&scenarios{}).find("long-stream")
	if err != nil {
		b.Fatal(err)
	}
	g, err := assemble(Config{Scenario: s.Name, Speed: math.Inf(1)}, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer g.stage.close()
	g.rooms = nowhere{}
	w := &world{gateway: g, began: time.Now()}
	from := &fakeSocket{world: w, namespace: "/", gone: true}
	g.joined(from)
	b.ReportAllocs()
	envelopes := 0
	for n := 0; b.Loop(); n++ {
		for i := range 100 {
			thread := fmt.Sprint(n, "-", i)
			g.event(from, engine.Event{Name: string(protocol.RunStart), Args: []json.RawMessage{
				json.RawMessage(fmt.Sprintf(`{"threadId":%q,"messageId":"m","input":"hi"}`, thread))}})
		}
		for {
			g.mu.Lock()
			left := len(g.runs)
			g.mu.Unlock()
			if left == 0 {
				break
			}
			time.Sleep(100 * time.Microsecond)
		}
		envelopes += 100 * 2004
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(envelopes), "ns/envelope")
}
