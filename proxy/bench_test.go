package proxy

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"testing"
	"time"

	"tapedeck/protocol/capture"
	"tapedeck/protocol/wire"
)

// nowhere is a connection that takes everything.
type nowhere struct{ net.Conn }

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (nowhere) Close() error                { return nil }

// envelope is a message as gateways send them by the thousand.
func envelope(i int) string {
	return fmt.Sprintf(`42["run:event",{"v":1,"threadId":"thread-0001","runId":"run-0001","sequence":%d,"event":{"type":"TEXT_MESSAGE_CONTENT","messageId":"m-1","delta":"some words of an answer that streams in "}}]`, i)
}

func benchWay(tb testing.TB, dir capture.Direction, gate Gate) *way {
	p := &Proxy{cfg: Config{Gate: gate, BodyLimit: DefaultBodyLimit}, tap: newTap(newCounting(), 1, time.Now(), slog.New(slog.DiscardHandler))}
	p.pieces.New = func() any { return new(piece) }
	s := &socket{p: p, owner: true, packets: true, x: &exchange{tap: p.tap, position: 1}, conn: &connection{position: 2}}
	s.up.src, s.down.src = &leg{Conn: nowhere{}}, &leg{Conn: nowhere{}}
	s.connect("")
	if dir == capture.FromClient {
		return &s.up
	}
	return &s.down
}

// BenchmarkForward is the path of a message through relay, scanner and tap,
// without the sockets, whose calls cost more than all of it.
func BenchmarkForward(b *testing.B) {
	pass := gateFunc(func(*capture.Frame) Verdict { return Verdict{} })
	for _, bench := range []struct {
		name string
		dir  capture.Direction
		gate Gate
		each int // messages in a read
	}{
		{"gateway", capture.FromGateway, nil, 1},
		{"client", capture.FromClient, nil, 1},
		{"burst", capture.FromGateway, nil, 150},
		{"gated", capture.FromGateway, pass, 1},
	} {
		b.Run(bench.name, func(b *testing.B) {
			w := benchWay(b, bench.dir, bench.gate)
			var read []byte
			for i := range bench.each {
				if bench.dir == capture.FromClient {
					read = wire.AppendClientFrame(read, capture.Text, []byte(envelope(i)), testKey)
				} else {
					read = wire.AppendServerFrame(read, capture.Text, []byte(envelope(i)))
				}
			}
			b.SetBytes(int64(len(read) / bench.each))
			b.ReportAllocs()
			for i := 0; i < b.N; i += bench.each {
				if err := w.forward(read); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// The relay allocates nothing for a message, once its buffers have grown.
func TestForwardAllocatesNothing(t *testing.T) {
	for _, dir := range []capture.Direction{capture.FromClient, capture.FromGateway} {
		w := benchWay(t, dir, nil)
		read := fromGateway(capture.Text, envelope(1))
		if dir == capture.FromClient {
			read = fromClient(capture.Text, envelope(1))
		}
		if n := testing.AllocsPerRun(100, func() {
			if err := w.forward(read); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("a message from the %s costs %v allocations", dir, n)
		}
	}
}

// BenchmarkRelay reads from a socket besides: an envelope a write, as real
// servers send.
func BenchmarkRelay(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	from, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	to, err := l.Accept()
	if err != nil {
		b.Fatal(err)
	}
	defer to.Close()
	message := fromGateway(capture.Text, envelope(1))
	b.SetBytes(int64(len(message)))
	b.ReportAllocs()
	w := benchWay(b, capture.FromGateway, nil)
	w.src.Conn = to
	done := make(chan struct{})
	go w.run(done)
	for range b.N {
		if _, err := from.Write(message); err != nil {
			b.Fatal(err)
		}
	}
	from.Close()
	<-done
	if got := w.s.p.tap.sink.(*counting).frames; got != b.N {
		b.Errorf("%d messages on the tape, want %d", got, b.N)
	}
}

// What the buffers grow to is given back when it is not needed any more.
func TestBuffersShrink(t *testing.T) {
	w := benchWay(t, capture.FromGateway, nil)
	buf := w.small[:]
	for _, n := range []int{100, relaySmall, relayLarge, relaySmall + 1, 10, 10} {
		n = min(n, len(buf))
		buf = w.resize(buf, n)
		large := n == relaySmall && len(buf) == relayLarge || n > relaySmall
		if (len(buf) == relayLarge) != large || (w.large != nil) != large {
			t.Errorf("after a read of %d the buffer has %d bytes", n, len(buf))
		}
	}
	if !bytes.Equal(buf, w.small[:]) || w.large != nil {
		t.Error("a large buffer is kept")
	}
}
