package wire

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"tapedeck/protocol/capture"
)

// FuzzDecoder decodes a sequence of frames. In the input, each line is a frame:
// its first byte is the kind, the direction and the connection, the second its
// flags, and the rest its data.
func FuzzDecoder(f *testing.F) {
	for _, path := range captureFiles(f) {
		_, frames := readCapture(f, path)
		var seed bytes.Buffer
		for i := range frames {
			if frame := &frames[i]; !bytes.Contains(frame.Data, []byte("\n")) {
				seed.Write([]byte{byte(frame.Kind)<<4 | (max(byte(frame.Direction), 1)-1)<<2, byte(frame.Flags)})
				seed.Write(frame.Data)
				seed.WriteByte('\n')
			}
		}
		f.Add(seed.Bytes())
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		var d Decoder
		for i, line := range bytes.Split(input, []byte("\n")) {
			if len(line) < 2 {
				continue
			}
			frame := capture.Frame{
				Position: capture.Position(i + 1), Connection: capture.Position(line[0] & 3),
				Direction: capture.Direction(line[0]>>2&1 + 1), Kind: capture.Kind(line[0] >> 4),
				Flags: capture.Flags(line[1]), Data: line[2:], Size: int64(len(line)),
			}
			before := bytes.Clone(frame.Data)
			packets := d.Decode(&frame)
			checkPackets(t, &frame, packets)
			if !bytes.Equal(before, frame.Data) {
				t.Fatal("the frame's data was changed")
			}
			checkWhole(t, &d, &frame, packets)
		}
	})
}

// checkWhole: what came in is in the packets, or waits for its attachments.
func checkWhole(t *testing.T, d *Decoder, f *capture.Frame, packets []Packet) {
	switch f.Kind {
	case capture.Text, capture.Binary, capture.Stream:
	default:
		return
	}
	for i := range packets {
		if bytes.Equal(packets[i].Raw, f.Data) || len(packets[i].Attachments) > 0 {
			return
		}
	}
	for _, direction := range d.connections[f.Connection].halves {
		for _, h := range direction {
			if h.pending != nil && (bytes.Equal(h.pending.Raw, f.Data) || len(h.pending.Attachments) > 0) {
				return
			}
		}
	}
	t.Fatalf("a %s of %q is in none of %d packets", f.Kind, f.Data, len(packets))
}

// FuzzJSON holds the splitter against package json: what one takes, the other
// does too.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,-0.5e+3,true,false,null,"\u00e9\"\\"]}`, `[]`, `{}`, ` [ { "a" : [ ] } ] `, `"plain"`, `01`, `1.`, `-`, `+1`, `.5`, `1e`,
		`[1,]`, `{"a":}`, `{"a"}`, `{,}`, `"\x"`, `"\u12g4"`, "\"\x1f\"", "\"\x7f\"", `nul`, `NaN`, `Infinity`, `[1}`, `{"a":1]`, `"`, `"\`, ``, ` `,
		`{"a":1}{`, "\"abcdefghijklmnop\\\"q\"", "[\"€uro and more than eight bytes\"]", "\ufeff1", "\u00a01",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if !utf8.Valid(text) || bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) >= 10_000 {
			return
		}
		s := splitter{b: text}
		got := s.value() && s.atEnd()
		if want := json.Valid(text); got != want {
			t.Fatalf("%q: valid %t, package json says %t; stopped at %d", text, got, want, s.i)
		}
		if !got {
			if reason, at := s.complaint(); reason == "" || at >= len(text) {
				t.Fatalf("%q: complaint %q at byte %d", text, reason, at)
			}
			return
		}
		for num := range placeholders(text) { // it must come to an end, on whatever is valid
			if num != nil && !json.Valid(num) {
				t.Fatalf("%q: a placeholder's num is %q", text, num)
			}
		}
	})
}

// FuzzScanner scans any bytes: how they are cut makes no difference, and what is
// held comes out whole.
func FuzzScanner(f *testing.F) {
	stream, _ := conversation(&key)
	f.Add(stream[:700], uint8(3), uint16(100), uint8(0))
	stream, _ = conversation(nil)
	f.Add(stream[:700], uint8(1), uint16(10), uint8(1))
	f.Add(newDeflater(f, false).frame(f, nil, "some text some text"), uint8(9), uint16(1000), uint8(1))
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"), uint8(5), uint16(0), uint8(2))
	f.Fuzz(func(t *testing.T, stream []byte, cut uint8, limit uint16, deflate uint8) {
		opts := ScannerOptions{Limit: int(limit), Deflate: Deflate(deflate % 3)}
		want, _ := scan(NewScanner(opts), stream, len(stream)+1)
		got, _ := scan(NewScanner(opts), stream, int(cut))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("cut at %d (-whole +cut):\n%s", cut, diff)
		}
		opts.Hold = true
		held, raw := scan(NewScanner(opts), stream, int(cut))
		if diff := cmp.Diff(want, held); diff != "" {
			t.Fatalf("held (-free +held):\n%s", diff)
		}
		if len(raw) != len(stream) {
			t.Fatalf("%d raw bytes of %d", len(raw), len(stream))
		}
	})
}
