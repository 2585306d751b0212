package proxy

import (
	"sync"

	"tapedeck/protocol/capture"
)

// Gate decides whether a message is sent on. Where one is set, messages are held
// until they are whole; their bytes pass unchanged all the same.
type Gate interface {
	// Judge is asked about a text or binary WebSocket message, or about one
	// packet of a polling body, which is then f's Data. The position of f is 0,
	// since it is put on the tape after the verdict. Judge is called for both
	// directions of many connections at once, in order for each direction of a
	// connection, and holds that direction up until it returns.
	//
	// The attachments of a binary event share the fate of its header without
	// being asked about. A message over Config.BodyLimit cannot be held: it
	// passes unasked.
	Judge(f *capture.Frame) Verdict
}

// Verdict is what a Gate says of a message. The zero value lets it pass.
type Verdict struct {
	// Withhold stops the message.
	Withhold bool
	// Replace is sent in its place, if it is not nil.
	Replace []byte
	// Answers are text messages for whoever sent it, whole Engine.IO packets
	// where it speaks Socket.IO. By polling they go out with the client's next
	// poll, so with what the gateway says next, if a poll is waiting there
	// already: the gateway ends a session that polls twice at once. A gateway
	// that is polled cannot be answered.
	Answers [][]byte
	// Deed tells the tape what was done. Its positions are filled in.
	Deed capture.Deed
}

func (v *Verdict) passes() bool { return !v.Withhold && v.Replace == nil }

// answer is an answer of a Gate on its way.
type answer struct {
	text []byte
	of   capture.Position // what it answers
	rule string
}

// gateState is what a Gate's work needs to know of a connection, whatever
// carries it at the moment.
type gateState struct {
	mu      sync.Mutex
	ways    [capture.FromGateway + 1]attachments
	answers []answer // for the client's next poll
}

// attachments are those that a binary event still lacks.
type attachments struct {
	left     int
	withheld bool // as their header was
}

// maxAttachments is where the number in a header stops being believed.
const maxAttachments = 1 << 20

// judge asks gate about f. Packet is whether f's data is an Engine.IO packet.
func (g *gateState) judge(gate Gate, f *capture.Frame, packet bool) Verdict {
	if packet {
		if v, decided := g.attachment(f); decided {
			return v
		}
	}
	v := gate.Judge(f)
	if packet {
		g.mu.Lock()
		g.ways[f.Direction] = attachments{left: attachmentCount(f.Data), withheld: v.Withhold && v.Replace == nil}
		g.mu.Unlock()
	}
	return v
}

// attachment decides about f if it is the attachment of a binary event.
func (g *gateState) attachment(f *capture.Frame) (Verdict, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	a := &g.ways[f.Direction]
	binary := f.Kind == capture.Binary || len(f.Data) > 0 && f.Data[0] == 'b'
	if a.left == 0 || !binary {
		return Verdict{}, a.left > 0 && !isMessage(f.Data) // a heartbeat between them
	}
	a.left--
	if !a.withheld {
		return Verdict{}, true
	}
	return Verdict{Withhold: true, Deed: capture.Deed{Did: "refused", Text: "an attachment of the message before it"}}, true
}

// free reports whether a message may stand next in the direction dir.
func (g *gateState) free(dir capture.Direction) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ways[dir].left == 0 || g.ways[dir].withheld
}

func (g *gateState) wait(a []answer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answers = append(g.answers, a...)
}

func (g *gateState) take() []answer {
	g.mu.Lock()
	defer g.mu.Unlock()
	a := g.answers
	g.answers = nil
	return a
}

func isMessage(packet []byte) bool { return len(packet) > 0 && packet[0] == '4' }

// attachmentCount returns how many attachments follow an Engine.IO packet, 0 if
// it is no binary event or acknowledgement.
func attachmentCount(packet []byte) int {
	if len(packet) < 3 || packet[0] != '4' || packet[1] != '5' && packet[1] != '6' {
		return 0
	}
	n := 0
	for _, c := range packet[2:] {
		switch {
		case c >= '0' && c <= '9' && n <= maxAttachments:
			n = 10*n + int(c-'0')
		case c == '-' && n <= maxAttachments:
			return n
		default:
			return 0
		}
	}
	return 0
}
