package wire

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tapedeck/protocol/capture"
)

// found is a Message that outlives the next call.
type found struct {
	Kind    capture.Kind
	Flags   capture.Flags
	Size    int64
	Payload string
	Reason  string
}

// scan feeds a stream in pieces of the given lengths, the last one again and
// again, and returns the messages, neighbouring Streams joined, and the bytes of
// their Raws.
func scan(s *Scanner, stream []byte, cuts ...int) (messages []found, raw []byte) {
	draw := func() {
		for m := s.Next(); m != nil; m = s.Next() {
			raw = append(raw, m.Raw...)
			f := found{m.Kind, m.Flags, m.Size, string(m.Payload), m.Reason}
			if n := len(messages); n > 0 && f.Kind == capture.Stream && messages[n-1].Kind == capture.Stream && f.Reason == "" {
				messages[n-1].Payload += f.Payload
				messages[n-1].Size += f.Size
				continue
			}
			if m.Kind != 0 {
				messages = append(messages, f)
			}
		}
	}
	for i := 0; len(stream) > 0; i++ {
		n := min(max(1, cuts[min(i, len(cuts)-1)]), len(stream))
		s.Feed(stream[:n:n])
		draw()
		stream = stream[n:]
	}
	s.End()
	draw()
	return messages, raw
}

// piece appends a frame that need not be a whole message.
func piece(dst []byte, opcode byte, fin bool, payload string, key *[4]byte) []byte {
	kind := capture.Text
	start := len(dst)
	if key == nil {
		dst = AppendServerFrame(dst, kind, []byte(payload))
	} else {
		dst = AppendClientFrame(dst, kind, []byte(payload), *key)
	}
	dst[start] = opcode
	if fin {
		dst[start] |= 0x80
	}
	return dst
}

var key = [4]byte{0xa1, 0x02, 0xff, 0x40}

// conversation is a stream with everything that a peer may send, and what it
// says.
func conversation(key *[4]byte) (stream []byte, want []found) {
	long, longer := strings.Repeat("long ", 100), strings.Repeat("longer ", 20_000)
	// W06: control frames between the fragments, a character cut in two.
	stream = piece(stream, opText, false, `42["a",`, key)
	stream = piece(stream, opPing, true, "x", key)
	stream = piece(stream, opContinuation, false, "\"\xf0\x9f", key)
	stream = piece(stream, opPong, true, "", key)
	stream = piece(stream, opContinuation, true, "\x98\x80\"]", key)
	// W07: empty messages.
	stream = piece(stream, opText, true, "", key)
	stream = piece(stream, opBinary, true, "", key)
	stream = piece(stream, opBinary, false, "", key)
	stream = piece(stream, opContinuation, true, "", key)
	stream = piece(stream, opText, true, long, key)
	stream = piece(stream, opBinary, true, longer, key)
	stream = piece(stream, opClose, true, "\x0f\xa1agent évicted", key)
	want = []found{
		{Kind: capture.Ping, Payload: "x"},
		{Kind: capture.Pong},
		{Kind: capture.Text, Flags: capture.Fragmented, Payload: `42["a","😀"]`},
		{Kind: capture.Text},
		{Kind: capture.Binary},
		{Kind: capture.Binary, Flags: capture.Fragmented},
		{Kind: capture.Text, Payload: long},
		{Kind: capture.Binary, Payload: longer},
		{Kind: capture.Close, Payload: "\x0f\xa1agent évicted"},
	}
	for i := range want {
		want[i].Size = int64(len(want[i].Payload))
	}
	return stream, want
}

