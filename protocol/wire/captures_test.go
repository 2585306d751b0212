package wire

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"tapedeck/protocol/capture"
)

var update = flag.Bool("update", false, "write what the captures decode to")

// TestCaptures decodes testdata/captures, each a conversation as it passed, and
// compares the packets with those that the file lists.
func TestCaptures(t *testing.T) {
	for _, path := range captureFiles(t) {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, frames := readCapture(t, path)
			var d Decoder
			var got strings.Builder
			for i := range frames {
				packets := d.Decode(&frames[i])
				checkPackets(t, &frames[i], packets)
				for _, p := range packets {
					got.WriteString(describe(&p))
				}
			}
			if *update {
				archive.Files = append(archive.Files[:1], txtar.File{Name: "packets", Data: []byte(got.String())})
				if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if len(archive.Files) < 2 {
				t.Fatal("the capture lists no packets; run with -update")
			}
			if diff := cmp.Diff(string(archive.Files[1].Data), got.String()); diff != "" {
				t.Errorf("packets (-want +got):\n%s", diff)
			}
		})
	}
}

func captureFiles(tb testing.TB) []string {
	tb.Helper()
	paths, err := filepath.Glob("testdata/captures/*.txtar")
	if err != nil || len(paths) == 0 {
		tb.Fatalf("find the captures: %d files, %v", len(paths), err)
	}
	return paths
}

// readCapture reads the frames of a capture file. A line is a frame:
//
//	open socket.io 4
//	< text 2probe
//	> poll+gzip 42["a"]\x1e2
//	< binary 0102
//	end
func readCapture(tb testing.TB, path string) (*txtar.Archive, []capture.Frame) {
	tb.Helper()
	archive, err := txtar.ParseFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	var frames []capture.Frame
	var open capture.Position
	for line := range strings.Lines(string(archive.Files[0].Data)) {
		line = strings.TrimSuffix(line, "\n")
		f := capture.Frame{Position: capture.Position(len(frames) + 1), At: time.Duration(len(frames)) * time.Millisecond}
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "open":
			transport, eio, _ := strings.Cut(rest, " ")
			eio, joined := strings.CutSuffix(eio, " joined")
			open, f.Kind = f.Position, capture.Open
			f.Data, err = json.Marshal(capture.Opening{Transport: capture.Transport(transport), EIO: eio, Joined: joined})
		case "end":
			f.Kind, f.Data = capture.End, []byte("{}")
		case "gap":
			f.Kind, f.Data = capture.Gap, []byte("{}")
		case "<", ">":
			f.Direction = capture.FromClient
			if word == "<" {
				f.Direction = capture.FromGateway
			}
			err = parseFrame(&f, rest)
		default:
			err = fmt.Errorf("a line begins with %q", word)
		}
		if err != nil {
			tb.Fatalf("%s: %q: %v", path, line, err)
		}
		if f.Kind != capture.Gap {
			f.Connection = open
		}
		f.Size = int64(len(f.Data))
		frames = append(frames, f)
	}
	return archive, frames
}

var hexEscape = regexp.MustCompile(`\\x[0-9a-f]{2}`)

func parseFrame(f *capture.Frame, line string) (err error) {
	kind, text, _ := strings.Cut(line, " ")
	kind, flags, _ := strings.Cut(kind, "+")
	f.Data = hexEscape.ReplaceAllFunc([]byte(text), func(b []byte) []byte {
		n, _ := strconv.ParseUint(string(b[2:]), 16, 8)
		return []byte{byte(n)}
	})
	switch kind {
	case "text":
		f.Kind = capture.Text
	case "poll":
		f.Kind = capture.Polling
	case "stream":
		f.Kind = capture.Stream
	case "close":
		f.Kind = capture.Close
	case "binary":
		f.Kind = capture.Binary
		f.Data, err = hex.DecodeString(text)
	default:
		err = fmt.Errorf("no kind of frame is called %q", kind)
	}
	switch flags {
	case "":
	case "cut":
		f.Flags = capture.Cut
	case "partial":
		f.Flags = capture.Partial
	case "withheld":
		f.Flags = capture.Withheld
	case "injected":
		f.Flags = capture.Injected
	case "gzip":
		f.Flags, f.Data = capture.Gzip, compress(f.Data, func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) })
	case "gzip!bad":
		f.Flags = capture.Gzip
	case "deflate":
		f.Flags, f.Data = capture.Deflate, compress(f.Data, func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) })
	case "rawdeflate":
		f.Flags, f.Data = capture.Deflate, compress(f.Data, func(w io.Writer) io.WriteCloser {
			z, _ := flate.NewWriter(w, flate.BestCompression)
			return z
		})
	default:
		err = fmt.Errorf("no flag is called %q", flags)
	}
	return err
}

