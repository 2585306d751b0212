package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"tapedeck/protocol/capture"
)

// TestEveryTruncation cuts each frame of each capture at every length, within
// its conversation: what is left is read, or comes out with a reason.
func TestEveryTruncation(t *testing.T) {
	for _, path := range captureFiles(t) {
		_, frames := readCapture(t, path)
		for i := range frames {
			if frames[i].Kind == capture.Open {
				continue
			}
			for length := range len(frames[i].Data) {
				cut := slices.Clone(frames)
				cut[i].Data = cut[i].Data[:length:length]
				var d Decoder
				for j := range cut {
					packets := d.Decode(&cut[j])
					checkPackets(t, &cut[j], packets)
					if j == i {
						checkTruncated(t, &cut[j], packets)
					}
				}
				if t.Failed() {
					t.Fatalf("%s: frame %d, %d of %d bytes", path, i+1, length, len(frames[i].Data))
				}
			}
		}
	}
}

// checkTruncated compares the verdict on an event's JSON with package json's.
func checkTruncated(t *testing.T, f *capture.Frame, packets []Packet) {
	text, event := strings.CutPrefix(string(f.Data), "42")
	if f.Kind != capture.Text || !event || f.Flags != 0 || len(packets) != 1 {
		return
	}
	at := strings.IndexByte(text, '[')
	if at < 0 || !utf8.ValidString(text) {
		return
	}
	p := &packets[0]
	if valid := json.Valid([]byte(text[at:])); valid == (p.Fault == BadEncoding) && p.Fault != Malformed {
		t.Errorf("%q: valid %t, fault %d: %s", f.Data, valid, p.Fault, p.Reason)
	}
}

// TestDeepJSON is J09: depth is no trouble here.
func TestDeepJSON(t *testing.T) {
	for _, depth := range []int{10_001, 200_000} {
		text := `42["run:event",` + strings.Repeat(`[`, depth) + strings.Repeat(`]`, depth) + `]`
		var d Decoder
		packets := d.Decode(&capture.Frame{Position: 1, Kind: capture.Text, Connection: 1, Data: []byte(text)})
		if len(packets) != 1 || packets[0].Engine != EngineMessage || len(packets[0].Args) != 1 || len(packets[0].Args[0]) != 2*depth {
			t.Errorf("depth %d: %d packets, the first %s", depth, len(packets), packets[0].Reason)
		}
	}
}

// TestBytesStay: what a packet holds are slices of its frame, numbers with all
// their digits and escapes as they were written (J10, J11).
func TestBytesStay(t *testing.T) {
	data := []byte(`427["e", {"z":1,"a":12345678901234567890, "a":"\ud800\u00e9\/<&>"} ,1E400]`)
	var d Decoder
	p := d.Decode(&capture.Frame{Position: 1, Connection: 1, Kind: capture.Text, Data: data})[0]
	want := []string{`{"z":1,"a":12345678901234567890, "a":"\ud800\u00e9\/<&>"}`, `1E400`}
	if len(p.Args) != 2 || string(p.Args[0]) != want[0] || string(p.Args[1]) != want[1] {
		t.Fatalf("got %q, want %q", p.Args, want)
	}
	if at := bytes.Index(data, p.Args[0]); &p.Args[0][0] != &data[at] {
		t.Error("the argument was copied")
	}
}

// TestAttachmentsAreKept: a packet with attachments is its own, since the frames
// that it came in are gone.
func TestAttachmentsAreKept(t *testing.T) {
	var d Decoder
	buf := []byte(`451-["q",{"_placeholder":true,"num":0}]`)
	d.Decode(&capture.Frame{Position: 1, Connection: 1, Kind: capture.Text, Data: buf})
	clear(buf)
	buf = buf[:2]
	copy(buf, "\x01\x02")
	p := d.Decode(&capture.Frame{Position: 2, Connection: 1, Kind: capture.Binary, Data: buf})[0]
	clear(buf)
	if p.Name != "q" || string(p.Args[0]) != `{"_placeholder":true,"num":0}` || string(p.Attachments[0]) != "\x01\x02" {
		t.Errorf("got %q %q %x", p.Name, p.Args, p.Attachments)
	}
}