func TestScanner(t *testing.T) {
	for _, k := range []*[4]byte{nil, &key} {
		stream, want := conversation(k)
		for _, cuts := range [][]int{{len(stream)}, {1}, {2}, {3}, {7}, {64}, {4096}, {1, 13, 2, 500}} {
			for _, hold := range []bool{false, true} {
				t.Run(fmt.Sprintf("masked %t cut %v hold %t", k != nil, cuts, hold), func(t *testing.T) {
					got, raw := scan(NewScanner(ScannerOptions{Hold: hold}), stream, cuts...)
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("messages (-want +got):\n%s", diff)
					}
					if !hold {
						if len(raw) > 0 {
							t.Errorf("%d raw bytes without Hold", len(raw))
						}
						return
					}
					// What passed says the same, and is as long.
					again, _ := scan(NewScanner(ScannerOptions{}), raw, len(raw))
					if diff := cmp.Diff(want, again); diff != "" || len(raw) != len(stream) {
						t.Errorf("%d raw bytes of %d say (-want +got):\n%s", len(raw), len(stream), diff)
					}
				})
			}
		}
	}
}

// TestEveryEnd ends the connection after each byte: nothing is lost.
func TestEveryEnd(t *testing.T) {
	stream, _ := conversation(&key)
	for length := range 700 {
		got, raw := scan(NewScanner(ScannerOptions{Hold: true}), stream[:length], 5)
		if len(raw) != length {
			t.Fatalf("%d raw bytes of %d", len(raw), length)
		}
		for i, m := range got {
			if m.Flags.Has(capture.Partial) && i < len(got)-2 {
				t.Fatalf("after %d bytes, message %d of %d is partial", length, i, len(got))
			}
		}
	}
	// Half of a text, and the half of a ping inside it.
	stream = piece(nil, opText, false, "begun", nil)
	stream = append(stream, piece(nil, opPing, true, "ping", nil)[:4]...)
	got, _ := scan(NewScanner(ScannerOptions{}), stream, len(stream))
	want := []found{
		{Kind: capture.Text, Flags: capture.Partial | capture.Fragmented, Size: 5, Payload: "begun"},
		{Kind: capture.Ping, Flags: capture.Partial, Size: 2, Payload: "pi"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestScannerNoFrames(t *testing.T) {
	http := "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"
	frame := func(b ...byte) string { return string(b) }
	for _, c := range []struct{ name, in, reason string }{
		{"raw HTTP after the 101", http, "reserved bits 100"},
		{"RSV1 that nobody negotiated", frame(0xc1, 1, 'x'), "reserved bits 100"},
		{"RSV2", frame(0xa1, 1, 'x'), "reserved bits 010"},
		{"a reserved opcode", frame(0x83, 1, 'x'), "opcode 3"},
		{"a reserved control opcode", frame(0x8b, 1, 'x'), "opcode 11"},
		{"a long control frame", frame(0x89, 126, 0, 126), "a control frame of 126 bytes"},
		{"a fragmented control frame", frame(0x09, 1, 'x'), "a fragmented control frame"},
		{"an absurd length", frame(0x82, 127, 0x10, 0, 0, 0, 0, 0, 0, 0), "a length of 1152921504606846976 bytes"},
		{"a negative length", frame(0x82, 127, 0xff, 0, 0, 0, 0, 0, 0, 0), "a length of 18374686479671623680 bytes"},
		{"a continuation of nothing", frame(0x80, 1, 'x'), "a continuation of nothing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			good := AppendServerFrame(nil, capture.Text, []byte("2"))
			stream := append(bytes.Clone(good), c.in+"and more"...)
			for _, cut := range []int{len(stream), 1, 4} {
				got, raw := scan(NewScanner(ScannerOptions{Hold: true}), stream, cut)
				if len(got) != 2 || got[0].Payload != "2" {
					t.Fatalf("cut %d: %d messages: %v", cut, len(got), got)
				}
				if m := got[1]; m.Kind != capture.Stream || m.Payload != c.in+"and more" || !strings.Contains(m.Reason, c.reason) {
					t.Errorf("cut %d: got a %s of %q: %s", cut, m.Kind, m.Payload, m.Reason)
				}
				if !bytes.Equal(raw, stream) {
					t.Errorf("cut %d: raw %q, want %q", cut, raw, stream)
				}
			}
		})
	}
	t.Run("inside a fragmented message", func(t *testing.T) {
		stream := piece(nil, opText, false, "begun", nil)
		stream = piece(stream, opText, true, "another", nil)
		got, raw := scan(NewScanner(ScannerOptions{Hold: true}), stream, 1)
		want := []found{
			{Kind: capture.Text, Flags: capture.Partial | capture.Fragmented, Size: 5, Payload: "begun"},
			{Kind: capture.Stream, Size: 9, Payload: "\x81\aanother", Reason: "not a WebSocket message: a new one begins inside a fragmented one"},
		}
		if diff := cmp.Diff(want, got); diff != "" || !bytes.Equal(raw, stream) {
			t.Errorf("raw %q (-want +got):\n%s", raw, diff)
		}
	})
}

// TestScannerLimit: beyond the limit a message is counted, and where messages
// are held it is let pass.
func TestScannerLimit(t *testing.T) {
	payload := strings.Repeat("0123456789", 100)
	for _, whole := range []bool{true, false} {
		stream := AppendClientFrame(nil, capture.Text, []byte(payload), key)
		flags := capture.Cut
		if !whole {
			stream = piece(nil, opText, false, payload[:10], &key)
			stream = piece(stream, opPing, true, "x", &key)
			stream = piece(stream, opContinuation, true, payload[10:], &key)
			flags |= capture.Fragmented
		}
		for _, cut := range []int{1, 100, len(stream)} {
			got, raw := scan(NewScanner(ScannerOptions{Limit: 25, Hold: true}), stream, cut)
			m := got[len(got)-1]
			if m.Flags != flags || m.Size != 1000 || m.Payload != payload[:25] {
				t.Errorf("cut %d: %v, %d bytes, %q", cut, m.Flags.Names(), m.Size, m.Payload)
			}
			if len(raw) != len(stream) {
				t.Errorf("cut %d: %d raw bytes of %d", cut, len(raw), len(stream))
			}
		}
	}
	// It is let pass as it comes, not at its end.
	s := NewScanner(ScannerOptions{Limit: 25, Hold: true})
	stream := AppendServerFrame(nil, capture.Text, []byte(payload))
	for i, b := range [][]byte{stream[:100], stream[100:200], stream[200:]} {
		s.Feed(b)
		m := s.Next()
		if m == nil || !m.Unheld || !bytes.Equal(m.Raw, b) || (m.Kind == 0) != (i < 2) {
			t.Fatalf("piece %d: %+v", i, m)
		}
	}
	// What a hostile head claims is not believed.
	s = NewScanner(ScannerOptions{})
	s.Feed([]byte{0x82, 127, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0xff, 1, 2, 3})
	if m := s.Next(); m != nil || cap(s.data.buf) > 1024 {
		t.Errorf("%v; room for %d bytes", m, cap(s.data.buf))
	}
}

// TestHoldAndRelease takes hold of a stream at one byte and lets go at another:
// every byte passes once, in its order, and no message is missed.
func TestHoldAndRelease(t *testing.T) {
	stream := piece(nil, opText, true, "before", &key)
	stream = piece(stream, opText, false, "frag", &key)
	stream = piece(stream, opContinuation, true, "ments", &key)
	stream = piece(stream, opText, true, "after", &key)
	stream = piece(stream, opPing, true, "x", &key)
	want, _ := scan(NewScanner(ScannerOptions{}), stream, len(stream))
	for hold := range len(stream) {
		for release := hold; release <= len(stream); release++ {
			s := NewScanner(ScannerOptions{})
			var sent []byte
			var got []found
			draw := func() {
				for m := s.Next(); m != nil; m = s.Next() {
					sent = append(sent, m.Raw...)
					if m.Kind != 0 {
						got = append(got, found{m.Kind, m.Flags, m.Size, string(m.Payload), m.Reason})
					}
				}
			}
			feed := func(b []byte) {
				s.Feed(b)
				draw()
			}
			sent = append(sent, stream[:hold]...)
			feed(stream[:hold])
			s.Hold()
			feed(stream[hold:release])
			sent = append(sent, s.Release()...)
			sent = append(sent, stream[release:]...)
			feed(stream[release:])
			if diff := cmp.Diff(want, got); diff != "" || !bytes.Equal(sent, stream) {
				t.Fatalf("held from %d to %d: sent %q, want %q\n(-want +got):\n%s", hold, release, sent, stream, diff)
			}
		}
	}
}

// TestHoldDecides: a message that is not let through leaves the control frames
// between its fragments.
func TestHoldDecides(t *testing.T) {
	stream := piece(nil, opText, false, "ref", nil)
	stream = piece(stream, opPing, true, "x", nil)
	stream = piece(stream, opContinuation, true, "used", nil)
	s := NewScanner(ScannerOptions{Hold: true})
	s.Feed(stream)
	var sent []byte
	for m := s.Next(); m != nil; m = s.Next() {
		if m.Kind != capture.Text {
			sent = append(sent, m.Raw...)
		}
	}
	if want := AppendServerFrame(nil, capture.Ping, []byte("x")); !bytes.Equal(sent, want) {
		t.Errorf("sent %q, want %q", sent, want)
	}
}

func TestScannerSteadyState(t *testing.T) {
	for _, k := range []*[4]byte{nil, &key} {
		stream := piece(nil, opText, true, strings.Repeat("x", 200), k)
		s := NewScanner(ScannerOptions{})
		scanAll := func() {
			s.Feed(stream[:90])
			for s.Next() != nil {
			}
			s.Feed(stream[90:])
			for s.Next() != nil {
			}
		}
		scanAll()
		if n := testing.AllocsPerRun(100, scanAll); n != 0 {
			t.Errorf("masked %t: %v allocations a message", k != nil, n)
		}
	}
	// What is whole and unmasked is not copied.
	stream := AppendServerFrame(nil, capture.Text, []byte("2"))
	s := NewScanner(ScannerOptions{})
	s.Feed(stream)
	if m := s.Next(); &m.Payload[0] != &stream[2] {
		t.Error("the payload was copied")
	}
}

func TestMask(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for length := range 40 {
		for pos := range int64(9) {
			b := make([]byte, length)
			for i := range b {
				b[i] = byte(random.Uint32())
			}
			want := bytes.Clone(b)
			for i := range want {
				want[i] ^= key[(int(pos)+i)%4]
			}
			if got := appendUnmasked(nil, b, key, pos); !bytes.Equal(got, want) {
				t.Fatalf("%d bytes from %d: %x, want %x", length, pos, got, want)
			}
		}
	}
}

func TestClosePayload(t *testing.T) {
	long := strings.Repeat("é", 100)
	for _, c := range []struct {
		code       int
		reason     string
		wantCode   int
		wantReason string
	}{
		{4001, "agent évicted", 4001, "agent évicted"}, // W04
		{1000, "", 1000, ""},
		{NoStatus, "", NoStatus, ""},
		{Abnormal, "cut", NoStatus, ""},
		{1015, "tls", NoStatus, ""},
		{0, "", NoStatus, ""},
		{70_000, "", NoStatus, ""},
		{1001, long, 1001, long[:122]},
	} {
		payload := AppendClose(nil, c.code, c.reason)
		code, reason := ParseClose(payload)
		if code != c.wantCode || reason != c.wantReason || len(payload) > maxControl {
			t.Errorf("%d %q: got %d %q in %d bytes", c.code, c.reason, code, reason, len(payload))
		}
	}
	if code, _ := ParseClose([]byte{3}); code != NoStatus {
		t.Errorf("a payload of one byte has the code %d", code)
	}
}

func BenchmarkScanner(b *testing.B) {
	for _, c := range []struct {
		name string
		key  *[4]byte
		opts ScannerOptions
	}{{"gateway", nil, ScannerOptions{}}, {"client", &key, ScannerOptions{}}, {"held", nil, ScannerOptions{Hold: true}}} {
		b.Run(c.name, func(b *testing.B) {
			stream := piece(nil, opText, true, strings.Repeat("x", 200), c.key)
			s := NewScanner(c.opts)
			b.ReportAllocs()
			b.SetBytes(int64(len(stream)))
			for b.Loop() {
				s.Feed(stream)
				if s.Next() == nil || s.Next() != nil {
					b.Fatal("not one message")
				}
			}
		})
	}
}
