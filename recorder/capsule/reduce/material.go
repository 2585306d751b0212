package reduce

import (
	"bytes"
	"cmp"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
	"tapedeck/protocol/wire"
)

// unit is the least that can be taken out: a message with its attachments, one
// packet of a polling body, or an HTTP exchange.
type unit struct {
	connection capture.Position
	exchange   capture.Position // of a polling body, else 0
	thread     string
	run        string
	construct  string // what it is a part of, as a reader sees it
	sequence   int64  // of an envelope, else 0
	frame      int    // that it stands in, or begins in
	from, to   int    // where in the frame, if that is a polling body
	digits     [2]int // where in the frame the sequence's digits are
	// greets is set on what a connection begins with, which is kept as long as
	// anything else of the connection is.
	greets bool
	// opens is the run that a command opened or resumed: it is kept as long as
	// anything else of the run is, so that it can be played.
	opens string
}

// material is a recording, taken apart.
type material struct {
	frames []capture.Frame
	units  []unit
	// owner is the unit that a frame belongs to as a whole, -1 if there is none:
	// then it is a polling body, or goes with its exchange or its connection.
	owner  []int
	bodies map[int][]int // the units in a polling body
	// of is the connection of an exchange; frames may come before it is known.
	of map[capture.Position]capture.Position
	// polls are the exchanges with a polling body.
	polls  map[capture.Position]bool
	hellos map[capture.Position]bool // the connections that were greeted
	// greets are exchanges that a connection cannot be read without.
	greets map[capture.Position]bool
}

// takeApart reads frames.
func takeApart(session capture.SessionID, frames []capture.Frame) *material {
	m := &material{
		frames: frames, owner: make([]int, len(frames)), bodies: map[int][]int{},
		of: map[capture.Position]capture.Position{}, polls: map[capture.Position]bool{}, hellos: map[capture.Position]bool{}, greets: map[capture.Position]bool{},
	}
	at := make(map[capture.Position]int, len(frames))
	for i := range frames {
		f := &frames[i]
		at[f.Position], m.owner[i] = i, -1
		if f.Kind == capture.Polling {
			m.polls[f.Exchange] = true
		}
		if f.Exchange != 0 && f.Connection != 0 {
			m.of[f.Exchange] = f.Connection
		}
	}
	state := conversation.New(conversation.Options{Session: session})
	commands := map[capture.Position]int{} // the units of commands
	for i := range frames {
		step := state.Observe(&frames[i])
		messages := map[capture.Address]*protocol.Message{}
		for j := range step.Messages {
			messages[step.Messages[j].Address] = &step.Messages[j]
		}
		m.packets(i, at, step.Packets, messages)
		for _, message := range messages {
			if !message.Answer && message.Name.IsCommand() {
				commands[message.Address.Position] = len(m.units) - 1
			}
		}
		for _, post := range step.Posts {
			if id, is := commands[post.Position]; is && m.units[id].run == "" {
				m.units[id].opens = post.Run.Run
			}
		}
	}
	m.rest()
	return m
}

// packets makes units of the packets that a frame completed.
func (m *material) packets(i int, at map[capture.Position]int, packets []wire.Packet, messages map[capture.Address]*protocol.Message) {
	f := &m.frames[i]
	if f.Kind == capture.Polling && !m.cuttable(f, packets) {
		if len(packets) > 0 {
			u := m.newUnit(i, 0, len(f.Data), &packets[0], messages[packets[0].Address])
			u.sequence = 0 // it stays as it is
			m.add(u)
		}
		return
	}
	offset := 0
	for j := range packets {
		p := &packets[j]
		from := offset
		offset += len(p.Raw) + 1
		begin, ok := at[p.Address.Position]
		if !ok {
			continue
		}
		if f.Kind != capture.Polling {
			from, offset = 0, 0
		}
		u := m.newUnit(begin, from, from+len(p.Raw), p, messages[p.Address])
		if u.greets && f.Kind == capture.Polling {
			m.greets[f.Exchange] = true
		}
		m.add(u)
		for k := begin + 1; k <= i && f.Kind != capture.Polling; k++ { // its attachments
			if g := &m.frames[k]; g.Kind == capture.Binary && g.Connection == f.Connection && g.Direction == f.Direction {
				m.owner[k] = len(m.units) - 1
			}
		}
	}
}

