package proxy

import (
	"net/http"
	"strings"
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
	// A Socket.IO event with binary attachments is one message in several: all
	// of them are asked about and held until the last has come, and if one is
	// withheld, all are. Two things cannot be held and pass whatever the verdict
	// on what follows: an event of more than Config.BodyLimit bytes in all, and
	// one whose attachments come in a later polling body. A single message over
	// that limit passes unasked.
	Judge(f *capture.Frame) Verdict
}

// Verdict is what a Gate says of a message. The zero value lets it pass.
type Verdict struct {
	// Withhold stops the message.
	Withhold bool
	// Replace is sent in its place, if it is not nil.
	Replace []byte
	// Answers are text messages for whoever sent it, whole Engine.IO packets
	// where it speaks Socket.IO. By polling they answer the client's poll at
	// once, even if the gateway holds it: what that says then answers the next
	// one. While a WebSocket is about to take the session over, they go out with
	// what the gateway says next. A gateway that is polled cannot be answered.
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
	ways    [capture.FromGateway + 1]event
	answers []answer // for the client's next poll
	// spare is a poll whose client was answered by the gate, and whose answer is
	// for the client's next one.
	spare   *poll
	sockets int           // WebSockets that may take the session over
	over    bool          // the session has ended
	changed chan struct{} // closed when a poll that waits may be answered
	fields  http.Header   // what browsers ask for in an answer of the proxy's own
}

// event is a binary event whose attachments have not all come.
type event struct {
	left int // attachments to come
	fate fate
}

// fate is what became of the parts of an event that have come.
type fate uint8

const (
	held fate = iota
	passed
	withheld
)

// role is what a packet is to the binary event under way.
type role uint8

const (
	alone      role = iota // a message of its own
	beat                   // no message: a heartbeat, which may come between
	header                 // the beginning of an event with attachments
	attachment             // one of those
)

// maxAttachments is where the number in a header stops being believed.
const maxAttachments = 1 << 20

// follow returns what f is to the event under way in its direction, and the
// event as it is after it.
func (g *gateState) follow(f *capture.Frame) (role, event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	e := &g.ways[f.Direction]
	binary := f.Kind == capture.Binary || len(f.Data) > 0 && f.Data[0] == 'b'
	switch {
	case binary && e.left > 0:
		e.left--
		return attachment, *e
	case !binary && !isMessage(f.Data):
		return beat, *e
	}
	*e = event{left: attachmentCount(f.Data)}
	if e.left > 0 {
		return header, *e
	}
	return alone, *e
}

// settle says what became of the event under way in the direction dir.
func (g *gateState) settle(dir capture.Direction, f fate) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ways[dir].fate = f
}

// free reports whether a message may stand next in the direction dir.
func (g *gateState) free(dir capture.Direction) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.border(dir)
}

// border is free with mu held.
func (g *gateState) border(dir capture.Direction) bool {
	return g.ways[dir].left == 0 || g.ways[dir].fate != passed
}

func (g *gateState) wait(a []answer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answers = append(g.answers, a...)
	g.wake()
}

func (g *gateState) take() []answer {
	g.mu.Lock()
	defer g.mu.Unlock()
	a := g.answers
	g.answers = nil
	return a
}

// lend keeps those fields of the gateway's answer that an answer of the proxy's
// own needs too, or a browser would not give it to a page of another origin.
func (g *gateState) lend(h http.Header) {
	fields := http.Header{}
	for name, values := range h {
		if name == "Vary" || strings.HasPrefix(name, "Access-Control-") {
			fields[name] = values
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fields = fields
}

// borrow adds those fields to h.
func (g *gateState) borrow(h http.Header) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, values := range g.fields {
		h[name] = values
	}
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
