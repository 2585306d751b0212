package recorder

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"tapedeck/protocol/capture"
)

// vocabulary is what the agent of these tests says, more or less.
var vocabulary = strings.Fields(`I have looked at the order you mentioned and it seems that the second shipment was
never scanned at the depot in Leipzig which usually means one of two things either the label fell off or the parcel is
still waiting in a container. Let me check both with our carrier first before we decide anything about a refund because
once issued it cannot be taken back easily. Meanwhile here is what we know so far: tracking number, weight 2.4 kg,
handed over on Tuesday morning, expected Thursday between nine and noon. If nothing turns up by tomorrow evening please
tell me whether you would rather get another one sent or your money returned to the card that paid for this purchase.
Under German law both are possible within fourteen days. Would it help to also add a note for neighbours or choose some
pickup shop near work instead? func main() { fmt.Println("hello, world"); return nil } SELECT name FROM users WHERE id = 42`)

// chat makes n envelopes of about 200 bytes, as a language model's gateway sends
// them, a given time apart.
func chat(n int, apart time.Duration) []capture.Frame {
	rng := rand.New(rand.NewPCG(11, 12))
	made := make([]capture.Frame, n)
	at, message, bytes := time.Duration(0), 0, 0
	for i := range made {
		if i%150 == 0 {
			message = rng.Int()
		}
		var delta strings.Builder
		for delta.Len() < 24 {
			delta.WriteString(vocabulary[min(rng.IntN(len(vocabulary)), rng.IntN(len(vocabulary)))] + " ")
		}
		at += apart + time.Duration(rng.Int64N(int64(apart)))
		data := fmt.Appendf(nil, `42["run:event",{"v":1,"threadId":"thr_%016x","runId":"run_%016x","sequence":%d,"event":{"type":"TEXT_MESSAGE_CONTENT","messageId":"msg_%x","delta":%q}}]`,
			message/7, message/3, i, message, delta.String())
		made[i] = capture.Frame{Position: capture.Position(i + 1), At: at, Connection: 1, Kind: capture.Text,
			Direction: capture.FromGateway, Size: int64(len(data)), Data: data}
		bytes += len(data)
	}
	if mean := bytes / n; mean < 180 || mean > 220 {
		panic(fmt.Sprintf("an envelope has %d bytes", mean))
	}
	return made
}

// An envelope of 200 bytes takes 60 bytes of disk at most, at a high rate and
// when each is committed by itself, as at 30 a second (B03).
func TestSizeOnDisk(t *testing.T) {
	if raceEnabled {
		t.Skip("sizes are the same under the race detector, and compressing takes minutes")
	}
	for _, c := range []struct {
		name  string
		n     int
		batch int
		apart time.Duration
	}{
		{"in groups", 60_000, commitFrames, 100 * time.Microsecond},
		{"one by one", 9_000, 1, 33 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := tapePath(t)
			w, _ := newTape(t, path, WriterOptions{})
			w.tape.db.NoSync = true // only the size is looked at
			all := chat(c.n, c.apart)
			for from := 0; from < c.n; from += c.batch {
				some := all[from:min(c.n, from+c.batch)]
				if err := w.commitFrames(&batch{frames: some}); err != nil {
					t.Fatal(err)
				}
			}
			closeWriter(t, w, time.Minute)
			size := fileSize(t, path)
			t.Logf("%d bytes, %.1f an envelope", size, float64(size)/float64(c.n))
			if size > int64(c.n)*60 {
				t.Errorf("an envelope takes %.1f bytes on disk, want 60 at most", float64(size)/float64(c.n))
			}
			if diff := diffFrames(all, readAll(t, open(t, path))); diff != "" {
				t.Error(diff)
			}
		})
	}
}
