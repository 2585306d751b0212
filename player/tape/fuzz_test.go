package tape

import (
	"encoding/json"
	"testing"
	"time"

	"tapedeck/player"
	"tapedeck/player/script"
	"tapedeck/protocol/capture"
)

// FuzzLoad: a tape may hold anything. It loads, and whatever can be asked of it is
// answered or refused, in cues that never run back.
func FuzzLoad(f *testing.F) {
	f.Add([]byte("o1\n>142[\"run:start\",{\"threadId\":\"T\",\"messageId\":\"m\",\"input\":\"Hi\"}]\n<142[\"run:event\",{\"v\":1,\"threadId\":\"T\",\"runId\":\"R\",\"sequence\":1,\"event\":{\"type\":\"RUN_STARTED\"}}]\n" +
		"<142[\"run:event\",{\"v\":1,\"threadId\":\"T\",\"runId\":\"R\",\"sequence\":2,\"event\":{\"type\":\"INTERRUPT\",\"interruptId\":\"i\",\"payload\":1}}]\n" +
		"<142[\"run:event\",{\"v\":1,\"threadId\":\"T\",\"runId\":\"R\",\"sequence\":3,\"event\":{\"type\":\"RUN_PAUSED\"}}]\n<142[\"run:event\",{\"v\":1,\"threadId\":\"T\",\"runId\":\"R\",\"sequence\":4,\"event\":{\"type\":\"RUN_FINISHED\"}}]\n" +
		">142[\"run:resume\",{\"threadId\":\"T\",\"interruptId\":\"i\",\"answer\":1}]\n<142[\"run:event\",{\"v\":1,\"threadId\":\"T\",\"runId\":\"R\",\"sequence\":5,\"event\":{\"type\":\"TODOS_SNAPSHOT\",\"todos\":[]}}]\n"))
	f.Add([]byte("o1\n>1420[\"thread:messages\",{\"threadId\":\"T\"}]\n<1430[{\"ok\":true,\"messages\":[{\"id\":1}],\"pendingInterrupt\":{\"interruptId\":\"i\"},\"replay\":{\"envelopes\":[{\"runId\":\"R\",\"threadId\":\"T\"}],\"truncated\":true}}]\nc1\no2\n>2420[\"thread:messages\",{\"threadId\":\"T\"}]\n<2430[{\"ok\":true}]\n"))
	f.Add([]byte("o1\n>142[\"run:cancel\",{\"runId\":\"R\"}]\n<142[\"protocol:error\",{\"code\":\"UNKNOWN_RUN\"}]\n<142[\"task:status\",{\"threadId\":\"T\"}]\n<1451-[\"x\",{\"_placeholder\":true,\"num\":0}]\nb1zz\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := New(t.Context(), scribbled(text), Options{WithDrops: len(text)%2 == 0})
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"T", "live", "other"} {
			setting := s.Thread(id)
			inOrder(t, setting.Prelude)
			for range 3 {
				if next, err := ask(s, setting, id, "Hi"); err == nil {
					walk(t, next)
				}
			}
		}
	})
}

// scribbled is a tape of lines: what, which socket, data.
func scribbled(text []byte) *written {
	w := &written{sessions: []capture.Session{{ID: 1, First: 1}}}
	sockets := map[byte]capture.Position{}
	for i, line := range split(text) {
		if len(line) < 2 {
			continue
		}
		position := capture.Position(len(w.frames) + 1)
		f := capture.Frame{Position: position, Kind: capture.Text, Connection: sockets[line[1]], Data: line[2:], At: time.Duration(i%7) * time.Second}
		switch line[0] {
		case 'o':
			f.Kind, f.Data, f.Connection = capture.Open, []byte(`{"transport":"socket.io","eio":"4"}`), position
			sockets[line[1]] = position
		case 'c':
			f.Kind, f.Data = capture.End, []byte(`{"by":"gateway"}`)
		case 'b':
			f.Kind, f.Direction = capture.Binary, capture.FromGateway
		case '>':
			f.Direction = capture.FromClient
		default:
			f.Direction = capture.FromGateway
		}
		w.frames = append(w.frames, f)
		w.sessions[0].Last = position
	}
	return w
}

func split(text []byte) (lines [][]byte) {
	from := 0
	for i, c := range text {
		if c == '\n' {
			lines = append(lines, text[from:i:i])
			from = i + 1
		}
	}
	return append(lines, text[from:])
}

// walk plays a run over its pauses.
func walk(t *testing.T, next player.Segments) {
	turn := player.Turn{Run: "run"}
	for range 4 {
		played, err := next(turn)
		if err != nil {
			return
		}
		inOrder(t, played.Cues)
		turn.Pauses = append(turn.Pauses, map[string]json.RawMessage{"i": json.RawMessage("1")})
	}
}

func inOrder(t *testing.T, cues []script.Cue) {
	for i, c := range cues {
		if i > 0 && c.At < cues[i-1].At {
			t.Fatalf("cue %d is due at %v, after one at %v", i, c.At, cues[i-1].At)
		}
		if open, ok := c.Act.(script.Open); ok {
			inOrder(t, open.Script.Cues)
			if open.Next != nil {
				walk(t, open.Next)
			}
		}
	}
}
