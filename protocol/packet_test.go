package protocol

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"tapedeck/protocol/capture"
	"tapedeck/protocol/wire"
)

// TestPacket decodes what passed, as the judge does, and looks at what the
// framing breaks: reports E03, E05, E06 and J08.
func TestPacket(t *testing.T) {
	for _, c := range []struct{ name, eio, frame, want string }{
		{"an event", "4", `42["run:cancel",{"runId":"r"}]`, ""},
		{"E06: no name", "4", `42[]`, "error frame-malformed"},
		{"E06: no array", "4", `42{"a":1}`, "error frame-malformed"},
		{"E06: nothing", "4", `4`, "error frame-malformed"},
		{"E06: no such packet", "4", `9`, "error frame-malformed"},
		{"E06: cut", "4", `42["q"`, "error frame-encoding"},
		{"J08: NaN", "4", `42["run:event",{"score":NaN}]`, "error frame-encoding"},
		{"no UTF-8", "4", "42[\"run:event\",\"\xff\"]", "error frame-encoding"},
		{"E05: too many attachments", "4", `45999999-["q"]`, "error packet-malformed-binary"},
		{"E03: Engine.IO 3", "3", `42["run:cancel",{"runId":"r"}]`, "warning engine-version"},
	} {
		var d wire.Decoder
		open := capture.Frame{Position: 1, Connection: 1, Kind: capture.Open, Data: []byte(`{"transport":"socket.io","eio":"` + c.eio + `","target":"/socket.io/","remote":""}`)}
		d.Decode(&open)
		f := capture.Frame{Position: 2, Connection: 1, Kind: capture.Text, Direction: capture.FromGateway, Data: []byte(c.frame), Size: int64(len(c.frame))}
		var findings []Finding
		for _, p := range d.Decode(&f) {
			findings = Packet(&p, findings)
		}
		got := ""
		for _, f := range findings {
			got += f.Severity.String() + " " + f.Rule
			if f.At.Position != 2 || f.Connection != 1 {
				t.Errorf("%s: found at %v of connection %d", c.name, f.At, f.Connection)
			}
			if f.Text == "" || len(f.Text) >= 200 {
				t.Errorf("%s: text %q", c.name, f.Text)
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestFrame is report E04: what is over the limit says both figures, and where
// no limit was announced there is none.
func TestFrame(t *testing.T) {
	frame := func(k capture.Kind, from capture.Direction, size int64) *capture.Frame {
		return &capture.Frame{Position: 9, Connection: 4, Kind: k, Direction: from, Size: size}
	}
	for _, c := range []struct {
		name  string
		frame *capture.Frame
		limit int64
		found bool
	}{
		{"as large as allowed", frame(capture.Text, capture.FromClient, 1000), 1000, false},
		{"larger", frame(capture.Text, capture.FromClient, 1010), 1000, true},
		{"by polling", frame(capture.Polling, capture.FromClient, 1010), 1000, true},
		{"binary", frame(capture.Binary, capture.FromClient, 1010), 1000, true},
		{"no limit", frame(capture.Text, capture.FromClient, 1010), 0, false},
		{"from the gateway, which has none", frame(capture.Text, capture.FromGateway, 1010), 1000, false},
		{"a body of the rest of HTTP", frame(capture.Body, capture.FromClient, 1010), 1000, false},
	} {
		got := Frame(c.frame, c.limit, nil)
		if len(got) > 0 != c.found {
			t.Errorf("%s: %v", c.name, got)
		}
		if !c.found {
			continue
		}
		want := Finding{
			Rule: "packet-over-limit", Severity: Error, At: capture.Address{Position: 9}, Connection: 4,
			Text: "1010 B > maxPayload 1000 from the handshake: the gateway answers 413 or closes with 1009; send less, or raise its maxHttpBufferSize",
		}
		if diff := cmp.Diff([]Finding{want}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}
