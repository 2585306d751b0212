package recorder

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"tapedeck/protocol/capture"
)

func BenchmarkFrame(b *testing.B) {
	w, _ := newTape(b, filepath.Join(b.TempDir(), "a.tape"), WriterOptions{})
	all := chat(10_000, time.Millisecond)
	b.SetBytes(all[0].Size)
	b.ReportAllocs()
	p := capture.Position(0)
	for b.Loop() {
		f := &all[int(p)%len(all)]
		p++
		f.Position = p
		w.Frame(f)
	}
	b.StopTimer()
	if err := w.Close(0); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkScan(b *testing.B) {
	path := filepath.Join(b.TempDir(), "a.tape")
	w, _ := newTape(b, path, WriterOptions{})
	write(w, chat(50_000, time.Millisecond))
	closeWriter(b, w, 0)
	r := open(b, path)
	b.ReportAllocs()
	frames := 0
	for b.Loop() {
		for from := capture.Position(1); ; {
			some, err := r.Frames(b.Context(), from, 1000)
			if err != nil {
				b.Fatal(err)
			}
			if len(some) == 0 {
				break
			}
			from = some[len(some)-1].Position + 1
			frames += len(some)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(frames), "ns/frame")
}

func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "a.tape")
	w, _ := newTape(b, path, WriterOptions{})
	write(w, chat(200_000, time.Millisecond))
	closeWriter(b, w, 0)
	if info, err := os.Stat(path); err == nil {
		b.ReportMetric(float64(info.Size())/1e6, "MB")
	}
	for b.Loop() {
		r, err := Open(path)
		if err != nil {
			b.Fatal(err)
		}
		r.Close()
	}
}