// cuttable reports whether a polling body can be cut into its packets.
func (m *material) cuttable(f *capture.Frame, packets []wire.Packet) bool {
	size := -1
	for i := range packets {
		if len(packets[i].Attachments) > 0 || packets[i].Address.Position != f.Position {
			return false
		}
		size += len(packets[i].Raw) + 1
	}
	return size == len(f.Data)
}

// beginsConnection reports whether a packet is of a handshake.
func beginsConnection(p *wire.Packet) bool {
	switch p.Engine {
	case wire.EngineOpen, wire.EngineUpgrade:
		return true
	case wire.EnginePing, wire.EnginePong:
		return len(p.Raw) > 1 // a probe
	case wire.EngineMessage:
		return p.Type == wire.Connect
	}
	return false
}

func (m *material) add(u unit) {
	m.units = append(m.units, u)
	id := len(m.units) - 1
	if m.frames[u.frame].Kind == capture.Polling {
		m.bodies[u.frame] = append(m.bodies[u.frame], id)
	} else {
		m.owner[u.frame] = id
	}
}

func (m *material) newUnit(frame, from, to int, p *wire.Packet, message *protocol.Message) unit {
	f := &m.frames[frame]
	u := unit{connection: f.Connection, frame: frame, from: from, to: to}
	if f.Kind == capture.Polling {
		u.exchange = f.Exchange
	}
	u.construct = fmt.Sprintf("#%d.%d", p.Address.Position, p.Address.Packet)
	u.greets = beginsConnection(p)
	if message != nil && message.Name == protocol.Hello {
		u.greets, m.hellos[f.Connection] = !m.hellos[f.Connection], true
	}
	if message == nil {
		return u
	}
	if c, ok := protocol.ReadCommand(message); ok && !message.Answer {
		u.thread, u.run = c.ThreadID, c.RunID
		if c.InterruptID != "" {
			u.construct = "decision " + c.InterruptID
		}
	}
	if e := message.Envelope; e != nil {
		u.thread, u.run, u.sequence = e.ThreadID, e.RunID, e.Sequence
		if id := about(&e.Event); id != "" {
			u.construct = id
		}
		u.digits = m.findSequence(f.Data[from:min(to, len(f.Data))], message.Payload, from)
	}
	return u
}

// about names the construct that an event is a part of.
func about(e *protocol.Event) string {
	switch id := cmp.Or(e.MessageID, e.ToolCallID, e.TaskID); {
	case e.InterruptID != "":
		return "decision " + e.InterruptID
	case id != "":
		return "of " + id
	}
	return ""
}

// findSequence returns where the digits of an envelope's sequence are in its
// frame, none if it is spelled otherwise.
func (m *material) findSequence(packet, payload []byte, from int) (digits [2]int) {
	start := bytes.Index(packet, payload)
	if start < 0 {
		return digits
	}
	d := jsontext.NewDecoder(bytes.NewReader(payload), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if token, err := d.ReadToken(); err != nil || token.Kind() != '{' {
		return digits
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return digits
		}
		isSequence := name.String() == "sequence"
		value, err := d.ReadValue()
		if err != nil {
			return digits
		}
		if _, err := strconv.ParseUint(string(value), 10, 63); isSequence && err == nil {
			end := from + start + int(d.InputOffset())
			digits = [2]int{end - len(value), end}
		}
	}
	return digits
}

// rest makes units of the exchanges that no connection has, and of what stands
// alone.
func (m *material) rest() {
	exchanges := map[capture.Position]int{}
	for i := range m.frames {
		f := &m.frames[i]
		switch {
		case f.Kind == capture.Open: // a connection may be nothing but that
			m.units = append(m.units, unit{connection: f.Position, frame: i, construct: "connection"})
		case m.owner[i] >= 0 || m.bodies[i] != nil:
		case f.Exchange != 0 && m.of[f.Exchange] == 0:
			id, ok := exchanges[f.Exchange]
			if !ok {
				id = len(m.units)
				exchanges[f.Exchange] = id
				m.units = append(m.units, unit{frame: i, construct: fmt.Sprintf("exchange %d", f.Exchange)})
			}
			m.owner[i] = id
		case alone(f.Kind):
			m.owner[i] = len(m.units)
			m.units = append(m.units, unit{connection: f.Connection, frame: i, construct: fmt.Sprintf("#%d", f.Position)})
		}
	}
}

// alone reports whether a frame of a kind can be taken out by itself.
func alone(k capture.Kind) bool {
	switch k {
	case capture.Text, capture.Binary, capture.Ping, capture.Pong, capture.Stream, capture.Gap, capture.Act, capture.Body:
		return true
	}
	return false
}