// TestBounds: what a connection can make the decoder keep is bounded, and gone
// when it ends.
func TestBounds(t *testing.T) {
	open := capture.Frame{Position: 1, Connection: 1, Kind: capture.Open, Data: []byte(`{"transport":"socket.io","eio":"4"}`)}
	t.Run("questions", func(t *testing.T) {
		var d Decoder
		d.Decode(&open)
		for i := range 3 * maxQuestions {
			d.Decode(&capture.Frame{Position: capture.Position(i + 2), Connection: 1, Direction: capture.FromClient, Kind: capture.Text,
				Data: fmt.Appendf(nil, `42%d["q"]`, i)})
		}
		if n := len(d.conn.asked); n > maxQuestions {
			t.Errorf("%d questions are remembered, at most %d may be", n, maxQuestions)
		}
		last := d.Decode(&capture.Frame{Position: 1 << 20, Connection: 1, Direction: capture.FromGateway, Kind: capture.Text,
			Data: fmt.Appendf(nil, `43%d[]`, 3*maxQuestions-1)})
		if last[0].Asked != "q" {
			t.Error("the latest question was forgotten")
		}
		d.Decode(&capture.Frame{Position: 1<<20 + 1, Connection: 1, Kind: capture.End, Data: []byte("{}")})
		if len(d.connections) != 0 || d.conn != nil {
			t.Error("an ended connection is remembered")
		}
	})
	t.Run("attachments", func(t *testing.T) {
		var d Decoder
		d.Decode(&open)
		d.Decode(&capture.Frame{Position: 2, Connection: 1, Kind: capture.Text, Data: []byte(`453-["q"]`)})
		d.Decode(&capture.Frame{Position: 3, Connection: 1, Kind: capture.Binary, Data: make([]byte, maxAttached)})
		got := d.Decode(&capture.Frame{Position: 4, Connection: 1, Kind: capture.Binary, Data: make([]byte, 1)})
		if len(got) != 1 || got[0].Name != "q" || got[0].Reason == "" {
			t.Fatalf("%d packets of attachments over the limit", len(got))
		}
		rest := d.Decode(&capture.Frame{Position: 5, Connection: 1, Kind: capture.Binary, Data: make([]byte, 1)})
		if len(rest) != 1 || rest[0].Fault != NoFault {
			t.Error("the attachment after the limit was blamed")
		}
	})
	t.Run("packets", func(t *testing.T) {
		var d Decoder
		got := d.Decode(&capture.Frame{Position: 1, Connection: 1, Kind: capture.Polling, Data: bytes.Repeat([]byte("2\x1e"), 2*maxPackets)})
		if len(got) != maxPackets+1 || got[maxPackets].Fault != Malformed {
			t.Errorf("%d packets", len(got))
		}
		d.Decode(&capture.Frame{Position: 2, Connection: 1, Kind: capture.Text, Data: []byte("2")})
		if cap(d.packets) > keptPackets {
			t.Errorf("room for %d packets is kept", cap(d.packets))
		}
	})
	t.Run("inflated", func(t *testing.T) {
		bomb := capture.Frame{Position: 1, Connection: 1, Kind: capture.Polling}
		bomb.Data = append([]byte(`42["q","`), bytes.Repeat([]byte("a"), maxBody)...)
		if err := gzipFrame(&bomb); err != nil {
			t.Fatal(err)
		}
		var d Decoder
		got := d.Decode(&bomb)
		if len(got) != 1 || got[0].Engine != Opaque || got[0].Fault != NoFault || len(got[0].Raw) != maxBody {
			t.Errorf("%d packets, %d bytes: %s", len(got), len(got[0].Raw), got[0].Reason)
		}
	})
}

// gzipFrame compresses a frame's body.
func gzipFrame(f *capture.Frame) error {
	line := capture.Frame{}
	if err := parseFrame(&line, "poll+gzip "+string(f.Data)); err != nil {
		return err
	}
	f.Data, f.Flags = line.Data, line.Flags
	return nil
}

// TestSteadyState: an ordinary event costs no allocation.
func TestSteadyState(t *testing.T) {
	var d Decoder
	f := envelopeFrame()
	d.Decode(f)
	if n := testing.AllocsPerRun(100, func() { d.Decode(f) }); n != 0 {
		t.Errorf("%v allocations an event", n)
	}
}

func envelopeFrame() *capture.Frame {
	return &capture.Frame{Position: 2, Connection: 1, Direction: capture.FromGateway, Kind: capture.Text,
		Data: []byte(`42["run:event",{"v":1,"threadId":"th_01HZX3K9","runId":"run_01HZX3K9QF","sequence":1042,` +
			`"event":{"type":"TEXT_MESSAGE_CONTENT","messageId":"msg_01HZX3K9","delta":"a few words of an answer, é"}}]`)}
}

func BenchmarkDecode(b *testing.B) {
	for _, c := range []struct {
		name string
		open string
		text string
	}{
		{"event", `{"transport":"socket.io","eio":"4"}`, ""},
		{"question", `{"transport":"socket.io","eio":"4"}`, `4217["thread:messages",{"threadId":"th_01HZX3K9"}]`},
		{"plain", `{"transport":"websocket"}`, `{"event":"run:event","data":{"v":1,"threadId":"th_01HZX3K9","runId":"run_01HZX3K9QF"}}`},
		{"ping", `{"transport":"socket.io","eio":"4"}`, "2"},
	} {
		b.Run(c.name, func(b *testing.B) {
			var d Decoder
			d.Decode(&capture.Frame{Position: 1, Connection: 1, Kind: capture.Open, Data: []byte(c.open)})
			f := envelopeFrame()
			if c.text != "" {
				f.Data = []byte(c.text)
			}
			b.ReportAllocs()
			b.SetBytes(int64(len(f.Data)))
			for b.Loop() {
				if len(d.Decode(f)) != 1 {
					b.Fatal("no packet")
				}
			}
		})
	}
}
