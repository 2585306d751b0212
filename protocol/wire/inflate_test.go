package wire

import (
	"bytes"
	"compress/flate"
	"fmt"
	"strings"
	"testing"

	"tapedeck/protocol/capture"
)

// deflater compresses messages as a peer with permessage-deflate does.
type deflater struct {
	out   bytes.Buffer
	w     *flate.Writer
	alone bool
}

func newDeflater(t testing.TB, alone bool) *deflater {
	d := &deflater{alone: alone}
	var err error
	if d.w, err = flate.NewWriter(&d.out, flate.BestCompression); err != nil {
		t.Fatal(err)
	}
	return d
}

// frame appends a compressed message.
func (d *deflater) frame(t testing.TB, dst []byte, text string) []byte {
	d.out.Reset()
	if d.alone {
		d.w.Reset(&d.out)
	}
	if _, err := d.w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := d.w.Flush(); err != nil {
		t.Fatal(err)
	}
	body := strings.TrimSuffix(d.out.String(), "\x00\x00\xff\xff")
	return piece(dst, opText|0x40, true, body, nil)
}

// TestInflate is W08: two hundred similar messages, with and without context
// takeover, and plain ones between.
func TestInflate(t *testing.T) {
	for _, mode := range []Deflate{DeflateTakeover, DeflateAlone} {
		d := newDeflater(t, mode == DeflateAlone)
		var stream []byte
		var want []string
		for i := range 200 {
			text := fmt.Sprintf(`42["run:event",{"sequence":%d,"delta":%q}]`, i, strings.Repeat("a word ", i*10))
			want = append(want, text, "2", "")
			stream = d.frame(t, stream, text)
			stream = AppendServerFrame(stream, capture.Text, []byte("2"))
			stream = d.frame(t, stream, "")
		}
		got, _ := scan(NewScanner(ScannerOptions{Deflate: mode}), stream, 1000)
		if len(got) != len(want) {
			t.Fatalf("mode %d: %d messages of %d", mode, len(got), len(want))
		}
		for i, m := range got {
			inflated := i%3 != 1
			if m.Payload != want[i] || m.Size != int64(len(want[i])) || m.Flags.Has(capture.Inflated) != inflated {
				t.Fatalf("mode %d: message %d is %q, %v, want %q", mode, i, m.Payload, m.Flags.Names(), want[i])
			}
		}
	}
}

func TestInflateTrouble(t *testing.T) {
	t.Run("over the limit", func(t *testing.T) {
		d := newDeflater(t, false)
		long := strings.Repeat("0123456789", 10_000)
		stream := d.frame(t, nil, long)
		stream = d.frame(t, stream, long[:500])
		got, _ := scan(NewScanner(ScannerOptions{Deflate: DeflateTakeover, Limit: 1000}), stream, 64)
		if m := got[0]; m.Payload != long[:1000] || m.Size != 100_000 || !m.Flags.Has(capture.Cut|capture.Inflated) {
			t.Errorf("%d bytes kept of %d, %v", len(m.Payload), m.Size, m.Flags.Names())
		}
		if m := got[1]; m.Payload != long[:500] {
			t.Errorf("the message after it is %q: %s", m.Payload, m.Reason)
		}
	})
	t.Run("no deflate", func(t *testing.T) {
		d := newDeflater(t, false)
		stream := d.frame(t, nil, "good")
		stream = piece(stream, opText|0x40, true, "\xff\xff\xff", nil)
		stream = d.frame(t, stream, "refers to what was lost")
		stream = piece(stream, opText, true, "plain", nil)
		got, _ := scan(NewScanner(ScannerOptions{Deflate: DeflateTakeover}), stream, 7)
		var kinds []capture.Kind
		for _, m := range got {
			kinds = append(kinds, m.Kind)
			if (m.Kind == capture.Stream) != (m.Reason != "") {
				t.Errorf("a %s with the reason %q", m.Kind, m.Reason)
			}
		}
		if fmt.Sprint(kinds) != "[text stream stream text]" {
			t.Errorf("got %v", kinds)
		}
	})
	t.Run("compressed over the limit", func(t *testing.T) {
		stream := piece(nil, opText|0x40, true, strings.Repeat("x", 100), nil)
		got, _ := scan(NewScanner(ScannerOptions{Deflate: DeflateAlone, Limit: 10}), stream, 7)
		if m := got[0]; m.Kind != capture.Stream || m.Size != 100 || len(m.Payload) != 10 || m.Reason == "" {
			t.Errorf("got a %s, %d bytes of %d: %s", m.Kind, len(m.Payload), m.Size, m.Reason)
		}
	})
}

func TestNegotiatedDeflate(t *testing.T) {
	for _, c := range []struct {
		in              string
		client, gateway Deflate
	}{
		{"", NoDeflate, NoDeflate},
		{"x-webkit-deflate-frame", NoDeflate, NoDeflate},
		{"permessage-deflate", DeflateTakeover, DeflateTakeover},
		{"permessage-deflate; server_no_context_takeover; client_max_window_bits=15", DeflateTakeover, DeflateAlone},
		{"foo, Permessage-Deflate;client_no_context_takeover", DeflateAlone, DeflateTakeover},
	} {
		client, gateway := NegotiatedDeflate(c.in, capture.FromClient), NegotiatedDeflate(c.in, capture.FromGateway)
		if client != c.client || gateway != c.gateway {
			t.Errorf("%q: client %d, gateway %d, want %d, %d", c.in, client, gateway, c.client, c.gateway)
		}
	}
}