func compress(b []byte, open func(io.Writer) io.WriteCloser) []byte {
	var out bytes.Buffer
	w := open(&out)
	w.Write(b)
	w.Close()
	return out.Bytes()
}

var (
	engineNames = [...]string{"open", "close", "ping", "pong", "message", "upgrade", "noop", "plain", "opaque"}
	typeNames   = [...]string{"connect", "disconnect", "event", "ack", "connect-error", "binary-event", "binary-ack"}
	faultNames  = [...]string{"no fault", "malformed", "bad encoding", "bad binary", "other version"}
)

// describe writes a packet as a capture file lists it.
func describe(p *Packet) string {
	var b strings.Builder
	way := map[capture.Direction]string{capture.FromClient: ">", capture.FromGateway: "<"}[p.Direction]
	fmt.Fprintf(&b, "%s %s %s", p.Address, way, engineNames[p.Engine])
	if p.Last != p.Address.Position {
		fmt.Fprintf(&b, " until %d", p.Last)
	}
	if p.Engine == EngineMessage || p.Engine == PlainJSON {
		fmt.Fprintf(&b, " %s", typeNames[p.Type])
	} else {
		fmt.Fprintf(&b, " %q", p.Raw)
	}
	if p.Namespace != "/" && p.Namespace != "" {
		fmt.Fprintf(&b, " of %s", p.Namespace)
	}
	if p.ID != "" {
		fmt.Fprintf(&b, " id %s", p.ID)
	}
	if p.NameRaw != nil {
		fmt.Fprintf(&b, " %q", p.Name)
	}
	for _, arg := range p.Args {
		fmt.Fprintf(&b, " %s", arg)
	}
	if p.Offset != "" {
		fmt.Fprintf(&b, " offset %s", p.Offset)
	}
	for i, attachment := range p.Attachments {
		fmt.Fprintf(&b, " attachment %d:%x", i, attachment)
	}
	if !p.Answers.IsZero() {
		fmt.Fprintf(&b, " answers %s %q", p.Answers, p.Asked)
	}
	if p.Repeated {
		b.WriteString(" again")
	}
	b.WriteString("\n")
	if p.Reason != "" {
		fmt.Fprintf(&b, "\t%s: %s", faultNames[p.Fault], p.Reason)
		if p.Offending >= 0 {
			fmt.Fprintf(&b, " (byte %d)", p.Offending)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// checkPackets holds what every packet promises, whatever the bytes.
func checkPackets(tb testing.TB, f *capture.Frame, packets []Packet) {
	tb.Helper()
	for i := range packets {
		p := &packets[i]
		switch {
		case p.Engine == Opaque && p.Reason == "":
			tb.Errorf("%s: opaque without a reason", p.Address)
		case p.Reason == "" && (p.Fault != NoFault || p.Offending != -1):
			tb.Errorf("%s: fault %d at byte %d without a reason", p.Address, p.Fault, p.Offending)
		case p.Offending < -1 || p.Offending >= len(p.Raw) && p.Offending != -1:
			tb.Errorf("%s: byte %d of %d is to blame", p.Address, p.Offending, len(p.Raw))
		case p.Last != f.Position || p.At != f.At || p.Connection != f.Connection && f.Kind != capture.Gap:
			tb.Errorf("%s: completed at %d, %v on connection %d, in frame %d", p.Address, p.Last, p.At, p.Connection, f.Position)
		case p.Direction != f.Direction && f.Kind != capture.End && f.Kind != capture.Gap:
			tb.Errorf("%s: from the %s, in a frame of the %s", p.Address, p.Direction, f.Direction)
		}
		if p.Engine == EngineMessage || p.Engine == PlainJSON {
			for _, arg := range p.Args {
				// Package json reads less deep than JSON.parse does.
				if !json.Valid(arg) && bytes.Count(arg, []byte("["))+bytes.Count(arg, []byte("{")) < 10_000 {
					tb.Errorf("%s: argument %q is no JSON", p.Address, arg)
				}
			}
		}
	}
}
